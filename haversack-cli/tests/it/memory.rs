//! The most memory that the program has at once, as the kernel counts it. The figure can be too low, never too high, so a test of an upper limit
//! cannot fail by chance.

use std::process::Stdio;

use haversack_bench::memory::peak_of;

use crate::machines::Machines;

const MEGABYTE: u64 = 1_000_000;

/// Memory of the program itself, built without optimisation (about 32 MB), and some room.
const BESIDES: u64 = 48 * MEGABYTE;

/// Runs a command that must succeed; returns the most bytes of memory that it had at once.
fn peak(machines: &Machines, machine: &str, arguments: &[&str]) -> u64 {
    let mut command = machines.command(machine, arguments);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let (status, peak) = peak_of(&mut command).expect("started");
    assert!(status.success(), "{machine} {arguments:?}");
    peak
}

fn begin(machines: &Machines) {
    machines.done("laptop", &["remote", "add", &machines.url(), "--device", "laptop", "--no-mirror"]);
}

fn join(machines: &Machines) -> u64 {
    peak(machines, "desktop", &["join", &machines.url(), "--device", "desktop", "--yes", "--no-mirror"])
}

/// The store is larger than the limit: a sync must send and receive contents in parts. It takes about 105 MB; holding all contents took 330 MB
/// for 300 files.
#[test]
fn memory_of_a_join_does_not_grow_with_the_store() {
    const FILES: u64 = 400;
    const FILE_BYTES: usize = 500_000;
    let machines = Machines::new();
    for number in 0..FILES {
        let line = format!("note {number}: the lamp of the lighthouse was lit\n");
        let text = &line.repeat(FILE_BYTES / line.len() + 1)[..FILE_BYTES];
        machines.write("laptop", &format!("notes/{number}.md"), text);
    }
    begin(&machines);
    let most = 112 * MEGABYTE + BESIDES;
    assert!(most < FILES * FILE_BYTES as u64, "the store is too small to tell");
    let sent = peak(&machines, "laptop", &["sync"]);
    assert!(sent <= most, "a first sync took {} MB", sent / MEGABYTE);
    let joined = join(&machines);
    assert!(joined <= most, "a join took {} MB", joined / MEGABYTE);
    let last = format!("notes/{}.md", FILES - 1);
    assert_eq!(machines.read("desktop", &last), machines.read("laptop", &last));
}

/// A file to merge: its name and its lines by number.
type Shape = (&'static str, fn(usize) -> String);

/// The base, both sides and the result are four times the file. The tables of a merge take less than one and a half times the file.
#[test]
fn memory_of_a_merge_is_a_few_times_the_file() {
    const BYTES: usize = 20_000_000;
    let shapes: [Shape; 2] = [
        ("notes.md", |number| format!("- the lamp was lit at dusk, and the oil stood at mark {number:>7}\n")),
        ("events.jsonl", |number| {
            format!(
                "{{\"ts\":\"2026-11-18T00:00:00Z\",\"id\":\"e{number:>6}\",\"said\":\"the lamp was lit\"}}\n"
            )
        }),
    ];
    let machines = Machines::new();
    begin(&machines);
    let text_of = |line: fn(usize) -> String, changed: &dyn Fn(usize) -> bool| -> String {
        let lines = (0..BYTES / line(0).len()).map(|number| match changed(number) {
            true => line(number).replace("lamp", "beacon"),
            false => line(number),
        });
        lines.collect()
    };
    for (name, line) in shapes {
        machines.write("laptop", name, &text_of(line, &|_| false));
    }
    machines.done("laptop", &["sync"]);
    join(&machines);
    for (name, line) in shapes {
        machines.write("laptop", name, &text_of(line, &|number| number % 997 == 500));
        machines.done("laptop", &["sync"]);
        machines.write("desktop", name, &text_of(line, &|number| number % 1009 == 700));
        let merged = peak(&machines, "desktop", &["sync"]);
        let most = BYTES as u64 * 11 / 2 + BESIDES;
        assert!(merged <= most, "merging {name} took {} MB", merged / MEGABYTE);
        let both = text_of(line, &|number| number % 997 == 500 || number % 1009 == 700);
        let text = machines.read("desktop", name).expect("there");
        // Too long to be shown.
        assert!(text == both, "{name} is not both changes");
    }
}
