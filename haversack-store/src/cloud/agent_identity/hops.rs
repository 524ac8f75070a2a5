//! The three requests, what they answer, and what a refusal probably means.

use std::error::Error as _;
use std::fmt;
use std::time::Duration;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, StatusCode, Url};
use serde::Deserialize;
use serde_json::Value;

use super::AgentSettings;
use crate::error::{Error, ErrorKind, Operation};

/// The scope of the first two hops: a token that is exchanged for another token.
const EXCHANGE_SCOPE: &str = "api://AzureADTokenExchange/.default";

const JWT_BEARER: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// The largest answer that is read.
const MAX_ANSWER_BYTES: usize = 64 * 1024;

/// The assumed lifetime of a token if the answer does not name one.
const UNSAID_LIFETIME: Duration = Duration::from_secs(10 * 60);

/// The longest lifetime that is believed.
const MAX_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);

/// The length of Entra's text in a message.
const MAX_SAID_CHARACTERS: usize = 300;

/// A word this long is rather a token than a word.
const MAX_WORD_CHARACTERS: usize = 60;

/// The characters of a form's values that are not encoded.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A token for the storage.
pub(super) struct Issued {
    pub(super) token: String,
    pub(super) lifetime: Duration,
}

/// The reason why the sign-in failed, for every caller that waits.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    pub(super) kind: ErrorKind,
    pub(super) message: String,
    /// The text of the other side.
    said: Option<String>,
}

impl Failure {
    fn new(kind: ErrorKind, message: impl Into<String>) -> Failure {
        Failure { kind, message: message.into(), said: None }
    }

    /// Returns a failure without an outside cause.
    pub(super) fn ours(message: &str) -> Failure {
        Failure::new(ErrorKind::Internal, message)
    }

    fn saying(self, said: String) -> Failure {
        Failure { said: Some(said).filter(|said| !said.is_empty()), ..self }
    }

    pub(super) fn error(&self, authority: &str) -> Error {
        let error = Error::at(self.kind, Operation::SignIn, authority, &self.message);
        match &self.said {
            Some(said) => error.with_source(said.clone()),
            None => error,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hop {
    Blueprint,
    AgentIdentity,
    AgentUser,
}

impl fmt::Display for Hop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Hop::Blueprint => "hop 1 of 3 (blueprint)",
            Hop::AgentIdentity => "hop 2 of 3 (agent identity)",
            Hop::AgentUser => "hop 3 of 3 (agent user)",
        })
    }
}

/// Returns what makes the requests.
pub(super) fn client(authority: &str) -> Result<Client, Failure> {
    // A token endpoint never redirects. A server that does must not get the assertion.
    let mut builder = Client::builder().redirect(reqwest::redirect::Policy::none());
    if Url::parse(authority).is_ok_and(|url| is_loopback(&url)) {
        builder = builder.no_proxy();
    }
    builder.build().map_err(|error| Failure::ours("no request can be made").saying(chain_of(error)))
}

/// Returns true if an address is on this machine.
pub(in crate::cloud) fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// Runs the hops, each with what the one before returned.
pub(super) async fn chain(
    client: &Client,
    endpoint: &str,
    settings: &AgentSettings,
    assertion: &str,
) -> Result<Issued, Failure> {
    let AgentSettings { blueprint_app_id, agent_id, agent_user_id, scope, hop_timeout, .. } = settings;
    let ask = async |hop: Hop, fields: &[(&str, &str)]| {
        let text = request(client, endpoint, hop, fields, *hop_timeout).await?;
        read_answer(hop, &text)
    };
    let first = ask(
        Hop::Blueprint,
        &[
            ("client_id", blueprint_app_id),
            ("scope", EXCHANGE_SCOPE),
            ("fmi_path", agent_id),
            ("grant_type", "client_credentials"),
            ("client_assertion_type", JWT_BEARER),
            ("client_assertion", assertion),
        ],
    )
    .await?;
    let second = ask(
        Hop::AgentIdentity,
        &[
            ("client_id", agent_id),
            ("scope", EXCHANGE_SCOPE),
            ("grant_type", "client_credentials"),
            ("client_assertion_type", JWT_BEARER),
            ("client_assertion", &first.token),
        ],
    )
    .await?;
    ask(
        Hop::AgentUser,
        &[
            ("client_id", agent_id),
            ("scope", scope),
            ("grant_type", "user_fic"),
            ("client_assertion_type", JWT_BEARER),
            ("client_assertion", &first.token),
            ("user_id", agent_user_id),
            ("user_federated_identity_credential", &second.token),
            ("requested_token_use", "on_behalf_of"),
        ],
    )
    .await
}

