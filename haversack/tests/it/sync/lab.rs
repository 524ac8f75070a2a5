//! Devices in memory whose files, state and remote can be taken out, damaged, forged and put back.

use std::collections::BTreeMap;
use std::error::Error as _;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use futures_lite::future::block_on;
use haversack::ids::{ContentHash, Position};
use haversack::log::{Commit, StateMark, layout};
use haversack::store::{Backend, BackendExt, Bytes, Condition, ErrorKind, InMemory, Locator};
use haversack::sync::{Author, Context, Intervals, Mirror, Mirrored, Replica, Report, SyncError};
use serde_json::{Value, json};

use super::{Counting, Midnight};

/// The devices of a lab: one that wrote most of the log, one that is behind, and one that joins.
pub(super) const DEVICES: [&str; 3] = ["laptop", "desktop", "tablet"];

/// Folds as often as can be, and leaves the commits at their positions.
pub(super) const FOLDING: Intervals = Intervals {
    checkpoint_commits: 4,
    segment_commits: 4,
    keep_positions: Duration::from_secs(1),
    keep_contents: None,
    rebuilt_files: 2,
};

/// All objects of a backend by key.
pub(super) type Objects = BTreeMap<String, Bytes>;

/// Devices and their remote.
pub(super) struct Lab {
    pub(super) remote: Arc<InMemory>,
    devices: BTreeMap<&'static str, Device>,
    ids: Counting,
}

#[derive(Default)]
pub(super) struct Device {
    pub(super) files: Arc<InMemory>,
    pub(super) state: Arc<InMemory>,
}

/// All that a lab holds, to be set up again.
pub(super) struct Image {
    pub(super) remote: Objects,
    devices: BTreeMap<&'static str, (Objects, Objects)>,
}

impl Image {
    pub(super) fn state(&self, device: &str) -> &Objects {
        &self.devices[device].1
    }

    pub(super) fn set_up(&self) -> Lab {
        let lab = Lab::new();
        fill(&*lab.remote, &self.remote);
        for (device, (files, state)) in &self.devices {
            fill(&*lab.device(device).files, files);
            fill(&*lab.device(device).state, state);
        }
        lab
    }
}

/// Puts objects into an empty backend, under versions that none of them had before.
fn fill(backend: &dyn Backend, objects: &Objects) {
    let other = place("other");
    for _ in 0..100 {
        put(backend, &other, Bytes::new());
    }
    block_on(backend.delete(&other, Condition::Any)).expect("deleted");
    for (key, bytes) in objects {
        put(backend, &place(key), bytes.clone());
    }
}

fn put(backend: &dyn Backend, locator: &Locator, bytes: Bytes) {
    let _ = block_on(backend.write(locator, bytes, Condition::Any)).expect("written");
}

/// Returns the place of any key, of ours or not.
pub(super) fn place(key: &str) -> Locator {
    Locator::from_stored_key(key).expect("a key")
}

/// Returns all objects of a backend, ours too.
pub(super) fn objects(backend: &dyn Backend) -> Objects {
    let mut all = Objects::new();
    for directory in [Locator::root(), place(".haversack")] {
        for locator in block_on(backend.list_all(&directory)).expect("listed") {
            let bytes = block_on(backend.read(&locator)).expect("there").bytes;
            all.insert(locator.to_string(), bytes);
        }
    }
    if let Ok(manifest) = block_on(backend.read(&place("manifest.json"))) {
        all.insert("manifest.json".to_owned(), manifest.bytes);
    }
    all
}

impl Lab {
    pub(super) fn new() -> Lab {
        let devices = DEVICES.map(|device| (device, Device::default())).into();
        Lab { remote: Arc::default(), devices, ids: Counting(AtomicU64::new(1)) }
    }

    pub(super) fn device(&self, name: &str) -> &Device {
        &self.devices[name]
    }

    /// Takes everything out. What a device knows of the outsides of its files would not fit others.
    pub(super) fn image(&self) -> Image {
        let device = |device: &Device| {
            let mut state = objects(&*device.state);
            state.remove("stat-cache");
            (objects(&*device.files), state)
        };
        Image {
            remote: objects(&*self.remote),
            devices: self.devices.iter().map(|(name, found)| (*name, device(found))).collect(),
        }
    }

