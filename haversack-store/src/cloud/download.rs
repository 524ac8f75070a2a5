//! Fetches one public file over HTTPS, without any credential.

use std::time::Duration;

use reqwest::Url;
use reqwest::redirect::Policy;

use super::agent_identity::hops::{chain_of, is_loopback};
use super::runtime;
use crate::error::{Error, ErrorKind, Operation, Result};

/// How often a server may send us on.
const MAX_REDIRECTS: usize = 5;

/// How long a server may be silent.
const SILENCE: Duration = Duration::from_secs(30);

/// Fetches a file of at most so many bytes, and tells `at` how many have come. Plain HTTP is only for this machine itself, also after a redirect.
///
/// The caller checks the content: a server could send anything.
pub async fn download(address: &str, most: u64, at: impl Fn(u64) + Send + Sync + 'static) -> Result<Vec<u8>> {
    let address = address.to_owned();
    runtime::run(async move { fetch(&address, most, &at).await }).await
}

async fn fetch(address: &str, most: u64, at: &(impl Fn(u64) + Sync)) -> Result<Vec<u8>> {
    let failed = |kind, message: String| Error::at(kind, Operation::Read, address, message);
    let url = Url::parse(address).map_err(|_| failed(ErrorKind::Invalid, "it is no address".to_owned()))?;
    if !is_safe(&url) {
        return Err(failed(ErrorKind::Invalid, "only https:// addresses are used".to_owned()));
    }
    let policy = Policy::custom(|attempt| {
        let is_allowed = is_safe(attempt.url()) && attempt.previous().len() <= MAX_REDIRECTS;
        if is_allowed {
            attempt.follow()
        } else {
            attempt.error("the server sends us to another place that is not used")
        }
    });
    let mut builder =
        runtime::client_builder().redirect(policy).read_timeout(SILENCE).connect_timeout(SILENCE);
    if is_loopback(&url) {
        builder = builder.no_proxy();
    }
    let away = |error: reqwest::Error| failed(ErrorKind::Unavailable, chain_of(error));
    let mut response = builder.build().map_err(away)?.get(url).send().await.map_err(away)?;
    let status = response.status();
    if !status.is_success() {
        let kind = if status.as_u16() == 404 { ErrorKind::NotFound } else { ErrorKind::Unavailable };
        return Err(failed(kind, format!("the server answered {status}")));
    }
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(away)? {
        bytes.extend_from_slice(&chunk);
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if length > most {
            return Err(failed(ErrorKind::Invalid, format!("it is larger than {most} bytes")));
        }
        at(length);
    }
    Ok(bytes)
}

fn is_safe(url: &Url) -> bool {
    url.scheme() == "https" || (url.scheme() == "http" && is_loopback(url))
}
