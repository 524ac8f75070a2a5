//! Azurite: Microsoft's emulator of Azure Blob Storage.

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};

use crate::http::{Address, Answer, Asked, Headers};
use crate::process::{Process, Start};
use crate::{fresh_name, http, signing, tls, tools};

/// The account that every emulator has.
pub const ACCOUNT: &str = "devstoreaccount1";

/// The key that every emulator has: public, and worth nothing elsewhere.
pub const KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// The version of the protocol that our own requests speak.
const VERSION: &str = "2021-12-02";

/// A running Azurite; it is ended when this is dropped.
pub struct Azurite {
    process: Process,
    endpoint: String,
    ca_file: PathBuf,
}

/// The storage of an Azurite, and its clients.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    InMemory,
    OnDisk,
    OverTls,
}

impl Azurite {
    /// Returns the one that all tests of this process share. It keeps everything in memory.
    pub fn shared() -> Option<&'static Azurite> {
        static SHARED: OnceLock<Option<Azurite>> = OnceLock::new();
        SHARED.get_or_init(Azurite::start).as_ref()
    }

    /// Starts one that keeps everything in memory; `None` if it is not installed.
    pub fn start() -> Option<Azurite> {
        Azurite::run(Way::InMemory)
    }

    /// Starts one whose blobs outlive [`kill`](Self::kill) and [`restart`](Self::restart).
    pub fn persistent() -> Option<Azurite> {
        Azurite::run(Way::OnDisk)
    }

    /// Starts one that speaks TLS and takes bearer tokens ([`bearer`]) besides the key.
    pub fn with_oauth() -> Option<Azurite> {
        Azurite::run(Way::OverTls)
    }

    fn run(way: Way) -> Option<Azurite> {
        let program = tools::program_or_skip("azurite", "cargo xtask tools")?;
        let directory = Process::directory("azurite");
        let file = |name: &str, text: &str| {
            let path = directory.path().join(name);
            std::fs::write(&path, text).expect("its directory takes files");
            path
        };
        let ca_file = file("ca.pem", tls::ca_pem());
        // It restarts at the same port only if it was given one. Otherwise it chooses a free port itself.
        let port = if way == Way::OnDisk { unused_port() } else { 0 };
        let port = port.to_string();
        let fixed = ["--blobHost", "127.0.0.1", "--blobPort", &port, "--silent", "--disableTelemetry"];
        let mut arguments: Vec<_> = fixed.iter().map(Into::into).collect();
        arguments.push("--skipApiVersionCheck".into());
        match way {
            Way::OnDisk => {
                arguments.push("--location".into());
                arguments.push(directory.path().join("blobs").into());
            }
            Way::InMemory | Way::OverTls => arguments.push("--inMemoryPersistence".into()),
        }
        if way == Way::OverTls {
            let (certificate, key) = tls::server_pem();
            let (certificate, key) = (file("certificate.pem", certificate), file("key.pem", key));
            arguments.extend(["--oauth".into(), "basic".into()]);
            arguments.extend(["--cert".into(), certificate.into(), "--key".into(), key.into()]);
        }
        let start = Start { name: "azurite", program, arguments, variables: Vec::new(), litter: Vec::new() };
        let (process, url) = Process::start(start, directory, listens).unwrap_or_else(|why| panic!("{why}"));
        Some(Azurite { process, endpoint: format!("{url}/{ACCOUNT}"), ca_file })
    }

    /// Returns the URL of its account, without a slash at the end.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Returns the name of its account.
    pub fn account(&self) -> &'static str {
        ACCOUNT
    }

    /// Returns the key of its account, in base64.
    pub fn key(&self) -> &'static str {
        KEY
    }

    /// Returns the certificate that a client has to trust when it speaks TLS.
    pub fn ca_pem(&self) -> &'static str {
        tls::ca_pem()
    }

    /// Returns a file with [`ca_pem`](Self::ca_pem), there as long as this is.
    pub fn ca_file(&self) -> &Path {
        &self.ca_file
    }

    /// Makes a new container, and returns its name.
    pub fn new_container(&self) -> String {
        let name = fresh_name("test-");
        let answer = self.signed("PUT", &format!("{name}?restype=container"), &[], b"");
        assert_eq!(answer.status, 201, "azurite made no container: {}", answer.text());
        name
    }

    /// Sends a signed request to a path like `CONTAINER/BLOB?QUERY`, encoded already, and returns the answer.
    pub fn signed(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        signed(&self.endpoint, method, path, headers, body)
            .unwrap_or_else(|why| panic!("azurite does not answer: {why}"))
    }

    /// Returns a shared access signature for everything, valid from a while ago and for so long.
    pub fn sas(&self, expires_in: Duration) -> String {
        let now = Timestamp::now();
        signing::account_sas(ACCOUNT, KEY, now - HOUR, now + lasting(expires_in))
    }

    /// Returns a shared access signature that expired a minute ago.
    pub fn expired_sas(&self) -> String {
        let now = Timestamp::now();
        signing::account_sas(ACCOUNT, KEY, now - HOUR, now - SignedDuration::from_mins(1))
    }

    /// Returns its process id.
    pub fn id(&self) -> Option<u32> {
        self.process.id()
    }

    /// Ends it, as `kill -9` does.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Starts it once more, at the same address if it is [`persistent`](Self::persistent).
    pub fn restart(&mut self) {
        let url = self.process.restart(listens).unwrap_or_else(|why| panic!("{why}"));
        self.endpoint = format!("{url}/{ACCOUNT}");
    }
}