    pub(super) fn put(&self, device: &str, key: &str, bytes: impl Into<Bytes>) {
        put(&*self.device(device).files, &place(key), bytes.into());
    }

    pub(super) fn delete(&self, device: &str, key: &str) {
        block_on(self.device(device).files.delete(&place(key), Condition::Any)).expect("deleted");
    }

    pub(super) fn put_remote(&self, key: &str, bytes: impl Into<Bytes>) {
        put(&*self.remote, &place(key), bytes.into());
    }

    pub(super) fn remove_remote(&self, key: &str) {
        block_on(self.remote.delete(&place(key), Condition::Any)).expect("deleted");
    }

    pub(super) fn put_state(&self, device: &str, key: &str, bytes: impl Into<Bytes>) {
        put(&*self.device(device).state, &place(key), bytes.into());
    }

    pub(super) fn remove_state(&self, device: &str, key: &str) {
        block_on(self.device(device).state.delete(&place(key), Condition::Any)).expect("deleted");
    }

    /// Moves a device's whole state away.
    pub(super) fn forget(&self, device: &str) {
        for key in objects(&*self.device(device).state).keys() {
            self.remove_state(device, key);
        }
    }

    /// Returns the user's files of a device.
    pub(super) fn files(&self, device: &str) -> Objects {
        let mut files = objects(&*self.device(device).files);
        files.retain(|key, _| !key.starts_with(".haversack/"));
        files
    }

    pub(super) fn text(&self, device: &str, key: &str) -> String {
        let files = self.files(device);
        let bytes = files.get(key).unwrap_or_else(|| panic!("{key} is not on the {device}: {files:?}"));
        String::from_utf8_lossy(bytes).into_owned()
    }

