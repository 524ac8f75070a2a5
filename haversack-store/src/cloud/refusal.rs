//! The meaning of a storage's refusal, and its cure.

use std::fmt;

use object_store::client::HttpErrorKind;
use reqwest::StatusCode;

use super::address::{Address, Provider};
use super::wire::{Answer, NoAnswer, Unanswered, is_about_trust};
use crate::error::{Error, ErrorKind, Operation};

/// Why a cloud did not do what it was asked, and the cure.
///
/// It is the [source](std::error::Error::source) of the errors of the cloud backends.
#[derive(Debug)]
pub struct Refusal {
    why: String,
    cure: &'static str,
}

impl Refusal {
    /// Returns what to do about it.
    pub fn cure(&self) -> &str {
        self.cure
    }

    /// Returns the refusal among the causes of an error, if there is one.
    pub fn of<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a Refusal> {
        let mut cause = Some(error);
        while let Some(error) = cause {
            if let Some(refusal) = error.downcast_ref() {
                return Some(refusal);
            }
            cause = error.source();
        }
        None
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

impl std::error::Error for Refusal {}

/// The subject of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum About {
    Container,
    Account,
    Clock,
    Expired,
    Signature,
    Permission,
    Barred,
    Region,
    Throttled,
    Server,
    Unknown,
}

const WAIT: &str = "Wait, then: haversack sync. Changes that wait are kept";
const LOOK: &str = "Look closer: haversack remote test";

impl About {
    fn of(answer: &Answer, code: Option<&str>) -> About {
        let code = code.unwrap_or_default();
        let detail = answer.element("AuthenticationErrorDetail").unwrap_or_default();
        let is_late =
            detail.contains("not valid in the specified time frame") || detail.contains("Signed expiry time");
        match (answer.status, code) {
            (_, "ContainerNotFound" | "ContainerBeingDeleted" | "NoSuchBucket") => About::Container,
            (_, "AccountNotFound" | "ResourceTypeMismatch" | "AccountIsDisabled") => About::Account,
            (_, "RequestTimeTooSkewed") => About::Clock,
            (_, "ExpiredToken" | "TokenRefreshRequired") => About::Expired,
            (StatusCode::FORBIDDEN | StatusCode::UNAUTHORIZED, _) if is_late => About::Expired,
            (StatusCode::FORBIDDEN | StatusCode::UNAUTHORIZED, _)
                if detail.contains("Date") || detail.contains("too old") =>
            {
                About::Clock
            }
            (
                _,
                "AuthenticationFailed"
                | "InvalidAuthenticationInfo"
                | "SignatureDoesNotMatch"
                | "InvalidAccessKeyId"
                | "AuthorizationHeaderMalformed"
                | "InvalidToken"
                | "InvalidSecurity",
            ) => About::Signature,
            (StatusCode::UNAUTHORIZED, _) => About::Signature,
            // Azure's own word for a firewall, and its emulator's for any credential that does not fit.
            (StatusCode::FORBIDDEN, "AuthorizationFailure") => About::Barred,
            (StatusCode::FORBIDDEN, _) => About::Permission,
            (
                StatusCode::MOVED_PERMANENTLY
                | StatusCode::TEMPORARY_REDIRECT
                | StatusCode::PERMANENT_REDIRECT,
                _,
            )
            | (_, "PermanentRedirect" | "IllegalLocationConstraintException") => About::Region,
            (StatusCode::TOO_MANY_REQUESTS, _) | (_, "SlowDown" | "ServerBusy") => About::Throttled,
            (status, _) if status.is_server_error() || status == StatusCode::REQUEST_TIMEOUT => About::Server,
            _ => About::Unknown,
        }
    }

    fn kind(self) -> ErrorKind {
        match self {
            About::Container | About::Account | About::Region => ErrorKind::Invalid,
            About::Clock | About::Expired | About::Signature | About::Permission | About::Barred => {
                ErrorKind::Denied
            }
            About::Throttled | About::Server => ErrorKind::Unavailable,
            About::Unknown => ErrorKind::Internal,
        }
    }

    fn message(self, address: &Address) -> String {
        let (what, name) = (address.provider.container(), &address.container);
        match self {
            About::Container => format!("there is no {what} \"{name}\""),
            About::Account => "there is no such account".to_owned(),
            About::Clock => "this machine's clock is too far from the storage's".to_owned(),
            About::Expired => "the credential has expired".to_owned(),
            About::Signature => "the storage does not accept the credential".to_owned(),
            About::Permission => format!("the credential may not do that in {what} \"{name}\""),
            About::Barred => format!("the credential has no access to {what} \"{name}\""),
            About::Region => format!("the {what} \"{name}\" is in another region"),
            About::Throttled => "the storage asks for fewer requests".to_owned(),
            About::Server => "the storage failed".to_owned(),
            About::Unknown => "the storage refuses".to_owned(),
        }
    }