/// The answer: the status, and a bounded body.
struct Answer {
    status: StatusCode,
    body: Vec<u8>,
}

async fn request(
    client: &Client,
    endpoint: &str,
    hop: Hop,
    fields: &[(&str, &str)],
    timeout: Duration,
) -> Result<Answer, Failure> {
    let encoded: Vec<String> = fields
        .iter()
        .map(|(name, value)| format!("{name}={}", utf8_percent_encode(value, UNRESERVED)))
        .collect();
    let away = |error: reqwest::Error| {
        let message = match error.is_timeout() {
            true => {
                format!("{hop} was not answered within {} seconds; try again later", timeout.as_secs_f32())
            }
            false => format!("{hop} cannot be reached; check the network and the authority"),
        };
        Failure::new(ErrorKind::Unavailable, message).saying(chain_of(error))
    };
    let request = client.post(endpoint).header(CONTENT_TYPE, "application/x-www-form-urlencoded");
    let mut response = request.body(encoded.join("&")).timeout(timeout).send().await.map_err(away)?;
    let status = response.status();
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(away)? {
        if body.len() + chunk.len() > MAX_ANSWER_BYTES {
            return Err(odd(hop, status, "it is far too long"));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Answer { status, body })
}

/// The used fields of a token endpoint's answer.
#[derive(Deserialize)]
struct TokenResponse {
    error: Option<String>,
    error_description: Option<String>,
    #[serde(default)]
    error_codes: Vec<Value>,
    access_token: Option<String>,
    expires_in: Option<Value>,
}

fn read_answer(hop: Hop, Answer { status, body }: &Answer) -> Result<Issued, Failure> {
    let is_away = *status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error();
    let said = match serde_json::from_slice::<TokenResponse>(body) {
        Ok(said) => said,
        Err(_) if is_away => return Err(away(hop, *status)),
        Err(_) => return Err(odd(hop, *status, "it is not that of a token endpoint")),
    };
    // First of all, and whatever the status: a refusal can look like a success.
    if let Some(error) = &said.error {
        return Err(refused(hop, *status, error, &said));
    }
    if is_away {
        return Err(away(hop, *status));
    }
    let token = match said.access_token {
        // It becomes a header: one that cannot is no token.
        Some(token) if !token.is_empty() && token.chars().all(|c| c.is_ascii_graphic()) => token,
        _ => return Err(odd(hop, *status, "it has neither a token nor an error (missing_token)")),
    };
    let seconds = match &said.expires_in {
        Some(Value::Number(seconds)) => seconds.as_u64(),
        Some(Value::String(seconds)) => seconds.parse().ok(),
        _ => None,
    };
    let lifetime = seconds.map_or(UNSAID_LIFETIME, Duration::from_secs).min(MAX_LIFETIME);
    Ok(Issued { token, lifetime })
}

fn away(hop: Hop, status: StatusCode) -> Failure {
    let why = match status {
        StatusCode::TOO_MANY_REQUESTS => "there are too many requests",
        _ => "Entra is not well",
    };
    Failure::new(
        ErrorKind::Unavailable,
        format!("{hop} was put off with HTTP {}: {why}; try again later", status.as_u16()),
    )
}

fn odd(hop: Hop, status: StatusCode, what: &str) -> Failure {
    Failure::new(
        ErrorKind::Unavailable,
        format!(
            "{hop} got an answer (HTTP {}) that cannot be used: {what}; is a proxy or a sign-in page in between?",
            status.as_u16()
        ),
    )
}

/// Returns the failure for a hop that was refused, with what is probably wrong.
fn refused(hop: Hop, status: StatusCode, error: &str, said: &TokenResponse) -> Failure {
    let description = tame(said.error_description.as_deref().unwrap_or_default());
    let code =
        code_of(&description).or_else(|| Some(format!("AADSTS{}", said.error_codes.first()?.as_u64()?)));
    let is_away = status == StatusCode::TOO_MANY_REQUESTS
        || status.is_server_error()
        || matches!(error, "temporarily_unavailable" | "server_error")
        || code.as_deref() == Some("AADSTS90033");
    let name = code.clone().unwrap_or_else(|| tame(error));
    let (kind, cure) = match is_away {
        true => (ErrorKind::Unavailable, "try again later"),
        false => (ErrorKind::Denied, cure(hop, code.as_deref().unwrap_or_default(), error)),
    };
    let said = match description.is_empty() {
        true => tame(error),
        false => format!("{}: {description}", tame(error)),
    };
    Failure::new(kind, format!("{hop} was refused with {name}; {cure}")).saying(said)
}

/// Returns what probably helps.
///
/// The meanings are those of Microsoft's list of codes; which setting each is about follows from the hop.
fn cure(hop: Hop, code: &str, error: &str) -> &'static str {
    match code {
        "AADSTS65001" => "the agent has no permission on Azure Storage yet: haversack provision azure",
        "AADSTS500011" | "AADSTS650052" => {
            "the directory does not know Azure Storage yet: haversack provision azure makes it known"
        }
        "AADSTS700211" | "AADSTS700213" | "AADSTS70025" => {
            "check that the agent identity was made from this blueprint, and the ids of both"
        }
        "AADSTS700027" | "AADSTS7000215" | "AADSTS50012" => {
            "check that this certificate is registered with the blueprint, and that its dates have not passed"
        }
        "AADSTS700024" | "AADSTS500133" => "check this machine's clock: it differs from Entra's",
        "AADSTS90002" | "AADSTS900023" => "check the tenant: there is no such directory",
        "AADSTS700016" | "AADSTS7000112" | "AADSTS7000229" => match hop {
            Hop::Blueprint => {
                "check the blueprint's application id: this tenant has none, or has it disabled"
            }
            Hop::AgentIdentity | Hop::AgentUser => {
                "check the agent's id: this tenant has none, or has it disabled"
            }
        },
        "AADSTS50034" | "AADSTS90072" => "check the agent user's object id: this tenant has no such user",
        "AADSTS50057" => "the agent user is disabled: let an administrator enable it",
        "AADSTS53003" | "AADSTS530003" => {
            "the directory's conditional access blocks it: let an administrator except the agent user"
        }
        "AADSTS70011" | "AADSTS1002012" => "check the scope: it is not one that Entra knows",
        _ if hop == Hop::Blueprint && error == "invalid_client" => {
            "check that this certificate is registered with the blueprint"
        }
        _ => "look the code up: https://login.microsoftonline.com/error",
    }
}

