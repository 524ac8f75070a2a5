//! Requests of hooks to the background process: small files that are taken as a whole.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use haversack::ids::{ContentHash, Ids};
use haversack::store::Locator;
use haversack_system::RandomIds;

use crate::error::CommandError;
use crate::records::private;

/// The most wishes that are taken at once.
const MAX_TAKEN: usize = 1000;

/// The end of a request's name if a caller waits for it.
const WAITED_FOR: &str = "asked";

/// The end of an answer's name if the sync failed.
const FAILED: &str = "failed";

/// The time that an unread answer is kept: its caller has stopped waiting.
const ANSWER_AGE: Duration = Duration::from_secs(60);

/// Something to sync.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SyncRequest {
    /// The part of the store; everything if `None`.
    pub(crate) prefix: Option<Locator>,
    /// For which session of an agent.
    pub(crate) session: Option<String>,
    /// The files that it wrote.
    pub(crate) files: Vec<Locator>,
}

/// The wishes of a home.
pub(crate) struct RequestQueue {
    directory: PathBuf,
}

/// A request with a waiting caller: its file exists until it is answered.
///
/// The answer that a sync failed is a second file, `NAME.failed`, written before the question's file is removed. The caller reads
/// and removes it.
pub(crate) struct Question {
    file: PathBuf,
}

impl Question {
    /// Returns true if there is no answer yet.
    pub(crate) fn is_open(&self) -> bool {
        self.file.exists()
    }

    /// Answers that the sync worked, or why it failed.
    pub(crate) fn answer(&self, result: &Result<(), String>) {
        if let Err(why) = result
            && self.is_open()
            && private::write(&self.failure(), why.as_bytes()).is_err()
        {
            // Without the reason, the question stays open: the caller stops waiting, and does not take it for done.
            return;
        }
        drop(fs::remove_file(&self.file));
    }

