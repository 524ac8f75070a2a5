//! The home's record of its remote: `remote.toml`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use haversack::store::OpenOptions;
use serde::{Deserialize, Serialize};

use super::credential::{Cloud, Source};
use crate::error::{CommandError, Warning};
use crate::records;
use crate::settings::{Settings, variables};

/// A home's record of its remote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Remote {
    /// Its address.
    pub(crate) url: String,
    /// This device's name there.
    pub(crate) device: String,
    /// True if the files are also kept there as plain copies.
    #[serde(default = "yes")]
    pub(crate) mirror: bool,
    /// The source of the credential; for an added remote in a cloud.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) credential: Option<Source>,
    /// Further values that its cloud's own tools would read from variables.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) settings: BTreeMap<String, String>,
    /// True if the settings name it (`blob-endpoint`, `blob-container`), and the user agreed: it is used as long as they do.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) from_settings: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands in a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

fn yes() -> bool {
    true
}

fn place(settings: &Settings) -> PathBuf {
    settings.store().remote()
}

impl Remote {
    /// Returns the remote of a home, if it has one and memory may leave this machine.
    ///
    /// A remote that only the settings name does not count until the user agreed to it ([`Remote::unagreed`]).
    pub(crate) fn of(settings: &Settings) -> Result<Option<Remote>, CommandError> {
        if settings.keep_local {
            return Ok(None);
        }
        let named = named(settings)?;
        let recorded = Remote::recorded(settings)?;
        match (recorded, named) {
            (Some(recorded), named) if recorded.from_settings => {
                Ok(Some(recorded).filter(|recorded| named.is_some_and(|named| named.url == recorded.url)))
            }
            (Some(recorded), Some(named)) if recorded.url != named.url => Err(CommandError::user(
                format!(
                    "this memory has the remote {}, and the settings define another: {}",
                    recorded.url, named.url
                ),
                format!("Unset {}, or leave the other: haversack remote remove", variables::BLOB_ENDPOINT),
            )),
            (recorded, _) => Ok(recorded),
        }
    }

    /// Returns the remote that the settings name, if the user has not agreed yet that this memory is sent there.
    ///
    /// Variables can come from a shell profile, a container image or a project: they alone send nothing.
    pub(crate) fn unagreed(settings: &Settings) -> Result<Option<Remote>, CommandError> {
        if settings.keep_local || settings.half_remote().is_some() {
            return Ok(None);
        }
        let Some(named) = named(settings)? else { return Ok(None) };
        let is_other = Remote::recorded(settings)?
            .is_none_or(|recorded| recorded.from_settings && recorded.url != named.url);
        Ok(is_other.then_some(Remote { from_settings: true, ..named }))
    }

    /// Returns the remote of a home for callers that can work without one: an incomplete one counts as none, and was reported at the start.
    pub(crate) fn for_looking(settings: &Settings) -> Result<Option<Remote>, CommandError> {
        if settings.half_remote().is_some() { Ok(None) } else { Remote::of(settings) }
    }

    /// Returns the recorded remote, even if it may not be used.
    pub(crate) fn recorded(settings: &Settings) -> Result<Option<Remote>, CommandError> {
        records::read(&place(settings), "Remove it, and add the remote again: haversack remote add URL")
    }

    /// Returns the record of the remote at an address.
    pub(crate) fn at(settings: &Settings, url: &str) -> Result<Remote, CommandError> {
        let recorded = Remote::recorded(settings)?.filter(|remote| remote.url == url);
        let known = match recorded {
            Some(recorded) => Some(recorded),
            None => Remote::unagreed(settings)?.filter(|named| named.url == url),
        };
        Ok(known.unwrap_or_else(|| Remote::new(url, device_name())))
    }

    /// Returns a remote that nothing else is known about.
    pub(crate) fn new(url: impl Into<String>, device: impl Into<String>) -> Remote {
        Remote {
            url: url.into(),
            device: device.into(),
            mirror: true,
            credential: None,
            settings: BTreeMap::new(),
            from_settings: false,
        }
    }

    /// Returns the remote of a home that must have one.
    pub(crate) fn expected(settings: &Settings) -> Result<Remote, CommandError> {
        refuse_local(settings)?;
        if let Some(remote) = Remote::of(settings)? {
            return Ok(remote);
        }
        Err(match Remote::unagreed(settings)? {
            Some(named) => {
                let Warning { message, cure } = needs_a_yes(&named);
                CommandError::user(message, cure)
            }
            None => CommandError::user(
                "this memory has no remote, so there is nothing to sync with",
                "Name one: haversack remote add file:///a/directory, or join one: haversack join URL",
            ),
        })
    }

