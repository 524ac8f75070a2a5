//! Opens a container: where it is, and with which credential.
//!
//! Everything is handed in under the names that the providers' own tools use. Nothing is guessed: without a credential there is an error,
//! and the service that hands credentials to a cloud's own machines is asked only if the credential is called `instance`.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use object_store::StaticCredentialProvider;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey, AwsCredential};
use object_store::azure::{
    AzureAccessKey, AzureConfigKey, AzureCredential, MicrosoftAzureBuilder, split_sas,
};
use object_store::gcp::{GcpCredential, GoogleCloudStorageBuilder, GoogleConfigKey};
use reqwest::Url;

use super::address::{Address, Provider};
use super::agent_identity::{
    AgentIdentity, AgentSettings, Certificate, DEFAULT_AUTHORITY, HOP_TIMEOUT, PrivateKey, STORAGE_SCOPE,
};
use super::az_login::AzLogin;
use super::backend::Cloud;
use super::profile::Profile;
use super::service::Service;
use super::sign::{Kind, Signer};
use super::wire::Wire;
use crate::backend::Backend;
use crate::error::{Error, ErrorKind, Operation, Result};
use crate::registry::{OpenOptions, Settings};

/// The setting that names where a credential comes from, where its own settings do not tell: `az`, `agent-identity`, `instance` or
/// `none`.
pub const CREDENTIAL: &str = "HAVERSACK_CREDENTIAL";

/// The default time that a storage may be silent.
const SILENCE: Duration = Duration::from_secs(30);

/// The setting that names the Azure command line.
pub const AZ_PROGRAM: &str = "HAVERSACK_AZ";

/// The settings of an agent that signs in as itself, in the order of their meaning: tenant, blueprint, agent identity, agent user,
/// certificate's file, private key's file, authority (may be left out).
pub const AGENT: [&str; 7] = [
    "HAVERSACK_AGENT_TENANT",
    "HAVERSACK_AGENT_BLUEPRINT",
    "HAVERSACK_AGENT_IDENTITY",
    "HAVERSACK_AGENT_USER",
    "HAVERSACK_AGENT_CERTIFICATE",
    "HAVERSACK_AGENT_KEY",
    "HAVERSACK_AGENT_AUTHORITY",
];

/// The setting that says for how many seconds a storage may be silent.
pub const WAIT_SECONDS: &str = "HAVERSACK_CLOUD_WAIT_SECONDS";

/// The setting that names a file of certificates that are trusted besides the system's, as other programs know it.
pub const CERTIFICATES: &str = "SSL_CERT_FILE";

/// Opens the container at an address; asks it nothing.
pub(crate) fn open(options: &OpenOptions) -> Result<Arc<dyn Backend>> {
    Ok(Arc::new(open_cloud(options)?))
}

pub(crate) fn open_cloud(options: &OpenOptions) -> Result<Cloud> {
    let address = Address::parse(&options.address)?;
    let settings = &options.settings;
    let (base, signer) = match address.provider {
        Provider::Azure => azure(&address, settings)?,
        Provider::S3 => s3(&address, settings)?,
        Provider::Gcs => gcs(&address, settings)?,
    };
    check_transport(&base, settings)?;
    let silence = match settings.get(&[WAIT_SECONDS]).map(str::parse) {
        None => SILENCE,
        Some(Ok(seconds @ 1..=3600)) => Duration::from_secs(seconds),
        Some(_) => return Err(invalid(WAIT_SECONDS, "it is a whole number from 1 to 3600")),
    };
    let trusted = match settings.get(&[CERTIFICATES]) {
        None => Vec::new(),
        Some(file) => certificates(file)?,
    };
    let wire = Wire::new(signer, silence, trusted);
    Ok(Cloud::new(Service { address, base }, wire, &options.locks))
}

fn certificates(file: &str) -> Result<Vec<reqwest::Certificate>> {
    let unread = |error: Box<dyn std::error::Error + Send + Sync>| {
        invalid(file, "it should have the certificates to trust (SSL_CERT_FILE)").with_source(error)
    };
    let pem = std::fs::read(file).map_err(|error| unread(error.into()))?;
    reqwest::Certificate::from_pem_bundle(&pem).map_err(|error| unread(error.into()))
}

