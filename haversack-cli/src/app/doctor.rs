//! Checks everything that memory depends on.

mod folder;
mod projects;
mod remote_check;

use std::path::Path;

use haversack::check::{Finding, Verdict, check_memory, check_store};
use haversack::store::{Backend, Capabilities, OpenOptions, Registry, block_on};
use haversack::sync::Scope;
use haversack_recall::Thoroughness;

use super::{digest, recall};
use crate::agents::AGENTS;
use crate::agents::canary::{Canary, try_hooks};
use crate::agents::mend::{self, Flaw};
use crate::app::graph;
use crate::error::{CommandError, Warning, quoted};
use crate::home::{Home, mounts};
use crate::records::private;
use crate::remote::{self, Remote};
use crate::settings::{Resolved, Settings, declarations, shown};
use crate::ui::moments::counted;

/// The backend of the default store.
const BACKEND: &str = "device-local";

/// The result of all checks.
pub(crate) struct Examination {
    pub(crate) findings: Vec<Finding>,
    /// True if an agent is on this machine.
    pub(crate) has_agent: bool,
}

/// Checks the files, the projects, the remote and the hooks.
pub(crate) fn examine(resolved: &Resolved) -> Examination {
    let settings = &resolved.settings;
    let mut findings = examine_home(resolved);
    // The graph is in the home: if the home cannot be opened, its finding says so.
    if findings.iter().all(|finding| finding.verdict != Verdict::Fail) {
        findings.extend(graph::examine(settings));
    }
    findings.extend(projects::examine(settings));
    findings.extend(remote_check::examine(settings));
    let hooks = examine_hooks(settings);
    let has_agent = !hooks.is_empty();
    findings.extend(hooks);
    Examination { findings, has_agent }
}

/// Returns the finding about settings that are wrong; without them nothing else can be examined.
pub(crate) fn wrong_settings(error: &CommandError) -> Finding {
    let detail = error.in_one_line();
    Finding { subject: "settings", verdict: Verdict::Fail, detail, cure: error.hint.clone() }
}

/// Looks for programs that hooks cannot run, then runs the hooks of every agent that is here.
fn examine_hooks(settings: &Settings) -> Vec<Finding> {
    let here = AGENTS.into_iter().filter(|agent| agent.is_here(settings));
    let mut findings = Vec::new();
    for agent in here {
        let (title, cure) = (agent.title(), mend::cure(agent));
        if let Some(dead) = mend::find(settings, agent) {
            let detail = dead.sentence(settings, agent);
            if dead.flaw != Flaw::OutsideHome {
                findings.push(Finding::fail("hooks", detail, cure));
                continue;
            }
            findings.push(Finding::warn("hooks", detail, &cure));
        }
        findings.push(match try_hooks(settings, agent) {
            Ok(Canary::Fired(count)) => {
                Finding::ok("hooks", format!("{title}: {} fire", counted(count, "hook")))
            }
            Ok(Canary::NotWired) => Finding::warn("hooks", format!("{title} has no hook of ours"), cure),
            Ok(Canary::SwitchedOff) => {
                let cure = "take disableAllHooks out of its settings";
                Finding::warn("hooks", format!("{title}: all hooks are switched off in its settings"), cure)
            }
            Ok(Canary::Silent { event, why }) => {
                Finding::fail("hooks", format!("{title}: {event} does not fire: {why}"), cure)
            }
            Err(error) => {
                let cause = error.source.map(|cause| format!(": {cause}")).unwrap_or_default();
                Finding::fail("hooks", format!("{}{cause}", error.message), error.hint.unwrap_or(cure))
            }
        });
    }
    findings
}