    fn cure(self, provider: Provider) -> &'static str {
        match (self, provider) {
            (About::Container, Provider::Azure) => {
                "Create it, or check its name: haversack provision azure, or az storage container create"
            }
            (About::Container, Provider::S3 | Provider::Gcs) => "Create it, or check its name",
            (About::Account, _) => "Check the account's name: AZURE_STORAGE_ACCOUNT_NAME",
            (About::Clock, _) => {
                "Set this machine's clock (15 minutes is the most a storage tolerates), then: haversack sync"
            }
            (About::Expired, _) => {
                "Sign in again or hand in a new credential: haversack remote add URL --credential …"
            }
            (About::Signature, _) => {
                "Hand in the right one: haversack remote add URL --credential …, then: haversack remote test"
            }
            (About::Permission, Provider::Azure) => {
                "Give it the role \"Storage Blob Data Contributor\" there (it takes up to 8 minutes to work), then: haversack remote test"
            }
            (About::Permission, Provider::S3 | Provider::Gcs) => {
                "Let it read, write, list and delete objects there, then: haversack remote test"
            }
            (About::Barred, _) => {
                "Check whether the key or the SAS is still valid, and the account's firewall, then: haversack remote test"
            }
            (About::Region, _) => "Name the right one in AWS_REGION, and add the remote again",
            (About::Throttled | About::Server, _) => WAIT,
            (About::Unknown, _) => LOOK,
        }
    }
}

/// Returns the error for an answer that is a refusal.
pub(crate) fn refused(operation: Operation, place: &str, address: &Address, answer: &Answer) -> Error {
    let code = answer.code();
    let about = About::of(answer, code.as_deref());
    let mut why = format!("it answered {}", answer.status.as_u16());
    if let Some(code) = &code {
        why = format!("{why} ({code})");
    }
    if let Some(region) = answer.header("x-amz-bucket-region").filter(|_| about == About::Region) {
        why = format!("{why}: the region is {region}");
    }
    if let Some(wait) = answer.header("retry-after").and_then(|wait| wait.trim().parse::<u64>().ok()) {
        why = format!("{why} and asks to wait {wait} s");
    }
    let refusal = Refusal { why, cure: about.cure(address.provider) };
    Error::at(about.kind(), operation, place, about.message(address))
        .with_tries(answer.tries)
        .with_source(refusal)
}

/// Returns the error for a request without an answer.
pub(crate) fn unanswered(
    operation: Operation,
    place: &str,
    address: &Address,
    unanswered: Unanswered,
) -> Error {
    let Unanswered { why: none, tries } = unanswered;
    let (kind, message, cure) = match &none {
        NoAnswer::Setup(_) => (
            ErrorKind::Internal,
            "TLS could not be set up".to_owned(),
            "Check this machine's certificates (ca-certificates)",
        ),
        NoAnswer::Credential(error) => {
            let kind = own_error(error).map_or(ErrorKind::Denied, Error::kind);
            (
                kind,
                "there is no usable credential".to_owned(),
                "Hand one in: haversack remote add URL --credential …, then: haversack remote test",
            )
        }
        NoAnswer::Connection { source, .. } if is_about_trust(&**source) => (
            ErrorKind::Denied,
            "the storage's certificate does not verify".to_owned(),
            "Check this machine's clock and certificates (ca-certificates), and whether a proxy is in between; for your own server, name its certificate authority in SSL_CERT_FILE when you add the remote",
        ),
        NoAnswer::Connection { kind: HttpErrorKind::Connect, .. } => (
            ErrorKind::Unavailable,
            format!("the {} cannot be reached", address.provider.container()),
            "Check the network and the address, then: haversack sync. Changes that wait are kept",
        ),
        NoAnswer::Connection { .. } => (ErrorKind::Unavailable, "the connection broke".to_owned(), WAIT),
        NoAnswer::Silence(_) => (
            ErrorKind::Unavailable,
            "the storage does not answer".to_owned(),
            "Check the network and any proxy, then: haversack sync. Changes that wait are kept",
        ),
        NoAnswer::TooLarge { .. } => (
            ErrorKind::Invalid,
            "it is larger than anything of ours".to_owned(),
            "Move it out of the store: it is not Haversack's",
        ),
    };
    let refusal = Refusal { why: why(&none), cure };
    Error::at(kind, operation, place, message).with_tries(tries).with_source(refusal)
}

/// Returns what a credential's own source says the caller can do.
fn own_error(error: &object_store::Error) -> Option<&Error> {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(own) = error.downcast_ref::<Error>() {
            return Some(own);
        }
        cause = error.source();
    }
    None
}

/// Returns the one sentence that says why there is no answer: what is behind all the wrapping.
fn why(none: &NoAnswer) -> String {
    let deepest = |mut error: &(dyn std::error::Error + 'static)| {
        while let Some(source) = error.source() {
            error = source;
        }
        error.to_string()
    };
    match none {
        NoAnswer::Setup(why) => why.clone(),
        NoAnswer::Credential(error) => match own_error(error) {
            Some(own) => match std::error::Error::source(own) {
                Some(source) => format!("{own}: {}", deepest(source)),
                None => own.to_string(),
            },
            None => deepest(error),
        },
        NoAnswer::Connection { source, .. } => deepest(&**source),
        NoAnswer::Silence(_) | NoAnswer::TooLarge { .. } => none.to_string(),
    }
}
