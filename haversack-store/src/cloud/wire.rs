//! Requests and answers: one at a time, bounded, repeated only where a repetition cannot do harm.
//!
//! # Invariants
//! 1. A request with a condition is sent once: the caller reads the object to learn the result.
//! 2. Nothing is redirected: a signature is for one place, and a redirect tells of a wrong region.
//! 3. Every answer is bounded in size and in time.
//! 4. A request that fails is sent at most [`MAX_TRIES`] times. This layer repeats it, and not the engine, because only this layer sees
//!    `Retry-After` and knows which requests are safe to send twice. The error carries the number of tries, and the engine counts them
//!    (`clouds::retries` in the command line's tests). A request that timed out is not repeated here: a caller with a deadline decides.

use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use bytes::{Bytes, BytesMut};
use futures_lite::StreamExt;
use object_store::client::{HttpErrorKind, HttpRequest, HttpRequestBody, HttpService};
use reqwest::header::{CONTENT_LENGTH, DATE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Method, StatusCode, Url};

use super::listing::moment;
use super::sign::Signer;

/// The time in which a server must accept a connection.
const CONNECT_WAIT: Duration = Duration::from_secs(10);

/// How slow a link may be while something large is sent over it.
const SLOWEST_BYTES_PER_SECOND: u64 = 50 * 1024;

/// The most times that a repeatable request is sent; the engine allows as many in all.
const MAX_TRIES: u32 = 4;

/// The wait before the first repetition, if the server names none.
const FIRST_WAIT: Duration = Duration::from_millis(200);

/// The longest that a server can make us wait before a repetition; asked for more, the caller decides.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// The most that is read of an answer that is a refusal.
const MAX_REFUSAL_BYTES: usize = 64 * 1024;

/// One request.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) body: Bytes,
    pub(crate) repeat: Repeat,
    /// The most that the answer may hold.
    pub(crate) limit: usize,
}

/// Tells if a request may be sent again after no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// It changes nothing, or doing it twice is the same as once.
    Freely,
    /// The outcome of the first must be known before a second is sent.
    Never,
}

/// One answer, whatever it says.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// The number of times that the request was sent until this answer.
    pub(crate) tries: u32,
}

/// A request without an answer.
#[derive(Debug)]
pub(crate) struct Unanswered {
    pub(crate) why: NoAnswer,
    /// The number of times that the request was sent.
    pub(crate) tries: u32,
}

impl Answer {
    /// Returns a header as text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Returns what the provider calls the refusal.
    pub(crate) fn code(&self) -> Option<String> {
        if let Some(code) = self.header("x-ms-error-code") {
            return Some(code.to_owned());
        }
        self.element("Code")
    }

    /// Returns what an element of the answer's document holds.
    pub(crate) fn element(&self, name: &str) -> Option<String> {
        let text = String::from_utf8_lossy(&self.body);
        let (_, rest) = text.split_once(&format!("<{name}>"))?;
        let (value, _) = rest.split_once(&format!("</{name}>"))?;
        Some(value.to_owned())
    }

    fn is_passing(&self) -> bool {
        self.status.is_server_error()
            || matches!(self.status, StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT)
    }
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum NoAnswer {
    /// There is nothing to ask with: TLS could not be set up.
    Setup(String),
    /// There are no credentials to ask with.
    Credential(object_store::Error),
    /// The connection failed; whether the request arrived is not known.
    Connection { kind: HttpErrorKind, source: Box<dyn std::error::Error + Send + Sync> },
    /// It took too long.
    Silence(Duration),
    /// The answer is larger than may be.
    TooLarge { limit: usize },
}

impl fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoAnswer::Setup(why) => write!(f, "TLS could not be set up: {why}"),
            NoAnswer::Credential(_) => f.write_str("there is no credential to ask with"),
            NoAnswer::Connection { .. } => f.write_str("the connection failed"),
            NoAnswer::Silence(after) => write!(f, "no answer within {} s", after.as_secs()),
            NoAnswer::TooLarge { limit } => write!(f, "the answer is larger than {limit} bytes"),
        }
    }
}

impl NoAnswer {
    /// Returns true if the request certainly did not arrive.
    pub(crate) fn is_before_sending(&self) -> bool {
        match self {
            NoAnswer::Setup(_) | NoAnswer::Credential(_) => true,
            NoAnswer::Connection { kind, .. } => *kind == HttpErrorKind::Connect,
            NoAnswer::Silence(_) | NoAnswer::TooLarge { .. } => false,
        }
    }
}

