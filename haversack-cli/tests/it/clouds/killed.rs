//! `kill -9` in the middle of a sync: the next one goes on, nothing is lost, and nothing is left lying around.

use std::process::Stdio;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use haversack_servers::Act;

use super::{Place, times};
use crate::machines::Machines;
use crate::random_machines::Chance;

/// The progress of the request in which a sync is killed.
#[derive(Clone, Copy, Debug)]
enum Moment {
    /// The storage never hears of it.
    Before,
    /// It arrives when its sender is dead.
    Late,
    /// It is done, and its sender is dead before the answer.
    After,
}

/// When the next sync is killed.
struct Plan {
    request: usize,
    moment: Moment,
    reached: Sender<()>,
    killed: Receiver<()>,
}

#[test]
fn nothing_is_lost() {
    let Some(place) = Place::azure() else { return };
    let machines = Machines::new();
    machines.write("laptop", "notes.md", "begin\n\n");
    place.add(&machines, "laptop", &[]);
    place.join(&machines, "desktop", &[]);
    let plan: Arc<Mutex<Option<Plan>>> = Arc::default();
    let next = plan.clone();
    place.front.script(move |seen| {
        let mut plan = next.lock().expect("whole");
        if plan.as_ref().is_none_or(|plan| plan.request != seen.number) {
            return Act::Pass;
        }
        let Some(Plan { moment, reached, killed, .. }) = plan.take() else { return Act::Pass };
        drop(plan);
        let wait = move || {
            let _ = reached.send(());
            let _ = killed.recv();
        };
        match moment {
            Moment::Before => {
                wait();
                Act::Drop
            }
            Moment::Late => {
                wait();
                Act::Pass
            }
            Moment::After => Act::change(move |_| wait()),
        }
    });
    let mut chance = Chance::new(1);
    let mut written = Vec::new();
    let mut kills = 0;
    for round in 0..times(15, 300) {
        let machine = ["laptop", "desktop"][chance.below(2)];
        for file in ["notes.md", "project_lighthouse.md", &format!("new/{round:03}.md")] {
            let token = format!("{machine}-{round:03}-{file} was here");
            let text = machines.read(machine, file).unwrap_or_default();
            machines.write(machine, file, &format!("{text}{token}\n\n"));
            written.push(token);
        }
        let (reached, when_reached) = channel();
        let (is_killed, killed) = channel();
        place.front.forget();
        // A sync that sends has some ten requests: the end of the log, the new position, the plain copies, the manifest. The new position
        // is where it matters most.
        let request = if chance.below(2) == 0 { 1 } else { chance.below(9) };
        let moment = [Moment::Before, Moment::Late, Moment::After][chance.below(3)];
        *plan.lock().expect("whole") = Some(Plan { request, moment, reached, killed });
        let mut sync = machines.command(machine, &["sync"]);
        let mut child = sync.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("started");
        // Either the request comes, or the sync is over before it would.
        while child.try_wait().expect("asked").is_none() {
            if when_reached.recv_timeout(std::time::Duration::from_millis(5)).is_ok() {
                child.kill().expect("killed");
                kills += 1;
                break;
            }
        }
        drop(child.wait());
        let _ = is_killed.send(());
        plan.lock().expect("whole").take();
        // A late request is there before the next look, or not: both must be well.
    }
    assert!(kills * 2 >= times(15, 300), "only {kills} were killed");
    for _ in 0..3 {
        place.done(&machines, "laptop", &["sync"]);
        place.done(&machines, "desktop", &["sync"]);
    }
    let files = machines.files("laptop");
    assert_eq!(files, machines.files("desktop"));
    let all: String = files.values().cloned().collect();
    for token in &written {
        assert_eq!(all.matches(token.as_str()).count(), 1, "{token}: {files:#?}");
    }
    for machine in ["laptop", "desktop"] {
        let shown = place.done(&machines, machine, &["sync"]);
        assert!(shown.contains("Nothing new."), "{shown}");
        let output = machines.command(machine, &["status", "--json"]).output().expect("ran");
        let status: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!((&status["unfinished"], &status["waiting"]), (&false.into(), &0.into()), "{status}");
    }
    // The plain copies are what the files are, and besides them there is only what belongs there.
    place.done(&machines, "laptop", &["sync", "--full"]);
    let objects = place.objects();
    let mut positions = 0;
    for (key, bytes) in &objects {
        match key.split('/').collect::<Vec<_>>()[..] {
            [".haversack", "log", _] => positions += 1,
            [".haversack", "store.json"]
            | ["manifest.json"]
            | [".haversack", "objects" | "checkpoints" | "segments", ..] => {}
            _ => assert_eq!(files.get(key).map(String::as_bytes), Some(&bytes[..]), "{key} is in the remote"),
        }
    }
    assert!(files.keys().all(|file| objects.contains_key(file)), "{:?}", objects.keys());
    assert_eq!(positions, super::devices::log(&place).len(), "no gap, and nothing beside");
}
