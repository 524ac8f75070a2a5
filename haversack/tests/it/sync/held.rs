//! Held files are not sent: not in commits, objects, segments, checkpoints or the mirror.

use std::time::Duration;

use futures_lite::future::block_on;
use haversack::store::{BackendExt, Locator};
use haversack::sync::{Context, Deletions, Gate, Hold, Intervals, Mirror, Report};

use super::World;
use crate::subjects::at;

const SECRET: &str = "open sesame";

/// Holds back what has the secret, unless it was sent.
struct Guard;

impl Gate for Guard {
    fn holds(&self, _: &Locator, content: &[u8]) -> Option<Hold> {
        has(content).then(|| Hold::lines("a secret", vec![1]))
    }

    fn still_holds(&self, locator: &Locator, content: &[u8], sent: &[u8]) -> Option<Hold> {
        if has(sent) { None } else { self.holds(locator, content) }
    }
}

/// Deletes a file as soon as another is looked at, and lets that pass or not.
struct Deleting<'a> {
    world: &'a World,
    hold: Option<Hold>,
}

impl Gate for Deleting<'_> {
    fn holds(&self, locator: &Locator, _: &[u8]) -> Option<Hold> {
        let is_first = locator.name() == "first.md";
        if is_first {
            self.world.delete("laptop", "second.md");
        }
        self.hold.clone().filter(|_| is_first)
    }
}

fn has(content: &[u8]) -> bool {
    content.windows(SECRET.len()).any(|window| window == SECRET.as_bytes())
}

impl World {
    /// Syncs by every way there is, with a checkpoint and a segment at every commit.
    fn guarded(&self, device: &str) -> Report {
        let intervals = Intervals {
            checkpoint_commits: 1,
            segment_commits: 1,
            keep_positions: Duration::ZERO,
            keep_contents: None,
            rebuilt_files: 2,
        };
        self.with(device, async |replica, context| {
            let context = Context { gate: &Guard, intervals, ..context };
            let report = replica.sync(context).await?;
            replica.push_one(context, &at("held.md")).await?;
            replica.mirror(context).await?;
            replica.reconcile(context, Mirror::On).await?;
            Ok(report)
        })
        .expect("synced")
    }

    /// Returns every object in a directory that has the secret, our own ones included.
    fn leaks(&self, directory: &str) -> Vec<Locator> {
        let there = self.open(directory);
        block_on(async {
            let own = Locator::reserved(".haversack").expect("ours");
            let mut all = there.list_all(&Locator::root()).await.expect("listed");
            all.extend(there.list_all(&own).await.expect("listed"));
            let mut found = Vec::new();
            for locator in all {
                if has(&there.read(&locator).await.expect("read").bytes) {
                    found.push(locator);
                }
            }
            found
        })
    }

    fn held(&self, report: &Report) -> Vec<String> {
        assert_eq!(self.leaks("remote"), []);
        report.held.iter().map(|(locator, _)| locator.to_string()).collect()
    }
}

#[test]
fn nothing_of_what_is_held_back_is_in_the_remote() {
    let world = World::new();
    world.put("laptop", "held.md", "first\n");
    world.put("laptop", "large.bin", vec![7; 700_000]);
    world.put("laptop", "fine.md", "fine\n");
    assert_eq!(world.held(&world.guarded("laptop")), Vec::<String>::new());
    world.guarded("desktop");

    // An append, a replacement, a new file, a large one, and one that has another name now.
    world.put("laptop", "held.md", format!("first\n{SECRET}\n"));
    world.put("laptop", "large.bin", [vec![7; 700_000], SECRET.into()].concat());
    world.put("laptop", "new.md", format!("{SECRET}\n"));
    world.put("laptop", "sub/larger.bin", [SECRET.into(), vec![8; 900_000]].concat());
    world.delete("laptop", "fine.md");
    world.put("laptop", "renamed.md", format!("fine\n{SECRET}\n"));
    world.put("laptop", "other.md", "travels\n");
    let expected = ["held.md", "large.bin", "new.md", "renamed.md", "sub/larger.bin"];
    assert_eq!(world.held(&world.guarded("laptop")), expected);

    // Both change what is held back: it is merged here, or kept beside it, and held back again.
    world.put("desktop", "held.md", "first\nof the desktop\n");
    world.put("desktop", "large.bin", vec![9; 700_000]);
    world.guarded("desktop");
    let held = world.held(&world.guarded("laptop"));
    assert!(held.iter().any(|key| key == "held.md"), "{held:?}");
    assert!(held.iter().any(|key| key.contains("large")), "{held:?}");
    let merged = world.text("laptop", "held.md").expect("there");
    assert!(merged.contains(SECRET) && merged.contains("of the desktop"), "{merged}");
    world.guarded("desktop");
    assert_eq!(world.leaks("desktop/memory"), []);
    assert_eq!(world.leaks("desktop/state"), []);
    assert_ne!(world.leaks("laptop/memory"), [], "it would be seen");
    assert_eq!(world.text("desktop", "other.md").as_deref(), Some("travels\n"));

    // Once it is gone, all of it is sent.
    world.put("laptop", "held.md", "first\nof the desktop\nand of the laptop\n");
    assert!(!world.held(&world.guarded("laptop")).contains(&"held.md".to_owned()));
    world.guarded("desktop");
    assert_eq!(world.text("desktop", "held.md"), world.text("laptop", "held.md"));
}

#[test]
fn what_the_remote_has_does_not_keep_a_file_here() {
    let world = World::new();
    world.put("laptop", "held.md", format!("{SECRET}\n"));
    world.sync("laptop");
    world.sync("desktop");
    world.put("desktop", "held.md", format!("{SECRET}\nand more\n"));
    assert_eq!(world.guarded("desktop").held, []);
    world.sync("laptop");
    assert_eq!(world.text("laptop", "held.md"), world.text("desktop", "held.md"));
}

/// Seeds 84274822 and 84339198 of the vault's schedules: a file was changed, and deleted while a sync read others, and the sync told of neither.
#[test]
fn what_goes_away_before_it_is_read_is_told_as_gone() {
    for hold in [None, Some(Hold::whole("not now"))] {
        let world = World::new();
        for text in ["as it was", "changed"] {
            world.put("laptop", "first.md", text);
            world.put("laptop", "second.md", text);
            if text == "as it was" {
                world.sync("laptop");
                world.sync("desktop");
            }
        }
        let gate = Deleting { world: &world, hold };
        world.try_sync("laptop", &gate, Deletions::Cautious).expect("synced");
        world.sync("desktop");
        assert_eq!(world.text("desktop", "second.md"), None);
    }
}
