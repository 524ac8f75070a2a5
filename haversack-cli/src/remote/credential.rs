//! The source of a remote's credential.
//!
//! The record has the source, never the value, so that a hook without this shell's variables finds the credential too. A value that
//! was handed in is in a separate file, which only this user can read, or in the system's keychain.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use haversack::store::{Settings as CloudSettings, cloud};
use serde::{Deserialize, Serialize};

use crate::error::CommandError;
use crate::settings::{Settings, shown};

/// A cloud.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cloud {
    Azure,
    S3,
    Gcs,
}

impl Cloud {
    /// Returns the cloud that an address is in, if it is in one.
    pub(crate) fn of(url: &str) -> Option<Cloud> {
        match url.split_once("://")?.0 {
            "az" | "https" => Some(Cloud::Azure),
            "s3" => Some(Cloud::S3),
            "gs" => Some(Cloud::Gcs),
            _ => None,
        }
    }

    /// Returns the name of its backend.
    pub(crate) fn backend(self) -> &'static str {
        match self {
            Cloud::Azure => "azure",
            Cloud::S3 => "s3",
            Cloud::Gcs => "gcs",
        }
    }

    /// The variables of the endpoint and the account, which are not secret.
    fn plain(self) -> &'static [&'static str] {
        match self {
            Cloud::Azure => &[
                "AZURE_STORAGE_ACCOUNT_NAME",
                "AZURE_STORAGE_ACCOUNT",
                "AZURE_STORAGE_ENDPOINT",
                "AZURE_CLIENT_ID",
                "AZURE_TENANT_ID",
                "AZURE_AUTHORITY_HOST",
                "AZURE_FEDERATED_TOKEN_FILE",
                "AZURE_ALLOW_HTTP",
                cloud::CERTIFICATES,
            ],
            Cloud::S3 => &[
                "AWS_REGION",
                "AWS_DEFAULT_REGION",
                "AWS_ENDPOINT_URL_S3",
                "AWS_ENDPOINT_URL",
                "AWS_ENDPOINT",
                "AWS_ROLE_ARN",
                "AWS_ROLE_SESSION_NAME",
                "AWS_WEB_IDENTITY_TOKEN_FILE",
                "AWS_ALLOW_HTTP",
                cloud::CERTIFICATES,
            ],
            Cloud::Gcs => {
                &["GOOGLE_BASE_URL", "STORAGE_EMULATOR_HOST", "GOOGLE_ALLOW_HTTP", cloud::CERTIFICATES]
            }
        }
    }

    /// The variables with secrets.
    fn secret(self) -> &'static [&'static str] {
        match self {
            Cloud::Azure => &[
                "AZURE_STORAGE_ACCOUNT_KEY",
                "AZURE_STORAGE_KEY",
                "AZURE_STORAGE_ACCESS_KEY",
                "AZURE_STORAGE_CONNECTION_STRING",
                "AZURE_STORAGE_SAS_TOKEN",
                "AZURE_STORAGE_SAS_KEY",
                "AZURE_CLIENT_SECRET",
            ],
            Cloud::S3 => &["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"],
            Cloud::Gcs => &["GOOGLE_SERVICE_ACCOUNT_KEY", "GOOGLE_BEARER_TOKEN"],
        }
    }

    /// Returns those of the names that the environment sets.
    fn given(self, names: &[&'static str], environment: &CloudSettings) -> BTreeMap<String, String> {
        let given =
            names.iter().filter_map(|name| Some(((*name).to_owned(), environment.get(&[name])?.to_owned())));
        given.collect()
    }

    /// Returns the variables of the endpoint, without secrets.
    pub(crate) fn place(self, environment: &CloudSettings) -> BTreeMap<String, String> {
        self.given(self.plain(), environment)
    }
}

/// The source of a credential.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "source", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Source {
    /// A profile of the AWS tools.
    Profile { name: String, config: PathBuf, credentials: PathBuf },
    /// The login of the Azure command line.
    Az { program: PathBuf },
    /// A file of the home that only this user can read.
    File,
    /// The system's keychain.
    Keychain,
    /// An agent that signs in as itself; the file says who it is, and where its certificate and key are.
    AgentIdentity { file: PathBuf },
    /// A service account's file, or that of the application default credentials.
    Google { file: PathBuf },
    /// A token file that another program renews, named by the settings.
    TokenFile,
    /// The machine itself, which its cloud knows.
    Instance,
    /// None: the storage is open.
    None,
}

/// The stored credentials before a change, to be restored if the new ones do not work.
pub(crate) struct PreviousCredentials(Option<BTreeMap<String, String>>);

