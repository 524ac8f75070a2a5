//! Azurite: containers, keys, signatures and tokens.

use std::time::Duration;

use haversack_servers::azurite::{bearer, expired_bearer};
use haversack_servers::{Azurite, http};

const TENANT: &str = "11111111-2222-3333-4444-555555555555";
const HOUR: Duration = Duration::from_secs(3600);

#[test]
fn keeps_blobs_for_those_who_have_the_key() {
    let Some(azurite) = Azurite::shared() else { return };
    let container = azurite.new_container();
    let blob = format!("{container}/a%20note.md");
    assert_eq!(azurite.signed("PUT", &blob, &[], b"staging listens on 5433").status, 201);
    assert_eq!(azurite.signed("GET", &blob, &[], b"").body, b"staging listens on 5433");
    let listing = azurite.signed("GET", &format!("{container}?restype=container&comp=list"), &[], b"");
    assert!(listing.text().contains("<Name>a note.md</Name>"), "{}", listing.text());
    let unsigned = http::send("GET", &format!("{}/{blob}", azurite.endpoint()), &[], b"");
    assert!(matches!(unsigned.expect("it answers").status, 403 | 404));
}

#[test]
fn knows_shared_access_signatures() {
    let Some(azurite) = Azurite::shared() else { return };
    let container = azurite.new_container();
    let blob = format!("{}/{container}/note.md", azurite.endpoint());
    let headers = [("x-ms-blob-type", "BlockBlob"), ("x-ms-version", "2021-12-02")];
    let put = |sas: &str| http::send("PUT", &format!("{blob}?{sas}"), &headers, b"x").expect("it answers");
    let answer = put(&azurite.sas(HOUR));
    assert_eq!(answer.status, 201, "{}", answer.text());
    let answer = put(&azurite.expired_sas());
    assert_eq!(answer.status, 403, "{}", answer.text());
    assert!(answer.text().contains("AuthenticationFailed") || answer.text().contains("AuthorizationFailure"));
}

#[test]
fn takes_tokens_over_tls() {
    let Some(azurite) = Azurite::with_oauth() else { return };
    assert!(azurite.endpoint().starts_with("https://127.0.0.1:"));
    assert_eq!(std::fs::read_to_string(azurite.ca_file()).expect("it is there"), azurite.ca_pem());
    let container = azurite.new_container();
    let put = |token: &str| {
        let authorization = format!("Bearer {token}");
        let headers = [
            ("authorization", authorization.as_str()),
            ("x-ms-blob-type", "BlockBlob"),
            ("x-ms-version", "2021-12-02"),
        ];
        http::send("PUT", &format!("{}/{container}/note.md", azurite.endpoint()), &headers, b"x")
            .expect("it answers")
    };
    let answer = put(&bearer(TENANT, HOUR));
    assert_eq!(answer.status, 201, "{}", answer.text());
    assert_eq!(put(&expired_bearer(TENANT)).status, 403);
}

#[test]
fn a_persistent_one_survives_being_killed() {
    let Some(mut azurite) = Azurite::persistent() else { return };
    let endpoint = azurite.endpoint().to_owned();
    let container = azurite.new_container();
    assert_eq!(azurite.signed("PUT", &format!("{container}/note.md"), &[], b"x").status, 201);
    // It writes its index behind its answers; what it wrote is there when it says so no more.
    let index = || azurite_index(&azurite).contains("note.md");
    while !index() {
        std::thread::sleep(Duration::from_millis(20));
    }
    azurite.kill();
    assert_eq!(azurite.id(), None);
    assert!(http::send("GET", &endpoint, &[], b"").is_err());
    azurite.restart();
    assert_eq!(azurite.endpoint(), endpoint);
    assert_eq!(azurite.signed("GET", &format!("{container}/note.md"), &[], b"").body, b"x");
}

/// Returns what is in the file that tells Azurite which blobs there are.
fn azurite_index(azurite: &Azurite) -> String {
    let directory = azurite.ca_file().parent().expect("it is in a directory");
    std::fs::read_to_string(directory.join("blobs/__azurite_db_blob__.json")).unwrap_or_default()
}
