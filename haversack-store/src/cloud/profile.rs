//! Named profiles, as the AWS tools keep them in two files.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;
use object_store::CredentialProvider;
use object_store::aws::AwsCredential;
use serde::Deserialize;
use tokio::process::Command;

use super::listing::moment;
use super::program::{Renewed, json_of};
use crate::error::{Error, ErrorKind, Operation, Result};

/// The values of a profile.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Profile {
    values: BTreeMap<String, String>,
}

impl Profile {
    /// Reads a profile from the two files, either of which may be absent.
    pub(crate) fn read(name: &str, config: Option<&str>, credentials: Option<&str>) -> Result<Profile> {
        let mut values = BTreeMap::new();
        let sections = [(config, format!("profile {name}")), (credentials, name.to_owned())];
        for (file, section) in sections {
            let Some(file) = file else { continue };
            let text = match std::fs::read_to_string(Path::new(file)) {
                Ok(text) => text,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Err(error) => return Err(Error::from_io(Operation::Open, file, error)),
            };
            // The default profile has no word before its name.
            let wanted = if name == "default" { name.to_owned() } else { section };
            values.extend(section_of(&text, &wanted));
        }
        if values.is_empty() {
            let message = "there is no such profile in the files of the AWS tools";
            return Err(Error::at(
                ErrorKind::Invalid,
                Operation::Open,
                format!("profile \"{name}\""),
                message,
            ));
        }
        Ok(Profile { values })
    }

    /// Returns one of its values.
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.values.get(key).map(String::as_str)
    }

    /// Returns where its credentials come from.
    pub(crate) fn credentials(&self, name: &str) -> Result<Arc<ProfileCredentials>> {
        let source = match (
            self.get("aws_access_key_id"),
            self.get("aws_secret_access_key"),
            self.get("credential_process"),
        ) {
            (Some(key), Some(secret), _) => Source::Keys {
                key: key.to_owned(),
                secret: secret.to_owned(),
                token: self.get("aws_session_token").map(str::to_owned),
            },
            (_, _, Some(process)) => Source::Process(process.to_owned()),
            _ => {
                let message = "it has neither keys nor a credential_process (for a role or a single sign-on, let the AWS tools hand it out: credential_process = aws configure export-credentials --profile NAME --format process)";
                return Err(Error::at(
                    ErrorKind::Invalid,
                    Operation::Open,
                    format!("profile \"{name}\""),
                    message,
                ));
            }
        };
        Ok(Arc::new(ProfileCredentials { source, renewed: Renewed::new() }))
    }
}

/// Returns the values of one section. A value may hold any character: only a line's beginning can be a comment.
fn section_of(text: &str, wanted: &str) -> BTreeMap<String, String> {
    let mut values = BTreeMap::new();
    let mut is_wanted = false;
    for line in text.lines() {
        if line.starts_with(['#', ';']) || line.trim().is_empty() {
            continue;
        }
        if let Some(rest) = line.trim().strip_prefix('[') {
            let name = rest.split(']').next().unwrap_or_default();
            is_wanted = name.split_whitespace().eq(wanted.split_whitespace());
            continue;
        }
        // An indented line belongs to the key before it; we need none of those.
        if is_wanted
            && !line.starts_with([' ', '\t'])
            && let Some((key, value)) = line.split_once('=')
        {
            values.insert(key.trim().to_lowercase(), value.trim().to_owned());
        }
    }
    values
}

enum Source {
    Keys { key: String, secret: String, token: Option<String> },
    Process(String),
}

/// The credentials of a profile.
pub(crate) struct ProfileCredentials {
    source: Source,
    renewed: Renewed<AwsCredential>,
}

impl ProfileCredentials {
    /// Forgets what a program handed out.
    pub(crate) fn forget(&self) {
        self.renewed.forget();
    }

    async fn ask(&self) -> Result<(AwsCredential, Option<SystemTime>)> {
        match &self.source {
            Source::Keys { key, secret, token } => {
                let credential =
                    AwsCredential { key_id: key.clone(), secret_key: secret.clone(), token: token.clone() };
                Ok((credential, None))
            }
            Source::Process(line) => {
                let (shell, flag) = if cfg!(windows) { ("cmd", "/C") } else { ("/bin/sh", "-c") };
                let printed: Printed =
                    json_of("the profile's credential_process", Command::new(shell).arg(flag).arg(line))
                        .await?;
                let ends = printed.expiration.as_deref().and_then(moment);
                let credential = AwsCredential {
                    key_id: printed.access_key_id,
                    secret_key: printed.secret_access_key,
                    token: printed.session_token,
                };
                Ok((credential, ends))
            }
        }
    }
}

/// The output of a `credential_process`.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Printed {
    access_key_id: String,
    secret_access_key: String,
    #[serde(default)]
    session_token: Option<String>,
    #[serde(default)]
    expiration: Option<String>,
}

impl std::fmt::Debug for ProfileCredentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ProfileCredentials")
    }
}

#[async_trait]
impl CredentialProvider for ProfileCredentials {
    type Credential = AwsCredential;

    async fn get_credential(&self) -> object_store::Result<Arc<AwsCredential>> {
        let credential = self.renewed.get(|| self.ask()).await;
        credential.map_err(|error| object_store::Error::Generic { store: "S3", source: Box::new(error) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = "# of the AWS tools
[default]
region = eu-west-1

[profile work]
region=eu-central-1
endpoint_url = https://s3.example
s3 =
    addressing_style = path
    region = wrong
credential_process = /opt/get --for \"work # main\"
[profile workshop]
region = us-west-2
";

    #[test]
    fn a_profile_is_found_among_others() {
        let work = section_of(CONFIG, "profile work");
        assert_eq!(work.get("region").map(String::as_str), Some("eu-central-1"));
        assert_eq!(
            work.get("credential_process").map(String::as_str),
            Some("/opt/get --for \"work # main\"")
        );
        assert_eq!(section_of(CONFIG, "default").len(), 1);
        assert!(section_of(CONFIG, "work").is_empty());
    }

    #[test]
    fn secrets_may_hold_any_character() {
        let text = "[ work ]\naws_secret_access_key = ab#;=/+c==\n";
        assert_eq!(section_of(text, "work")["aws_secret_access_key"], "ab#;=/+c==");
    }
}
