//! `cargo xtask release`: everything that belongs to a release, in `dist/`.
//!
//! - `--dry-run` tries every target, builds the packages of those that this machine can build ([`dist`]), then assembles the release from them. It names the
//!   targets that it skipped, and publishes nothing. With `--reuse` it packs the programs that are in `dist/bin`.
//! - `--assemble` assembles the release from the packages that are in `dist/` already; other machines built them.
//!
//! To assemble is to fill the archives' checksums into the installers and the Homebrew formula of `packaging/`, to take the notes from the change log, and to write
//! `SHA256SUMS` and a table of all files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::dist::archive::stem;
use crate::dist::files::{described, make_executable, sha256, write};
use crate::dist::{self, Programs, REPOSITORY, TARGETS, VERSION};
use crate::run::{project, say};

/// `cargo xtask release --dry-run` or `--assemble`.
pub(crate) fn run(options: &[&str]) -> Result<(), String> {
    match options {
        ["--dry-run", rest @ ..] if rest.is_empty() || rest == ["--reuse"] => {
            let programs = if rest.is_empty() { Programs::BuiltIfPossible } else { Programs::Reused };
            let targets: Vec<_> = TARGETS.iter().collect();
            let made = dist::make(programs, &targets, &[])?;
            let files = assemble(&dist::directory())?;
            say(&table(&files)?);
            for skipped in &made.skipped {
                say(&format!("Skipped: {skipped}\n"));
            }
            say("This was a dry run: nothing was published. docs/releasing.md says how to go on.\n");
            Ok(())
        }
        ["--assemble"] => {
            let files = assemble(&dist::directory())?;
            say(&table(&files)?);
            Ok(())
        }
        _ => Err("release: say --dry-run, or --assemble for packages that are in dist/ already".to_owned()),
    }
}

/// Writes the installers, the formula, the notes and the checksums beside the packages. Returns all files of the release.
pub(crate) fn assemble(directory: &Path) -> Result<Vec<PathBuf>, String> {
    let mut archives = BTreeMap::new();
    for target in &TARGETS {
        let archive = directory.join(format!("{}.tar.gz", stem(target.triple)));
        if archive.is_file() {
            archives.insert(target.triple, sha256(&archive)?);
        }
    }
    if archives.is_empty() {
        return Err(format!("{} holds no archive of version {VERSION}", directory.display()));
    }
    let read = |name: &str| {
        let path = project().join("packaging").join(name);
        fs::read_to_string(&path).map_err(|error| format!("{} cannot be read: {error}", path.display()))
    };
    let installer = directory.join("haversack-installer.sh");
    write(&installer, &filled(&read("installer.sh")?, &[("@CHECKSUMS@", shell_checksums(&archives))]))?;
    make_executable(&installer)?;
    write(
        &directory.join("haversack-installer.ps1"),
        &filled(&read("installer.ps1")?, &[("@CHECKSUMS@", power_shell_checksums(&archives))]),
    )?;
    write(
        &directory.join("haversack.rb"),
        &filled(&read("haversack.rb")?, &[("@ARCHIVES@", formula(&archives))]),
    )?;
    let changes = fs::read_to_string(project().join("CHANGELOG.md"))
        .map_err(|error| format!("CHANGELOG.md: {error}"))?;
    write(&directory.join("NOTES.md"), &notes(&changes))?;
    let files = files(directory)?;
    let mut sums = String::new();
    for file in &files {
        sums.push_str(&format!("{}  {}\n", sha256(file)?, name(file)));
    }
    write(&directory.join("SHA256SUMS"), &sums)?;
    Ok(files)
}

/// Returns the address of the files of this release.
fn download_url() -> String {
    format!("{REPOSITORY}/releases/download/v{VERSION}")
}

fn filled(template: &str, values: &[(&str, String)]) -> String {
    let mut text = template.to_owned();
    for (mark, value) in values {
        text = text.replace(mark, value.trim_end());
    }
    text.replace("@VERSION@", VERSION).replace("@URL@", &download_url()).replace("@REPOSITORY@", REPOSITORY)
}

fn shell_checksums(archives: &BTreeMap<&str, String>) -> String {
    archives.iter().map(|(triple, hash)| format!("        {triple}) echo {hash} ;;\n")).collect()
}

fn power_shell_checksums(archives: &BTreeMap<&str, String>) -> String {
    archives.iter().map(|(triple, hash)| format!("    '{triple}' = '{hash}'\n")).collect()
}

/// Returns the part of the formula that names the archives.
fn formula(archives: &BTreeMap<&str, String>) -> String {
    let block = |triple: &str, system: &str, processor: &str| {
        let hash = archives.get(triple)?;
        Some(format!(
            "  on_{system} do\n    on_{processor} do\n      url \"{}/{}.tar.gz\"\n      sha256 \"{hash}\"\n    end\n  end\n\n",
            download_url(),
            stem(triple)
        ))
    };
    [
        ("aarch64-apple-darwin", "macos", "arm"),
        ("x86_64-apple-darwin", "macos", "intel"),
        ("aarch64-unknown-linux-musl", "linux", "arm"),
        ("x86_64-unknown-linux-musl", "linux", "intel"),
    ]
    .into_iter()
    .filter_map(|(triple, system, processor)| block(triple, system, processor))
    .collect()
}