fn azure(address: &Address, settings: &Settings) -> Result<(String, Signer)> {
    let connection = settings.get(&["AZURE_STORAGE_CONNECTION_STRING"]).unwrap_or_default();
    let connected = |key: &str| {
        let parts = connection.split(';').filter_map(|part| part.split_once('='));
        parts.filter(|(name, _)| name.eq_ignore_ascii_case(key)).map(|(_, value)| value).next()
    };
    let named = settings.get(&["AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT"]);
    let host = address.endpoint.as_ref().and_then(Url::host_str).and_then(|host| host.split('.').next());
    // The address itself is the most particular; a container of that account is meant.
    let account = host.or(named).or_else(|| connected("AccountName"));
    let endpoint = match (&address.endpoint, settings.get(&["AZURE_STORAGE_ENDPOINT"]), account) {
        (Some(endpoint), _, _) => endpoint.to_string(),
        (None, Some(endpoint), _) => endpoint.to_owned(),
        (None, None, Some(account)) => connected("BlobEndpoint")
            .map_or_else(|| format!("https://{account}.blob.core.windows.net"), str::to_owned),
        (None, None, None) => {
            let message = "which account is it in? Set AZURE_STORAGE_ACCOUNT_NAME, or use the address https://ACCOUNT.blob.core.windows.net/CONTAINER";
            return Err(invalid(&address.container, message));
        }
    };
    // An emulator has the account in its path.
    let account = account.map(str::to_owned).unwrap_or_else(|| {
        let path = Url::parse(&endpoint).map(|url| url.path().trim_matches('/').to_owned());
        path.unwrap_or_default()
    });
    let base = format!("{}/{}", endpoint.trim_end_matches('/'), address.container);
    let signed = |credentials, source| {
        Ok((base.clone(), Signer::new(Kind::Azure { account: account.clone(), credentials }, source)))
    };
    let fixed = |credential| Arc::new(StaticCredentialProvider::new(credential));
    match settings.get(&[CREDENTIAL]) {
        Some("none") => return Ok((base, Signer::new(Kind::Nobody, "none"))),
        Some("az") => {
            let login = Arc::new(AzLogin::new(settings.get(&[AZ_PROGRAM]).unwrap_or("az")));
            let (base, signer) = signed(login.clone(), "the login of az")?;
            return Ok((base, signer.renewed_by(move || login.forget())));
        }
        Some("agent-identity") => {
            let agent = Arc::new(agent(settings)?);
            let (base, signer) = signed(agent.clone(), "an agent identity")?;
            return Ok((base, signer.renewed_by(move || agent.forget())));
        }
        _ => {}
    }
    let key = settings.get(&["AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_KEY", "AZURE_STORAGE_ACCESS_KEY"]);
    if let Some(key) = key.or_else(|| connected("AccountKey")) {
        let key = AzureAccessKey::try_new(key)
            .map_err(|_| invalid("AZURE_STORAGE_ACCOUNT_KEY", "it is no key: base64 is expected"))?;
        return signed(fixed(AzureCredential::AccessKey(key)), "the account's key");
    }
    let sas = settings.get(&["AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_SAS_KEY"]);
    if let Some(sas) = sas.or_else(|| connected("SharedAccessSignature")) {
        let pairs = split_sas(sas.trim_start_matches('?'))
            .map_err(|_| invalid("AZURE_STORAGE_SAS_TOKEN", "it is no shared access signature"))?;
        return signed(fixed(AzureCredential::SASToken(pairs)), "a shared access signature");
    }
    let has = |names: &[&str]| settings.get(names).is_some();
    let is_service = has(&["AZURE_CLIENT_ID"]) && has(&["AZURE_TENANT_ID"]);
    let kind = match settings.get(&[CREDENTIAL]) {
        Some("instance") => Some(("managed_identity", "the machine's own identity")),
        _ if is_service && has(&["AZURE_CLIENT_SECRET"]) => Some(("client_secret", "a service principal")),
        _ if is_service && has(&["AZURE_FEDERATED_TOKEN_FILE"]) => {
            Some(("workload_identity", "a workload identity"))
        }
        _ => None,
    };
    let Some((kind, source)) = kind else { return Err(no_credential(address, AZURE_HINT)) };
    let mut builder = MicrosoftAzureBuilder::new()
        .with_account(&account)
        .with_container_name(&address.container)
        .with_config(AzureConfigKey::CredentialType, kind);
    for name in settings.names().filter(|name| name.starts_with("AZURE_")) {
        if let (Ok(key), Some(value)) =
            (AzureConfigKey::from_str(&name.to_lowercase()), settings.get(&[name]))
        {
            builder = builder.with_config(key, value);
        }
    }
    let store = builder.build().map_err(|error| unusable(address, error))?;
    signed(store.credentials().clone(), source)
}