impl std::error::Error for NoAnswer {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            NoAnswer::Credential(error) => Some(error),
            NoAnswer::Connection { source, .. } => Some(&**source as &(dyn std::error::Error + 'static)),
            NoAnswer::Setup(_) | NoAnswer::Silence(_) | NoAnswer::TooLarge { .. } => None,
        }
    }
}

/// The way to a storage.
#[derive(Debug)]
pub(crate) struct Wire {
    /// Built in the background after opening: reading the system's certificates takes longer than many requests.
    client: Arc<OnceLock<reqwest::Result<reqwest::Client>>>,
    settings: ClientSettings,
    pub(crate) signer: Signer,
    /// The time that the server may be silent.
    silence: Duration,
    /// The seconds by which the server's clock is ahead of ours; `i64::MIN` until it has answered.
    ahead: AtomicI64,
}

impl Wire {
    pub(crate) fn new(signer: Signer, silence: Duration, trusted: Vec<reqwest::Certificate>) -> Wire {
        let client = Arc::new(OnceLock::new());
        let settings = ClientSettings { connect: CONNECT_WAIT.min(silence), trusted };
        let (early, those) = (client.clone(), settings.clone());
        super::runtime::soon(move || {
            early.get_or_init(|| those.client());
        });
        Wire { client, settings, signer, silence, ahead: AtomicI64::new(i64::MIN) }
    }

    /// Returns the client; waits while it is built.
    fn client(&self) -> Result<&reqwest::Client, NoAnswer> {
        let made = self.client.get_or_init(|| self.settings.client());
        made.as_ref().map_err(|error| NoAnswer::Setup(error.to_string()))
    }

    /// Returns how far the server's clock is ahead of ours, if it has answered.
    pub(crate) fn ahead_seconds(&self) -> Option<i64> {
        Some(self.ahead.load(Ordering::Relaxed)).filter(|ahead| *ahead != i64::MIN)
    }

    /// Sends a request on the runtime, and returns what was answered.
    pub(crate) async fn ask(self: &Arc<Wire>, ask: Ask) -> Result<Answer, Unanswered> {
        let wire = self.clone();
        super::runtime::run(async move { wire.ask_here(ask).await }).await
    }

    async fn ask_here(&self, ask: Ask) -> Result<Answer, Unanswered> {
        let mut tries = 0;
        let mut answer = self.ask_until_answered(&ask, &mut tries).await;
        // A token that was refused is renewed once; what was refused was not done.
        if let (Ok(refused), Some(renew)) = (&answer, &self.signer.renew)
            && is_about_the_token(refused)
        {
            renew();
            answer = self.ask_until_answered(&ask, &mut tries).await;
        }
        match answer {
            Ok(answer) => Ok(Answer { tries, ..answer }),
            Err(why) => Err(Unanswered { why, tries }),
        }
    }

    async fn ask_until_answered(&self, ask: &Ask, tries: &mut u32) -> Result<Answer, NoAnswer> {
        loop {
            *tries += 1;
            let answer = self.ask_once(ask).await;
            let is_worth_it = match &answer {
                Ok(answer) => answer.is_passing(),
                Err(NoAnswer::Connection { kind, source }) => {
                    !matches!(kind, HttpErrorKind::Decode) && !is_about_trust(&**source)
                }
                Err(
                    NoAnswer::Setup(_)
                    | NoAnswer::Credential(_)
                    | NoAnswer::Silence(_)
                    | NoAnswer::TooLarge { .. },
                ) => false,
            };
            if !is_worth_it || ask.repeat == Repeat::Never || *tries >= MAX_TRIES {
                return answer;
            }
            let told = answer.as_ref().ok().and_then(|answer| answer.header(RETRY_AFTER.as_str()));
            let wait = match told.and_then(|told| told.trim().parse().ok()) {
                Some(seconds) if Duration::from_secs(seconds) > LONGEST_WAIT => return answer,
                Some(seconds) => Duration::from_secs(seconds),
                None => jittered(FIRST_WAIT * 2_u32.pow(*tries - 1)),
            };
            tokio::time::sleep(wait).await;
        }
    }