impl PreviousCredentials {
    pub(crate) fn of(settings: &Settings) -> PreviousCredentials {
        // One that cannot be read is of no use either.
        PreviousCredentials(read_secrets(&file(settings)).ok())
    }

    pub(crate) fn put_back(self, settings: &Settings) -> Result<(), CommandError> {
        match self.0 {
            Some(secrets) => write_secrets(&file(settings), &secrets),
            None => crate::records::remove(&file(settings)),
        }
    }
}

/// Returns the file with the stored credentials.
fn file(settings: &Settings) -> PathBuf {
    settings.store().credential()
}

impl Source {
    /// Adds the backend's parameters.
    pub(crate) fn add(&self, settings: &Settings, to: &mut CloudSettings) -> Result<(), CommandError> {
        match self {
            Source::Profile { name, config, credentials } => {
                to.set("AWS_PROFILE", name);
                to.set("AWS_CONFIG_FILE", shown(config));
                to.set("AWS_SHARED_CREDENTIALS_FILE", shown(credentials));
            }
            Source::Az { program } => {
                to.set(cloud::CREDENTIAL, "az");
                to.set(cloud::AZ_PROGRAM, shown(program));
            }
            Source::File => {
                for (name, value) in read_secrets(&file(settings))? {
                    to.set(name, value);
                }
            }
            Source::Keychain => {
                for (name, value) in keychain::read(settings)? {
                    to.set(name, value);
                }
            }
            Source::AgentIdentity { file } => {
                to.set(cloud::CREDENTIAL, "agent-identity");
                for (name, value) in Agent::read(file)?.named() {
                    to.set(name, value);
                }
            }
            Source::Google { file } => to.set("GOOGLE_APPLICATION_CREDENTIALS", shown(file)),
            Source::TokenFile => {}
            Source::Instance => to.set(cloud::CREDENTIAL, "instance"),
            Source::None => to.set(cloud::CREDENTIAL, "none"),
        }
        Ok(())
    }

    /// Returns the source that was asked for, or the one that is there; a value of this shell alone is refused.
    pub(crate) fn choose(
        settings: &Settings,
        cloud: Cloud,
        asked: Option<&str>,
    ) -> Result<Source, CommandError> {
        let environment = &settings.cloud;
        let secrets = cloud.given(cloud.secret(), environment);
        let refused = |message: String, hint: &str| Err(CommandError::user(message, hint));
        match (asked, cloud) {
            (Some("file" | "keychain"), _) if secrets.is_empty() => refused(
                format!("there is no credential to keep: none of {} is set", cloud.secret().join(", ")),
                "Set it for this one command, and it is kept where only you can read it",
            ),
            (Some("file"), _) => {
                write_secrets(&file(settings), &secrets)?;
                Ok(Source::File)
            }
            (Some("keychain"), _) => {
                keychain::write(settings, &secrets)?;
                Ok(Source::Keychain)
            }
            (Some(agent), Cloud::Azure) if agent.starts_with("agent-identity:") => {
                let file = absolute(Path::new(agent.trim_start_matches("agent-identity:")))?;
                Agent::read(&file)?;
                Ok(Source::AgentIdentity { file })
            }
            (Some("az"), Cloud::Azure) => match on_path("az") {
                Some(program) => Ok(Source::Az { program }),
                None => refused("az is not there".to_owned(), "Install the Azure CLI, then: az login"),
            },
            (Some("instance"), _) => Ok(Source::Instance),
            (Some("none"), _) => Ok(Source::None),
            (Some(profile), Cloud::S3) if profile.starts_with("profile:") => {
                profile_of(settings, profile.trim_start_matches("profile:"))
            }
            (Some(google), Cloud::Gcs) if google.starts_with("google:") => {
                absolute(Path::new(google.trim_start_matches("google:"))).map(|file| Source::Google { file })
            }
            (Some(other), _) => refused(
                format!("\"{other}\" is no source of credentials for this remote"),
                match cloud {
                    Cloud::Azure => "It can be: file, keychain, az, agent-identity:FILE, instance, none",
                    Cloud::S3 => "It can be: file, keychain, profile:NAME, instance, none",
                    Cloud::Gcs => "It can be: file, keychain, google:FILE, instance, none",
                },
            ),
            (None, _) if !secrets.is_empty() => {
                let names: Vec<&str> = secrets.keys().map(String::as_str).collect();
                refused(
                    format!(
                        "{} is set in this shell only; hooks and other shells would not have it",
                        names.join(", ")
                    ),
                    "Keep it in a file that only you can read, by adding: --credential file",
                )
            }
            (None, Cloud::Azure) => match on_path("az") {
                _ if environment.get(&["AZURE_FEDERATED_TOKEN_FILE"]).is_some() => Ok(Source::TokenFile),
                Some(program) => Ok(Source::Az { program }),
                None => refused(
                    "there is no credential for Azure".to_owned(),
                    "Sign in (az login), or hand one in: AZURE_STORAGE_ACCOUNT_KEY=… haversack remote add URL --credential file",
                ),
            },
            (None, Cloud::S3) if environment.get(&["AWS_WEB_IDENTITY_TOKEN_FILE"]).is_some() => {
                Ok(Source::TokenFile)
            }
            (None, Cloud::S3) => profile_of(settings, environment.get(&["AWS_PROFILE"]).unwrap_or("default")),
            (None, Cloud::Gcs) => {
                let named = environment.get(&[
                    "GOOGLE_APPLICATION_CREDENTIALS",
                    "GOOGLE_SERVICE_ACCOUNT",
                    "GOOGLE_SERVICE_ACCOUNT_PATH",
                ]);
                let default =
                    user_home().map(|home| home.join(".config/gcloud/application_default_credentials.json"));
                match named.map(PathBuf::from).or(default.filter(|file| file.is_file())) {
                    Some(file) => absolute(&file).map(|file| Source::Google { file }),
                    None => refused(
                        "there is no credential for Google Cloud".to_owned(),
                        "Sign in (gcloud auth application-default login), or use a key file: --credential google:FILE",
                    ),
                }
            }
        }
    }

