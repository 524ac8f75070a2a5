//! The packages for `npm install haversack` and `npx haversack`.
//!
//! - `haversack` has the adapters of `typescript/`, compiled, the manual pages, and a script for `npx`. It names one package for each program as an optional dependency with the
//!   very same version, so npm installs the one for the user's system. Nothing runs when it is installed. npm links manual pages of the package that the user names
//!   only, so they are here.
//! - `@haversack/linux-x64` and so on hold one program each.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::extras::Extras;
use super::files::{copy, fresh, make_executable, pack, quietly, write};
use super::program::Built;
use super::target::{TARGETS, Target};
use super::{REPOSITORY, VERSION, directory};
use crate::packages::TYPESCRIPT;
use crate::run::project;
use crate::tools::sdks;

/// The directory that npm expects in an archive.
const ROOT: &str = "package";

/// Builds the main package and one for each program.
pub(super) fn make(programs: &[Built], extras: &Extras) -> Result<Vec<PathBuf>, String> {
    let mut packages = vec![main_package(extras)?];
    for built in programs {
        packages.push(platform_package(built, extras)?);
    }
    Ok(packages)
}

/// Compiles the adapters beside the SDK, whose types they use, and packs them.
fn main_package(extras: &Extras) -> Result<PathBuf, String> {
    let sdks = sdks()?;
    let sources = fresh(&sdks.directory.join(format!("haversack-npm-{}", std::process::id())))?;
    let compiled = compile(&sdks.tsc, &sources);
    let package = fresh(&directory().join("scratch/npm").join(ROOT))?;
    let copied = compiled.and_then(|()| {
        ["bin", "src", "dist"].iter().try_for_each(|name| copy(&sources.join(name), &package.join(name)))
    });
    // The copy is only needed while the compiler runs.
    drop(fs::remove_dir_all(&sources));
    copied?;
    let description = fs::read_to_string(project().join("typescript/package.json"))
        .map_err(|error| format!("typescript/package.json: {error}"))?;
    write(&package.join("package.json"), &completed(&description, &pages(extras)?)?)?;
    copy(&extras.man, &package.join("man"))?;
    copy(&project().join("typescript/README.md"), &package.join("README.md"))?;
    make_executable(&package.join("bin/haversack.js"))?;
    licences(&package)?;
    packed(&package, &format!("haversack-{VERSION}.tgz"))
}

fn compile(tsc: &Path, sources: &Path) -> Result<(), String> {
    for name in TYPESCRIPT {
        copy(&project().join("typescript").join(name), &sources.join(name))?;
    }
    quietly("tsc", Command::new(tsc).current_dir(sources)).map(drop)
}

/// Returns the names of the manual pages in their order.
fn pages(extras: &Extras) -> Result<Vec<String>, String> {
    let entries = fs::read_dir(&extras.man)
        .map_err(|error| format!("{} cannot be read: {error}", extras.man.display()))?;
    let mut pages: Vec<_> =
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    pages.sort();
    Ok(pages)
}

/// Returns the description of the main package with its manual pages and a dependency on each program. A checkout has neither: the registry does not have
/// the version that is being written, and the program writes the pages.
fn completed(description: &str, pages: &[String]) -> Result<String, String> {
    const BEFORE: &str = "  \"devDependencies\": {";
    let (start, rest) =
        description.split_once(BEFORE).ok_or("typescript/package.json has no devDependencies")?;
    let lines: Vec<_> =
        TARGETS.iter().map(|target| format!("    \"{}\": \"{VERSION}\"", target.node_package())).collect();
    let pages: Vec<_> = pages.iter().map(|page| format!("    \"./man/{page}\"")).collect();
    let text = format!(
        "{start}  \"man\": [\n{}\n  ],\n  \"optionalDependencies\": {{\n{}\n  }},\n{BEFORE}{rest}",
        pages.join(",\n"),
        lines.join(",\n")
    );
    // An installed package is compiled already.
    Ok(text.replace("    \"prepare\": \"tsc\",\n", ""))
}

fn platform_package(built: &Built, extras: &Extras) -> Result<PathBuf, String> {
    let target = built.target;
    let package = fresh(&directory().join("scratch/npm").join(ROOT))?;
    let program = package.join("bin").join(target.program());
    copy(&built.program, &program)?;
    make_executable(&program)?;
    copy(&extras.completions, &package.join("completions"))?;
    write(&package.join("package.json"), &platform_description(target))?;
    write(
        &package.join("README.md"),
        &format!(
            "# {}\n\nThe program of the package `haversack` for this system. Install `haversack` instead.\n",
            target.node_package()
        ),
    )?;
    licences(&package)?;
    let (system, processor) = target.node;
    packed(&package, &format!("haversack-{system}-{processor}-{VERSION}.tgz"))
}

fn platform_description(target: &Target) -> String {
    let (system, processor) = target.node;
    format!(
        "{{\n  \"name\": \"{}\",\n  \"version\": \"{VERSION}\",\n  \"description\": \"The program haversack for {system} {processor}\",\n  \
         \"license\": \"MIT OR Apache-2.0\",\n  \"repository\": {{ \"type\": \"git\", \"url\": \"git+{REPOSITORY}.git\" }},\n  \"os\": [\"{system}\"],\n  \"cpu\": [\"{processor}\"],\n  \"preferUnplugged\": true,\n  \
         \"files\": [\"bin\", \"completions\"]\n}}\n",
        target.node_package()
    )
}

fn licences(package: &Path) -> Result<(), String> {
    ["LICENSE-APACHE", "LICENSE-MIT"]
        .iter()
        .try_for_each(|name| copy(&project().join(name), &package.join(name)))
}

fn packed(package: &Path, name: &str) -> Result<PathBuf, String> {
    let archive = directory().join(name);
    pack(package.parent().unwrap_or(package), ROOT, &archive)?;
    Ok(archive)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn main_package_names_every_program_with_the_same_version() {
        let description = fs::read_to_string(project().join("typescript/package.json")).expect("it is there");
        let pages = ["haversack.1".to_owned(), "haversack-sync.1".to_owned()];
        let text = completed(&description, &pages).expect("it has a place for them");
        for target in &TARGETS {
            assert!(text.contains(&format!("\"{}\": \"{VERSION}\"", target.node_package())), "{text}");
        }
        assert!(
            text.contains("\"man\": [\n    \"./man/haversack.1\",\n    \"./man/haversack-sync.1\"\n  ],"),
            "{text}"
        );
        assert!(!text.contains("prepare") && !text.contains("postinstall"), "{text}");
    }

    #[test]
    fn packages_have_the_version_of_the_workspace() {
        for (file, line) in [
            ("typescript/package.json", format!("\"version\": \"{VERSION}\"")),
            ("python/pyproject.toml", format!("version = \"{VERSION}\"")),
            ("plugin/.claude-plugin/plugin.json", format!("\"version\": \"{VERSION}\"")),
        ] {
            let text = fs::read_to_string(project().join(file)).expect(file);
            assert!(text.contains(&line), "{file} lacks {line}");
        }
    }
}
