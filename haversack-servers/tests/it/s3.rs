//! Moto and SeaweedFS: buckets and conditions.

use haversack_servers::{Moto, SeaweedFs, http};

#[test]
fn moto_heeds_conditions() {
    let Some(moto) = Moto::shared() else { return };
    let note = format!("/{}/note.md", moto.new_bucket());
    let create = || moto.signed("PUT", &note, &[("if-none-match", "*")], b"x").status;
    assert_eq!([create(), create()], [200, 412]);
    assert_eq!(moto.signed("GET", &note, &[], b"").body, b"x");
}

#[test]
fn seaweedfs_verifies_signatures() {
    // Large, and for benchmarks: the test command does not install it.
    if haversack_servers::tools::program("weed").is_none() {
        return haversack_servers::tools::skip("weed is not in .tools (install it: cargo xtask tools all)");
    }
    let Some(server) = SeaweedFs::start() else { return };
    let bucket = server.new_bucket();
    assert_ne!(bucket, server.new_bucket());
    let unsigned = http::send("PUT", &format!("{}/{bucket}/note.md", server.endpoint()), &[], b"x");
    assert_eq!(unsigned.expect("it answers").status, 403);
    let note = format!("/{bucket}/a%20note.md");
    let create = |body| server.signed("PUT", &note, &[("if-none-match", "*")], body).status;
    assert_eq!([create(b"x"), create(b"y")], [200, 412]);
    assert_eq!(server.signed("GET", &note, &[], b"").body, b"x");
    let listing = server.signed("GET", &format!("/{bucket}?list-type=2&prefix=a"), &[], b"");
    assert!(listing.text().contains("<Key>a note.md</Key>"), "{}", listing.text());
}