/// Checks the settings, the home and the memory.
fn examine_home(resolved: &Resolved) -> Vec<Finding> {
    let settings = &resolved.settings;
    let place = format!("{} ({})", shown(&settings.home), resolved.layer(declarations::HOME));
    let registry = Registry::standard();
    let half = settings.half_remote();
    let warnings = resolved.warnings.iter().filter(|warning| Some(*warning) != half.as_ref());
    let mut findings: Vec<Finding> =
        warnings.map(|Warning { message, cure }| Finding::warn("settings", message, cure)).collect();
    findings.push(match registry.choose(BACKEND, &Capabilities::default()) {
        Ok(_) => Finding::ok("backend", BACKEND),
        Err(error) => Finding::fail("backend", error.to_string(), "haversack backends"),
    });
    // Verbs work without a remote; doctor still reports the problem.
    findings.extend(half.map(|Warning { message, cure }| Finding::fail("remote", message, cure)));
    if let Ok(Some(named)) = Remote::unagreed(settings) {
        let Warning { message, cure } = remote::needs_a_yes(&named);
        findings.push(Finding::warn("remote", message, cure));
    }
    if settings.keep_local {
        findings
            .push(Finding::ok("remote", "none is used: memory is kept on this machine (keep-memory-local)"));
    }
    let memory = settings.memory();
    match look_at(&memory) {
        Seen::Directory => {}
        // Looking must not create: a mistyped --home would leave a new home behind.
        Seen::Nothing => {
            findings.push(Finding::ok("home", format!("{place}: no memory yet; the first write makes it")));
            return findings;
        }
        Seen::Other(what) => {
            let detail = format!("{} is {what}", shown(&memory));
            findings.push(Finding::fail("home", detail, "Move it away, or choose another home with --home"));
            return findings;
        }
    }
    findings.push(check_privacy(&place, &memory));
    findings.extend(check_files(settings));
    let options =
        OpenOptions { address: shown(&memory), locks: shown(&settings.locks()), ..OpenOptions::default() };
    match registry.select(BACKEND, &options, &Capabilities::default()) {
        Ok(backend) => findings.extend(check_all(settings, &*backend)),
        Err(error) => {
            let cause =
                std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
            let cure = "Give this user access to the directory";
            findings.push(Finding::fail("open", format!("{error}{cause}"), cure));
        }
    }
    findings.extend(folder::examine(settings));
    findings.extend(examine_index(settings));
    let failed = digest::failed(settings);
    findings.extend(
        failed.iter().map(|digest| Finding::warn("digest", digest.sentence(settings), digest.cure(settings))),
    );
    findings
}

/// Checks the search index. It can always be made again, so nothing about it is a failure.
fn examine_index(settings: &Settings) -> Option<Finding> {
    let health = recall::index_health(settings, Thoroughness::Everything)?;
    let cure = match health.is_damaged {
        true => "haversack doctor --fix".to_owned(),
        false => format!("rm -r {}", quoted(&shown(&settings.store().index()))),
    };
    Some(match health.is_well {
        true => Finding::ok("index", health.sentence),
        false => Finding::warn("index", health.sentence, cure),
    })
}

/// Checks the memory, and counts the files of the bound directories with it, as `haversack status` does.
fn check_all(settings: &Settings, memory: &dyn Backend) -> Vec<Finding> {
    // Without bound directories nothing else is opened: looking must not create.
    if mounts::of(settings).is_ok_and(|mounts| mounts.is_empty()) {
        return block_on(check_store(memory));
    }
    match Home::open(settings) {
        Ok(home) => {
            let places: Vec<(&dyn Backend, &Scope)> =
                home.directories().directories().iter().map(|place| (&*place.files, &place.scope)).collect();
            block_on(check_memory(memory, &places))
        }
        Err(error) => {
            let cure = error.hint.clone().unwrap_or_else(|| "haversack mount list".to_owned());
            let mut findings = block_on(check_store(memory));
            findings.push(Finding::fail("mounts", error.in_one_line(), cure));
            findings
        }
    }
}

/// The thing at a path.
enum Seen {
    Nothing,
    Directory,
    Other(String),
}

fn look_at(path: &Path) -> Seen {
    match path.metadata() {
        Ok(metadata) if metadata.is_dir() => Seen::Directory,
        Ok(_) => Seen::Other("not a directory".to_owned()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Seen::Nothing,
        Err(error) => Seen::Other(format!("not accessible: {error}")),
    }
}

/// Reports files beside the memory that other users can read.
fn check_files(settings: &Settings) -> Option<Finding> {
    let open = private::open_to_others(&settings.home);
    let first = open.first()?;
    let detail = match open.len() {
        1 => format!("other users of this machine can read {}", shown(first)),
        count => format!(
            "other users of this machine can read {count} files and directories beside the memory, for example {}",
            shown(first)
        ),
    };
    Some(Finding::warn("private", detail, format!("chmod -R go= {}", shown(&settings.home))))
}

#[cfg(unix)]
fn check_privacy(place: &str, memory: &Path) -> Finding {
    use std::os::unix::fs::PermissionsExt;
    let mode = memory.metadata().map(|metadata| metadata.permissions().mode() & 0o777).unwrap_or(0);
    if mode & 0o077 == 0 {
        return Finding::ok("home", place);
    }
    let detail = format!("{place}: other users of this machine can look into it (mode {mode:03o})");
    Finding::warn("home", detail, format!("chmod 700 {}", shown(memory)))
}

#[cfg(not(unix))]
fn check_privacy(place: &str, _memory: &Path) -> Finding {
    Finding::ok("home", place)
}
