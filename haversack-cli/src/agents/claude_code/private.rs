//! Memory of its own for one worktree: where it is, and the setting of Claude Code that says so. Pure: text in, text out.
//!
//! The directory tells by its name that it is private. So it stays on this machine whatever else is lost or forgotten.

use std::path::{Path, PathBuf};

use jsonc_parser::cst::CstInputValue;

use super::slug::slug;
use super::wiring::{Unfit, count, no_object, parse, split_mark, text_in, unfit};

/// The setting of Claude Code that names a memory directory.
pub(crate) const SETTING: &str = "autoMemoryDirectory";

/// The settings of one checkout that are not committed.
pub(crate) const LOCAL_SETTINGS: &str = ".claude/settings.local.json";

/// The end of a private directory's name; Claude Code's names for paths have no full stop.
const ENDING: &str = ".private";

/// Returns where the private memory of a worktree is, among the directories of all projects.
pub(crate) fn directory(projects: &Path, checkout: &Path) -> PathBuf {
    projects.join(format!("{}{ENDING}", slug(&checkout.to_string_lossy()))).join("memory")
}

/// Returns true if a memory directory is a private one.
pub(crate) fn is_private(memory: &Path) -> bool {
    let mut above = memory.ancestors().skip(1).map(|path| path.file_name().unwrap_or_default());
    memory.ends_with("memory")
        && above.next().is_some_and(|name| name.to_string_lossy().ends_with(ENDING))
        && above.next().is_some_and(|name| name == "projects")
}

/// Returns the private memory directory that settings name.
pub(crate) fn named_in(text: &str) -> Option<PathBuf> {
    text_in(text, SETTING).map(PathBuf::from).filter(|memory| is_private(memory))
}

/// Returns settings that name a private memory directory; those that name another one are left alone.
pub(crate) fn with_setting(text: &str, memory: &Path) -> Result<String, Unfit> {
    if named_in(text).is_some_and(|named| named == memory) {
        return Ok(text.to_owned());
    }
    let without = without_setting(text)?;
    let (mark, body) = split_mark(&without);
    let root = parse(if body.trim().is_empty() { "{}\n" } else { body })?;
    let settings = root.object_value().ok_or_else(no_object)?;
    if count(&settings, SETTING) > 0 {
        return unfit(format!("it sets another memory directory (\"{SETTING}\")"));
    }
    settings.append(SETTING, CstInputValue::String(memory.display().to_string()));
    Ok(format!("{mark}{root}"))
}

/// Returns settings that name no private memory directory.
pub(crate) fn without_setting(text: &str) -> Result<String, Unfit> {
    let (mark, body) = split_mark(text);
    if body.trim().is_empty() {
        return Ok(text.to_owned());
    }
    let root = parse(body)?;
    let settings = root.object_value().ok_or_else(no_object)?;
    if count(&settings, SETTING) > 1 {
        return unfit(format!("it has \"{SETTING}\" twice"));
    }
    match settings.get(SETTING).filter(|_| named_in(text).is_some()) {
        Some(property) => property.remove(),
        None => return Ok(text.to_owned()),
    }
    Ok(format!("{mark}{root}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_what_is_private() {
        let memory = directory(Path::new("/c/projects"), Path::new("/home/me/light.house"));
        assert_eq!(memory, Path::new("/c/projects/-home-me-light-house.private/memory"));
        assert!(is_private(&memory));
        for other in [
            "/c/projects/-home-me-lighthouse-private/memory",
            "/c/projects/-home-me-lighthouse.private/other",
            "/c/projects/-home-me-lighthouse.private",
            "/c/other/-home-me-lighthouse.private/memory",
            "/c/projects/-home-me-lighthouse/memory",
            "memory",
            "/",
        ] {
            assert!(!is_private(Path::new(other)), "{other}");
        }
    }

    #[test]
    fn the_setting_is_added_once_and_taken_out_again() {
        let memory = Path::new("/c/projects/-wt.private/memory");
        for text in [
            "",
            "{}\n",
            "\u{feff}{\r\n  \"model\": \"opus\"\r\n}\r\n",
            "{\n  // mine\n  \"permissions\": { \"allow\": [\"Bash(ls:*)\"] }, /* and */\n  \"z\": 1 // last\n}\n",
        ] {
            let with = with_setting(text, memory).expect("fits");
            assert_eq!(with_setting(&with, memory).expect("fits"), with);
            assert_eq!(named_in(&with).as_deref(), Some(memory), "{with}");
            for remark in ["// mine", "/* and */", "// last", "\u{feff}", "\r\n"] {
                assert_eq!(with.contains(remark), text.contains(remark), "{with}");
            }
            let moved = with_setting(&with, Path::new("/c/projects/-other.private/memory")).expect("fits");
            assert_eq!(moved.matches(SETTING).count(), 1, "{moved}");
            let out = without_setting(&with).expect("fits");
            let [out, text] = [out.as_str(), if text.is_empty() { "{}" } else { text }]
                .map(|text| text.split_whitespace().collect::<String>());
            assert_eq!(out, text);
        }
    }

    #[test]
    fn what_is_not_ours_stays() {
        let theirs = "{\"autoMemoryDirectory\":\"/home/me/notes\"}";
        assert_eq!(without_setting(theirs).expect("fits"), theirs);
        for text in [
            theirs,
            "[]",
            "{",
            "{\"autoMemoryDirectory\":7}",
            "{\"autoMemoryDirectory\":\"/c/projects/a.private/memory\",\"autoMemoryDirectory\":1}",
        ] {
            assert!(with_setting(text, Path::new("/c/projects/-wt.private/memory")).is_err(), "{text}");
        }
    }
}
