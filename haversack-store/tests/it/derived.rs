//! A derived tier that is kept true to its source.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use haversack_store::{
    Backend, BackendExt, Bytes, Changes, Condition, DerivedMaintenance, InMemory, Locator, Result, Sightings,
    Tier, block_on, look_again,
};

use crate::conform::Directory;

fn at(key: &str) -> Locator {
    Locator::parse(key).expect("a plain key")
}

/// The root of the files that the index is made from.
const SOURCE: &str = "memory";

/// The files that contain each word.
struct WordIndex {
    backend: Arc<dyn Backend>,
    words: Mutex<BTreeMap<String, BTreeSet<Locator>>>,
}

#[async_trait]
impl DerivedMaintenance for WordIndex {
    async fn reindex(&self, tier: Tier) -> Result<()> {
        assert_eq!(tier, Tier::LocalIndex);
        let mut words: BTreeMap<String, BTreeSet<Locator>> = BTreeMap::new();
        for locator in self.backend.list_all(&at(SOURCE)).await? {
            let text = self.backend.read_text(&locator).await?.unwrap_or_default();
            for word in text.split_whitespace() {
                words.entry(word.to_owned()).or_default().insert(locator.clone());
            }
        }
        *self.words.lock().expect("not poisoned") = words;
        Ok(())
    }

    async fn changed_since(&self, known: &Sightings) -> Result<Changes> {
        look_again(&*self.backend, &at(SOURCE), known).await
    }
}

#[test]
fn an_index_rebuilt_from_nothing_tracks_its_source() {
    let backend: Arc<dyn Backend> = Arc::new(InMemory::new());
    let index = WordIndex { backend: backend.clone(), words: Mutex::default() };
    let write = |key: &str, text: &'static str| {
        let _ = block_on(backend.write(&at(key), Bytes::from(text), Condition::Any)).expect("written");
    };
    write("memory/a.md", "lighthouse keeper");
    write("abstracts/a.md", "not a source");
    block_on(index.reindex(Tier::LocalIndex)).expect("rebuilt");
    let first = block_on(index.changed_since(&Sightings::default())).expect("looked");
    assert_eq!(first.added, [at("memory/a.md")]);

    write("memory/a.md", "harbour keeper");
    write("memory/b.md", "lighthouse");
    let second = block_on(index.changed_since(&first.now)).expect("looked");
    assert_eq!((second.added, second.changed), (vec![at("memory/b.md")], vec![at("memory/a.md")]));
    block_on(index.reindex(Tier::LocalIndex)).expect("rebuilt");
    let words = index.words.lock().expect("not poisoned");
    assert_eq!(words["lighthouse"], BTreeSet::from([at("memory/b.md")]));
    assert!(!words.contains_key("source"));
}

#[test]
fn times_are_a_hint_and_content_decides() {
    let directory = Directory::new();
    let backend = directory.backend();
    for number in 0..20 {
        let (locator, text) = (at(&format!("{number}.md")), Bytes::from(format!("note {number}")));
        let _ = block_on(backend.write(&locator, text, Condition::Any)).expect("written");
    }
    let look = |known: &Sightings| block_on(look_again(&backend, &Locator::root(), known)).expect("looked");
    let mut known = look(&Sightings::default());
    assert_eq!((known.added.len(), known.read), (20, 20));
    // Until the clock behind the times has ticked, everything is read again; then nothing is.
    for _ in 0..500 {
        if known.read == 0 {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
        known = look(&known.now);
        assert_eq!((&known.added, &known.changed, &known.removed), (&vec![], &vec![], &vec![]));
    }
    assert_eq!(known.read, 0);

    // Touched, but the same; other content with the old time and size, as from a backup; one gone.
    let root = directory.root();
    let touched = fs::File::options().append(true).open(root.join("1.md")).expect("opened");
    touched.set_modified(SystemTime::UNIX_EPOCH).expect("set");
    let time = fs::metadata(root.join("2.md")).and_then(|metadata| metadata.modified()).expect("a time");
    fs::write(root.join("2.md"), "NOTE 2").expect("written");
    fs::File::options()
        .append(true)
        .open(root.join("2.md"))
        .and_then(|file| file.set_modified(time))
        .expect("set");
    fs::remove_file(root.join("3.md")).expect("removed");
    let changes = look(&known.now);
    assert_eq!(changes.changed, [at("2.md")]);
    assert_eq!(changes.removed, [at("3.md")]);
    assert_eq!((changes.added, changes.read), (vec![], 2));
}