    /// Returns the answer to a question that is not open any more.
    pub(crate) fn result(self) -> Result<(), String> {
        match fs::read_to_string(self.failure()) {
            Ok(why) => {
                drop(fs::remove_file(self.failure()));
                Err(why)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Gives up waiting.
    pub(crate) fn withdraw(self) {
        drop(fs::remove_file(&self.file));
        drop(fs::remove_file(self.failure()));
    }

    fn failure(&self) -> PathBuf {
        self.file.with_extension(FAILED)
    }
}

impl RequestQueue {
    /// Returns the wishes in the directory of the background process.
    pub(crate) fn of(directory: PathBuf) -> RequestQueue {
        RequestQueue { directory: directory.join("wanted") }
    }

    /// Adds a request. An equal one that is still waiting is the same request.
    pub(crate) fn add(&self, request: &SyncRequest) -> Result<(), CommandError> {
        let name =
            ContentHash::of(format!("{:?} {:?}", request.prefix, request.session).as_bytes()).to_string();
        self.write(&name[..16], request).map(drop)
    }

    /// Adds a wish that is waited for.
    pub(crate) fn add_and_wait(&self, request: &SyncRequest) -> Result<Question, CommandError> {
        let name = ContentHash::of(&RandomIds.next()).to_string();
        Ok(Question { file: self.write(&format!("{}.{WAITED_FOR}", &name[..16]), request)? })
    }

    fn write(&self, name: &str, request: &SyncRequest) -> Result<PathBuf, CommandError> {
        let file = self.directory.join(name);
        let write = || -> io::Result<()> {
            let mut out = private::append(&file)?;
            // In one piece, since several hooks may write at once.
            out.write_all(to_lines(request).as_bytes())
        };
        write().map_err(|error| CommandError {
            source: Some(error.into()),
            ..CommandError::user(
                "could not write the request to sync",
                "Make space on the disk: haversack doctor",
            )
        })?;
        Ok(file)
    }

    /// Returns true if there are none.
    pub(crate) fn is_empty(&self) -> bool {
        fs::read_dir(&self.directory)
            .map_or(true, |entries| entries.flatten().all(|entry| has_extension(&entry.path(), FAILED)))
    }

    /// Takes all wishes there are. Those that are waited for stay until they are answered, and are returned once.
    pub(crate) fn take(&self) -> Vec<(SyncRequest, Option<Question>)> {
        let entries = fs::read_dir(&self.directory).into_iter().flatten().flatten().take(MAX_TAKEN);
        let mut taken = BTreeMap::new();
        for file in entries.map(|entry| entry.path()) {
            if has_extension(&file, FAILED) {
                remove_old(&file);
                continue;
            }
            let request = fs::read_to_string(&file).map(|text| from_lines(&text)).unwrap_or_default();
            let question = has_extension(&file, WAITED_FOR).then(|| Question { file: file.clone() });
            if question.is_none() && fs::remove_file(&file).is_err() {
                continue;
            }
            taken.insert(file, (request, question));
        }
        taken.into_values().collect()
    }
}

fn has_extension(file: &Path, extension: &str) -> bool {
    file.extension().is_some_and(|other| other == extension)
}

fn remove_old(answer: &Path) {
    let modified = fs::metadata(answer).and_then(|metadata| metadata.modified());
    if modified.is_ok_and(|modified| modified.elapsed().is_ok_and(|age| age > ANSWER_AGE)) {
        drop(fs::remove_file(answer));
    }
}

fn to_lines(request: &SyncRequest) -> String {
    let prefix = request.prefix.as_ref().map_or("", Locator::as_str);
    let session = request.session.as_deref().unwrap_or_default().replace(['\t', '\n', '\r'], " ");
    let line = |file: &str| format!("{prefix}\t{session}\t{file}\n");
    match request.files.is_empty() {
        true => line(""),
        false => request.files.iter().map(|file| line(file.as_str())).collect(),
    }
}

fn from_lines(text: &str) -> SyncRequest {
    let mut request = SyncRequest::default();
    for line in text.lines() {
        let mut cells = line.split('\t');
        let mut cell = || cells.next().filter(|cell| !cell.is_empty());
        request.prefix = cell().and_then(|prefix| Locator::parse(prefix).ok());
        request.session = cell().map(str::to_owned);
        if let Some(file) = cell().and_then(|file| Locator::parse(file).ok())
            && !request.files.contains(&file)
        {
            request.files.push(file);
        }
    }
    request
}

#[cfg(test)]
mod tests {
    use super::*;

    fn locator(name: &str) -> Locator {
        Locator::parse(name).expect("valid")
    }

    #[test]
    fn like_wishes_are_one_and_questions_stay_until_answered() {
        let directory = tempfile::tempdir().expect("made");
        let requests = RequestQueue::of(directory.path().to_owned());
        assert!(requests.is_empty() && requests.take().is_empty());
        let request = |file: &str| SyncRequest {
            prefix: Some(locator("claude_memory/lighthouse")),
            session: Some("7f3a".to_owned()),
            files: vec![locator(file)],
        };
        for file in ["a.md", "b.md", "a.md"] {
            requests.add(&request(file)).expect("added");
        }
        let question = requests.add_and_wait(&SyncRequest::default()).expect("added");
        let taken = requests.take();
        let plain: Vec<&SyncRequest> =
            taken.iter().filter(|(_, question)| question.is_none()).map(|(request, _)| request).collect();
        assert_eq!(
            plain,
            [&SyncRequest { files: vec![locator("a.md"), locator("b.md")], ..request("a.md") }]
        );
        let asked: Vec<&(SyncRequest, Option<Question>)> =
            taken.iter().filter(|(_, question)| question.is_some()).collect();
        assert!(asked.len() == 1 && asked[0].0 == SyncRequest::default() && question.is_open());
        asked[0].1.as_ref().expect("a question").answer(&Ok(()));
        assert!(!question.is_open() && requests.is_empty());
        assert_eq!(question.result(), Ok(()));
    }

    #[test]
    fn question_is_answered_with_why_the_sync_failed() {
        let directory = tempfile::tempdir().expect("made");
        let requests = RequestQueue::of(directory.path().to_owned());
        let question = requests.add_and_wait(&SyncRequest::default()).expect("added");
        let failed = Err("the remote is not there".to_owned());
        requests.take()[0].1.as_ref().expect("a question").answer(&failed);
        assert!(!question.is_open() && requests.is_empty() && requests.take().is_empty());
        assert_eq!(question.result(), failed);
        assert_eq!(fs::read_dir(directory.path().join("wanted")).expect("listed").count(), 0);
    }
}
