//! Clean roots: minimal Debian systems in `.tools/dist/roots`, made once by debootstrap.
//!
//! A check sees a root through an overlay, so the root itself never changes, and the upper directory of the overlay holds exactly the files that the check
//! wrote or deleted. Mounts and network live in namespaces of the process; they end with it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::super::files::{copy, fresh, quietly, write};
use crate::run::{project, step, tools};

/// Debian's archive.
const MIRROR: &str = "http://deb.debian.org/debian";

/// A system that checks run in.
#[derive(Clone, Copy, Debug)]
pub(super) struct CleanRoot {
    name: &'static str,
    suite: &'static str,
    packages: &'static [&'static str],
}

/// Only the essential packages of Debian 12, whose C library is older than that of today's systems.
pub(super) const MINIMAL: CleanRoot = CleanRoot { name: "bookworm", suite: "bookworm", packages: &[] };

/// Debian 13 with Python, Node, Ruby, shells and `man`.
pub(super) const WITH_LANGUAGES: CleanRoot = CleanRoot {
    name: "trixie",
    suite: "trixie",
    packages: &[
        "bash-completion",
        "curl",
        "fish",
        "git",
        "man-db",
        "nodejs",
        "npm",
        "pipx",
        "python3-venv",
        "ruby",
        "zsh",
    ],
};

/// Debian 13 with wine 10. Debian 12 has wine 8, which lacks a library that Rust's programs need.
pub(super) const WITH_WINE: CleanRoot =
    CleanRoot { name: "wine", suite: "trixie", packages: &["wine", "wine64"] };

/// The output and the leftovers of a script in a root.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) printed: String,
    /// Files and directories that the script made, changed or deleted, from the root on.
    pub(super) left: Vec<String>,
}

impl CleanRoot {
    /// Makes the root if it is not there. The inner error says why this machine cannot.
    pub(super) fn ready(self) -> Result<Result<PathBuf, String>, String> {
        if !cfg!(target_os = "linux") {
            return Ok(Err("clean roots are made on Linux only".to_owned()));
        }
        if !is_root()? {
            return Ok(Err("clean roots need root: run it as root".to_owned()));
        }
        let root = tools().join("dist/roots").join(self.name);
        if root.is_dir() {
            return Ok(Ok(root));
        }
        let debootstrap = match debootstrap() {
            Ok(debootstrap) => debootstrap,
            Err(why) => return Ok(Err(why)),
        };
        let draft = fresh(&root.with_extension("new"))?;
        let mut make = Command::new("sh");
        make.arg(debootstrap.join("usr/sbin/debootstrap")).args(["--variant=minbase", self.suite]);
        make.arg(&draft)
            .arg(MIRROR)
            .env("DEBOOTSTRAP_DIR", debootstrap.join("usr/share/debootstrap"))
            .stdout(Stdio::null());
        step(&format!("unpacking Debian {}, once", self.suite), &mut make)?;
        if !self.packages.is_empty() {
            copy(Path::new("/etc/resolv.conf"), &draft.join("etc/resolv.conf"))?;
            let mut install = Command::new("chroot");
            install.arg(&draft).args([
                "env",
                "DEBIAN_FRONTEND=noninteractive",
                "apt-get",
                "install",
                "-y",
                "-qq",
            ]);
            install.arg("--no-install-recommends").args(self.packages).stdout(Stdio::null());
            step(&format!("installing {} into it", self.packages.join(", ")), &mut install)?;
        }
        fs::rename(&draft, &root).map_err(|error| format!("{} was not made: {error}", root.display()))?;
        Ok(Ok(root))
    }

    /// Runs a script in the root, with files at hand in `/given`. Fails if the script fails.
    ///
    /// `/given` and `/tmp` do not count as left.
    pub(super) fn run(
        self,
        name: &str,
        script: &str,
        given: &[PathBuf],
    ) -> Result<Result<Ran, String>, String> {
        let lower = match self.ready()? {
            Ok(lower) => lower,
            Err(why) => return Ok(Err(why)),
        };
        let scratch = fresh(&project().join("target/dist-check").join(name))?;
        let (upper, work, merged) = (scratch.join("upper"), scratch.join("work"), scratch.join("merged"));
        for directory in [&upper, &work, &merged] {
            fresh(directory)?;
        }
        for path in given {
            copy(path, &upper.join("given").join(path.file_name().unwrap_or_default()))?;
        }
        write(&upper.join("given/check.sh"), &format!("set -eu\n{script}"))?;
        let before = listed(&upper)?;
        let mut inside = Command::new("unshare");
        inside.args(["--mount", "--net", "--pid", "--fork", "sh", "-euc", INSIDE, "sh"]);
        inside
            .args([&lower, &upper, &work, &merged])
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        let printed = quietly(name, &mut inside)?;
        let left = listed(&upper)?.into_iter().filter(|path| !before.contains(path)).collect();
        drop(fs::remove_dir_all(&scratch));
        Ok(Ok(Ran { printed, left }))
    }
}

/// Mounts the overlay and runs the script in it, with loopback as its only network.
const INSIDE: &str = r#"
mount -t overlay overlay -o "lowerdir=$1,upperdir=$2,workdir=$3" "$4"
mount -t proc proc "$4/proc"
mount --rbind /dev "$4/dev"
if command -v ip >/dev/null; then ip link set lo up; fi
mkdir -p "$4/home/me"
exec chroot "$4" env -i HOME=/home/me PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin LANG=C.UTF-8 sh /given/check.sh 2>&1
"#;

/// Returns every file below a directory, without what checks are given and what every system writes by itself.
fn listed(upper: &Path) -> Result<Vec<String>, String> {
    let ignored = ["./given", "./tmp", "./var/cache", "./var/log", "./home/me"];
    let mut find = Command::new("find");
    find.current_dir(upper).arg(".").args(["!", "-type", "d"]);
    let printed = quietly("find", &mut find)?;
    let is_counted = |path: &str| {
        ignored.iter().all(|ignored| !path.starts_with(&format!("{ignored}/")) || *ignored == "./home/me")
    };
    Ok(printed
        .lines()
        .filter(|path| is_counted(path))
        .map(|path| path.trim_start_matches('.').to_owned())
        .collect())
}

fn is_root() -> Result<bool, String> {
    Ok(quietly("id", Command::new("id").arg("-u"))?.trim() == "0")
}

/// Returns debootstrap, unpacked from Debian's package; the error says why there is none.
fn debootstrap() -> Result<PathBuf, String> {
    let directory = tools().join("debootstrap");
    if !directory.join("usr/sbin/debootstrap").is_file() {
        crate::tools::debian_program("debootstrap")?;
    }
    Ok(directory)
}
