//! Credentials that another program hands out: `az`, and what an AWS profile names as its `credential_process`.

use std::fmt;
use std::future::Future;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::de::DeserializeOwned;
use tokio::process::Command;
use tokio::sync::Mutex;

use crate::error::{Error, ErrorKind, Operation, Result};

/// The time limit of such a program.
const PATIENCE: Duration = Duration::from_secs(60);

/// The time before its end at which a credential is renewed.
const MARGIN: Duration = Duration::from_secs(300);

/// The most of a program's complaint that is repeated.
const MAX_COMPLAINT_CHARACTERS: usize = 300;

/// Runs a program and returns the JSON it prints.
pub(crate) async fn json_of<T: DeserializeOwned>(what: &str, command: &mut Command) -> Result<T> {
    let refused = |kind, message: String| Error::at(kind, Operation::Open, what, message);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let Ok(ended) = tokio::time::timeout(PATIENCE, command.output()).await else {
        let message = format!("it did not end within {} seconds", PATIENCE.as_secs());
        return Err(refused(ErrorKind::Unavailable, message));
    };
    let output = ended.map_err(|error| {
        refused(ErrorKind::Denied, "it could not be started".to_owned()).with_source(error)
    })?;
    if !output.status.success() {
        // Its output may contain half a credential; its complaint is for people.
        let complaint = String::from_utf8_lossy(&output.stderr);
        let complaint = complaint.trim().lines().next().unwrap_or("it does not say why");
        let complaint: String = complaint.chars().take(MAX_COMPLAINT_CHARACTERS).collect();
        return Err(refused(ErrorKind::Denied, format!("it failed: {complaint}")));
    }
    serde_json::from_slice(&output.stdout)
        .map_err(|_| refused(ErrorKind::Denied, "its output is not a credential".to_owned()))
}

/// A credential that is asked for again when it ends.
pub(crate) struct Renewed<C> {
    held: Mutex<Option<(Arc<C>, Option<SystemTime>)>>,
}

impl<C> Renewed<C> {
    pub(crate) fn new() -> Renewed<C> {
        Renewed { held: Mutex::new(None) }
    }

    /// Returns the credential, asking for a new one if there is none or it ends soon; one asks for all who wait.
    pub(crate) async fn get<F>(&self, ask: impl FnOnce() -> F) -> Result<Arc<C>>
    where
        F: Future<Output = Result<(C, Option<SystemTime>)>>,
    {
        let mut held = self.held.lock().await;
        if let Some((credential, ends)) = &*held
            && ends.is_none_or(|ends| SystemTime::now() + MARGIN < ends)
        {
            return Ok(credential.clone());
        }
        let (credential, ends) = ask().await?;
        let credential = Arc::new(credential);
        *held = Some((credential.clone(), ends));
        Ok(credential)
    }

    /// Forgets it, unless another caller is renewing it already.
    pub(crate) fn forget(&self) {
        if let Ok(mut held) = self.held.try_lock() {
            *held = None;
        }
    }
}

impl<C> fmt::Debug for Renewed<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Renewed")
    }
}
