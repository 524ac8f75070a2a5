//! One file among more and more others: does a verb get slower?

use haversack_bench::Outcome;
use haversack_bench::growth::{self, add_rows};
use haversack_bench::table::Table;

use crate::sides::contender;
use crate::single::bare;
use crate::site::Site;
use crate::steps::{str_replace, text, view};

/// The size of the file that is worked on.
const SIZE_BYTES: usize = 1024;

/// The content of each of the others.
const OTHER: &str = "a short note\n";

/// Measures a look and an edit in directories of more and more files.
pub(crate) fn crowded(site: &Site, (rounds, count): (usize, usize), files: usize) -> Outcome<Table> {
    let sizes: Vec<usize> = [100, 1_000, 10_000, 100_000].into_iter().filter(|size| *size <= files).collect();
    let title = format!("One file among more and more in its directory, in process, on {}", site.filesystem);
    let mut table = growth::table(title, &sizes);
    for size in &sizes {
        site.make_dir(&directory(*size))?;
        for whose in ["ours", "theirs"] {
            site.fill_ours(&key(*size, whose), &text(SIZE_BYTES))?;
        }
        for file in 0..*size {
            site.fill_ours(&format!("{}/note-{file:06}.md", directory(*size)), OTHER)?;
        }
    }
    site.calm();

    let tool = &site.tool;
    // The bare loop has a file among ours: so many others need not be there twice.
    let theirs = |size: usize| move |_| vec![format!("../ours/memory/{}", key(size, "theirs")); count];

    let ours = sizes.iter().map(|size| contender(tool, view(&key(*size, "ours"), count)));
    let peer = sizes.iter().map(|size| bare(site, "read", SIZE_BYTES, theirs(*size)));
    add_rows(&mut table, &["`view`", "read, bare C"], rounds, ours.chain(peer).collect())?;

    let ours = sizes.iter().map(|size| contender(tool, str_replace(&key(*size, "ours"), count)));
    let peer = sizes.iter().map(|size| bare(site, "replace", SIZE_BYTES, theirs(*size)));
    add_rows(&mut table, &["`str_replace`", "replace, bare C"], rounds, ours.chain(peer).collect())?;
    Ok(table)
}

fn directory(files: usize) -> String {
    format!("many-{files}")
}

fn key(files: usize, whose: &str) -> String {
    format!("{}/{whose}.md", directory(files))
}
