//! Signing in to Azure as an agent: a certificate, three hops, one token.
//!
//! An agent user has no password. Its application (the blueprint) proves itself with a certificate, lends that proof to the agent's
//! identity, and the identity acts for the agent user: three requests to Entra, each with what the one before returned.
//! The result opens the storage for about an hour.
//!
//! - A token is used for [`REFRESH_AFTER`] at most, and never in its last [`SPARE`] (`the_token_is_refreshed_after_55_minutes`).
//! - However many ask at once, one chain of hops runs, and its outcome is everybody's (`fifty_who_ask_at_once_share_one_chain`).
//! - No key, assertion or token is in any message (`secrets_are_never_printed`).

pub(super) mod hops;
mod key;
mod trial;

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use object_store::CredentialProvider;
use object_store::azure::AzureCredential;

use self::hops::{Failure, Issued};
use self::key::Signer;
pub use self::key::{Certificate, PrivateKey};
use super::runtime;
use crate::error::{Error, ErrorKind, Operation, Result};

/// The sign-in authority of agents, unless their cloud has its own.
pub const DEFAULT_AUTHORITY: &str = "https://login.microsoftonline.com";

/// The scope of a token: every permission on Azure Storage that was granted.
pub const STORAGE_SCOPE: &str = "https://storage.azure.com/.default";

/// The time limit of one hop.
pub const HOP_TIMEOUT: Duration = Duration::from_secs(15);

/// The time that a token is used.
const REFRESH_AFTER: Duration = Duration::from_secs(55 * 60);

/// The unused rest of a token's time, so that no request runs with an expired token.
const SPARE: Duration = Duration::from_secs(5 * 60);

/// How soon a refresh is tried again while Entra is away and the token is still good.
const REFRESH_AGAIN_AFTER: Duration = Duration::from_secs(60);

/// An agent's sign-in data.
#[derive(Clone, Debug)]
pub struct AgentSettings {
    /// The directory: its id, or one of its domain names.
    pub tenant: String,
    /// The application whose certificate signs.
    pub blueprint_app_id: String,
    /// The agent's identity, made from the blueprint.
    pub agent_id: String,
    /// The object id of the user that the agent acts as.
    pub agent_user_id: String,
    /// The certificate that is registered with the blueprint.
    pub certificate: Certificate,
    /// The place of the certificate's private key.
    pub private_key: PrivateKey,
    /// The authority; [`DEFAULT_AUTHORITY`] for nearly all users.
    pub authority: String,
    /// The scope; [`STORAGE_SCOPE`].
    pub scope: String,
    /// The time limit of one hop; [`HOP_TIMEOUT`].
    pub hop_timeout: Duration,
}

/// An agent that signs in by itself: gives the storage a token, and a new one in time.
pub struct AgentIdentity {
    inner: Arc<Inner>,
    held: Mutex<TokenCache>,
    /// Held by the one who signs in for everybody; has the last attempt that failed.
    flight: tokio::sync::Mutex<Option<(u64, Failure)>>,
    now: Box<dyn Fn() -> Instant + Send + Sync>,
}

/// The parts of the hops.
struct Inner {
    settings: AgentSettings,
    /// Also what the assertion is addressed to.
    endpoint: String,
    signer: Signer,
    client: OnceLock<reqwest::Client>,
}

/// The cached token.
#[derive(Default)]
struct TokenCache {
    token: Option<Token>,
    /// The number of finished chains, successful or not.
    attempts: u64,
}

struct Token {
    credential: Arc<AzureCredential>,
    /// The attempt that brought it.
    attempt: u64,
    refresh_at: Instant,
    good_until: Instant,
}

impl AgentIdentity {
    /// Reads certificate and key; sends no request.
    pub fn new(settings: AgentSettings) -> Result<AgentIdentity> {
        let endpoint = endpoint(&settings)?;
        let ids = [
            ("the blueprint's application id", &settings.blueprint_app_id),
            ("the agent's id", &settings.agent_id),
            ("the agent user's object id", &settings.agent_user_id),
        ];
        for (what, id) in ids {
            if !is_guid(id) {
                return Err(invalid(format!("{what} is \"{id}\", which does not have the form of an id")));
            }
        }
        let signer = Signer::open(&settings.certificate, &settings.private_key)?;
        Ok(AgentIdentity {
            inner: Arc::new(Inner { settings, endpoint, signer, client: OnceLock::new() }),
            held: Mutex::default(),
            flight: tokio::sync::Mutex::default(),
            now: Box::new(Instant::now),
        })
    }

    /// Returns the same one with another idea of time, for tests.
    #[must_use]
    pub fn with_clock(mut self, now: impl Fn() -> Instant + Send + Sync + 'static) -> AgentIdentity {
        self.now = Box::new(now);
        self
    }

