//! Problems are reported with their cure, and never pass for "nothing is there".

use std::time::Duration;

use haversack_servers::{Answer, Azurite, Front, Gcs, Moto, Responder};
use haversack_store::cloud::{self, Refusal};
use haversack_store::conformance::Subject;
use haversack_store::{Blocking, Condition, ErrorKind, Locator, OpenOptions, Registry};

use super::Place;

fn at(key: &str) -> Locator {
    Locator::parse(key).expect("valid")
}

/// Checks that reading and writing fail in the same way, with a cure that says `cure`.
fn told(place: &Place, kind: ErrorKind, message: &str, cure: &str) {
    let store = place.blocking();
    let errors = [
        store.read(&at("a.md")).map(drop).expect_err("refused"),
        store.write(&at("a.md"), "x", Condition::Absent).map(drop).expect_err("refused"),
        store.list_all(&Locator::root()).map(drop).expect_err("refused"),
    ];
    for error in errors {
        assert_eq!(error.kind(), kind, "{error:?}");
        assert!(error.to_string().contains(message), "{error}");
        let refusal = Refusal::of(&error).expect("a refusal");
        assert!(refusal.cure().contains(cure), "{error}: {}", refusal.cure());
    }
}

#[test]
fn azure_says_what_is_wrong() {
    let Some(azurite) = Azurite::shared() else { return };
    let container = azurite.new_container();
    let place = |settings: &[(&str, &str)]| {
        let mut all = vec![
            ("AZURE_STORAGE_ACCOUNT_NAME", azurite.account()),
            ("AZURE_STORAGE_ENDPOINT", azurite.endpoint()),
        ];
        all.extend_from_slice(settings);
        Place::new("azure", format!("az://{container}"), &all)
    };
    let wrong = "d3Jvbmcgd3Jvbmcgd3Jvbmc=";
    // Azurite calls it what Azure calls a missing permission.
    let denied = place(&[("AZURE_STORAGE_ACCOUNT_KEY", wrong)]);
    told(&denied, ErrorKind::Denied, "the credential", "haversack remote test");
    let nowhere = Place::azure_at(azurite, azurite.endpoint(), "nothing-there");
    told(&nowhere, ErrorKind::Invalid, "there is no container \"nothing-there\"", "Create it");
    let expired = azurite.expired_sas();
    told(&place(&[("AZURE_STORAGE_SAS_TOKEN", &expired)]), ErrorKind::Denied, "the credential", "");
    let sas = azurite.sas(Duration::from_secs(600));
    let valid = place(&[("AZURE_STORAGE_SAS_TOKEN", &sas)]);
    let _ = valid.blocking().write(&at("a.md"), "x", Condition::Absent).expect("a SAS works");
    let connection = format!(
        "DefaultEndpointsProtocol=http;AccountName={};AccountKey={};BlobEndpoint={};",
        azurite.account(),
        azurite.key(),
        azurite.endpoint()
    );
    let connected =
        Place::new("azure", format!("az://{container}"), &[("AZURE_STORAGE_CONNECTION_STRING", &connection)]);
    assert_eq!(connected.blocking().read_text(&at("a.md")).expect("read").as_deref(), Some("x"));
}

#[test]
fn s3_says_what_is_wrong() {
    let Some(moto) = Moto::shared() else { return };
    let nowhere = Place::s3_at(moto, moto.endpoint(), "nothing-there");
    told(&nowhere, ErrorKind::Invalid, "there is no bucket \"nothing-there\"", "Create it");
}

#[test]
fn what_a_provider_answers_is_understood() {
    let xml =
        |code: &str| format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>m</Message></Error>");
    let cases: [(u16, &str, ErrorKind, &str, &str); 10] = [
        (403, "SignatureDoesNotMatch", ErrorKind::Denied, "does not accept the credential", "--credential"),
        (403, "InvalidAccessKeyId", ErrorKind::Denied, "does not accept the credential", "--credential"),
        (403, "AccessDenied", ErrorKind::Denied, "may not do that", "read, write, list and delete"),
        (403, "RequestTimeTooSkewed", ErrorKind::Denied, "clock is too far", "Set this machine's clock"),
        (400, "ExpiredToken", ErrorKind::Denied, "has expired", "Sign in again"),
        (404, "NoSuchBucket", ErrorKind::Invalid, "there is no bucket", "Create it"),
        (301, "PermanentRedirect", ErrorKind::Invalid, "another region", "AWS_REGION"),
        (503, "SlowDown", ErrorKind::Unavailable, "", "Changes that wait are kept"),
        (500, "InternalError", ErrorKind::Unavailable, "", "Changes that wait are kept"),
        (418, "Teapot", ErrorKind::Internal, "", ""),
    ];
    for (status, code, kind, message, cure) in cases {
        let body = xml(code);
        let server = Responder::start(move |_| Answer::new(status).with_body(body.clone()));
        let settings = [
            ("AWS_ACCESS_KEY_ID", "key"),
            ("AWS_SECRET_ACCESS_KEY", "secret"),
            ("AWS_ENDPOINT_URL", server.url()),
            (cloud::WAIT_SECONDS, "5"),
        ];
        let place = Place::new("s3", "s3://memory".to_owned(), &settings);
        let error = place.blocking().read(&at("a.md")).map(drop).expect_err("refused");
        assert_eq!(error.kind(), kind, "{code}: {error:?}");
        assert!(error.to_string().contains(message), "{code}: {error}");
        assert!(
            Refusal::of(&error).is_some_and(|refusal| refusal.cure().contains(cure)),
            "{code}: {error:?}"
        );
        assert!(format!("{error:?}").contains(code), "the provider's own word is told: {error:?}");
    }
}

