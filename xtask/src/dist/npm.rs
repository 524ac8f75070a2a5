//! The packages for `npm install haversack` and `npx haversack`.
//!
//! - `haversack` has the adapters of `typescript/`, compiled, and a script for `npx`. It names one package for each program as an optional dependency with the
//!   very same version, so npm installs the one for the user's system. Nothing runs when it is installed.
//! - `@haversack/linux-x64` and so on hold one program each.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::extras::Extras;
use super::files::{copy, fresh, make_executable, quietly, tar, write};
use super::program::Built;
use super::target::{TARGETS, Target};
use super::{VERSION, directory};
use crate::packages::TYPESCRIPT;
use crate::run::project;
use crate::tools::sdks;

/// The directory that npm expects in an archive.
const ROOT: &str = "package";

/// Builds the main package and one for each program.
pub(super) fn make(programs: &[Built], extras: &Extras) -> Result<Vec<PathBuf>, String> {
    let mut packages = vec![main_package()?];
    for built in programs {
        packages.push(platform_package(built, extras)?);
    }
    Ok(packages)
}

/// Compiles the adapters beside the SDK, whose types they use, and packs them.
fn main_package() -> Result<PathBuf, String> {
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
    write(&package.join("package.json"), &with_programs(&description)?)?;
    copy(&project().join("typescript/README.md"), &package.join("README.md"))?;
    make_executable(&package.join("bin/haversack.js"))?;
    licences(&package)?;
    pack(&package, &format!("haversack-{VERSION}.tgz"))
}

fn compile(tsc: &Path, sources: &Path) -> Result<(), String> {
    for name in TYPESCRIPT {
        copy(&project().join("typescript").join(name), &sources.join(name))?;
    }
    quietly("tsc", Command::new(tsc).current_dir(sources)).map(drop)
}

/// Returns the description of the main package with a dependency on each program. A checkout has none of them, because the registry does not have the
/// version that is being written.
fn with_programs(description: &str) -> Result<String, String> {
    const BEFORE: &str = "  \"devDependencies\": {";
    let (start, rest) =
        description.split_once(BEFORE).ok_or("typescript/package.json has no devDependencies")?;
    let lines: Vec<_> =
        TARGETS.iter().map(|target| format!("    \"{}\": \"{VERSION}\"", target.node_package())).collect();
    let text = format!("{start}  \"optionalDependencies\": {{\n{}\n  }},\n{BEFORE}{rest}", lines.join(",\n"));
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
    copy(&extras.man, &package.join("man"))?;
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
    pack(&package, &format!("haversack-{system}-{processor}-{VERSION}.tgz"))
}

fn platform_description(target: &Target) -> String {
    let (system, processor) = target.node;
    format!(
        "{{\n  \"name\": \"{}\",\n  \"version\": \"{VERSION}\",\n  \"description\": \"The program haversack for {system} {processor}\",\n  \
         \"license\": \"MIT OR Apache-2.0\",\n  \"os\": [\"{system}\"],\n  \"cpu\": [\"{processor}\"],\n  \"preferUnplugged\": true,\n  \
         \"files\": [\"bin\", \"completions\", \"man\"]\n}}\n",
        target.node_package()
    )
}

fn licences(package: &Path) -> Result<(), String> {
    ["LICENSE-APACHE", "LICENSE-MIT"]
        .iter()
        .try_for_each(|name| copy(&project().join(name), &package.join(name)))
}

fn pack(package: &Path, name: &str) -> Result<PathBuf, String> {
    let archive = directory().join(name);
    tar(package.parent().unwrap_or(package), ROOT, &archive)?;
    Ok(archive)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn main_package_names_every_program_with_the_same_version() {
        let description = fs::read_to_string(project().join("typescript/package.json")).expect("it is there");
        let text = with_programs(&description).expect("it has a place for them");
        for target in &TARGETS {
            assert!(text.contains(&format!("\"{}\": \"{VERSION}\"", target.node_package())), "{text}");
        }
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
