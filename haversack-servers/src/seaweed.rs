//! SeaweedFS: an S3 server with a disk, for benchmarks and crashes.

use crate::http::Answer;
use crate::moto::{KEY_ID, REGION, SECRET, new_bucket, signed};
use crate::process::{Process, Start, free_ports};
use crate::{http, tools};

/// The most starts with other ports, if another program took a port first.
const TRIES: usize = 3;

/// A running SeaweedFS; it is ended when this is dropped.
///
/// It verifies signatures, and conditions hold under races.
pub struct SeaweedFs {
    process: Process,
    endpoint: String,
}

impl SeaweedFs {
    /// Starts one; `None` if it is not installed: `cargo xtask tools all` does that.
    pub fn start() -> Option<SeaweedFs> {
        let program = tools::program_or_skip("weed", "cargo xtask tools all")?;
        let mut why = String::new();
        for _ in 0..TRIES {
            let ports: [u16; 10] = free_ports();
            let [master, volume, filer, s3, admin, grpc @ ..] = ports;
            let directory = Process::directory("seaweedfs");
            let mut arguments =
                vec!["mini".into(), format!("-dir={}", directory.path().join("data").display())];
            // By default it listens everywhere and reports home.
            let fixed = "-ip=127.0.0.1 -ip.bind=127.0.0.1 -master.telemetry=false -admin.ui=false -webdav=false -s3.port.iceberg=0 -s3.port.lance=0";
            arguments.extend(fixed.split(' ').map(Into::into));
            for (part, (port, grpc)) in [
                ("master", (master, grpc[0])),
                ("volume", (volume, grpc[1])),
                ("filer", (filer, grpc[2])),
                ("s3", (s3, grpc[3])),
                ("admin", (admin, grpc[4])),
            ] {
                arguments.push(format!("-{part}.port={port}"));
                arguments.push(format!("-{part}.port.grpc={grpc}"));
            }
            // These names are built into it.
            let mut litter: Vec<String> = ["master", "volume", "filer", "s3", "admin"]
                .iter()
                .zip(grpc)
                .map(|(part, port)| format!("/tmp/seaweedfs-{part}-grpc-{port}.sock"))
                .collect();
            litter.push(format!("/tmp/seaweedfs-filer-{filer}.sock"));
            litter.push(format!("/tmp/seaweedfs-s3-{s3}.sock"));
            let variables =
                vec![("AWS_ACCESS_KEY_ID", KEY_ID.to_owned()), ("AWS_SECRET_ACCESS_KEY", SECRET.to_owned())];
            let endpoint = format!("http://127.0.0.1:{s3}");
            std::fs::create_dir(directory.path().join("data")).expect("its directory takes directories");
            let start = Start {
                name: "seaweedfs",
                program: program.clone(),
                arguments: arguments.into_iter().map(Into::into).collect(),
                variables,
                litter,
            };
            let started = Process::start(start, directory, |printed| {
                printed.contains("components are running and ready").then_some(())?;
                http::send("GET", &format!("{endpoint}/"), &[], b"").ok().map(drop)
            });
            match started {
                Ok((process, ())) => return Some(SeaweedFs { process, endpoint }),
                Err(failed) => why = failed,
            }
        }
        panic!("{why}");
    }

    /// Returns its URL, without a slash at the end; buckets are in the path.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
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
        signed(&self.endpoint, method, path, headers, body)
            .unwrap_or_else(|why| panic!("seaweedfs does not answer: {why}"))
    }

    /// Makes a new bucket, and returns its name.
    pub fn new_bucket(&self) -> String {
        new_bucket(&self.endpoint)
    }

    /// Returns its process id.
    pub fn id(&self) -> Option<u32> {
        self.process.id()
    }
}