/// Returns the section of this version in the change log; before the release it is still called Unreleased.
fn notes(changes: &str) -> String {
    let section = |title: &str| {
        let start = changes.find(&format!("\n## {title}"))? + 1;
        let rest = &changes[start..];
        let end = rest[1..].find("\n## ").map_or(rest.len(), |end| end + 2);
        Some(rest[..end].to_owned())
    };
    section(VERSION).or_else(|| section("Unreleased")).unwrap_or_default()
}

/// Returns every file of the release, in the order of their names.
fn files(directory: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(directory)
        .map_err(|error| format!("{} cannot be read: {error}", directory.display()))?;
    let is_of_release = |path: &PathBuf| path.is_file() && name(path) != "SHA256SUMS";
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(is_of_release).collect();
    files.sort();
    Ok(files)
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn table(files: &[PathBuf]) -> Result<String, String> {
    let lines: Vec<_> = files.iter().map(|file| described(file)).collect::<Result<_, _>>()?;
    Ok(format!("{}\n", lines.join("\n")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_filled_completely() {
        let archives = BTreeMap::from([
            ("x86_64-unknown-linux-musl", "ab".repeat(32)),
            ("aarch64-apple-darwin", "cd".repeat(32)),
        ]);
        for (name, mark, value) in [
            ("installer.sh", "@CHECKSUMS@", shell_checksums(&archives)),
            ("installer.ps1", "@CHECKSUMS@", power_shell_checksums(&archives)),
            ("haversack.rb", "@ARCHIVES@", formula(&archives)),
        ] {
            let template = fs::read_to_string(project().join("packaging").join(name)).expect(name);
            let text = filled(&template, &[(mark, value)]);
            assert!(!text.contains('@') || name == "installer.ps1", "{name}: {text}");
            for mark in ["@VERSION@", "@URL@", "@REPOSITORY@", "@CHECKSUMS@", "@ARCHIVES@"] {
                assert!(!text.contains(mark), "{name} keeps {mark}");
            }
            assert!(text.contains(&"ab".repeat(32)) && text.contains(VERSION), "{name}: {text}");
        }
    }

    #[test]
    fn notes_are_one_section() {
        let changes = "# Changelog\n\n## Unreleased\n\n- new\n\n## 0.1.0\n\n- old\n";
        assert_eq!(notes(changes), "## Unreleased\n\n- new\n\n");
        let released = format!("# Changelog\n\n## {VERSION}, November 2026\n\n- this\n");
        assert_eq!(notes(&released), format!("## {VERSION}, November 2026\n\n- this\n"));
    }

    #[test]
    fn workflow_builds_every_target() {
        let workflow =
            fs::read_to_string(project().join(".github/workflows/release.yml")).expect("it is there");
        for target in &TARGETS {
            assert!(workflow.contains(&format!("--target {}", target.triple)), "{}", target.triple);
        }
    }

    /// Returns the part of the workflow that describes a job.
    fn job(name: &str) -> String {
        let workflow =
            fs::read_to_string(project().join(".github/workflows/release.yml")).expect("it is there");
        let start = workflow.find(&format!("\n  {name}:\n")).unwrap_or_else(|| panic!("no job {name}")) + 1;
        let is_next = |line: &&str| line.starts_with("  ") && !line[2..].starts_with([' ', '#']);
        let lines: Vec<_> = workflow[start..].lines().collect();
        let length = lines.iter().skip(1).position(is_next).map_or(lines.len(), |at| at + 1);
        lines[..length].join("\n")
    }

    #[test]
    fn workflow_checks_the_packages_that_it_publishes() {
        let check = job("check");
        let steps = ["actions/download-artifact", "xtask release --assemble", "xtask dist --check"];
        let places: Vec<_> =
            steps.iter().map(|step| check.find(step).unwrap_or_else(|| panic!("{step}: {check}"))).collect();
        assert!(places.is_sorted(), "{check}");
        let line = check.lines().find(|line| line.contains("dist --check")).unwrap_or_default();
        assert!(line.contains("sudo"), "clean roots need root: {line}");
    }

    #[test]
    fn workflow_publishes_files_and_not_repositories() {
        // npm takes `dist/x.tgz` for the repository `x.tgz` of the user `dist`.
        let publish = job("publish");
        let line = publish.lines().find(|line| line.contains("npm publish")).unwrap_or_default();
        let packages: Vec<_> = line.split([' ', ';']).filter(|word| word.ends_with(".tgz")).collect();
        assert!(!packages.is_empty() && packages.iter().all(|path| path.starts_with("./")), "{line}");
        for file in ["typescript/package.json", "haversack-cli/Cargo.toml"] {
            let text = fs::read_to_string(project().join(file)).expect(file);
            assert!(
                text.contains(REPOSITORY),
                "{file}: npm proves the origin of a package by its repository"
            );
        }
    }

    #[test]
    fn binstall_finds_the_archives() {
        let manifest = fs::read_to_string(project().join("haversack-cli/Cargo.toml")).expect("it is there");
        assert!(
            manifest.contains(&format!(
                "{REPOSITORY}/releases/download/v{{ version }}/haversack-{{ version }}-{{ target }}.tar.gz"
            )),
            "{manifest}"
        );
    }
}
