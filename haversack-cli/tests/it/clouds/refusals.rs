//! Problems with a cloud: each is reported with its cure, nothing is lost, and after the repair sync continues.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use haversack_servers::{Act, Answer, Azurite, Front, Gcs, Responder};
use insta::assert_snapshot;

use super::Place;
use crate::machines::Machines;

const PORTS: &str = "# Ports\n\nstaging listens on 5433\n";

fn xml(status: u16, code: &str) -> Answer {
    let body = format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>m</Message></Error>");
    Answer::new(status).with_body(body)
}

/// Tries to add a remote; returns what is shown.
fn added(place: &Place) -> String {
    let machines = Machines::new();
    machines.write("laptop", "ports.md", PORTS);
    let add = ["remote", "add", &place.url, "--credential", "file"];
    let shown = place.shown(&machines, &mut place.in_shell(&machines, "laptop", &add));
    assert_eq!(machines.read("laptop", "ports.md").as_deref(), Some(PORTS));
    assert!(!machines.env.path("laptop/remote.toml").exists());
    shown
}

/// A laptop whose remote fails from now on in some way, with something that waits to be sent.
struct SyncError<'a> {
    place: &'a Place,
    machines: Machines,
}

impl<'a> SyncError<'a> {
    fn with(place: &'a Place) -> SyncError<'a> {
        let machines = place.laptop_and_desktop(&[("ports.md", PORTS)]);
        machines.write("laptop", "lamp.md", "white\n");
        machines.write("desktop", "own.md", "mine\n");
        SyncError { place, machines }
    }

    /// Syncs in vain; returns what is shown.
    #[track_caller]
    fn fails(&self) -> String {
        let shown = self.place.run(&self.machines, "laptop", &["sync"]);
        assert!(!shown.starts_with("exit 0\n"), "{shown}");
        let status = self.place.run(&self.machines, "laptop", &["status"]);
        assert!(status.starts_with("exit 1\n"), "{status}");
        assert!(
            status.contains("All you wrote is safe on this machine; 1 change waits to be sent."),
            "{status}"
        );
        assert_eq!(self.machines.read("laptop", "lamp.md").as_deref(), Some("white\n"));
        assert_eq!(self.machines.read("laptop", "ports.md").as_deref(), Some(PORTS));
        shown
    }

    /// Mends what was wrong: everything goes through.
    #[track_caller]
    fn mended(&self) {
        self.place.front.script(|_| Act::Pass);
        for machine in ["laptop", "desktop", "laptop"] {
            self.place.done(&self.machines, machine, &["sync"]);
        }
        let files = self.machines.files("laptop");
        assert_eq!(files, self.machines.files("desktop"));
        assert_eq!(files.len(), 3);
        assert!(self.place.done(&self.machines, "laptop", &["status"]).contains("In sync."));
    }
}

#[test]
fn a_wrong_credential() {
    let mut place = Place::gcs();
    place.secrets = vec![("GOOGLE_BEARER_TOKEN", "wrong".to_owned())];
    assert_snapshot!(added(&place), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: the remote cannot be used with the recorded settings
    Caused by: could not read gs://CONTAINER/memory: the storage does not accept the credential: it answered 401 (AuthenticationRequired)
    Hint: Hand in the right one: haversack remote add URL --credential …, then: haversack remote test
    "#);
    if let Some(mut place) = Place::azure() {
        place.secrets = vec![("AZURE_STORAGE_ACCOUNT_KEY", "d3Jvbmcgd3Jvbmcgd3Jvbmc=".to_owned())];
        assert_snapshot!(added(&place), @r#"
        exit 1
        --- stdout
        --- stderr
        Error: the remote cannot be used with the recorded settings
        Caused by: could not read az://CONTAINER/memory: the credential has no access to container "CONTAINER": it answered 403 (AuthorizationFailure)
        Hint: Check whether the key or the SAS is still valid, and the account's firewall, then: haversack remote test
        "#);
        place.secrets = vec![("AZURE_STORAGE_ACCOUNT_KEY", "no base64!".to_owned())];
        assert_snapshot!(added(&place), @r#"
        exit 1
        --- stdout
        --- stderr
        Error: the remote cannot be used with the recorded settings
        Caused by: could not open AZURE_STORAGE_ACCOUNT_KEY: it is no key: base64 is expected
        Hint: Correct it, and add it again: haversack remote add URL
        "#);
        place.front.script(|_| Act::Answer(xml(403, "AuthenticationFailed")));
        place.secrets = vec![("AZURE_STORAGE_ACCOUNT_KEY", "d3Jvbmcgd3Jvbmcgd3Jvbmc=".to_owned())];
        assert_snapshot!(added(&place), @r#"
        exit 1
        --- stdout
        --- stderr
        Error: the remote cannot be used with the recorded settings
        Caused by: could not read az://CONTAINER/memory: the storage does not accept the credential: it answered 403 (AuthenticationFailed)
        Hint: Hand in the right one: haversack remote add URL --credential …, then: haversack remote test
        "#);
    }
    if let Some(place) = Place::s3() {
        place.front.script(|_| Act::Answer(xml(403, "SignatureDoesNotMatch")));
        assert_snapshot!(added(&place), @r#"
        exit 1
        --- stdout
        --- stderr
        Error: the remote cannot be used with the recorded settings
        Caused by: could not read s3://CONTAINER/memory: the storage does not accept the credential: it answered 403 (SignatureDoesNotMatch)
        Hint: Hand in the right one: haversack remote add URL --credential …, then: haversack remote test
        "#);
    }
}

#[test]
fn a_credential_that_stops_working() {
    let place = Place::gcs();
    let trouble = SyncError::with(&place);
    let gcs = place.gcs.as_ref().expect("started");
    let before = gcs.token();
    gcs.expect_token("another");
    assert_snapshot!(trouble.fails(), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: the remote could not be used
    Caused by: could not scan .haversack/log: the storage does not accept the credential
    Caused by: it answered 401 (AuthenticationRequired)
    Hint: Hand in the right one: haversack remote add URL --credential …, then: haversack remote test
    "#);
    assert_snapshot!(place.run(&trouble.machines, "laptop", &["status"]), @r#"
    exit 1
    --- stdout
    1 thing needs you. All you wrote is safe on this machine; 1 change waits to be sent.

      1  Nothing sent: the remote could not be used: could not scan .haversack/log: the storage does not accept the credential
         → Hand in the right one: haversack remote add URL --credential …, then: haversack remote test

      files      2
      next try   in SECONDS, or now: haversack sync
      machines   laptop (this one)
    --- stderr
    "#);
    assert_snapshot!(place.run(&trouble.machines, "laptop", &["remote", "test"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: could not read gs://CONTAINER/memory: the storage does not accept the credential
    Caused by: it answered 401 (AuthenticationRequired)
    Hint: Hand in the right one: haversack remote add URL --credential …, then: haversack remote test
    "#);
    // The cure that is named: another credential is handed in.
    let add = ["remote", "add", &place.url, "--device", "laptop", "--credential", "file", "--no-mirror"];
    let mut command = place.in_shell(&trouble.machines, "laptop", &add);
    let shown = place.shown(&trouble.machines, command.env("GOOGLE_BEARER_TOKEN", "another"));
    assert!(shown.starts_with("exit 0\n"), "{shown}");
    place.done(&trouble.machines, "laptop", &["sync"]);
    gcs.expect_token(&before);
    place.add(&trouble.machines, "laptop", &["--no-mirror"]);
    trouble.mended();
}

#[test]
fn no_such_container() {
    for mut place in Place::each() {
        place.url = place.url.replace(&place.container, "nothing-there");
        let shown = added(&place);
        match place.backend {
            "azure" => assert_snapshot!(shown, @r#"
            exit 1
            --- stdout
            --- stderr
            Error: the remote cannot be used with the recorded settings
            Caused by: could not read az://nothing-there/memory: there is no container "nothing-there": it answered 404 (ContainerNotFound)
            Hint: Create it, or check its name: haversack provision azure, or az storage container create
            "#),
            "s3" => assert_snapshot!(shown, @r#"
            exit 1
            --- stdout
            --- stderr
            Error: the remote cannot be used with the recorded settings
            Caused by: could not read s3://nothing-there/memory: there is no bucket "nothing-there": it answered 404 (NoSuchBucket)
            Hint: Create it, or check its name
            "#),
            _ => assert_snapshot!(shown, @r#"
            exit 1
            --- stdout
            --- stderr
            Error: the remote cannot be used with the recorded settings
            Caused by: could not read gs://nothing-there/memory: there is no bucket "nothing-there": it answered 404 (NoSuchBucket)
            Hint: Create it, or check its name
            "#),
        }
        let machines = Machines::new();
        let join = ["join", &place.url, "--credential", "file", "--yes"];
        let shown = place.shown(&machines, &mut place.in_shell(&machines, "laptop", &join));
        assert!(shown.starts_with("exit 1\n") && shown.contains("there is no "), "{shown}");
    }
}

#[test]
fn an_expired_signature() {
    let (Some(mut place), Some(azurite)) = (Place::azure(), Azurite::shared()) else { return };
    place.secrets = vec![("AZURE_STORAGE_SAS_TOKEN", azurite.expired_sas())];
    assert_snapshot!(added(&place), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: the remote cannot be used with the recorded settings
    Caused by: could not read az://CONTAINER/memory: the credential has no access to container "CONTAINER": it answered 403 (AuthorizationFailure)
    Hint: Check whether the key or the SAS is still valid, and the account's firewall, then: haversack remote test
    "#);
    // As Azure itself says it.
    let detail = "Signature not valid in the specified time frame: Start [x] - Expiry [y] - Current [z]";
    let body = format!(
        "<Error><Code>AuthenticationFailed</Code><Message>m</Message><AuthenticationErrorDetail>{detail}</AuthenticationErrorDetail></Error>"
    );
    place.front.script(move |_| Act::answer(403, body.clone()));
    assert_snapshot!(added(&place), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: the remote cannot be used with the recorded settings
    Caused by: could not read az://CONTAINER/memory: the credential has expired: it answered 403 (AuthenticationFailed)
    Hint: Sign in again or hand in a new credential: haversack remote add URL --credential …
    "#);
}

#[test]
fn a_clock_that_is_wrong() {
    let place = Place::gcs();
    let trouble = SyncError::with(&place);
    place.front.script(|_| Act::Answer(xml(403, "RequestTimeTooSkewed")));
    assert_snapshot!(trouble.fails(), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: the remote could not be used
    Caused by: could not scan .haversack/log: this machine's clock is too far from the storage's
    Caused by: it answered 403 (RequestTimeTooSkewed)
    Hint: Set this machine's clock (15 minutes is the most a storage tolerates), then: haversack sync
    "#);
    // The storage accepts it, but the test reports it.
    let later = jiff::Timestamp::now() + jiff::SignedDuration::from_mins(20);
    let later = later.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
    place.front.script(move |_| {
        let later = later.clone();
        Act::change(move |answer| answer.headers.set("date", later))
    });
    let shown = place.done(&trouble.machines, "laptop", &["remote", "test"]);
    let clock = shown.lines().find(|line| line.contains("clock")).expect("told");
    let seconds = clock.split_whitespace().nth(1).and_then(|word| word.parse().ok());
    assert!(seconds.is_some_and(|seconds: i64| (1190..=1201).contains(&seconds)), "{shown}");
    assert!(clock.ends_with(" s ahead of this machine's: set this machine's clock"), "{shown}");
    trouble.mended();
}

#[test]
fn a_certificate_of_a_stranger() {
    let gcs = Gcs::start();
    let mut place = Place::gcs();
    place.front = Front::before_tls(gcs.endpoint());
    place.plain = vec![("GOOGLE_BASE_URL", place.front.url().to_owned())];
    assert_snapshot!(added(&place), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: the remote cannot be used with the recorded settings
    Caused by: could not read gs://CONTAINER/memory: the storage's certificate does not verify: invalid peer certificate: UnknownIssuer
    Hint: Check this machine's clock and certificates (ca-certificates), and whether a proxy is in between; for your own server, name its certificate authority in SSL_CERT_FILE when you add the remote
    "#);
    assert_eq!(place.front.count(), 0, "nothing is sent to a stranger");
    // The user of the server names its authority.
    let machines = Machines::new();
    let authority = machines.env.path("authority.pem");
    std::fs::write(&authority, place.front.ca_pem()).expect("written");
    let container = gcs.new_bucket();
    let url = format!("gs://{container}");
    machines.write("laptop", "ports.md", PORTS);
    let mut add = machines.command("laptop", &["remote", "add", &url, "--credential", "file"]);
    add.env("SSL_CERT_FILE", &authority).env("GOOGLE_BASE_URL", place.front.url());
    let shown = place.shown(&machines, add.env("GOOGLE_BEARER_TOKEN", gcs.token()));
    assert!(shown.starts_with("exit 0\n"), "{shown}");
    place.done(&machines, "laptop", &["sync"]);
    std::fs::remove_file(&authority).expect("removed");
    let shown = place.run(&machines, "laptop", &["sync"]);
    assert!(shown.starts_with("exit 1\n") && shown.contains("SSL_CERT_FILE"), "{shown}");
}

#[test]
fn a_proxy_that_hangs() {
    let place = Place::gcs();
    let trouble = SyncError::with(&place);
    std::fs::write(trouble.machines.env.path("laptop/config.toml"), "cloud-wait-seconds = 1\n")
        .expect("written");
    place.front.script(|_| Act::Hang);
    assert_snapshot!(trouble.fails(), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: the remote could not be reached
    Caused by: could not scan .haversack/log: the storage does not answer
    Caused by: no answer within 1 s
    Hint: Check the network and any proxy, then: haversack sync. Changes that wait are kept
    "#);
    trouble.mended();
}

#[test]
fn a_storage_that_asks_for_patience() {
    let place = Place::gcs();
    let trouble = SyncError::with(&place);
    place.front.script(|_| Act::Answer(Answer::throttled(3600)));
    assert_snapshot!(trouble.fails(), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: the remote could not be reached
    Caused by: could not scan .haversack/log: the storage asks for fewer requests
    Caused by: it answered 429 and asks to wait 3600 s
    Hint: Wait, then: haversack sync. Changes that wait are kept
    "#);
    // It asks for a second, and gets it.
    place.front.forget();
    place.front.script(|seen| match seen.number {
        0 => Act::Answer(Answer::throttled(1)),
        _ => Act::Pass,
    });
    let started = std::time::Instant::now();
    place.done(&trouble.machines, "laptop", &["sync"]);
    assert!(started.elapsed() >= Duration::from_secs(1), "it asked again too early");
    trouble.mended();
}

#[test]
fn a_server_that_fails() {
    let place = Place::gcs();
    let trouble = SyncError::with(&place);
    place.front.script(|_| Act::answer(500, "<html>oops</html>"));
    assert_snapshot!(trouble.fails(), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: the remote could not be reached
    Caused by: could not scan .haversack/log: the storage failed
    Caused by: it answered 500
    Hint: Wait, then: haversack sync. Changes that wait are kept
    "#);
    trouble.mended();
    let place = Place::gcs();
    let trouble = SyncError::with(&place);
    place.front.script(|_| Act::answer(200, "<html>Welcome to the hotel</html>"));
    assert_snapshot!(trouble.fails(), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: the remote could not be used
    Caused by: could not scan .haversack/log: the storage's answer is not a list of objects
    Hint: All you wrote is safe on this machine. Try again later: haversack sync
    "#);
    trouble.mended();
}

#[test]
fn a_list_that_lies() {
    let lies: [fn(&str) -> String; 4] = [
        |_| "<html><body>Sign in to the network</body></html>".to_owned(),
        |body| body[..body.len() / 2].to_owned(),
        |body| body.replace("<IsTruncated>false", "<IsTruncated>true"),
        |body| {
            let body = body.replace("<IsTruncated>false", "<IsTruncated>true");
            let next = "<NextContinuationToken>again</NextContinuationToken></ListBucketResult>";
            body.replace("</ListBucketResult>", next)
        },
    ];
    for (number, lie) in lies.into_iter().enumerate() {
        let place = Place::gcs();
        let trouble = SyncError::with(&place);
        place.front.script(move |seen| match seen.path.contains("list-type") {
            true => Act::change(move |answer| {
                answer.body = lie(&String::from_utf8_lossy(&answer.body)).into_bytes();
            }),
            false => Act::Pass,
        });
        let shown = trouble.fails();
        match number {
            0 => assert_snapshot!(shown, @r#"
            exit 1
            --- stdout
            --- stderr
            Error: the remote could not be used
            Caused by: could not scan .haversack/log: the storage's answer is not a list of objects
            Hint: All you wrote is safe on this machine. Try again later: haversack sync
            "#),
            3 => assert_snapshot!(shown, @r#"
            exit 1
            --- stdout
            --- stderr
            Error: the remote could not be used
            Caused by: could not scan .haversack/log: the storage refuses
            Caused by: it answered 400 (InvalidArgument)
            Hint: Look closer: haversack remote test
            "#),
            _ => assert!(shown.contains("the storage's answer is not a list of objects"), "{shown}"),
        }
        trouble.mended();
    }
    // One that leaves everything out: what it is silent about is looked for where it must be.
    let place = Place::gcs();
    let trouble = SyncError::with(&place);
    place.front.script(|seen| match seen.path.contains("list-type") {
        true => Act::change(|answer| {
            let body = String::from_utf8_lossy(&answer.body).into_owned();
            let (start, rest) = body.split_once("<Contents>").unwrap_or((&body, ""));
            let end = rest.rsplit_once("</Contents>").map_or("", |(_, end)| end);
            answer.body = format!("{start}{end}").into_bytes();
        }),
        false => Act::Pass,
    });
    place.done(&trouble.machines, "laptop", &["sync"]);
    place.done(&trouble.machines, "desktop", &["sync"]);
    trouble.mended();
}

/// Answers everything with an object that claims to be this large, and streams as much of it as is taken; returns where it listens, and
/// how much was taken.
fn endless(size: u64) -> (String, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let taken = Arc::new(AtomicU64::new(0));
    let counted = taken.clone();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let counted = counted.clone();
            std::thread::spawn(move || {
                let mut head = [0; 4096];
                drop(stream.read(&mut head));
                let head =
                    format!("HTTP/1.1 200 OK\r\nx-goog-generation: 1\r\ncontent-length: {size}\r\n\r\n");
                let mut sent = 0;
                let zeros = vec![0; 1024 * 1024];
                let mut whole = stream.write_all(head.as_bytes()).is_ok();
                while whole && sent < size {
                    whole = stream.write_all(&zeros).is_ok();
                    sent += zeros.len() as u64;
                    let _ = counted.fetch_add(zeros.len() as u64, Ordering::Relaxed);
                }
            });
        }
    });
    (url, taken)
}

#[test]
fn an_object_larger_than_anything_of_ours() {
    let place = Place::gcs();
    let trouble = SyncError::with(&place);
    let (url, taken) = endless(1100 * 1024 * 1024);
    let record = trouble.machines.env.path("laptop/remote.toml");
    let before = std::fs::read_to_string(&record).expect("there");
    std::fs::write(&record, before.replace(place.front.url(), &url)).expect("written");
    assert_snapshot!(trouble.fails(), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: the remote could not be used
    Caused by: could not scan .haversack/log: it is larger than anything of ours
    Caused by: the answer is larger than 67108864 bytes
    Hint: Move it out of the store: it is not Haversack's
    "#);
    // The same where a commit should be.
    assert_snapshot!(place.run(&trouble.machines, "laptop", &["pull"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: the remote could not be used
    Caused by: could not scan .haversack/log: it is larger than anything of ours
    Caused by: the answer is larger than 67108864 bytes
    Hint: Move it out of the store: it is not Haversack's
    "#);
    let taken = taken.load(Ordering::Relaxed);
    assert!(taken < 16 * 1024 * 1024, "{taken} bytes were taken");
    std::fs::write(&record, before).expect("written");
    trouble.mended();
}

#[test]
fn nobody_is_there() {
    let place = Place::gcs();
    let trouble = SyncError::with(&place);
    let record = trouble.machines.env.path("laptop/remote.toml");
    let before = std::fs::read_to_string(&record).expect("there");
    let nobody = Responder::start(|_| Answer::new(200)).url().to_owned();
    std::fs::write(&record, before.replace(place.front.url(), &nobody)).expect("written");
    let shown = trouble.fails().replace(nobody.trim_start_matches("http://"), "NOBODY");
    assert_snapshot!(shown, @r#"
    exit 1
    --- stdout
    --- stderr
    Error: the remote could not be reached
    Caused by: could not scan .haversack/log: the bucket cannot be reached
    Caused by: Connection refused (os error 111)
    Hint: Check the network and the address, then: haversack sync. Changes that wait are kept
    "#);
    std::fs::write(&record, before).expect("written");
    trouble.mended();
}
