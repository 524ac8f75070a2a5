//! One line for every hook: `state/hooks/hooks.log`, and the one before it.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use haversack::clock::Clock;
use haversack::display::is_harmful;
use haversack_system::SystemClock;

use crate::records::private;
use crate::settings::Settings;

/// The size at which older lines are removed.
const MAX_BYTES: u64 = 256 * 1024;

/// The longest line.
const MAX_LINE_CHARACTERS: usize = 500;

/// The journal of a home's hooks.
pub(crate) struct Journal {
    file: PathBuf,
}

impl Journal {
    /// Returns the journal of a home.
    pub(crate) fn of(settings: &Settings) -> Journal {
        Journal::in_home(&settings.home)
    }

    /// Returns the journal of a home of which nothing else is known.
    pub(crate) fn in_home(home: &Path) -> Journal {
        Journal { file: home.join("state").join("hooks").join("hooks.log") }
    }

    /// Returns the file.
    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    /// Adds a line. That it cannot be written is no reason to fail, and there is nowhere else to say it.
    pub(crate) fn note(&self, event: &str, session: Option<&str>, text: &str) {
        let session = session.unwrap_or("-");
        let line: String = format!("{} {event} {session} {text}", SystemClock.now());
        let line = line.chars().map(|c| if is_harmful(c) { ' ' } else { c }).take(MAX_LINE_CHARACTERS);
        drop(append(&self.file, &format!("{}\n", line.collect::<String>()), MAX_BYTES));
    }
}

/// Adds text to a file; one that is too long becomes the one before it.
pub(crate) fn append(file: &Path, text: &str, max_bytes: u64) -> io::Result<()> {
    if fs::metadata(file).is_ok_and(|metadata| metadata.len() > max_bytes) {
        private::narrow(&fs::File::open(file)?);
        fs::rename(file, before(file))?;
    }
    private::append(file)?.write_all(text.as_bytes())
}

/// Returns the file that was there before the last that was full.
pub(crate) fn before(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".1");
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_bounded_and_one_line_each() {
        let home = tempfile::tempdir().expect("made");
        let journal = Journal::in_home(home.path());
        for number in 0..3000 {
            journal.note("SessionStart", Some("7f3a"), &format!("{number}\nmore {}", "x".repeat(600)));
        }
        let text = fs::read_to_string(journal.file()).expect("there");
        assert!(text.lines().last().expect("a line").contains("SessionStart 7f3a 2999 more xxx"));
        assert!(text.lines().all(|line| line.chars().count() == MAX_LINE_CHARACTERS));
        let sizes = [journal.file().to_owned(), before(journal.file())]
            .map(|file| fs::metadata(file).expect("there").len());
        assert!(sizes.iter().all(|size| *size < MAX_BYTES + 1000), "{sizes:?}");
        assert_eq!(fs::read_dir(journal.file().parent().expect("below")).expect("listed").count(), 2);
    }
}
