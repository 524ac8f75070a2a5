//! Names that are never written into a bound directory.
//!
//! Another program reads a bound directory. A file of another machine must not become that program's settings, its instructions or its
//! commands, nor one of the names that Haversack keeps for itself there.

use crate::locator::Locator;

/// Directories in which agents, editors and git keep settings and programs.
const DIRECTORIES: [&str; 8] =
    [".claude", ".codex", ".cursor", ".gemini", ".git", ".github", ".vscode", ".windsurf"];

/// Directories of an agent's extensions, at the top of a bound directory.
const EXTENSIONS: [&str; 3] = ["commands", "hooks", "skills"];

/// Files that agents read as settings or instructions.
const FILES: [&str; 16] = [
    ".claude.json",
    ".cursorrules",
    ".env",
    ".gitattributes",
    ".gitconfig",
    ".gitmodules",
    ".haversack.toml",
    ".mcp.json",
    ".windsurfrules",
    "agents.md",
    "agents.override.md",
    "claude.local.md",
    "claude.md",
    "gemini.md",
    "settings.json",
    "settings.local.json",
];

/// Returns true if a name, seen from a bound directory, is one that is never written there.
///
/// Compared without case, because a case-insensitive disk would confuse them.
pub fn is_fenced(relative: &str) -> bool {
    let is = |names: &[&str], name: &str| names.iter().any(|known| known.eq_ignore_ascii_case(name));
    let mut segments = relative.split('/').peekable();
    let is_extension = segments.peek().is_some_and(|first| is(&EXTENSIONS, first)) && relative.contains('/');
    let is_reserved = || Locator::reserved(relative).is_ok();
    let last = relative.rsplit('/').next().unwrap_or_default();
    is_extension || is(&FILES, last) || segments.any(|segment| is(&DIRECTORIES, segment)) || is_reserved()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_and_instructions_of_agents_are_fenced() {
        for name in [
            "CLAUDE.md",
            "deep/claude.md",
            "AGENTS.md",
            ".mcp.json",
            ".claude/settings.json",
            "x/.Claude/commands/y.md",
            ".git/hooks/pre-commit",
            "hooks/hooks.json",
            "skills/x/SKILL.md",
            "commands/deploy.md",
            "settings.json",
            ".haversack/incoming/x",
            ".HAVERSACK/x",
            "manifest.json",
            ".haversack.toml",
        ] {
            assert!(is_fenced(name), "{name}");
        }
        for name in [
            "MEMORY.md",
            "claude.txt",
            "notes/commands.md",
            "commands",
            "notes/hooks/x.md",
            "git.md",
            "deep/manifest.json",
            "",
        ] {
            assert!(!is_fenced(name), "{name}");
        }
    }
}
