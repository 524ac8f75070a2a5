//! Reads a text, changes it and writes it back, while other programs may write it too.

use haversack_store::{Bytes, ErrorKind, Locator};

use crate::error::{Error, Reason, Result, Verb};
use crate::memory::{Change, Memory, View};

/// The most times that a file is read again because another program wrote it.
const MAX_TRIES: usize = 16;

/// The result of a rewrite.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rewritten {
    /// The file has the new text.
    Changed,
    /// The file had that text already, or the edit wanted none.
    Same,
}

/// Changes a text file: `edit` gets its text, or `None` if there is no file, and returns the new one, or `None` to leave it as it is.
///
/// If another writer comes first, `edit` is called again with the other's text. A file that is no text is left alone, with an error.
pub async fn rewrite(
    memory: &Memory,
    locator: &Locator,
    mut edit: impl FnMut(Option<&str>) -> Option<String>,
) -> Result<Rewritten> {
    let mut tries = 0;
    loop {
        let there = read(memory, locator).await?;
        let text = match &there {
            Some(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => Some(text),
                Err(error) => {
                    let valid_bytes = error.valid_up_to();
                    return Err(Error::new(Verb::StrReplace, locator, Reason::NotText { valid_bytes }));
                }
            },
            None => None,
        };
        let Some(new) = edit(text) else { return Ok(Rewritten::Same) };
        if text == Some(new.as_str()) {
            return Ok(Rewritten::Same);
        }
        let change =
            Change::Put { locator: locator.clone(), expected: there.clone(), bytes: Some(Bytes::from(new)) };
        tries += 1;
        match memory.batch(&[change]).await {
            Ok(_) => return Ok(Rewritten::Changed),
            // Another writer came first.
            Err(error) if error.change() == Some(0) && tries < MAX_TRIES => {
                if read(memory, locator).await? == there {
                    return Err(error);
                }
            }
            Err(error) => return Err(error),
        }
    }
}

/// Returns the content of a file; `None` if there is none.
pub(crate) async fn read(memory: &Memory, locator: &Locator) -> Result<Option<Bytes>> {
    match memory.view(locator).await {
        Ok(View::File(object)) => Ok(Some(object.bytes)),
        Ok(View::Directory(_)) => Err(Error::new(Verb::View, locator, Reason::IsDirectory)),
        Err(error) if *error.reason() == Reason::NotFound || error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures_lite::future::block_on;
    use haversack_store::{BackendExt, InMemory};

    use super::*;

    #[test]
    fn edit_is_made_again_on_top_of_another_writers_text() {
        let files = Arc::new(InMemory::new());
        let memory = Memory::new(files.clone(), Arc::new(InMemory::new()));
        let locator = Locator::parse("notes.md").expect("valid");
        let mut calls = 0;
        let edit = |text: Option<&str>| {
            calls += 1;
            if calls == 1 {
                let _ = block_on(files.write_text(&locator, "theirs\n")).expect("written");
            }
            Some(format!("{}ours\n", text.unwrap_or_default()))
        };
        assert_eq!(block_on(rewrite(&memory, &locator, edit)).expect("written"), Rewritten::Changed);
        assert_eq!(block_on(files.read_text(&locator)).expect("read").as_deref(), Some("theirs\nours\n"));
        assert_eq!(calls, 2);
        let same = block_on(rewrite(&memory, &locator, |text| text.map(str::to_owned)));
        assert_eq!(same.expect("read"), Rewritten::Same);
    }
}
