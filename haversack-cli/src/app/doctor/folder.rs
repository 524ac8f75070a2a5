//! Finds problems in a folder that a sync client copies.

use std::path::Path;
use std::time::Duration;

use haversack::check::Finding;
use haversack::store::{BackendExt, DirectoryKind, Locator, Vault, block_on, directory_of, recognise};
use haversack::sync::SyncError;
use haversack::vault::copies::waiting;
use haversack::vault::lost::Named;
use haversack::vault::strays::strays;
use haversack::vault::{Bridge, Heads, available, layout};
use haversack_system::RandomIds;

use crate::error::CommandError;
use crate::home::lost_and_found::{Lost, LostAndFound};
use crate::remote::{self, Remote};
use crate::settings::{Settings, shown};
use crate::ui::moments::counted;

/// The number of names that a finding lists.
const SHOWN: usize = 3;

/// The most time that the check waits for a running sync.
const MAX_LOCK_WAIT: Duration = Duration::from_secs(5);

const SUBJECT: &str = "folder";

/// Looks at the folder that this memory meets others in, if it is one.
pub(super) fn examine(settings: &Settings) -> Vec<Finding> {
    let remote = match Remote::for_looking(settings) {
        Ok(Some(remote)) if remote::is_vault(&remote.url) => remote,
        _ => return Vec::new(),
    };
    look(settings, &remote).unwrap_or_else(|error| {
        let cure = error.hint.unwrap_or_else(|| "haversack sync".to_owned());
        vec![Finding::fail(SUBJECT, error.message, cure)]
    })
}

fn look(settings: &Settings, remote: &Remote) -> Result<Vec<Finding>, CommandError> {
    let directory = directory_of(&remote.url)?;
    if !directory.is_dir() {
        let detail = format!("{} is not there", shown(&directory));
        let cure = "Mount it, or let its client bring it back; nothing is lost, and nothing is deleted";
        return Ok(vec![Finding::fail(SUBJECT, detail, cure)]);
    }
    let mut findings = vec![provider(settings, &directory)];
    let folder = Vault::open(&directory, settings.shared_locks())?;
    let away = block_on(folder.online_only())?;
    if !away.is_empty() {
        let detail = format!("files that are only online ({}): {}", away.len(), names(&away));
        findings.push(Finding::warn(SUBJECT, detail, "Let the client keep the folder on this machine"));
    }
    let there = block_on(folder.list_all(&Locator::root()))?;
    let found: Vec<Locator> = strays(&there).into_iter().map(|(locator, _)| locator).collect();
    if !found.is_empty() {
        let detail = format!("locks or databases of other programs are replicated: {}", names(&found));
        findings.push(Finding::warn(SUBJECT, detail, "Move them out of the folder"));
    }
    if let Some(vault) = remote::vault(settings, remote)? {
        let wait = settings.lock_wait.min(MAX_LOCK_WAIT);
        let opened =
            block_on(Bridge::open_within(vault.folder.clone(), vault.home.clone(), &RandomIds, wait));
        if matches!(opened, Err(SyncError::Busy)) {
            let detail = "a sync is running, so we did not check them; when it is done: haversack doctor";
            findings.push(Finding::ok("logs", detail));
            return Ok(findings);
        }
        let mut bridge = opened?;
        findings.extend(logs(&vault, &mut bridge, &there)?);
        if let Some(lost_and_found) = LostAndFound::of(settings, remote, vault.folder.clone())? {
            let named = Named::of(block_on(bridge.contents())?);
            findings.extend(put_aside(lost_and_found.look(&named)?));
        }
    }
    Ok(findings)
}

/// Says who replicates the folder.
fn provider(settings: &Settings, directory: &Path) -> Finding {
    match recognise(directory, settings.surroundings.user.as_deref()) {
        place @ DirectoryKind::Obsidian { .. } => {
            let cure =
                "Let another client copy it: Obsidian Sync leaves out everything that begins with a dot";
            Finding::warn(SUBJECT, format!("{} is {place}", shown(directory)), cure)
        }
        DirectoryKind::Local | DirectoryKind::Perhaps { .. } => {
            let cure = "See that its client runs, or that it is still the folder it was";
            Finding::warn(SUBJECT, format!("we found no sync client that copies {}", shown(directory)), cure)
        }
        place => Finding::ok(SUBJECT, format!("{} is {place}", shown(directory))),
    }
}