    /// Forgets the stored credentials.
    pub(crate) fn forget(&self, settings: &Settings) -> Result<(), CommandError> {
        match self {
            Source::File => crate::records::remove(&file(settings)),
            Source::Keychain => keychain::forget(settings),
            // Values that other programs store are not ours to remove.
            Source::Profile { .. }
            | Source::Az { .. }
            | Source::AgentIdentity { .. }
            | Source::Google { .. }
            | Source::TokenFile
            | Source::Instance
            | Source::None => Ok(()),
        }
    }

    /// Adds the variables of this shell, for a remote that was not added.
    pub(crate) fn of_shell(settings: &Settings, cloud: Cloud) -> CloudSettings {
        let mut to = settings.cloud.clone();
        if cloud == Cloud::S3 {
            let (config, credentials) = profile_files(settings);
            to.set("AWS_CONFIG_FILE", shown(&config));
            to.set("AWS_SHARED_CREDENTIALS_FILE", shown(&credentials));
        }
        if cloud == Cloud::Azure
            && cloud.given(cloud.secret(), &settings.cloud).is_empty()
            && let Some(program) = on_path("az")
        {
            to.set(cloud::CREDENTIAL, "az");
            to.set(cloud::AZ_PROGRAM, shown(&program));
        }
        to
    }
}

/// An agent that signs in as itself, as its file says.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Agent {
    tenant: String,
    blueprint: String,
    agent_id: String,
    agent_user: String,
    certificate: PathBuf,
    key: PathBuf,
    authority: Option<String>,
}

impl Agent {
    fn read(file: &Path) -> Result<Agent, CommandError> {
        let cure = "It has: tenant, blueprint, agent-id, agent-user, certificate, key (docs/guide/azure.md)";
        let agent: Option<Agent> = crate::records::read(file, cure)?;
        agent.ok_or_else(|| CommandError::user(format!("{} is not there", shown(file)), cure))
    }

    /// Returns the backend's parameters; a relative path is relative to the file that names it.
    fn named(self) -> Vec<(&'static str, String)> {
        let [tenant, blueprint, identity, user, certificate, key, authority] = cloud::AGENT;
        let mut named = vec![
            (tenant, self.tenant),
            (blueprint, self.blueprint),
            (identity, self.agent_id),
            (user, self.agent_user),
            (certificate, shown(&self.certificate)),
            (key, shown(&self.key)),
        ];
        named.extend(self.authority.map(|said| (authority, said)));
        named
    }
}

/// The system's keychain, in builds that have it.
mod keychain {
    use super::*;

    /// The name of the keychain's entry, the same for every home.
    #[cfg(feature = "keychain")]
    const SERVICE: &str = "haversack";

    #[cfg(feature = "keychain")]
    pub(super) fn read(settings: &Settings) -> Result<BTreeMap<String, String>, CommandError> {
        let text = cloud::keychain::secret(SERVICE, &shown(&settings.home))?;
        toml::from_str(&text).map_err(|_| {
            let again = "Hand it in again: haversack remote add URL --credential keychain";
            CommandError::user("the keychain's entry is not the one that Haversack stored", again)
        })
    }