fn agent(settings: &Settings) -> Result<AgentIdentity> {
    let [tenant, blueprint, identity, user, certificate, key, authority] = AGENT;
    let said = |name: &str| {
        let said = settings.get(&[name]).map(str::to_owned);
        said.ok_or_else(|| invalid(name, "an agent cannot sign in without it"))
    };
    AgentIdentity::new(AgentSettings {
        tenant: said(tenant)?,
        blueprint_app_id: said(blueprint)?,
        agent_id: said(identity)?,
        agent_user_id: said(user)?,
        certificate: Certificate::File(said(certificate)?.into()),
        private_key: private_key(&said(key)?)?,
        authority: settings.get(&[authority]).unwrap_or(DEFAULT_AUTHORITY).to_owned(),
        scope: STORAGE_SCOPE.to_owned(),
        hop_timeout: HOP_TIMEOUT,
    })
}

/// Returns where a private key is: a file, or `keychain:SERVICE/ACCOUNT`.
fn private_key(said: &str) -> Result<PrivateKey> {
    let Some(entry) = said.strip_prefix("keychain:") else { return Ok(PrivateKey::File(said.into())) };
    #[cfg(feature = "keychain")]
    if let Some((service, account)) = entry.split_once('/') {
        return Ok(PrivateKey::Keychain { service: service.to_owned(), account: account.to_owned() });
    }
    let message = match cfg!(feature = "keychain") {
        true => "a key in the keychain is named keychain:SERVICE/ACCOUNT",
        false => "this build cannot use the keychain; put the key into a file that only its owner can read",
    };
    Err(invalid(entry, message))
}

const AZURE_HINT: &str = "an account key, a SAS, the login of az, a service principal or an agent identity";

fn s3(address: &Address, settings: &Settings) -> Result<(String, Signer)> {
    let profile = match settings.get(&["AWS_PROFILE"]) {
        Some(name) => {
            let files = |name| settings.get(&[name]);
            let read = Profile::read(name, files("AWS_CONFIG_FILE"), files("AWS_SHARED_CREDENTIALS_FILE"))?;
            Some((name, read))
        }
        None => None,
    };
    let of_profile = |key: &str| profile.as_ref().and_then(|(_, profile)| profile.get(key));
    let region = settings
        .get(&["AWS_REGION", "AWS_DEFAULT_REGION"])
        .or_else(|| of_profile("region"))
        .unwrap_or("us-east-1");
    let endpoint = settings.get(&["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"]);
    let bucket = &address.container;
    let base = match endpoint.or_else(|| of_profile("endpoint_url")) {
        Some(endpoint) => format!("{}/{bucket}", endpoint.trim_end_matches('/')),
        // A certificate is for one label only.
        None if bucket.contains('.') => format!("https://s3.{region}.amazonaws.com/{bucket}"),
        None => format!("https://{bucket}.s3.{region}.amazonaws.com"),
    };
    let signed = |credentials, source: String| {
        (base.clone(), Signer::new(Kind::S3 { region: region.to_owned(), credentials }, source))
    };
    if settings.get(&[CREDENTIAL]) == Some("none") {
        return Ok((base, Signer::new(Kind::Nobody, "none")));
    }
    if let (Some(key), Some(secret)) =
        (settings.get(&["AWS_ACCESS_KEY_ID"]), settings.get(&["AWS_SECRET_ACCESS_KEY"]))
    {
        let credential = AwsCredential {
            key_id: key.to_owned(),
            secret_key: secret.to_owned(),
            token: settings.get(&["AWS_SESSION_TOKEN"]).map(str::to_owned),
        };
        return Ok(signed(Arc::new(StaticCredentialProvider::new(credential)), "an access key".to_owned()));
    }
    if let Some((name, profile)) = &profile {
        let credentials = profile.credentials(name)?;
        let (base, signer) = signed(credentials.clone(), format!("profile \"{name}\""));
        return Ok((base, signer.renewed_by(move || credentials.forget())));
    }
    let has = |name: &str| settings.get(&[name]).is_some();
    let source = match settings.get(&[CREDENTIAL]) {
        Some("instance") => "the machine's own role",
        _ if has("AWS_WEB_IDENTITY_TOKEN_FILE") && has("AWS_ROLE_ARN") => "a web identity",
        _ => return Err(no_credential(address, "an access key, a profile or a web identity")),
    };
    let mut builder = AmazonS3Builder::new().with_bucket_name(bucket).with_region(region);
    for name in settings.names().filter(|name| name.starts_with("AWS_")) {
        if let (Ok(key), Some(value)) =
            (AmazonS3ConfigKey::from_str(&name.to_lowercase()), settings.get(&[name]))
        {
            builder = builder.with_config(key, value);
        }
    }
    let store = builder.build().map_err(|error| unusable(address, error))?;
    Ok(signed(store.credentials().clone(), source.to_owned()))
}

