//! Carries out operations on real homes, and notes what each of them means for the words in the files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::schedule::{
    AREAS, Area, FILES, File, Kind, Meeting, Operation, Schedule, composed, folded, kill_after,
};
use super::{Chance, line};
use crate::machines::{Machines, without_times};
use crate::vault::{Client, folder, make_folder};

/// The number of lost files of a bound directory at which the guard asks.
const GUARDED: usize = 3;

/// The length of the hash in a name like `notes.case-0123abcd.md`.
const HASH: usize = 8;

/// The state of a written word.
#[derive(Debug, Default)]
pub(super) struct Token {
    /// The file that it was written to, without case.
    pub(super) file: String,
    /// A user took its line out of a text.
    pub(super) is_removed: bool,
    /// The home and the folded locator where its line was taken out, until that home has synced.
    pub(super) unsent_removal: Option<(&'static str, String)>,
    /// It was in a text that a user deleted, overwrote or lost: it may be there or not.
    pub(super) may_be_gone: bool,
    /// A removal may not have reached a text with it: the text was renamed or put back, or the file was lost before its removal was sent.
    pub(super) may_return: bool,
    /// The home whose user deleted the file with it.
    pub(super) deleted_by: Option<&'static str>,
}

/// A file that its user moved out of the way.
struct Aside {
    home: &'static str,
    place: PathBuf,
    kept: PathBuf,
    is_put_back: bool,
}

/// Homes, and what was done to them.
pub(super) struct Player<'s> {
    pub(super) machines: Machines,
    pub(super) schedule: &'s Schedule,
    client: Client,
    chance: Chance,
    pub(super) tokens: BTreeMap<String, Token>,
    /// By folded locator, the homes whose users changed the file.
    pub(super) touched: BTreeMap<String, BTreeSet<&'static str>>,
    /// Folded locators of files that some user deleted.
    pub(super) deleted: BTreeSet<String>,
    /// True if some user lost a directory: everybody answers the guard with `restore --deleted`.
    pub(super) has_lost_a_directory: bool,
    /// True if the directory where the homes meet was wiped or put back from a backup. That happens once: a home that did not follow a
    /// rebuild does not know the store that continues it (ADR 29).
    pub(super) has_lost_the_remote: bool,
    /// By folded locator, how often the file was made. Two files that were made apart may be twins.
    made: BTreeMap<String, usize>,
    /// Folded locators of files that were renamed by case only. In a folder, such a rename may leave two files.
    recased: BTreeSet<String>,
    /// Folded old and new locators of renamed files. If the new name is held back, other homes keep the old one.
    renamed: BTreeSet<(String, String)>,
    /// Folded locators of files that hold something like a secret.
    secret: BTreeSet<String>,
    /// Folded locators where a user put a directory in the place of a file or the reverse, and that user's home.
    swapped: Vec<(String, &'static str)>,
    /// By home and folded locator, words in files that the user lost and that the guard must bring back.
    lost: BTreeMap<(&'static str, String), Vec<String>>,
    aside: Vec<Aside>,
    hardened: Vec<(&'static str, PathBuf)>,
    /// The events, for reading.
    pub(super) trace: Vec<String>,
    /// A command that ended as none may.
    pub(super) broken: Option<String>,
}

impl Drop for Player<'_> {
    fn drop(&mut self) {
        // An immutable file would stay behind in the temporary directory.
        for home in self.schedule.homes {
            self.soften(home);
        }
    }
}

impl<'s> Player<'s> {
    pub(super) fn new(schedule: &'s Schedule) -> Player<'s> {
        let mut player = Player {
            machines: Machines::new(),
            schedule,
            client: Client::default(),
            chance: Chance::new(schedule.seed),
            tokens: BTreeMap::new(),
            touched: BTreeMap::new(),
            deleted: BTreeSet::new(),
            has_lost_a_directory: false,
            has_lost_the_remote: false,
            made: BTreeMap::new(),
            recased: BTreeSet::new(),
            renamed: BTreeSet::new(),
            secret: BTreeSet::new(),
            swapped: Vec::new(),
            lost: BTreeMap::new(),
            aside: Vec::new(),
            hardened: Vec::new(),
            trace: Vec::new(),
            broken: None,
        };
        let homes = schedule.homes;
        player.machines.write(homes[0], "begin.md", "begin\n");
        let url = player.url(homes[0]);
        player.machines.done(homes[0], &["remote", "add", &url, "--device", homes[0]]);
        player.machines.done(homes[0], &["sync"]);
        for home in &homes[1..] {
            let url = player.url(home);
            player.carry_all();
            player.machines.done(home, &["join", &url, "--device", home, "--yes"]);
        }
        for home in homes {
            for area in &AREAS[1..] {
                let directory = player.root(home, *area);
                fs::create_dir_all(&directory).expect("made");
                let prefix = area.prefix().trim_end_matches('/');
                player.machines.done(home, &["mount", "add", &directory.display().to_string(), prefix]);
            }
        }
        player.fill();
        player
    }

    /// Gives every home the same files.
    fn fill(&mut self) {
        let homes = self.schedule.homes;
        for (area, name) in AREAS.iter().flat_map(|area| FILES.map(|name| (*area, name))) {
            let token = format!("begin-{:04}", self.tokens.len());
            self.add(homes[0], &File { area, name: name.to_owned() }, &token);
        }
        self.touched.clear();
        for home in homes {
            self.carry_all();
            self.machines.done(home, &["sync"]);
        }
    }

    fn url(&self, home: &str) -> String {
        match self.schedule.meeting {
            Meeting::Directory => self.machines.url(),
            Meeting::Folder => make_folder(&self.machines, home),
        }
    }

    fn root(&self, home: &str, area: Area) -> PathBuf {
        match area {
            Area::Memory => self.machines.env.path(home).join("memory"),
            Area::Lighthouse => self.machines.env.path(&format!("{home}-lighthouse")),
            Area::Harbour => self.machines.env.path(&format!("{home}-harbour")),
        }
    }

    fn path(&self, home: &str, file: &File) -> PathBuf {
        self.root(home, file.area).join(&file.name)
    }

    /// Returns a file under the name that it has on this disk: a user opens the file that is there, and makes no twin by mistake.
    fn as_it_is_there(&self, home: &str, file: &File) -> File {
        let twins = [Some(file.clone()), file.unicode_twin(), Some(file.case_twin())];
        let spellings = twins.into_iter().flatten().chain(file.case_twin().unicode_twin());
        let mut there = spellings.filter(|spelling| self.path(home, spelling).symlink_metadata().is_ok());
        there.next().unwrap_or_else(|| file.clone())
    }

    /// Returns every file of a home by its locator, names in one Unicode form. Texts of Unicode twins are put together.
    pub(super) fn files(&self, home: &str) -> BTreeMap<String, String> {
        let mut files = BTreeMap::new();
        for area in AREAS {
            for (name, text) in below(&self.root(home, area)) {
                if area == Area::Memory && name.starts_with("state/projects/") {
                    continue;
                }
                let locator = composed(&format!("{}{name}", area.prefix()));
                let texts: &mut String = files.entry(locator).or_default();
                texts.push_str(&text);
            }
        }
        files
    }

    fn tokens_in(&self, text: &str) -> Vec<String> {
        self.tokens.keys().filter(|token| text.contains(*token)).cloned().collect()
    }

    /// Carries out an operation; the trace says how it went.
    pub(super) fn play(&mut self, operation: &Operation) {
        let outcome = self.act(operation);
        self.trace.push(format!("{operation}  [{outcome}]"));
    }

    fn act(&mut self, operation: &Operation) -> String {
        let Operation { home, kind, file, to, token, lot, number } = operation;
        let (home, lot) = (*home, *lot);
        let file = &self.as_it_is_there(home, file);
        let path = self.path(home, file);
        let there = read(&path);
        match kind {
            Kind::Append => {
                let shown = self.feed(home, &["append", &file.locator()], &line(last(&file.name), token));
                if shown.starts_with("exit 0") {
                    self.count(file, there.is_none());
                    self.wrote(home, file, token);
                }
                brief(&shown)
            }
            Kind::Save | Kind::AddSecret => {
                let is_new = there.is_none();
                let text = format!("{}{}", there.unwrap_or_default(), self.new_line(*kind, file, token));
                if !self.save(home, &path, &text) {
                    return "the disk refuses".to_owned();
                }
                self.count(file, is_new);
                if *kind == Kind::AddSecret {
                    self.secret.insert(folded(&file.locator()));
                }
                self.wrote(home, file, token);
                "saved".to_owned()
            }
            Kind::AddCaseTwin => self.add(home, &file.case_twin(), token),
            Kind::AddUnicodeTwin => match file.unicode_twin() {
                Some(twin) => self.add(home, &twin, token),
                None => "its name has one form".to_owned(),
            },
            Kind::RemoveLine => self.remove_line(home, file, there, lot),
            Kind::Delete => {
                let Some(text) = there else { return "nothing there".to_owned() };
                let shown = self.run(home, &["delete", &file.locator()]);
                if shown.starts_with("exit 0") {
                    self.deletes(home, file, &text);
                }
                brief(&shown)
            }
            Kind::Remove => {
                let Some(text) = there else { return "nothing there".to_owned() };
                if fs::remove_file(&path).is_err() {
                    return "the disk refuses".to_owned();
                }
                self.deletes(home, file, &text);
                "removed".to_owned()
            }
            Kind::Rename => {
                let Some(text) = there else { return "nothing there".to_owned() };
                let shown = self.run(home, &["rename", &file.locator(), &to.locator()]);
                if shown.starts_with("exit 0") {
                    self.renames(home, file, to, &text);
                }
                brief(&shown)
            }
            Kind::Move => self.move_file(home, file, to),
            Kind::MoveToOtherCase => self.move_file(home, file, &file.case_twin()),
            Kind::MoveToOtherUnicode => match file.unicode_twin() {
                Some(twin) => self.move_file(home, file, &twin),
                None => "its name has one form".to_owned(),
            },
            Kind::FileToDirectory => {
                let Some(text) = there else { return "nothing there".to_owned() };
                if fs::remove_file(&path).is_err() {
                    return "the disk refuses".to_owned();
                }
                self.deletes(home, file, &text);
                self.swapped.push((folded(&file.locator()), home));
                self.add(home, &File { area: file.area, name: format!("{}/inner.md", file.name) }, token)
            }
            Kind::DirectoryToFile => self.directory_to_file(home, file, token),
            Kind::EmptyDirectory => self.empty_directory(operation),
            Kind::PutLink | Kind::PutPipe => {
                if there.is_none() {
                    return "nothing there".to_owned();
                }
                let kept = self.machines.env.path(&format!("{home}-aside-{number}"));
                if fs::rename(&path, &kept).is_err() {
                    return "the disk refuses".to_owned();
                }
                if *kind == Kind::PutLink {
                    std::os::unix::fs::symlink(&kept, &path).expect("linked");
                } else {
                    assert!(run_tool("mkfifo", &[], &path), "there is mkfifo");
                }
                self.touch(home, file);
                self.aside.push(Aside { home, place: path, kept, is_put_back: lot % 4 != 0 });
                "moved aside".to_owned()
            }
            Kind::MakeImmutable | Kind::MakeUnreadable => {
                if there.is_none() {
                    return "nothing there".to_owned();
                }
                let is_done = match kind {
                    Kind::MakeImmutable => run_tool("chattr", &["+i"], &path),
                    _ => fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).is_ok(),
                };
                self.hardened.push((home, path));
                if is_done { "done".to_owned() } else { "the disk cannot".to_owned() }
            }
            Kind::ClearObstacles => {
                self.clear(home);
                "cleared".to_owned()
            }
            Kind::Sync => {
                self.carry(lot % 24);
                brief(&self.sync(home, &["sync"]))
            }
            Kind::BackUpRemote | Kind::RestoreRemote | Kind::WipeRemote => self.meddle(*kind),
            Kind::KillSync => {
                let mut sync = self.machines.command(home, &["sync"]);
                let mut child = sync.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("started");
                std::thread::sleep(Duration::from_micros(kill_after(lot)));
                drop(child.kill());
                let ended = child.wait().expect("ended");
                if ended.success() { "was done before".to_owned() } else { "killed".to_owned() }
            }
            Kind::SyncTwice => {
                let start = || {
                    let mut sync = self.machines.command(home, &["sync"]);
                    sync.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("started")
                };
                let codes = [start(), start()].map(|mut child| child.wait().expect("ended").code());
                if codes.contains(&Some(0)) {
                    self.note_sent(home);
                }
                format!("exit {codes:?}")
            }
        }
    }

    /// Syncs, and does what the message says if the remote was lost.
    pub(super) fn sync(&mut self, home: &str, arguments: &[&str]) -> String {
        let shown = self.run(home, arguments);
        if shown.starts_with("exit 0") {
            self.note_sent(home);
        }
        if !self.has_lost_the_remote || !shown.contains("haversack remote rebuild") {
            return shown;
        }
        let rebuilt = self.run(home, &["remote", "rebuild", "--yes"]);
        format!("{shown} -> {rebuilt} -> {}", self.run(home, arguments))
    }

    /// Backs up, restores or wipes the directory where the homes meet.
    fn meddle(&mut self, kind: Kind) -> String {
        let (remote, backup) = (self.machines.env.path("remote"), self.machines.env.path("backup"));
        if self.schedule.meeting == Meeting::Folder || self.has_lost_the_remote {
            return "not in this schedule, or not twice".to_owned();
        }
        match kind {
            Kind::BackUpRemote => {
                drop(fs::remove_dir_all(&backup));
                copy_all(&remote, &backup);
                return "backed up".to_owned();
            }
            Kind::RestoreRemote if !backup.is_dir() => return "no backup".to_owned(),
            Kind::RestoreRemote => {
                fs::remove_dir_all(&remote).expect("removed");
                copy_all(&backup, &remote);
            }
            _ => {
                fs::remove_dir_all(&remote).expect("removed");
                fs::create_dir_all(&remote).expect("made");
            }
        }
        self.has_lost_the_remote = true;
        "lost".to_owned()
    }

    fn new_line(&self, kind: Kind, file: &File, token: &str) -> String {
        let written = line(last(&file.name), token);
        match kind {
            // Of a shape that the gate holds back.
            Kind::AddSecret => {
                let secret = format!("ghp_{}", "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC2dF4hJ6");
                if file.name.ends_with(".jsonl") {
                    format!("{{\"id\":\"{token}\",\"text\":\"{secret}\"}}\n")
                } else {
                    format!("{written}token: {secret}\n\n")
                }
            }
            _ => written,
        }
    }

    fn touch(&mut self, home: &'static str, file: &File) {
        self.touched.entry(folded(&file.locator())).or_default().insert(home);
    }

    /// Notes that a file has the place of one that the user lost, spelled alike or otherwise: it is a new version of the lost file, which has
    /// none of its old lines. They count as overwritten.
    fn replace_lost(&mut self, home: &'static str, file: &str) {
        let is_in_the_way = |lost: &str| {
            lost == file || lost.starts_with(&format!("{file}/")) || file.starts_with(&format!("{lost}/"))
        };
        let replaced: Vec<_> =
            self.lost.keys().filter(|(by, lost)| *by == home && is_in_the_way(lost)).cloned().collect();
        for key in replaced {
            for token in self.lost.remove(&key).unwrap_or_default() {
                self.token(&token).may_be_gone = true;
            }
        }
    }

    /// Notes a word that was written to a file.
    fn wrote(&mut self, home: &'static str, file: &File, token: &str) {
        self.touch(home, file);
        let file = folded(&file.locator());
        self.replace_lost(home, &file);
        self.tokens.insert(token.to_owned(), Token { file, ..Token::default() });
    }

    /// Notes that a file is gone under its name: a removal in it that was not sent went with it, and edits of other homes bring the line back.
    fn drop_unsent_removals(&mut self, home: &'static str, file: &File) {
        let dropped = (home, folded(&file.locator()));
        for token in self.tokens.values_mut() {
            token.may_return |= token.unsent_removal.as_ref() == Some(&dropped);
        }
    }

    /// Notes that a home has synced: its removals are sent.
    fn note_sent(&mut self, home: &str) {
        for token in self.tokens.values_mut() {
            token.unsent_removal.take_if(|(by, _)| *by == home);
        }
    }

    fn token(&mut self, token: &str) -> &mut Token {
        self.tokens.get_mut(token).expect("it was written")
    }

    /// Notes that a user deleted a file.
    fn deletes(&mut self, home: &'static str, file: &File, text: &str) {
        self.touch(home, file);
        self.deleted.insert(folded(&file.locator()));
        for token in self.tokens_in(text) {
            let token = self.token(&token);
            token.may_be_gone = true;
            token.deleted_by = Some(home);
        }
    }

    /// Counts a file that was made.
    fn count(&mut self, file: &File, is_new: bool) {
        if is_new {
            *self.made.entry(folded(&file.locator())).or_default() += 1;
        }
    }

    /// Returns true if there is a reason to hold a file: a real twin, something like a secret, or a swap that met another change.
    pub(super) fn may_be_held(&self, locator: &str) -> bool {
        // We rename a file that cannot have its name beside a twin.
        let locator = match locator.split_once(".case-") {
            Some((start, rest)) => folded(&format!("{start}{}", rest.get(HASH..).unwrap_or_default())),
            None => folded(locator),
        };
        let is_at = |path: &str, other: &str| path == other || path.starts_with(&format!("{other}/"));
        let is_swapped = self.swapped.iter().any(|(place, by)| {
            let is_met = |(touched, homes): (&String, &BTreeSet<&'static str>)| {
                is_at(touched, place) && homes.iter().any(|home| home != by)
            };
            is_at(&locator, place) && self.touched.iter().any(is_met)
        });
        let is_recased = self.schedule.meeting == Meeting::Folder && self.recased.contains(&locator);
        let is_twin = self.made.get(&locator).is_some_and(|made| *made > 1);
        let renamed_to = |(old, new): &&(String, String)| *old == locator && *new != locator;
        let is_kept_by_others = || {
            self.renamed
                .iter()
                .filter(renamed_to)
                .any(|(_, new)| self.made.get(new).is_some_and(|made| *made > 1) || self.secret.contains(new))
        };
        is_swapped || is_recased || is_twin || self.secret.contains(&locator) || is_kept_by_others()
    }

    fn renames(&mut self, home: &'static str, file: &File, to: &File, text: &str) {
        let (old, new) = (folded(&file.locator()), folded(&to.locator()));
        self.count(to, old != new);
        self.replace_lost(home, &new);
        self.renamed.insert((old.clone(), new.clone()));
        if old == new {
            self.recased.insert(old.clone());
        }
        // Only a rename by case is followed if the text was changed too, and in a folder not even that.
        if old != new || self.schedule.meeting == Meeting::Folder {
            self.drop_unsent_removals(home, file);
        }
        if self.secret.contains(&old) {
            self.secret.insert(new);
        }
        self.touch(home, file);
        self.touch(home, to);
        for token in self.tokens_in(text) {
            self.token(&token).may_return = true;
        }
    }

    /// Makes a file with one line; its place must be free.
    fn add(&mut self, home: &'static str, file: &File, token: &str) -> String {
        let path = self.path(home, file);
        if path.symlink_metadata().is_ok() || !self.save(home, &path, &line(last(&file.name), token)) {
            return "its place is taken".to_owned();
        }
        self.count(file, true);
        self.wrote(home, file, token);
        format!("made {}", file.locator())
    }

    /// Saves a file as an editor does, under a new inode. Returns false if something is in the way.
    fn save(&self, home: &str, path: &Path, text: &str) -> bool {
        if path.symlink_metadata().is_ok_and(|found| !found.is_file()) {
            return false;
        }
        let draft = self.machines.env.path(&format!("{home}-draft"));
        fs::write(&draft, text).expect("written");
        let parent = path.parent().expect("below");
        fs::create_dir_all(parent).is_ok() && fs::rename(&draft, path).is_ok()
    }

    fn remove_line(&mut self, home: &'static str, file: &File, there: Option<String>, lot: usize) -> String {
        let Some(text) = there else { return "nothing there".to_owned() };
        let tokens = self.tokens_in(&text);
        if tokens.is_empty() {
            return "no line there".to_owned();
        }
        let token = &tokens[lot % tokens.len()];
        let rest: String = text.split_inclusive('\n').filter(|line| !line.contains(token)).collect();
        if fs::write(self.path(home, file), rest).is_err() {
            return "the disk refuses".to_owned();
        }
        self.touch(home, file);
        let known = self.token(token);
        (known.is_removed, known.unsent_removal) = (true, Some((home, folded(&file.locator()))));
        format!("removed {token}")
    }

    fn move_file(&mut self, home: &'static str, file: &File, to: &File) -> String {
        let (from, onto) = (self.path(home, file), self.path(home, to));
        let Some(text) = read(&from) else { return "nothing there".to_owned() };
        let is_taken = onto.symlink_metadata().is_ok();
        if is_taken
            || fs::create_dir_all(onto.parent().expect("below")).is_err()
            || fs::rename(from, onto).is_err()
        {
            return "its place is taken".to_owned();
        }
        self.renames(home, file, to, &text);
        format!("moved to {}", to.locator())
    }

    fn directory_to_file(&mut self, home: &'static str, file: &File, token: &str) -> String {
        let name = file.name.split('/').next().unwrap_or(&file.name).to_owned();
        let directory = File { area: file.area, name };
        let path = self.path(home, &directory);
        if !path.symlink_metadata().is_ok_and(|found| found.is_dir()) {
            return "no directory there".to_owned();
        }
        self.lose(home, &directory);
        self.swapped.push((folded(&directory.locator()), home));
        if fs::remove_dir_all(&path).is_err() {
            return "the disk refuses".to_owned();
        }
        self.add(home, &directory, token)
    }

    /// Removes the files below a directory, and notes them as deleted. One that cannot be removed stays.
    fn lose(&mut self, home: &'static str, directory: &File) {
        let root = self.path(home, directory);
        for (name, text) in below(&root) {
            if fs::remove_file(root.join(&name)).is_ok() {
                let file = File { area: directory.area, name: format!("{}/{name}", directory.name) };
                self.deletes(home, &file, &text);
            }
        }
    }

    fn empty_directory(&mut self, operation: &Operation) -> String {
        let Operation { home, file, token, lot, number, .. } = operation;
        let home = *home;
        let area = match file.area {
            Area::Memory => Area::Lighthouse,
            bound => bound,
        };
        let others: String = self
            .schedule
            .homes
            .iter()
            .filter(|other| **other != home)
            .flat_map(|other| self.files(other).into_values())
            .collect();
        let root = self.root(home, area);
        let mut lost = Vec::new();
        for (name, text) in below(&root) {
            if fs::remove_file(root.join(&name)).is_ok() {
                lost.push((File { area, name }, text));
            }
        }
        drop(fs::remove_dir_all(&root));
        let known = |text: &String| {
            let tokens = self.tokens_in(text);
            !tokens.is_empty() && tokens.iter().all(|token| others.contains(token))
        };
        let is_guarded = lost.iter().filter(|(_, text)| known(text)).count() >= GUARDED;
        self.has_lost_a_directory = true;
        for (file, text) in &lost {
            self.touch(home, file);
            self.drop_unsent_removals(home, file);
            let tokens = self.tokens_in(text);
            for token in &tokens {
                let is_elsewhere = others.contains(token);
                let token = self.token(token);
                token.may_be_gone |= !(is_guarded && is_elsewhere);
            }
            for token in tokens {
                // A rename that was not sent is unknown to the log: there the file still has the name that the word was written to.
                let written_to = self.token(&token).file.clone();
                let names = BTreeSet::from([folded(&file.locator()), written_to]);
                for name in names {
                    self.lost.entry((home, name)).or_default().push(token.clone());
                }
            }
        }
        let name = if lot % 2 == 0 { format!("session-{number}.md") } else { file.name.clone() };
        let made = self.add(home, &File { area, name }, token);
        let guard = if is_guarded { "the guard must ask" } else { "the guard need not ask" };
        format!("lost {} files ({guard}), {made}", lost.len())
    }

    /// Lets the user put back everything that is in the way of files.
    pub(super) fn clear(&mut self, home: &'static str) {
        self.soften(home);
        let (mine, rest): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.aside).into_iter().partition(|aside| aside.home == home);
        self.aside = rest;
        for Aside { place, kept, is_put_back, .. } in mine {
            let is_obstacle = |found: fs::Metadata| !found.is_file() && !found.is_dir();
            if place.symlink_metadata().is_ok_and(is_obstacle) {
                fs::remove_file(&place).expect("removed");
            }
            let text = read(&kept).unwrap_or_default();
            let is_free = place.symlink_metadata().is_err();
            let parent = place.parent().expect("below");
            let is_back = is_put_back
                && is_free
                && fs::create_dir_all(parent).is_ok()
                && fs::rename(&kept, &place).is_ok();
            for token in self.tokens_in(&text) {
                let token = self.token(&token);
                token.may_return = true;
                token.may_be_gone |= !is_back;
            }
        }
    }

    fn soften(&mut self, home: &str) {
        for (_, path) in self.hardened.iter().filter(|(by, _)| *by == home) {
            if path.is_file() {
                run_tool("chattr", &["-i"], path);
                drop(fs::set_permissions(path, fs::Permissions::from_mode(0o644)));
            }
        }
        self.hardened.retain(|(by, _)| *by != home);
    }

    /// Runs a command; a crash of it is noted.
    pub(super) fn run(&mut self, home: &str, arguments: &[&str]) -> String {
        let shown = self.machines.shown(home, arguments);
        self.judge(home, arguments, shown)
    }

    fn feed(&mut self, home: &str, arguments: &[&str], input: &str) -> String {
        let mut command = self.machines.command(home, arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("started");
        // A command that refuses need not read its input.
        drop(std::io::Write::write_all(&mut child.stdin.take().expect("piped"), input.as_bytes()));
        let output = child.wait_with_output().expect("ended");
        let code = output.status.code().map_or("by signal".to_owned(), |code| code.to_string());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        self.judge(home, arguments, format!("exit {code}\n{said}"))
    }

    fn judge(&mut self, home: &str, arguments: &[&str], shown: String) -> String {
        let is_sound = shown.starts_with("exit 0\n") || shown.starts_with("exit 1\n");
        if !is_sound && self.broken.is_none() {
            self.broken = Some(format!("{home} {arguments:?}: {shown}"));
        }
        without_times(&shown)
    }

    /// Lets the client of a folder carry some paths.
    fn carry(&mut self, steps: usize) {
        if self.schedule.meeting == Meeting::Folder {
            for _ in 0..steps {
                let home = self.schedule.homes[self.chance.below(self.schedule.homes.len())];
                self.client.step(&self.machines, home, false, &mut self.chance);
            }
        }
    }

    /// Lets the client of a folder carry everything.
    pub(super) fn carry_all(&mut self) {
        if self.schedule.meeting == Meeting::Folder {
            let homes: Vec<&str> = self
                .schedule
                .homes
                .iter()
                .copied()
                .filter(|home| folder(&self.machines, home).is_dir())
                .collect();
            self.client.carry_all(&self.machines, &homes, &mut self.chance);
        }
    }

    /// Makes bound directories that are not there.
    pub(super) fn make_roots(&self) {
        for home in self.schedule.homes {
            for area in AREAS {
                drop(fs::create_dir_all(self.root(home, area)));
            }
        }
    }
}

/// Returns a file's text, if there is a regular file.
fn read(path: &Path) -> Option<String> {
    let is_file = path.symlink_metadata().is_ok_and(|found| found.is_file());
    let bytes = is_file.then(|| fs::read(path).ok()).flatten()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the regular files below a directory, ours left out.
fn below(root: &Path) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            let path = entry.path();
            let is_ours = entry.file_name().to_string_lossy().contains("haversack");
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && !is_ours => directories.push(path),
                Ok(kind) if kind.is_file() && !is_ours => {
                    let name = path.strip_prefix(root).expect("below").to_string_lossy().into_owned();
                    files.insert(name, read(&path).unwrap_or_default());
                }
                _ => {}
            }
        }
    }
    files
}

/// Copies a directory with everything in it.
fn copy_all(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("made");
    for entry in fs::read_dir(from).expect("read").flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_all(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("copied");
        }
    }
}

/// Returns the last part of a name.
fn last(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// Returns exit code and first line of what a command said.
fn brief(shown: &str) -> String {
    let said: Vec<&str> = shown.lines().filter(|line| !line.starts_with("---")).collect();
    said.join(" | ")
}

/// Runs a small program on a path; returns whether it succeeded.
fn run_tool(program: &str, arguments: &[&str], path: &Path) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).arg(path).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
