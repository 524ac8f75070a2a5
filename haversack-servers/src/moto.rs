//! Moto: an emulator of S3, in Python.

use std::sync::OnceLock;

use bytes::Bytes;

use crate::front::Front;
use crate::http::{Address, Answer, Asked, Headers};
use crate::process::{Process, Start};
use crate::{fresh_name, http, signing, tools};

/// The key that [`Moto`] and [`SeaweedFs`](crate::SeaweedFs) know.
pub const KEY_ID: &str = "test-key-id";

/// Its secret.
pub const SECRET: &str = "test-secret";

/// The region that both say they are in.
pub const REGION: &str = "us-east-1";

/// A running Moto; it is ended when this is dropped.
///
/// It takes any signature, though without one it refuses to read. By itself it checks a condition and writes without a lock, and of two racing
/// writers both may win, which S3 does not let happen: a front before it lets one write through at a time.
pub struct Moto {
    process: Process,
    front: Front,
}

impl Moto {
    /// Returns the one that all tests of this process share.
    pub fn shared() -> Option<&'static Moto> {
        static SHARED: OnceLock<Option<Moto>> = OnceLock::new();
        SHARED.get_or_init(Moto::start).as_ref()
    }

    /// Starts one; `None` if it is not installed.
    pub fn start() -> Option<Moto> {
        let program = tools::program_or_skip("moto_server", "cargo xtask tools")?;
        let arguments = ["-H", "127.0.0.1", "-p", "0"].map(Into::into).to_vec();
        // Printed at once, not when some buffer is full.
        let variables = vec![("PYTHONUNBUFFERED", "1".to_owned())];
        let start = Start { name: "moto", program, arguments, variables, litter: Vec::new() };
        let started = Process::start(start, Process::directory("moto"), listens);
        let (process, endpoint) = started.unwrap_or_else(|why| panic!("{why}"));
        let front = Front::before(&endpoint);
        front.one_write_at_a_time();
        Some(Moto { process, front })
    }

    /// Returns its URL, without a slash at the end; buckets are in the path.
    pub fn endpoint(&self) -> &str {
        self.front.url()
    }

    /// Returns the id of the key to sign with.
    pub fn key_id(&self) -> &'static str {
        KEY_ID
    }

    /// Returns the secret to sign with.
    pub fn secret(&self) -> &'static str {
        SECRET
    }

    /// Returns its region.
    pub fn region(&self) -> &'static str {
        REGION
    }

    /// Sends a signed request to a path like `/BUCKET/KEY?QUERY`, encoded already, and returns the answer.
    pub fn signed(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        signed(self.endpoint(), method, path, headers, body)
            .unwrap_or_else(|why| panic!("moto does not answer: {why}"))
    }

    /// Makes a new bucket, and returns its name.
    pub fn new_bucket(&self) -> String {
        new_bucket(self.endpoint())
    }

    /// Returns its process id.
    pub fn id(&self) -> Option<u32> {
        self.process.id()
    }
}

/// Returns the URL from what it prints when it listens.
fn listens(printed: &str) -> Option<String> {
    let line = printed.lines().find(|line| line.contains("Running on "))?;
    Some(line[line.find("http")?..].trim().to_owned())
}

/// Sends a request to a server that speaks S3, signed with [`KEY_ID`] and [`SECRET`], and returns the answer.
///
/// The path and its query are encoded already; `endpoint` may be a front's.
pub fn signed(
    endpoint: &str,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Result<Answer, String> {
    let address = Address::parse(endpoint)?;
    let mut asked = Asked {
        method: method.to_owned(),
        path: path.to_owned(),
        headers: Headers::from(headers),
        body: Bytes::copy_from_slice(body),
    };
    signing::s3([REGION, KEY_ID, SECRET], &address.host, &mut asked);
    http::send_as(&address, asked)
}

/// Makes a bucket in a server that speaks S3.
pub(crate) fn new_bucket(endpoint: &str) -> String {
    let name = fresh_name("test-");
    let answer = signed(endpoint, "PUT", &format!("/{name}"), &[], b"");
    let answer = answer.unwrap_or_else(|why| panic!("{endpoint} does not answer: {why}"));
    assert_eq!(answer.status, 200, "{endpoint} made no bucket: {}", answer.text());
    name
}