    /// Saves the record; removes stored credentials that are not used any more.
    pub(crate) fn save(&self, settings: &Settings) -> Result<(), CommandError> {
        let before = Remote::recorded(settings)?.and_then(|remote| remote.credential);
        records::write(&place(settings), self, records::Weight::Durable)?;
        match before.filter(|before| self.credential.as_ref() != Some(before)) {
            Some(unused) => unused.forget(settings),
            None => Ok(()),
        }
    }

    /// Removes the record and its stored credentials. The memory stays, here and there.
    pub(crate) fn forget(settings: &Settings) -> Result<(), CommandError> {
        if let Some(source) = Remote::recorded(settings)?.and_then(|remote| remote.credential) {
            source.forget(settings)?;
        }
        records::remove(&place(settings))
    }

    /// Returns the parameters for opening its backend.
    pub(crate) fn options(&self, settings: &Settings) -> Result<OpenOptions, CommandError> {
        let mut known = match (Cloud::of(&self.url), &self.credential) {
            (None, _) => haversack::store::Settings::default(),
            (Some(cloud), None) => Source::of_shell(settings, cloud),
            (Some(_), Some(source)) => {
                let mut known = haversack::store::Settings::default();
                source.add(settings, &mut known)?;
                known
            }
        };
        for (name, value) in &self.settings {
            known.set(name, value);
        }
        known.set(haversack::store::cloud::WAIT_SECONDS, settings.cloud_wait.as_secs().to_string());
        let locks = settings.shared_locks().display().to_string();
        Ok(OpenOptions { address: self.url.clone(), locks, settings: known })
    }
}

/// Refuses to reach out where memory is to stay on this machine.
pub(crate) fn refuse_local(settings: &Settings) -> Result<(), CommandError> {
    if !settings.keep_local {
        return Ok(());
    }
    Err(CommandError::user(
        "memory is kept on this machine (keep-memory-local): nothing was sent, and nothing was asked",
        format!(
            "If it may leave, unset {} and keep-memory-local in config.toml",
            variables::KEEP_MEMORY_LOCAL
        ),
    ))
}

/// Says that the settings name a remote to which the user has not agreed yet.
pub(crate) fn needs_a_yes(named: &Remote) -> Warning {
    let url = &named.url;
    Warning {
        message: format!(
            "the settings define the remote {url} ({}, {}), and you have not agreed yet to send this memory there. We send nothing",
            variables::BLOB_ENDPOINT,
            variables::BLOB_CONTAINER
        ),
        cure: format!(
            "Agree once: haversack init, or haversack remote add {url}. Or unset {}",
            variables::BLOB_ENDPOINT
        ),
    }
}

/// Returns the remote that the settings name; half of one is an error.
fn named(settings: &Settings) -> Result<Option<Remote>, CommandError> {
    match settings.half_remote() {
        Some(warning) => Err(CommandError::user(warning.message, warning.cure)),
        None if settings.blob.endpoint.is_empty() => Ok(None),
        None => {
            let endpoint = settings.blob.endpoint.trim_end_matches('/');
            let container = &settings.blob.container;
            let host = endpoint.strip_prefix("https://").filter(|host| !host.contains('/'));
            if host.is_some_and(|host| host.split('.').nth(1) == Some("blob")) {
                return Ok(Some(Remote::new(format!("{endpoint}/{container}"), device_name())));
            }
            // A host name of the user's own, or an emulator: the account is not in it.
            let place = BTreeMap::from([("AZURE_STORAGE_ENDPOINT".to_owned(), endpoint.to_owned())]);
            Ok(Some(Remote { settings: place, ..Remote::new(format!("az://{container}"), device_name()) }))
        }
    }
}

/// Returns this machine's own name.
pub(crate) fn device_name() -> String {
    let name = gethostname::gethostname().to_string_lossy().into_owned();
    let name = haversack::names::harmless(name.split('.').next().unwrap_or_default());
    if name.is_empty() { "this machine".to_owned() } else { name }
}

/// Returns the name that the user gives this machine, if it may be sent.
pub(crate) fn checked_device_name(name: &str) -> Result<String, CommandError> {
    haversack::names::check(name).map_err(|bad| {
        CommandError::user(
            format!("this machine cannot have that name: {bad}"),
            "Every commit contains the name. Choose a short one, as in: --device laptop",
        )
    })?;
    Ok(name.to_owned())
}