/// Returns Entra's own code, which its description begins with.
fn code_of(description: &str) -> Option<String> {
    let (code, _) = description.split_once(':')?;
    let digits = code.strip_prefix("AADSTS")?;
    let is_code = !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit());
    is_code.then(|| code.to_owned())
}

/// Returns another program's text for a message: one line, bounded, without anything that may be a token.
pub(super) fn tame(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let line = line.split(" Trace ID:").next().unwrap_or_default();
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-_.+/=~%".contains(c);
    let mut tamed = String::new();
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let end = match is_part(first) {
            true => rest.find(|c| !is_part(c)).unwrap_or(rest.len()),
            false => first.len_utf8(),
        };
        let (word, after) = rest.split_at(end);
        match word {
            _ if first.is_control() => {}
            _ if word.len() > MAX_WORD_CHARACTERS => tamed.push('…'),
            _ => tamed.push_str(word),
        }
        rest = after;
    }
    tamed.trim().chars().take(MAX_SAID_CHARACTERS).collect()
}

/// Returns an error and what led to it, in one line.
pub(in crate::cloud) fn chain_of(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        line.push_str(&format!(": {error}"));
        cause = error.source();
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_has_no_token_in_it() {
        assert_eq!(
            tame("AADSTS65001: No consent.\r\nTrace ID: 1\r\nTimestamp: 2"),
            "AADSTS65001: No consent.",
            "the first line"
        );
        assert_eq!(tame("AADSTS1: No. Trace ID: 1"), "AADSTS1: No.");
        let token = format!("eyJ{}.{}.{}", "a".repeat(40), "b_-".repeat(30), "c".repeat(80));
        assert_eq!(tame(&format!("the assertion '{token}' is bad")), "the assertion '…' is bad");
        assert_eq!(tame("a\u{1b}[31mb\u{7}"), "a[31mb");
        assert_eq!(tame(&"long ".repeat(1000)).chars().count(), MAX_SAID_CHARACTERS);
        assert_eq!(tame("e406a681-f3d4-42a8-90b6-c2b029497af1"), "e406a681-f3d4-42a8-90b6-c2b029497af1");
    }

    #[test]
    fn codes_of_entra() {
        assert_eq!(code_of("AADSTS65001: The user").as_deref(), Some("AADSTS65001"));
        assert_eq!(code_of("AADSTS: x"), None);
        assert_eq!(code_of("no code here"), None);
        assert_eq!(code_of("see AADSTS65001: x"), None);
    }

    #[test]
    fn this_machine_is_known() {
        let is = |url: &str| is_loopback(&Url::parse(url).expect("a URL"));
        assert!(is("http://127.0.0.1:8080") && is("http://localhost") && is("http://[::1]:1/"));
        assert!(!is("http://10.0.0.1") && !is("http://localhost.example.org"));
    }
}