    #[cfg(feature = "keychain")]
    pub(super) fn write(settings: &Settings, secrets: &BTreeMap<String, String>) -> Result<(), CommandError> {
        let text = toml::to_string(secrets).map_err(|error| CommandError::ours(error.to_string()))?;
        Ok(cloud::keychain::save(SERVICE, &shown(&settings.home), &text)?)
    }

    #[cfg(feature = "keychain")]
    pub(super) fn forget(settings: &Settings) -> Result<(), CommandError> {
        Ok(cloud::keychain::remove(SERVICE, &shown(&settings.home))?)
    }

    #[cfg(not(feature = "keychain"))]
    fn absent<T>() -> Result<T, CommandError> {
        Err(CommandError::user(
            "this build cannot use the system's keychain",
            "Use --credential file, or a build with the feature `keychain`",
        ))
    }

    #[cfg(not(feature = "keychain"))]
    pub(super) fn read(_: &Settings) -> Result<BTreeMap<String, String>, CommandError> {
        absent()
    }

    #[cfg(not(feature = "keychain"))]
    pub(super) fn write(_: &Settings, _: &BTreeMap<String, String>) -> Result<(), CommandError> {
        absent()
    }

    #[cfg(not(feature = "keychain"))]
    pub(super) fn forget(_: &Settings) -> Result<(), CommandError> {
        absent()
    }
}

fn profile_files(settings: &Settings) -> (PathBuf, PathBuf) {
    let home = user_home().unwrap_or_default();
    let file = |variable: &str, default: &str| {
        settings.cloud.get(&[variable]).map_or_else(|| home.join(".aws").join(default), PathBuf::from)
    };
    (file("AWS_CONFIG_FILE", "config"), file("AWS_SHARED_CREDENTIALS_FILE", "credentials"))
}

fn profile_of(settings: &Settings, name: &str) -> Result<Source, CommandError> {
    let (config, credentials) = profile_files(settings);
    if !config.is_file() && !credentials.is_file() {
        return Err(CommandError::user(
            "there is no credential for S3",
            "Make a profile (aws configure), or hand a key in: AWS_ACCESS_KEY_ID=… AWS_SECRET_ACCESS_KEY=… haversack remote add URL --credential file",
        ));
    }
    Ok(Source::Profile {
        name: name.to_owned(),
        config: absolute(&config)?,
        credentials: absolute(&credentials)?,
    })
}

fn user_home() -> Option<PathBuf> {
    etcetera::home_dir().ok()
}

fn absolute(path: &Path) -> Result<PathBuf, CommandError> {
    std::path::absolute(path).map_err(|error| CommandError {
        source: Some(error.into()),
        ..CommandError::user(format!("{} cannot be found", shown(path)), "Name the whole path")
    })
}

/// Returns where a program is.
pub(crate) fn on_path(name: &str) -> Option<PathBuf> {
    let directories = std::env::var_os("PATH")?;
    let names = if cfg!(windows) {
        vec![format!("{name}.cmd"), format!("{name}.exe")]
    } else {
        vec![name.to_owned()]
    };
    let mut places = std::env::split_paths(&directories)
        .flat_map(|directory| names.iter().map(move |name| directory.join(name)));
    places.find(|place| place.is_file())
}

/// Writes secrets into a file that only this user can read.
fn write_secrets(place: &Path, secrets: &BTreeMap<String, String>) -> Result<(), CommandError> {
    let text = toml::to_string(secrets).map_err(|error| CommandError::ours(error.to_string()))?;
    let write = || -> std::io::Result<()> {
        let draft = place.with_extension("toml.new");
        // One that is left over may be readable to others.
        match fs::remove_file(&draft) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = crate::records::private::create_new(&draft)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&draft, place)
    };
    write().map_err(|error| CommandError {
        source: Some(error.into()),
        ..CommandError::user(format!("could not write {}", shown(place)), "Check the permissions of the home")
    })
}

fn read_secrets(place: &Path) -> Result<BTreeMap<String, String>, CommandError> {
    let again = "Hand it in again: haversack remote add URL --credential file";
    let found: Option<BTreeMap<String, String>> = crate::records::read(place, again)?;
    let Some(found) = found else {
        return Err(CommandError::user(
            format!("the credential is gone: {} is not there", shown(place)),
            again,
        ));
    };
    #[cfg(unix)]
    {
        let mode =
            fs::metadata(place).map(|found| std::os::unix::fs::PermissionsExt::mode(&found.permissions()));
        if mode.is_ok_and(|mode| mode & 0o077 != 0) {
            return Err(CommandError::user(
                format!("others can read the credential in {}", shown(place)),
                format!("chmod 600 {}, and think about renewing it", shown(place)),
            ));
        }
    }
    Ok(found)
}