    async fn ask_once(&self, ask: &Ask) -> Result<Answer, NoAnswer> {
        let mut request = HttpRequest::new(HttpRequestBody::from(ask.body.clone()));
        *request.method_mut() = ask.method.clone();
        *request.uri_mut() = ask.url.as_str().parse().expect("a URL is a URI");
        let headers = request.headers_mut();
        if ask.method == Method::PUT {
            headers.insert(CONTENT_LENGTH, HeaderValue::from(ask.body.len()));
        }
        for (name, value) in &ask.headers {
            headers.insert(name, value.clone());
        }
        self.signer.sign(&mut request).await.map_err(NoAnswer::Credential)?;
        let sending = Duration::from_secs(ask.body.len() as u64 / SLOWEST_BYTES_PER_SECOND);
        let patience = self.silence + sending;
        let Ok(answered) = tokio::time::timeout(patience, self.client()?.call(request)).await else {
            return Err(NoAnswer::Silence(patience));
        };
        let failed = |error: object_store::client::HttpError| NoAnswer::Connection {
            kind: error.kind(),
            source: Box::new(error),
        };
        let (parts, body) = answered.map_err(failed)?.into_parts();
        self.note_clock(&parts.headers);
        let limit = if parts.status.is_success() { ask.limit } else { MAX_REFUSAL_BYTES };
        let announced = parts.headers.get(CONTENT_LENGTH).and_then(|size| size.to_str().ok()?.parse().ok());
        let is_too_large = announced.is_some_and(|size: u64| size > limit as u64);
        if parts.status.is_success() && ask.method != Method::HEAD && is_too_large {
            // An answer that names too large a size is not read at all.
            return Err(NoAnswer::TooLarge { limit });
        }
        let mut bytes = BytesMut::new();
        let mut chunks = body.bytes_stream();
        loop {
            let Ok(chunk) = tokio::time::timeout(self.silence, chunks.next()).await else {
                return Err(NoAnswer::Silence(self.silence));
            };
            let Some(chunk) = chunk else { break };
            let chunk = chunk.map_err(failed)?;
            if bytes.len() + chunk.len() > limit {
                if parts.status.is_success() {
                    return Err(NoAnswer::TooLarge { limit });
                }
                break;
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(Answer { status: parts.status, headers: parts.headers, body: bytes.freeze(), tries: 1 })
    }

    fn note_clock(&self, headers: &HeaderMap) {
        let Some(theirs) = headers.get(DATE).and_then(|date| moment(date.to_str().ok()?)) else { return };
        let seconds = |at: SystemTime| {
            let since = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
        };
        self.ahead.store(seconds(theirs).saturating_sub(seconds(SystemTime::now())), Ordering::Relaxed);
    }
}

/// The settings of a client.
#[derive(Clone, Debug)]
struct ClientSettings {
    connect: Duration,
    /// Certificates that are trusted besides the system's.
    trusted: Vec<reqwest::Certificate>,
}

impl ClientSettings {
    fn client(&self) -> reqwest::Result<reqwest::Client> {
        let mut client = super::runtime::client_builder().connect_timeout(self.connect);
        if !self.trusted.is_empty() {
            client = client.tls_certs_merge(self.trusted.clone());
        }
        client.build()
    }
}

/// Returns true if a refusal is about a token that may be too old, rather than about what its owner may do.
fn is_about_the_token(answer: &Answer) -> bool {
    match answer.status {
        StatusCode::UNAUTHORIZED => true,
        StatusCode::FORBIDDEN => matches!(
            answer.code().as_deref(),
            Some(
                "AuthenticationFailed"
                    | "InvalidAuthenticationInfo"
                    | "ExpiredToken"
                    | "TokenRefreshRequired"
            )
        ),
        _ => false,
    }
}

/// Returns true if a connection failed because the other side could not prove who it is.
pub(crate) fn is_about_trust(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error
            .downcast_ref::<rustls::Error>()
            .is_some_and(|error| matches!(error, rustls::Error::InvalidCertificate(_)))
        {
            return true;
        }
        // The error of the connection hides the one of TLS in an error of I/O.
        if let Some(inner) = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref)
            && is_about_trust(inner)
        {
            return true;
        }
        cause = error.source();
    }
    false
}

/// Returns half of a wait, and up to as much again by chance: two devices do not meet again and again.
fn jittered(wait: Duration) -> Duration {
    wait.mul_f64(0.5 + chance() / 2.0)
}

/// Returns a number between 0 and 1 by chance; without randomness, which is no reason to fail here, always the same.
pub(crate) fn chance() -> f64 {
    let mut byte = [128];
    match getrandom::fill(&mut byte) {
        Ok(()) | Err(_) => f64::from(byte[0]) / 255.0,
    }
}
