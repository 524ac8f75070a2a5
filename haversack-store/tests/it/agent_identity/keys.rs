//! Certificates, keys and settings that cannot work: reported before any request.

use std::path::PathBuf;

use haversack_store::cloud::AgentIdentity;
use haversack_store::cloud::agent_identity::{AgentSettings, Certificate, PrivateKey};
use haversack_store::{Error, ErrorKind};

use super::entra::{self, Entra};
use super::{Desk, fixture, token};

/// No server listens here.
const NOBODY: &str = "http://127.0.0.1:1";

fn refused(change: impl FnOnce(&Desk, &mut AgentSettings)) -> Error {
    let desk = Desk::new();
    let mut settings = desk.settings(NOBODY);
    change(&desk, &mut settings);
    AgentIdentity::new(settings).expect_err("refused")
}

#[cfg(unix)]
#[test]
fn a_key_that_others_can_read_is_refused() {
    for mode in [0o644, 0o640, 0o604, 0o660, 0o610, 0o777] {
        let error = refused(|desk, settings| {
            settings.private_key = PrivateKey::File(desk.key("test-only-rsa.pkcs8.pem", mode));
        });
        assert_eq!(error.kind(), ErrorKind::Denied, "{mode:o}");
        let chmod = format!("run: chmod 600 {}", error.place());
        assert!(error.message().ends_with(&chmod), "{mode:o}: {error}");
    }
    for mode in [0o600, 0o400] {
        let desk = Desk::new();
        let private_key = PrivateKey::File(desk.key("test-only-rsa.pkcs8.pem", mode));
        let _ = AgentIdentity::new(AgentSettings { private_key, ..desk.settings(NOBODY) }).expect("taken");
    }
}

#[test]
fn keys_that_cannot_sign() {
    let cases = [
        ("test-only-ec.pkcs8.pem", "it is not an RSA key"),
        ("test-only-ec.sec1.pem", "it is not an RSA key"),
        ("test-only-rsa-1024.pem", "2048 to 4096 bits"),
        ("test-only-rsa.encrypted.pem", "has a password"),
        ("test-only-certificate.pem", "there is no private key in it"),
    ];
    for (name, words) in cases {
        let error = refused(|desk, settings| {
            settings.private_key = PrivateKey::File(desk.key(name, 0o600));
        });
        assert_eq!(error.kind(), ErrorKind::Invalid, "{name}");
        assert!(error.message().contains(words), "{name}: {error}");
    }
}

#[test]
fn files_that_are_not_what_they_should_be() {
    let missing =
        refused(|_, settings| settings.private_key = PrivateKey::File(PathBuf::from("/no/such/key.pem")));
    assert_eq!(missing.kind(), ErrorKind::NotFound);
    let directory = refused(|desk, settings| {
        settings.private_key = PrivateKey::File(desk.directory.path().to_owned());
    });
    assert!(directory.message().contains("not a file"), "{directory}");
    let stranger =
        refused(|_, settings| settings.certificate = Certificate::File(fixture("test-only-stranger.pem")));
    assert!(stranger.message().contains("not that of the private key"), "{stranger}");
    let none = refused(|_, settings| {
        settings.certificate = Certificate::File(fixture("test-only-ec.pkcs8.pem"));
    });
    assert!(none.message().contains("no certificate in it"), "{none}");
    let huge = refused(|desk, settings| {
        let path = desk.directory.path().join("huge.pem");
        std::fs::write(&path, vec![b'x'; 70_000]).expect("written");
        settings.certificate = Certificate::File(path);
    });
    assert!(huge.message().contains("too large"), "{huge}");
}

#[test]
fn settings_that_are_not_what_they_should_be() {
    let tenant = refused(|_, settings| settings.tenant = "common/../x".to_owned());
    assert!(tenant.message().contains("neither an id nor a domain name"), "{tenant}");
    assert!(refused(|_, settings| settings.tenant = String::new()).message().contains("the tenant"));
    let agent = refused(|_, settings| settings.agent_id = "lighthouse".to_owned());
    assert!(agent.message().contains("the agent's id is \"lighthouse\""), "{agent}");
    let user = refused(|_, settings| settings.agent_user_id = "agent@example.org".to_owned());
    assert!(user.message().contains("the agent user's object id"), "{user}");
    for authority in
        ["http://login.example.org", "login.example.org", "ftp://127.0.0.1", "https://a:b@example.org", ""]
    {
        let error = refused(|_, settings| settings.authority = authority.to_owned());
        assert_eq!(error.kind(), ErrorKind::Invalid, "{authority}");
        assert!(error.message().contains("https://"), "{error}");
    }
}

#[test]
fn the_same_signature_from_every_spelling() {
    // Of the certificate in the fixtures, told by openssl.
    let hex = "830bf7a474df2dfacc1ff3dd8d17c89edf6e02f269e664ab52d4fc60de54429b";
    let keys = ["test-only-rsa.pkcs8.pem", "test-only-rsa.pkcs1.pem"];
    let certificates =
        [Certificate::File(fixture("test-only-certificate.pem")), Certificate::Thumbprint(hex.to_owned())];
    for key in keys {
        for certificate in certificates.clone() {
            let entra = Entra::honest();
            let desk = Desk::new();
            let private_key = PrivateKey::File(desk.key(key, 0o600));
            let settings = AgentSettings { private_key, certificate, ..desk.settings(&entra.authority()) };
            let identity = AgentIdentity::new(settings).expect("good settings");
            assert_eq!(token(&identity), entra::storage_token(1));
            let _ = entra::verified(entra.asked()[0].field("client_assertion"));
        }
    }
}