/// Looks at conflict copies, and at logs that have not arrived whole.
fn logs(vault: &remote::Vault, bridge: &mut Bridge, there: &[Locator]) -> Result<Vec<Finding>, CommandError> {
    let mut findings = Vec::new();
    let heads = bridge.heads().clone();
    let logs = block_on(bridge.logs())?;
    let machines: Vec<String> = logs.devices().map(str::to_owned).collect();
    let machines: Vec<&str> = machines.iter().map(String::as_str).collect();
    let found = waiting(there, &machines);
    if !found.copies.is_empty() {
        let copies: Vec<Locator> = found.copies.into_iter().map(|pair| pair.copy).collect();
        let detail =
            format!("conflict copies of the sync client wait ({}): {}", copies.len(), names(&copies));
        findings.push(Finding::warn("copies", detail, "haversack sync --full"));
    }
    if !found.ambiguous.is_empty() {
        let detail =
            format!("these look like copies, and may be files of their own: {}", names(&found.ambiguous));
        findings.push(Finding::warn(
            "copies",
            detail,
            "Haversack does not touch them. Delete or rename files that are not part of the memory",
        ));
    }
    let kept = logs
        .replicas()
        .into_iter()
        .fold(Heads::default(), |kept, replica| kept.with(replica, logs.last(replica)));
    let stopped = kept.each().filter(|(replica, number)| available(logs).of(*replica) < *number).count();
    if stopped > 0 {
        let detail = format!("the logs of {} have not arrived whole", counted(stopped, "machine"));
        findings.push(Finding::warn(
            "logs",
            detail,
            "See that the clients of all machines run. If one of them is gone, on another one: haversack sync --full",
        ));
    }
    let silent =
        heads.each().filter(|(replica, _)| block_on(vault.folder.info(&layout::log(*replica))).is_err());
    let silent = silent.count();
    if silent > 0 {
        let detail =
            format!("the logs of {} are kept here and not in the folder", counted(silent, "machine"));
        let cure = "Nothing is lost here. See that the folder's client was not set back, then: haversack sync --full";
        findings.push(Finding::warn("logs", detail, cure));
    }
    if findings.is_empty() {
        let detail =
            format!("{} arrived whole, and no conflict copy waits", counted(kept.each().count(), "log"));
        findings.push(Finding::ok("logs", detail));
    }
    Ok(findings)
}

/// Returns findings about files that the client could not upload.
fn put_aside(lost: Lost) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut tell = |paths: Vec<&Path>, what: &str, cure: String| {
        if let Some(first) = paths.first() {
            let more = paths.len() - 1;
            let more = if more == 0 { String::new() } else { format!(", and {more} more") };
            findings.push(Finding::warn("lost", format!("{what}: {}{more}", shown(first)), cure));
        }
    };
    tell(
        lost.edits.iter().map(|edit| &*edit.path).collect(),
        "edits that the client could not upload wait",
        "haversack sync --full".to_owned(),
    );
    let like = lost.doubtful.first().map(|(_, locator)| locator.to_string()).unwrap_or_default();
    tell(
        lost.doubtful.iter().map(|(path, _)| &**path).collect(),
        "the client could not upload these, and they may be files of this memory",
        format!(
            "It is like {like}: copy the missing lines into it. Haversack does not change the file where it is"
        ),
    );
    tell(
        lost.unread.iter().map(|path| &**path).collect(),
        "the files that the client could not upload cannot be read",
        "Let yourself read it".to_owned(),
    );
    findings
}

fn names(locators: &[Locator]) -> String {
    let shown: Vec<&str> = locators.iter().take(SHOWN).map(Locator::as_str).collect();
    let more = locators.len().saturating_sub(SHOWN);
    if more == 0 { shown.join(", ") } else { format!("{}, and {more} more", shown.join(", ")) }
}
