//! How a directory is shown to a model: two levels, with sizes.

use haversack_store::{Entry, EntryKind, ErrorKind, Listing};

use super::show::LineRange;
use crate::error::{Error, Result, Verb};
use crate::memory::Memory;

/// The size that is shown for a directory, which has none: the value of the documentation's example.
const DIRECTORY_SIZE: &str = "4.0K";

/// A directory of packages that people keep beside their notes by mistake.
const PACKAGES: &str = "node_modules";

/// Returns the directory at `path` as text; `level` is what is in it.
///
/// A listing that is too long for one view is cut; the range, which means nothing otherwise, then tells which lines to show.
/// Only the files that are shown are asked for their size.
pub(super) async fn listing(
    memory: &Memory,
    path: &str,
    level: Listing,
    range: Option<LineRange>,
    max_characters: usize,
) -> Result<String> {
    let header = format!(
        "Here're the files and directories up to 2 levels deep in {path}, excluding hidden items and node_modules:"
    );
    let mut entries = Vec::new();
    for entry in level.entries.into_iter().filter(is_shown) {
        let directory = (entry.kind == EntryKind::Directory).then(|| entry.locator.clone());
        entries.push(entry);
        if let Some(directory) = directory {
            let below = memory.files().list(&directory).await;
            let below = below.map_err(|error| Error::storage(Verb::View, &directory, error))?;
            entries.extend(below.entries.into_iter().filter(is_shown));
        }
    }
    let lines = Lines { memory, path, entries: &entries };
    let whole = lines.show(0, usize::MAX, max_characters).await?;
    if whole.next.is_none() || range.is_none() {
        return Ok(format!("{header}\n{}", whole.with_note(path, entries.len() + 1)));
    }
    let (start, end) = LineRange::within(range, entries.len() + 1);
    let part = lines.show(start, end, max_characters).await?;
    Ok(format!("{header}\n{}", part.with_note(path, entries.len() + 1)))
}

fn is_shown(entry: &Entry) -> bool {
    let name = entry.locator.name();
    !name.starts_with('.') && name != PACKAGES
}

/// The lines of a listing: the directory itself, then what is in it.
struct Lines<'a> {
    memory: &'a Memory,
    /// The directory as it was asked for.
    path: &'a str,
    entries: &'a [Entry],
}

/// Some lines of a listing.
struct Part {
    text: String,
    first: usize,
    /// The line that did not fit any more, counted from 1.
    next: Option<usize>,
}

impl Part {
    fn with_note(self, path: &str, lines: usize) -> String {
        let Part { mut text, first, next } = self;
        if let Some(next) = next {
            text.push_str(&format!(
                "\n\n[Lines {first}-{} of {lines} are shown. To see the following ones, view {path} with view_range [{next}, -1].]",
                next - 1
            ));
        }
        text
    }
}

impl Lines<'_> {
    /// Returns the lines from index `start` to before index `end`, as many as fit.
    async fn show(&self, start: usize, end: usize, max_characters: usize) -> Result<Part> {
        let mut part = Part { text: String::new(), first: start + 1, next: None };
        let mut characters = 0;
        for at in start..end.min(self.entries.len() + 1) {
            let Some(line) = self.line(at).await? else {
                continue;
            };
            characters += line.chars().count() + 1;
            if characters > max_characters && at > start {
                part.next = Some(at + 1);
                break;
            }
            if !part.text.is_empty() {
                part.text.push('\n');
            }
            part.text.push_str(&line);
        }
        Ok(part)
    }

    /// Returns the line at an index; `None` if what it is about is gone meanwhile.
    async fn line(&self, at: usize) -> Result<Option<String>> {
        let Some(entry) = at.checked_sub(1).and_then(|at| self.entries.get(at)) else {
            return Ok(Some(format!("{DIRECTORY_SIZE}\t{}", self.path)));
        };
        let Entry { locator, kind } = entry;
        let (above, below) = (self.path.trim_end_matches('/'), &locator.as_str()[self.skipped()..]);
        Ok(match kind {
            EntryKind::Directory => Some(format!("{DIRECTORY_SIZE}\t{above}/{below}/")),
            EntryKind::File => match self.memory.info(Verb::View, locator).await {
                Ok(info) => Some(format!("{}\t{above}/{below}", size(info.size_bytes))),
                Err(error) if error.kind() == ErrorKind::NotFound => None,
                Err(error) => return Err(error),
            },
        })
    }

    /// Returns how much of a locator is above the directory that is shown.
    fn skipped(&self) -> usize {
        // The first entry is a child of that directory.
        let first = self.entries.first().map_or("", |entry| entry.locator.as_str());
        first.rfind('/').map_or(0, |slash| slash + 1)
    }
}

/// Returns a size as people read it.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["B", "K", "M", "G"];
    let mut unit = 0;
    let mut divisor: u64 = 1;
    while unit + 1 < UNITS.len() && bytes / divisor >= 1024 {
        divisor *= 1024;
        unit += 1;
    }
    if unit == 0 {
        return format!("{bytes}B");
    }
    // Rounded to one decimal, without leaving whole numbers.
    let tenths = (u128::from(bytes) * 10 + u128::from(divisor) / 2) / u128::from(divisor);
    format!("{}.{}{}", tenths / 10, tenths % 10, UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (bytes, shown) in [
            (0, "0B"),
            (1023, "1023B"),
            (1024, "1.0K"),
            (1536, "1.5K"),
            (2048, "2.0K"),
            (1024 * 1024 - 1, "1024.0K"),
            (1024 * 1024, "1.0M"),
            (5 << 40, "5120.0G"),
        ] {
            assert_eq!(size(bytes), shown);
        }
    }
}
