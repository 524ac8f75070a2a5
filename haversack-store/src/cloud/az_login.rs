//! The login of the Azure command line, borrowed token by token.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use object_store::CredentialProvider;
use object_store::azure::AzureCredential;
use serde::Deserialize;
use tokio::process::Command;

use super::program::{Renewed, json_of};

/// Tokens that `az` hands out.
#[derive(Debug)]
pub(crate) struct AzLogin {
    program: String,
    renewed: Renewed<AzureCredential>,
}

impl AzLogin {
    /// Returns the login that `program` has.
    pub(crate) fn new(program: &str) -> AzLogin {
        AzLogin { program: program.to_owned(), renewed: Renewed::new() }
    }

    /// Forgets the token, so that the next one is new.
    pub(crate) fn forget(&self) {
        self.renewed.forget();
    }
}

/// The output of `az account get-access-token`.
#[derive(Deserialize)]
struct Printed {
    #[serde(rename = "accessToken")]
    token: String,
    /// Seconds since 1970; older ones print only a local time, and their tokens last an hour.
    #[serde(default)]
    expires_on: Option<u64>,
}

#[async_trait]
impl CredentialProvider for AzLogin {
    type Credential = AzureCredential;

    async fn get_credential(&self) -> object_store::Result<Arc<AzureCredential>> {
        let ask = || async {
            let mut command = Command::new(&self.program);
            command.args([
                "account",
                "get-access-token",
                "--resource",
                "https://storage.azure.com/",
                "--output",
                "json",
            ]);
            let printed: Printed = json_of("az", &mut command).await?;
            let ends = match printed.expires_on {
                Some(seconds) => SystemTime::UNIX_EPOCH + Duration::from_secs(seconds),
                None => SystemTime::now() + Duration::from_secs(3_000),
            };
            Ok((AzureCredential::BearerToken(printed.token), Some(ends)))
        };
        let credential = self.renewed.get(ask).await;
        credential.map_err(|error| object_store::Error::Generic { store: "Azure", source: Box::new(error) })
    }
}