    /// Opens a device's replica and does something with it; whatever stops it says why.
    pub(super) fn with<T>(
        &self,
        device: &str,
        work: impl AsyncFnOnce(&mut Replica, Context<'_>) -> Result<T, SyncError>,
    ) -> Result<T, String> {
        self.with_backends(device, self.device(device).files.clone(), self.remote.clone(), work)
    }

    /// The same over other ways to the files and the remote.
    pub(super) fn with_backends<T>(
        &self,
        device: &str,
        files: Arc<dyn Backend>,
        remote: Arc<dyn Backend>,
        work: impl AsyncFnOnce(&mut Replica, Context<'_>) -> Result<T, SyncError>,
    ) -> Result<T, String> {
        let author = Author { device: device.to_owned(), agent: None, session: None };
        let done = block_on(async {
            let state = self.device(device).state.clone();
            let mut replica = Replica::open(files, state, remote, &self.ids).await?;
            let context = Context { intervals: FOLDING, ..Context::new(&Midnight, &self.ids, &author) };
            work(&mut replica, context).await
        });
        done.map_err(|trouble| told(&trouble))
    }

    /// Opens the replicas of several devices, as if they were one home, and does something with them.
    pub(super) fn with_all<T>(
        &self,
        devices: &[&str],
        work: impl AsyncFnOnce(&mut [Replica], Context<'_>) -> Result<T, SyncError>,
    ) -> Result<T, String> {
        let author = Author { device: devices.join("-"), agent: None, session: None };
        let done = block_on(async {
            let mut replicas = Vec::new();
            for device in devices.iter().map(|device| self.device(device)) {
                let (files, state) = (device.files.clone(), device.state.clone());
                replicas.push(Replica::open(files, state, self.remote.clone(), &self.ids).await?);
            }
            let context = Context { intervals: FOLDING, ..Context::new(&Midnight, &self.ids, &author) };
            work(&mut replicas, context).await
        });
        done.map_err(|trouble| told(&trouble))
    }

    pub(super) fn sync(&self, device: &str) -> Result<Report, String> {
        self.with(device, async |replica, context| replica.sync(context).await)
    }

    pub(super) fn reconcile(&self, device: &str, mirror: Mirror) -> Result<Report, String> {
        self.with(device, async |replica, context| replica.reconcile(context, mirror).await)
    }

    pub(super) fn mirror(&self, device: &str) -> Result<Mirrored, String> {
        self.with(device, async |replica, context| replica.mirror(context).await)
    }

    /// Syncs all devices until they should be equal, and returns their files.
    #[track_caller]
    pub(super) fn converge(&self, case: &str) -> Objects {
        for device in ["laptop", "desktop", "tablet", "laptop", "desktop"] {
            self.sync(device).unwrap_or_else(|why| panic!("{case}: the {device}: {why}"));
        }
        self.agreed(case)
    }

    /// The same, and each device looks at everything again first: what it could not have before it may have now.
    #[track_caller]
    pub(super) fn converge_fully(&self, case: &str) -> Objects {
        for device in ["laptop", "desktop", "tablet", "laptop", "desktop"] {
            self.reconcile(device, Mirror::Off).unwrap_or_else(|why| panic!("{case}: the {device}: {why}"));
        }
        self.agreed(case)
    }

    /// Fails unless all devices have the same files and nothing to say.
    #[track_caller]
    fn agreed(&self, case: &str) -> Objects {
        let files = self.files("laptop");
        for device in DEVICES {
            let report = self.sync(device).unwrap_or_else(|why| panic!("{case}: the {device}: {why}"));
            assert_eq!((report.published, report.taken), (0, 0), "{case}: the {device} is quiet");
            let theirs = self.files(device);
            assert!(
                theirs == files,
                "{case}: the {device} has {:?}\nthe laptop {:?}",
                shown(&theirs),
                shown(&files)
            );
        }
        files
    }

    /// Puts a forged commit at the end of the log: a good frame that says whatever its changes say. Each is a line of the heading, the
    /// bytes that go with it, and the content it claims.
    pub(super) fn forge(&self, changes: &[Forged]) {
        let log = objects(&*self.remote);
        let commits = log.iter().filter(|(key, _)| key.starts_with(layout::commits().as_str()));
        let (_, last) = commits.last().expect("a commit");
        let commit = Commit::decode(last).expect("not folded");
        let mut mark = commit.state;
        for change in changes {
            if let Some(hash) = change.hash {
                add(&mut mark, &change.at, &hash);
            }
        }
        let position = commit.position.next().expect("a next one");
        let lines: Vec<&Value> = changes.iter().map(|change| &change.line).collect();
        let heading = json!({
            "store": commit.store, "position": position, "id": "00000000000000000000000000000bad",
            "previous": ContentHash::of(last), "replica": "00000000000000000000000000000bad",
            "device": "another", "time": 0, "cause": "forged", "state": mark, "changes": lines,
        });
        let contents: Vec<u8> = changes.iter().flat_map(|change| change.inline.clone()).collect();
        self.put_remote(layout::commit(position).as_str(), frame("commit", &heading, &contents));
    }

    pub(super) fn last_position(&self) -> Position {
        let log = objects(&*self.remote);
        let last = log.keys().filter_map(|key| key.strip_prefix(".haversack/log/")).next_back();
        Position::from_key(last.expect("a commit")).expect("a position")
    }
}

/// A change of a forged commit.
pub(super) struct Forged {
    at: String,
    line: Value,
    inline: Vec<u8>,
    hash: Option<ContentHash>,
}

impl Forged {
    /// A content inside the commit.
    pub(super) fn put(at: &str, text: &str) -> Forged {
        let hash = ContentHash::of(text.as_bytes());
        let line = json!({"at": at, "put": {"hash": hash, "size": text.len(), "inline": text.len()}});
        Forged { at: at.to_owned(), line, inline: text.as_bytes().to_vec(), hash: Some(hash) }
    }

    /// A content in an object, with any size.
    pub(super) fn object(at: &str, hash: ContentHash, size: u64) -> Forged {
        let line = json!({"at": at, "put": {"hash": hash, "size": size, "object": hash}});
        Forged { at: at.to_owned(), line, inline: Vec::new(), hash: Some(hash) }
    }
}

/// Adds a file under any name to a mark, by its definition.
pub(super) fn add(mark: &mut StateMark, key: &str, content: &ContentHash) {
    let file = ContentHash::of(&[key.as_bytes(), &[0], &content.to_bytes()].concat()).to_bytes();
    let mut bytes = mark.to_bytes();
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
    for (sum, more) in bytes.chunks_exact_mut(8).zip(file.chunks_exact(8)) {
        let added = number(sum).wrapping_add(number(more));
        sum.copy_from_slice(&added.to_le_bytes());
    }
    *mark = StateMark::from_bytes(bytes);
}

/// Returns a frame as another program would make it.
pub(super) fn frame(kind: &str, heading: &Value, contents: &[u8]) -> Bytes {
    let body = [heading.to_string().as_bytes(), b"\n", contents].concat();
    [format!("haversack-{kind} 1\n{}\n", ContentHash::of(&body)).as_bytes(), &body].concat().into()
}

/// Returns what a trouble says, with its causes.
fn told(trouble: &SyncError) -> String {
    let mut told = trouble.to_string();
    let mut cause = trouble.source();
    while let Some(error) = cause {
        told = format!("{told}: {error}");
        cause = error.source();
    }
    told
}

/// Fails if a line is gone from a remaining working file, or if there is a file that was never written.
#[track_caller]
pub(super) fn nothing_lost(case: &str, lab: &Lab, device: &str, before: &Objects) {
    let lines = |bytes: &Bytes| bytes.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect::<Vec<_>>();
    let after = lab.files(device);
    for (key, bytes) in before.iter().filter(|(key, bytes)| after.get(*key) != Some(bytes)) {
        let Some(goal) = CONVERGED.get(key).map(lines) else { continue };
        let now = after.get(key).map(lines).unwrap_or_default();
        let lost = lines(bytes).into_iter().find(|line| goal.contains(line) && !now.contains(line));
        assert_eq!(lost, None, "{case}: the {device} lost it from {key}");
    }
    let known = |key: &&String| before.contains_key(*key) || CONVERGED.contains_key(*key) || *key == "old.md";
    let strange: Vec<&String> = after.keys().filter(|key| !known(key)).collect();
    assert_eq!(strange, Vec::<&String>::new(), "{case}: the {device} has files that nobody wrote");
}

/// Fails if something of ours that was in the remote is not there any more, or is something else.
#[track_caller]
pub(super) fn nothing_overwritten(case: &str, lab: &Lab, before: &Objects) {
    let after = objects(&*lab.remote);
    for (key, bytes) in before {
        let now = after.get(key);
        // The content that a name promises may take the place of what does not hold it.
        let is_mended = now.is_some_and(|now| *key == layout::object(&ContentHash::of(now)).to_string());
        assert!(now == Some(bytes) || is_mended, "{case}: {key} was written over");
    }
}

/// Something that became of an object.
pub(super) struct Damage {
    pub(super) how: String,
    /// The present content; `None` for no file.
    pub(super) bytes: Option<Bytes>,
}

impl Damage {
    pub(super) fn new(how: impl Into<String>, bytes: impl Into<Bytes>) -> Damage {
        Damage { how: how.into(), bytes: Some(bytes.into()) }
    }

    pub(super) fn gone() -> Damage {
        Damage { how: "gone".to_owned(), bytes: None }
    }
}

/// Returns an object cut off and flipped at every place, or at some of them if it is long.
pub(super) fn broken(bytes: &Bytes, places: usize) -> Vec<Damage> {
    let step = bytes.len().div_ceil(places).max(1);
    let cuts = (0..bytes.len()).step_by(step);
    let cuts = cuts.map(|place| Damage::new(format!("cut at {place}"), bytes.slice(..place)));
    let flips = (0..bytes.len()).step_by(step).map(|place| {
        // Not always the same place in a step, nor the same bit.
        let place = (place + place / step * 7 % step).min(bytes.len() - 1);
        let mut flipped = bytes.to_vec();
        flipped[place] ^= 1 << (place % 8);
        Damage::new(format!("flipped at {place}"), flipped)
    });
    cuts.chain(flips).collect()
}

/// Returns what else can be in the place of an object: others of the same storage among it.
pub(super) fn replaced(bytes: &Bytes, others: &Objects) -> Vec<Damage> {
    let mut replaced = vec![
        Damage::new("garbage", &b"\xff\0garbage\n\n"[..]),
        Damage::new("zeros", vec![0; 10_000]),
        Damage::new("twice", [&bytes[..], bytes].concat()),
    ];
    // One of each kind.
    let mut kinds = BTreeMap::new();
    for (key, other) in others.iter().filter(|(_, other)| *other != bytes) {
        let start = String::from_utf8_lossy(&other[..other.len().min(16)]).into_owned();
        kinds.entry(start).or_insert((key, other));
    }
    let kinds = kinds.into_values().take(9);
    replaced.extend(kinds.map(|(key, other)| Damage::new(format!("what is at {key}"), other.clone())));
    if let Some(end) = bytes.windows(3).position(|end| end == b" 1\n") {
        let newer = [&bytes[..end], b" 2\n", &bytes[end + 3..]].concat();
        replaced.push(Damage::new("of a newer version", newer));
    }
    replaced
}

/// Returns objects as a failing test can show them.
pub(super) fn shown(objects: &Objects) -> BTreeMap<&str, String> {
    let short = |bytes: &Bytes| match bytes.len() {
        0..200 => String::from_utf8_lossy(bytes).into_owned(),
        length => format!("{length} bytes {}", ContentHash::of(bytes)),
    };
    objects.iter().map(|(key, bytes)| (key.as_str(), short(bytes))).collect()
}

/// Returns true if something can be read at a place.
pub(super) fn is_there(backend: &dyn Backend, key: &str) -> bool {
    match block_on(backend.read(&place(key))) {
        Ok(_) => true,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
            false
        }
    }
}

/// A store with everything in its remote: folded positions and plain ones, a segment, a checkpoint, a pack, a large object, the mirror
/// and its manifest. The laptop has taken in all of it, the desktop its beginning, the tablet nothing; the first two have written what
/// was not sent yet.
pub(super) static STORE: LazyLock<Image> = LazyLock::new(|| {
    let lab = Lab::new();
    lab.put("laptop", "MEMORY.md", "- ports\n- people\n");
    lab.put("laptop", "map.png", &b"\x89PNG first\0"[..]);
    lab.put("laptop", "large.bin", large());
    lab.put("laptop", "old.md", "old\n");
    lab.sync("laptop").expect("synced");
    lab.sync("desktop").expect("synced");
    for number in 2..=6 {
        let lines: String = (2..=number).map(|line| format!("line {line}\n")).collect();
        lab.put("laptop", "log.md", lines);
        lab.put("laptop", &format!("notes/{number}.md"), format!("note {number}\n"));
        match number {
            3 => lab.delete("laptop", "old.md"),
            5 => lab.put("laptop", "map.png", &b"\x89PNG second\0"[..]),
            6 => lab.put("laptop", "large.bin", [large(), b"more".to_vec()].concat()),
            _ => {}
        }
        lab.sync("laptop").expect("synced");
    }
    let now = Intervals { keep_positions: Duration::ZERO, ..FOLDING };
    let folded = lab.with("laptop", async |replica, context| {
        replica.compact(Context { intervals: now, ..context }).await
    });
    assert_eq!(folded, Ok(4));
    lab.mirror("laptop").expect("mirrored");
    lab.put("laptop", "log.md", "line 2\nline 3\nline 4\nline 5\nline 6\nthe laptop's\n");
    lab.put("laptop", "laptop.md", "made on the laptop\n");
    lab.put("desktop", "MEMORY.md", "- ports\n- people\n- the desktop's\n");
    lab.put("desktop", "desktop.md", "made on the desktop\n");
    lab.image()
});

/// The files of all devices of [`STORE`] after a sync.
pub(super) static CONVERGED: LazyLock<Objects> = LazyLock::new(|| {
    let files = STORE.set_up().converge("undamaged");
    for (key, line) in [
        ("MEMORY.md", "- people\n- the desktop's\n"),
        ("log.md", "line 6\nthe laptop's\n"),
        ("laptop.md", "made on the laptop\n"),
        ("desktop.md", "made on the desktop\n"),
    ] {
        assert!(String::from_utf8_lossy(&files[key]).contains(line), "{key}");
    }
    files
});

/// A content that is too large for a commit.
fn large() -> Vec<u8> {
    (0..300_000_u32).map(|number| u8::try_from(number % 251).expect("small")).collect()
}
