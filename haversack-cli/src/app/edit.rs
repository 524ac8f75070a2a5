//! Changes a file in the user's editor, without losing a change that another program made meanwhile.
//!
//! 1. The text goes into a draft outside of the memory, and the editor opens the draft.
//! 2. A draft that is unchanged or empty changes nothing.
//! 3. The new text replaces the file only if the file still holds the text that was opened.
//! 4. If the file changed in between, the new text and the file are merged over the text that was opened. If both changed the same
//!    passage, the editor opens the merged text. Then step 3 is tried again, over the file as it is now.
//!
//! A draft whose text did not reach the memory is kept, and the error names it.

use std::fs;
use std::path::{Path, PathBuf};

use haversack::merge::{Side, merge};
use haversack::store::{Bytes, Locator, block_on};
use haversack::{Change, Memory, Reason, View};

use crate::error::CommandError;
use crate::home::kinds;
use crate::home::store::open;
use crate::records::private;
use crate::settings::{Settings, shown};
use crate::ui::paths::quoted;

/// The most times that a file may change while its new text is merged.
const MAX_TRIES: usize = 8;

/// The name of the user's text in a note of a merge.
const OURS: &str = "your editor";

/// The name of the other text in a merge's note.
const THEIRS: &str = "the memory";

/// The result of an edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edited {
    /// The editor left the text as it was.
    Unchanged,
    /// The editor left no text, so nothing was changed.
    Emptied,
    /// The file has the new text.
    Written,
    /// The file changed in between, and has both changes now.
    Merged,
}

/// Opens a file in an editor and writes the new text. `run_editor` returns after the user closed the editor.
pub(crate) fn edit(
    settings: &Settings,
    locator: &Locator,
    mut run_editor: impl FnMut(&Path, Opened) -> Result<(), CommandError>,
) -> Result<Edited, CommandError> {
    let memory = open(settings)?;
    let mut base = text_of(&memory, locator)?;
    let draft = Draft::create(settings, locator, base.as_deref().unwrap_or_default())?;
    if let Err(error) = run_editor(&draft.file, Opened::File) {
        if draft.read().is_ok_and(|text| base.as_deref() == Some(text.as_str())) {
            draft.discard();
            return Err(error);
        }
        return Err(draft.kept(error));
    }
    let mut ours = draft.read()?;
    if base.as_deref() == Some(ours.as_str()) {
        draft.discard();
        return Ok(Edited::Unchanged);
    }
    if ours.trim().is_empty() {
        draft.discard();
        return Ok(Edited::Emptied);
    }
    let kinds = kinds::load(settings)?;
    let mut edited = Edited::Written;
    for _ in 0..MAX_TRIES {
        let put = Change::Put {
            locator: locator.clone(),
            expected: base.clone().map(Bytes::from),
            bytes: Some(Bytes::from(ours.clone())),
        };
        match block_on(memory.batch(&[put])) {
            Ok(_) => {
                draft.discard();
                return Ok(edited);
            }
            Err(error) if *error.reason() == Reason::Changed => {}
            Err(error) => return Err(draft.kept(error.into())),
        }
        edited = Edited::Merged;
        let theirs = text_of(&memory, locator).map_err(|error| draft.kept(error))?;
        if let Some(theirs) = &theirs {
            let contents = base.iter().chain([&ours, theirs]).map(|text| text.as_bytes());
            let rule = kinds.rule(locator, contents);
            let merged = merge(
                rule,
                base.as_ref().map(|base| base.as_bytes()),
                Side { bytes: ours.as_bytes(), device: OURS },
                Side { bytes: theirs.as_bytes(), device: THEIRS },
            );
            if merged.copy.is_some() {
                let message =
                    format!("{locator} changed while you edited it, and files of its kind do not merge");
                return Err(draft.kept(CommandError::user(message, "Run the same command again")));
            }
            ours = String::from_utf8_lossy(&merged.bytes).into_owned();
            draft.write(&ours).map_err(|error| draft.kept(error))?;
            if merged.both_kept {
                run_editor(&draft.file, Opened::Merge).map_err(|error| draft.kept(error))?;
                ours = draft.read()?;
                if ours.trim().is_empty() {
                    draft.discard();
                    return Ok(Edited::Emptied);
                }
            }
        }
        base = theirs;
    }
    let message = format!("{locator} was changed {MAX_TRIES} times while its new text was merged");
    Err(draft.kept(CommandError::user(message, "Run the same command again")))
}

/// The text that an editor opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opened {
    /// The file as it is.
    File,
    /// The user's text merged with a change that another program made; both changed the same passage.
    Merge,
}

/// Returns the text of a file; `None` if it was deleted.
fn text_of(memory: &Memory, locator: &Locator) -> Result<Option<String>, CommandError> {
    let bytes = match block_on(memory.view(locator)) {
        Ok(View::File(object)) => object.bytes,
        Ok(View::Directory(_)) => {
            let hint = format!("See the files in it: haversack ls {}", quoted(locator.as_str()));
            return Err(CommandError::user(format!("{locator} is a directory"), hint));
        }
        Err(error) if *error.reason() == Reason::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    match String::from_utf8(bytes.to_vec()) {
        Ok(text) => Ok(Some(text)),
        Err(_) => Err(CommandError::user(
            format!("{locator} is not text, so no editor can change it"),
            "Delete the file and create it again",
        )),
    }
}

/// The file that the editor opens, in a separate directory that only the user can read.
struct Draft {
    directory: PathBuf,
    file: PathBuf,
}

impl Draft {
    fn create(settings: &Settings, locator: &Locator, text: &str) -> Result<Draft, CommandError> {
        let drafts = settings.home.join("state").join("edit");
        private::create_directories(&drafts)?;
        let mut number = 1;
        // Names of other drafts are taken: some may be kept from an edit that failed.
        let directory = loop {
            let directory = drafts.join(format!("{}-{number}", std::process::id()));
            match fs::create_dir(&directory) {
                Ok(()) => break directory,
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(error.into()),
            }
        };
        // The name tells the editor the language of the text.
        let draft = Draft { file: directory.join(locator.name()), directory };
        draft.write(text)?;
        Ok(draft)
    }

    fn write(&self, text: &str) -> Result<(), CommandError> {
        Ok(private::write(&self.file, text.as_bytes())?)
    }

    fn read(&self) -> Result<String, CommandError> {
        fs::read_to_string(&self.file).map_err(|error| CommandError {
            source: Some(error.into()),
            ..CommandError::user(
                format!("the text of the editor could not be read from {}", shown(&self.file)),
                "Save it there as UTF-8. Nothing was changed",
            )
        })
    }

    fn discard(&self) {
        // A draft that is left over harms nothing: the memory has its text.
        drop(fs::remove_dir_all(&self.directory));
    }

    /// Adds the place of the draft to an error.
    fn kept(&self, error: CommandError) -> CommandError {
        let hint = error.hint.map(|hint| format!("{hint}. ")).unwrap_or_default();
        CommandError { hint: Some(format!("{hint}Your text is kept in {}", shown(&self.file))), ..error }
    }
}