#[test]
fn a_page_of_some_proxy_is_not_nothing() {
    for status in [200, 404] {
        let server = Responder::start(move |_| {
            Answer::new(status)
                .with_header("content-type", "text/html")
                .with_body("<html>Welcome to the hotel</html>")
        });
        let settings = [
            ("AWS_ACCESS_KEY_ID", "key"),
            ("AWS_SECRET_ACCESS_KEY", "secret"),
            ("AWS_ENDPOINT_URL", server.url()),
        ];
        let place = Place::new("s3", "s3://memory".to_owned(), &settings);
        let error = place.blocking().read(&at("a.md")).expect_err("not an object");
        assert_ne!(error.kind(), ErrorKind::NotFound, "{error:?}");
        assert!(place.blocking().list_all(&Locator::root()).is_err());
    }
}

#[test]
fn a_certificate_that_does_not_verify_is_not_asked_again() {
    let gcs = Gcs::start();
    let front = Front::before_tls(gcs.endpoint());
    let place = Place::gcs_at(&gcs, front.url(), &gcs.new_bucket());
    told(&place, ErrorKind::Denied, "certificate does not verify", "certificates");
    assert_eq!(front.count(), 0, "nothing is sent to a stranger");
}

#[test]
fn nothing_is_asked_without_a_credential() {
    let server = Responder::start(|_| Answer::new(200));
    let cases = [
        ("azure", "az://memory", "AZURE_STORAGE_ENDPOINT"),
        ("s3", "s3://memory", "AWS_ENDPOINT_URL"),
        ("gcs", "gs://memory", "GOOGLE_BASE_URL"),
    ];
    for (backend, address, endpoint) in cases {
        let place = Place::new(
            backend,
            address.to_owned(),
            &[(endpoint, server.url()), ("AZURE_STORAGE_ACCOUNT_NAME", "x")],
        );
        let registered = Registry::standard().get(backend).copied().expect("in this build");
        let error = (registered.open)(&place.options).expect_err("no credential");
        assert_eq!(error.kind(), ErrorKind::Denied, "{error:?}");
        assert!(error.to_string().contains("there is no credential"), "{error}");
    }
    assert_eq!(server.asked().len(), 0);
}

#[test]
fn a_secret_is_in_no_debug_output() {
    let settings = [
        ("AWS_ACCESS_KEY_ID", "AKIATEST"),
        ("AWS_SECRET_ACCESS_KEY", "verysecret"),
        ("AWS_ENDPOINT_URL", "http://127.0.0.1:9"),
    ];
    let place = Place::new("s3", "s3://memory".to_owned(), &settings);
    let backend = place.open();
    let error = Blocking::new(backend.clone()).read(&at("a.md")).expect_err("nobody listens");
    for text in [format!("{:?}", place.options), format!("{backend:?}"), format!("{error:?}")] {
        assert!(!text.contains("verysecret"), "{text}");
    }
    assert!(!place.locks().join("clouds").exists(), "locks are made when they are taken");
}

#[test]
fn plain_http_is_for_this_machine_only() {
    let settings = [
        ("AWS_ACCESS_KEY_ID", "key"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
        ("AWS_ENDPOINT_URL", "http://storage.example"),
    ];
    let place = Place::new("s3", "s3://memory".to_owned(), &settings);
    let open = |options: &OpenOptions| (Registry::standard().get("s3").expect("in this build").open)(options);
    let error = open(&place.options).expect_err("everybody could read it");
    assert!(error.to_string().contains("without TLS"), "{error}");
    assert!(open(&place.with("AWS_ALLOW_HTTP", "true").options).is_ok());
}

#[test]
fn a_token_that_was_refused_is_renewed_once() {
    let directory = tempfile::TempDir::new().expect("a temporary directory");
    // A profile whose program hands out another key each time.
    let count = directory.path().join("count");
    let script = format!(
        "n=$(cat {count} 2>/dev/null || echo 0); n=$((n+1)); echo $n > {count}; printf '{{\"Version\":1,\"AccessKeyId\":\"key%s\",\"SecretAccessKey\":\"s\"}}' $n",
        count = count.display()
    );
    let program = directory.path().join("credentials.sh");
    std::fs::write(&program, script).expect("written");
    let config = directory.path().join("config");
    let profile =
        format!("[profile work]\ncredential_process = /bin/sh {}\nregion = eu-west-1\n", program.display());
    std::fs::write(&config, profile).expect("written");
    let server = Responder::start(|asked| {
        let is_new =
            asked.headers.get("authorization").is_some_and(|header| header.contains("Credential=key2/"));
        match is_new {
            true => Answer::new(200).with_header("etag", "\"1\"").with_body("x"),
            false => Answer::new(403).with_body("<Error><Code>ExpiredToken</Code></Error>"),
        }
    });
    let config = config.display().to_string();
    let settings =
        [("AWS_PROFILE", "work"), ("AWS_CONFIG_FILE", config.as_str()), ("AWS_ENDPOINT_URL", server.url())];
    let place = Place::new("s3", "s3://memory".to_owned(), &settings);
    let store = place.blocking();
    assert_eq!(store.read_text(&at("a.md")).expect("renewed").as_deref(), Some("x"));
    assert_eq!(store.read_text(&at("a.md")).expect("kept").as_deref(), Some("x"));
    assert_eq!(
        std::fs::read_to_string(&count).expect("counted").trim(),
        "2",
        "asked twice, and no third time"
    );
    assert_eq!(server.asked().len(), 3);
}