fn gcs(address: &Address, settings: &Settings) -> Result<(String, Signer)> {
    let endpoint = settings.get(&["GOOGLE_BASE_URL", "STORAGE_EMULATOR_HOST"]);
    let endpoint = endpoint.unwrap_or("https://storage.googleapis.com");
    let base = format!("{}/{}", endpoint.trim_end_matches('/'), address.container);
    let signed = |credentials, source: &str| (base.clone(), Signer::new(Kind::Gcs { credentials }, source));
    if settings.get(&[CREDENTIAL]) == Some("none") {
        return Ok((base, Signer::new(Kind::Nobody, "none")));
    }
    if let Some(token) = settings.get(&["GOOGLE_BEARER_TOKEN"]) {
        let credential = GcpCredential { bearer: token.to_owned() };
        return Ok(signed(Arc::new(StaticCredentialProvider::new(credential)), "a bearer token"));
    }
    let mut builder = GoogleCloudStorageBuilder::new().with_bucket_name(&address.container);
    let account = settings.get(&["GOOGLE_SERVICE_ACCOUNT", "GOOGLE_SERVICE_ACCOUNT_PATH"]);
    let source = match (
        account,
        settings.get(&["GOOGLE_SERVICE_ACCOUNT_KEY"]),
        settings.get(&["GOOGLE_APPLICATION_CREDENTIALS"]),
    ) {
        (Some(path), _, _) => {
            builder = builder.with_service_account_path(path);
            "a service account's file"
        }
        (None, Some(key), _) => {
            builder = builder.with_service_account_key(key);
            "a service account's key"
        }
        (None, None, Some(path)) => {
            builder = builder.with_config(GoogleConfigKey::ApplicationCredentials, path);
            "application default credentials"
        }
        (None, None, None) if settings.get(&[CREDENTIAL]) == Some("instance") => "the machine's own account",
        (None, None, None) => {
            return Err(no_credential(
                address,
                "a service account's file or application default credentials",
            ));
        }
    };
    let store = builder.build().map_err(|error| unusable(address, error))?;
    Ok(signed(store.credentials().clone(), source))
}

/// Refuses to send a credential over a line that everybody can read.
fn check_transport(base: &str, settings: &Settings) -> Result<()> {
    let Ok(url) = Url::parse(base) else {
        return Err(invalid(base, "it is no URL"));
    };
    let is_here = match url.host_str() {
        Some("localhost" | "[::1]") => true,
        Some(host) => host.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback()),
        None => false,
    };
    let is_allowed =
        settings.get(&["AZURE_ALLOW_HTTP", "AWS_ALLOW_HTTP", "GOOGLE_ALLOW_HTTP"]) == Some("true");
    match url.scheme() {
        "https" => Ok(()),
        "http" if is_here || is_allowed => Ok(()),
        "http" => Err(invalid(
            base,
            "without TLS everybody on the way could read it: use https, or allow it by AWS_ALLOW_HTTP=true (AZURE_…, GOOGLE_…)",
        )),
        _ => Err(invalid(base, "it must begin with https")),
    }
}

fn invalid(place: &str, message: &str) -> Error {
    Error::at(ErrorKind::Invalid, Operation::Open, place, message)
}

fn no_credential(address: &Address, choices: &str) -> Error {
    let what = address.provider.container();
    let message = format!("there is no credential for it; {choices} would do");
    Error::at(ErrorKind::Denied, Operation::Open, format!("{what} \"{}\"", address.container), message)
}

fn unusable(address: &Address, error: object_store::Error) -> Error {
    let what = address.provider.container();
    let message = "its credential cannot be used";
    Error::at(ErrorKind::Denied, Operation::Open, format!("{what} \"{}\"", address.container), message)
        .with_source(error)
}
