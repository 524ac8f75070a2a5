//! Puts credentials on a request, in the way of each provider.

use std::fmt;
use std::sync::Arc;

use object_store::CredentialProvider;
use object_store::aws::{AwsAuthorizer, AwsCredential};
use object_store::azure::{AzureAuthorizer, AzureCredential};
use object_store::client::HttpRequest;
use object_store::gcp::GcpCredential;

/// A source of credentials.
pub(crate) type Credentials<C> = Arc<dyn CredentialProvider<Credential = C>>;

/// Puts credentials on requests.
pub(crate) struct Signer {
    kind: Kind,
    /// The source's name for people.
    pub(crate) source: String,
    /// Forgets a token that was refused, so that the next one is new; `None` where there is nothing to renew.
    pub(crate) renew: Option<Box<dyn Fn() + Send + Sync>>,
}

/// How requests are signed.
pub(crate) enum Kind {
    Azure {
        account: String,
        credentials: Credentials<AzureCredential>,
    },
    S3 {
        region: String,
        credentials: Credentials<AwsCredential>,
    },
    Gcs {
        credentials: Credentials<GcpCredential>,
    },
    /// Not at all: the storage is open to everybody.
    Nobody,
}

impl Signer {
    pub(crate) fn new(kind: Kind, source: impl Into<String>) -> Signer {
        Signer { kind, source: source.into(), renew: None }
    }

    /// Lets a refused token be renewed.
    pub(crate) fn renewed_by(mut self, renew: impl Fn() + Send + Sync + 'static) -> Signer {
        self.renew = Some(Box::new(renew));
        self
    }

    /// Signs a request.
    pub(crate) async fn sign(&self, request: &mut HttpRequest) -> object_store::Result<()> {
        match &self.kind {
            Kind::Azure { account, credentials } => {
                let credential = credentials.get_credential().await?;
                AzureAuthorizer::new(&credential, account).try_authorize(request)
            }
            Kind::S3 { region, credentials } => {
                let credential = credentials.get_credential().await?;
                AwsAuthorizer::new(&credential, "s3", region).try_authorize(request, None)
            }
            Kind::Gcs { credentials } => {
                let credential = credentials.get_credential().await?;
                let bearer = format!("Bearer {}", credential.bearer).parse();
                let bearer = bearer.map_err(|_| object_store::Error::Generic {
                    store: "GCS",
                    source: "the token has characters that a header cannot hold".into(),
                })?;
                request.headers_mut().insert(reqwest::header::AUTHORIZATION, bearer);
                Ok(())
            }
            Kind::Nobody => Ok(()),
        }
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signer({})", self.source)
    }
}