/// Sends a request signed with [`KEY`] to a path below an account's URL, which may be a front's.
///
/// A write of something is one of a blob.
pub fn signed(
    endpoint: &str,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Result<Answer, String> {
    let address = Address::parse(&format!("{endpoint}/{path}"))?;
    let mut asked = Asked {
        method: method.to_owned(),
        path: address.path.clone(),
        headers: Headers::from(headers),
        body: Bytes::copy_from_slice(body),
    };
    let now = Timestamp::now().strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
    asked.headers.set("x-ms-date", now);
    asked.headers.set("x-ms-version", VERSION);
    if method == "PUT" && !body.is_empty() {
        asked.headers.set("x-ms-blob-type", "BlockBlob");
    }
    let authorization = signing::shared_key(ACCOUNT, KEY, &asked);
    asked.headers.set("authorization", authorization);
    http::send_as(&address, asked)
}

const HOUR: SignedDuration = SignedDuration::from_hours(1);

/// Returns a token of the kind that Entra gives out for storage; [`Azurite::with_oauth`] takes it.
///
/// Azurite looks at audience, issuer and times, not at the signature. `tenant` is a GUID.
pub fn bearer(tenant: &str, expires_in: Duration) -> String {
    token(tenant, Timestamp::now() + lasting(expires_in))
}

/// Returns such a token that expired a minute ago.
pub fn expired_bearer(tenant: &str) -> String {
    token(tenant, Timestamp::now() - SignedDuration::from_mins(1))
}

fn token(tenant: &str, expires: Timestamp) -> String {
    let (from, expires) = ((Timestamp::now() - HOUR).as_second(), expires.as_second());
    signing::unsigned_token(&format!(
        r#"{{"aud":"https://storage.azure.com","iss":"https://sts.windows.net/{tenant}/","tid":"{tenant}","iat":{from},"nbf":{from},"exp":{expires}}}"#
    ))
}

fn lasting(duration: Duration) -> SignedDuration {
    SignedDuration::try_from(duration).expect("a test does not last that long")
}

/// Returns the URL from what it prints when it listens.
fn listens(printed: &str) -> Option<String> {
    let line = printed.lines().find(|line| line.contains("successfully listens on "))?;
    Some(line[line.find("http")?..].trim().to_owned())
}

fn unused_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback has free ports");
    listener.local_addr().expect("it listens").port()
}