    /// Returns a token for the storage, signing in if there is none that is good.
    ///
    /// A machine that slept may hold one that ended meanwhile: the storage refuses it, and [`AgentIdentity::forget`] is the cure.
    pub async fn credential(&self) -> Result<Arc<AzureCredential>> {
        let asked = {
            let held = self.held();
            match &held.token {
                Some(token) if (self.now)() < token.refresh_at => return Ok(token.credential.clone()),
                _ => held.attempts,
            }
        };
        let mut last = self.flight.lock().await;
        // A caller that waited for another's attempt takes its result: fifty callers are one attempt.
        if let Some(token) = self.held().token.as_ref().filter(|token| token.attempt > asked) {
            return Ok(token.credential.clone());
        }
        if let Some((_, failure)) = last.as_ref().filter(|(attempt, _)| *attempt > asked) {
            return self.still_good(failure);
        }
        let inner = self.inner.clone();
        let asked_at = (self.now)();
        let outcome = runtime::run(async move { inner.sign_in().await }).await;
        let mut held = self.held();
        held.attempts += 1;
        let attempt = held.attempts;
        match outcome {
            Ok(Issued { token, lifetime }) => {
                let credential = Arc::new(AzureCredential::BearerToken(token));
                let use_for = lifetime.saturating_sub(SPARE);
                held.token = Some(Token {
                    credential: credential.clone(),
                    attempt,
                    refresh_at: asked_at + use_for.min(REFRESH_AFTER),
                    good_until: asked_at + use_for,
                });
                Ok(credential)
            }
            Err(failure) => {
                drop(held);
                *last = Some((attempt, failure.clone()));
                self.still_good(&failure)
            }
        }
    }

    /// Drops the token, so that the next request signs in anew. For a storage that refused the token.
    pub fn forget(&self) {
        self.held().token = None;
    }

    /// Returns the token that could not be refreshed because Entra is away, as long as it is good.
    fn still_good(&self, failure: &Failure) -> Result<Arc<AzureCredential>> {
        let now = (self.now)();
        let mut held = self.held();
        match &mut held.token {
            Some(token) if failure.kind == ErrorKind::Unavailable && now < token.good_until => {
                token.refresh_at = now + REFRESH_AGAIN_AFTER;
                Ok(token.credential.clone())
            }
            _ => Err(failure.error(&self.inner.settings.authority)),
        }
    }

    fn held(&self) -> std::sync::MutexGuard<'_, TokenCache> {
        // A panicking thread left nothing half done.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl CredentialProvider for AgentIdentity {
    type Credential = AzureCredential;

    /// Returns a token; the [`Error`] of one that could not be had is the source of what is returned.
    async fn get_credential(&self) -> object_store::Result<Arc<AzureCredential>> {
        let generic =
            |error: Error| object_store::Error::Generic { store: "agent identity", source: error.into() };
        self.credential().await.map_err(generic)
    }
}

impl fmt::Debug for AgentIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let AgentSettings { tenant, agent_id, agent_user_id, .. } = &self.inner.settings;
        let is_signed_in = self.held().token.is_some();
        f.debug_struct("AgentIdentity")
            .field("tenant", tenant)
            .field("agent_id", agent_id)
            .field("agent_user_id", agent_user_id)
            .field("is_signed_in", &is_signed_in)
            .finish_non_exhaustive()
    }
}

impl Inner {
    /// Returns what makes the requests; made on the runtime, which knows TLS.
    fn client(&self) -> Result<&reqwest::Client, Failure> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let made = hops::client(&self.settings.authority)?;
        Ok(self.client.get_or_init(|| made))
    }

    /// Runs the three hops.
    async fn sign_in(&self) -> Result<Issued, Failure> {
        let client = self.client()?;
        // Only what Entra compares with its own clock is told by the wall's.
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let assertion =
            self.signer.assertion(&self.endpoint, &self.settings.blueprint_app_id, since.as_secs())?;
        hops::chain(client, &self.endpoint, &self.settings, &assertion).await
    }
}

/// Returns where tokens are asked for.
fn endpoint(AgentSettings { tenant, authority, .. }: &AgentSettings) -> Result<String> {
    let is_name = |tenant: &str| {
        tenant.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-'))
            && tenant.starts_with(|c: char| c.is_ascii_alphanumeric())
    };
    if !is_name(tenant) {
        return Err(invalid(format!("the tenant is \"{tenant}\", which is neither an id nor a domain name")));
    }
    let url = reqwest::Url::parse(authority)
        .ok()
        .filter(|url| url.has_host() && url.username().is_empty() && url.query().is_none())
        .ok_or_else(|| invalid(format!("the authority is \"{authority}\", which is no https:// address")))?;
    match url.scheme() {
        "https" => {}
        "http" if hops::is_loopback(&url) => {}
        _ => {
            return Err(invalid(format!(
                "the authority is \"{authority}\": we send an identity token over https:// only"
            )));
        }
    }
    Ok(format!("{}/{tenant}/oauth2/v2.0/token", authority.trim_end_matches('/')))
}

/// Returns true if a text has the form of an id: `8-4-4-4-12` hexadecimal digits.
fn is_guid(text: &str) -> bool {
    let groups: Vec<&str> = text.split('-').collect();
    groups.iter().map(|group| group.len()).eq([8, 4, 4, 4, 12])
        && groups.iter().all(|group| group.chars().all(|c| c.is_ascii_hexdigit()))
}

/// Returns the error for settings that can never work.
fn invalid(message: impl Into<String>) -> Error {
    Error::at(ErrorKind::Invalid, Operation::SignIn, "Entra", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_a_form() {
        assert!(is_guid("e406a681-f3d4-42a8-90b6-c2b029497af1"));
        for text in ["", "agent", "e406a681f3d442a890b6c2b029497af1", "e406a681-f3d4-42a8-90b6-c2b029497afg"]
        {
            assert!(!is_guid(text), "{text}");
        }
    }
}
