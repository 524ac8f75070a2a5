//! Seeing whether the agent may use a container.

use object_store::azure::AzureCredential;
use reqwest::header::AUTHORIZATION;
use reqwest::{StatusCode, Url};

use super::{AgentIdentity, Inner, hops};
use crate::cloud::runtime;
use crate::error::{Error, ErrorKind, Operation, Result};

/// The version of the storage's protocol; any that knows tokens would do.
const API_VERSION: &str = "2021-08-06";

impl AgentIdentity {
    /// Lists a container once, as the agent: the role to use it is there, or the error says what is missing.
    pub async fn try_container(&self, endpoint: &str, container: &str) -> Result<()> {
        let place = format!("{}/{container}", endpoint.trim_end_matches('/'));
        let at = |kind, message: &str| Error::at(kind, Operation::List, &place, message);
        let url = format!("{place}?restype=container&comp=list&maxresults=1");
        let url = Url::parse(&url).ok().filter(|url| url.scheme() == "https" || hops::is_loopback(url));
        let url = url.ok_or_else(|| at(ErrorKind::Invalid, "we send a token over https:// only"))?;
        let credential = self.credential().await?;
        let inner = self.inner.clone();
        let answer = runtime::run(async move { inner.list(url, &credential).await });
        let (status, code) = answer
            .await
            .map_err(|said| at(ErrorKind::Unavailable, "it cannot be reached").with_source(said))?;
        let (kind, message) = match status {
            _ if status.is_success() => return Ok(()),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                (ErrorKind::Denied, "the storage refuses the agent user; a new role takes some minutes")
            }
            StatusCode::NOT_FOUND => (ErrorKind::NotFound, "there is no such container"),
            _ => (ErrorKind::Unavailable, "the storage does not answer as it should"),
        };
        Err(at(kind, message).with_source(format!("HTTP {} {code}", status.as_u16()).trim_end().to_owned()))
    }
}

impl Inner {
    /// Asks for a listing, and returns the status and the storage's own word for it.
    async fn list(&self, url: Url, credential: &AzureCredential) -> Result<(StatusCode, String), String> {
        let AzureCredential::BearerToken(token) = credential else {
            return Err("the agent has no token".to_owned());
        };
        let request = self.client().map_err(|failure| failure.message)?.get(url);
        let request =
            request.header(AUTHORIZATION, format!("Bearer {token}")).header("x-ms-version", API_VERSION);
        let response = request.timeout(self.settings.hop_timeout).send().await.map_err(hops::chain_of)?;
        let code = response.headers().get("x-ms-error-code").and_then(|code| code.to_str().ok());
        Ok((response.status(), hops::tame(code.unwrap_or_default())))
    }
}
