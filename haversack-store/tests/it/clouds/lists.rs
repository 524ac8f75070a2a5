//! Lists as others leave them: odd keys, lies, circles.

use haversack_servers::{Act, Front, Gcs};
use haversack_store::{Condition, ErrorKind, Locator};

use super::{Place, fronted};

fn at(key: &str) -> Locator {
    Locator::parse(key).expect("valid")
}

/// A bucket with a front, and what a list of it answers changed by hand.
fn listed_as(change: fn(&str) -> String) -> (Gcs, Front, Place) {
    let gcs = Gcs::start();
    let front = Front::before(gcs.endpoint());
    let place = Place::gcs_at(&gcs, front.url(), &gcs.new_bucket());
    for key in ["a.md", "b.md", "c.md"] {
        let _ = place.blocking().write(&at(key), key, Condition::Any).expect("written");
    }
    front.script(move |seen| {
        if !seen.path.contains("list-type") {
            return Act::Pass;
        }
        Act::change(move |answer| {
            answer.body = change(&String::from_utf8_lossy(&answer.body)).into_bytes();
        })
    });
    (gcs, front, place)
}

#[test]
fn one_odd_key_does_not_hide_the_others() {
    let gcs = Gcs::start();
    let bucket = gcs.new_bucket();
    let place = Place::gcs_at(&gcs, gcs.endpoint(), &bucket);
    let store = place.blocking();
    let _ = store.write(&at("kept.md"), "x", Condition::Absent).expect("written");
    let _ = store.write(&at("a&b c.md"), "x", Condition::Absent).expect("written");
    let hostile = ["a//b", "../up", "x/../y", "back\\slash", "cafe\u{301}", "bell\u{7}", "./dot", "tab\tbed"];
    for key in hostile {
        gcs.put(&bucket, &format!("some/where/{key}"), "theirs");
    }
    gcs.put(&bucket, "some/where/folder/", "");
    gcs.put(&bucket, "some/whereabouts.md", "of somebody else");
    let mut odd = Vec::new();
    let mut found = Vec::new();
    store
        .scan(&Locator::root(), None, |page| {
            found.extend(page.infos.into_iter().map(|info| info.locator.to_string()));
            odd.extend(page.odd.into_iter().map(|odd| odd.shown));
            Ok(())
        })
        .expect("scanned");
    assert_eq!(found, ["a&b c.md", "kept.md"]);
    assert_eq!(odd.len(), hostile.len(), "{odd:?}");
    assert!(odd.iter().all(|shown| !shown.contains(char::is_control)), "{odd:?}");
}

#[test]
fn a_list_that_is_none_is_no_empty_list() {
    let pages: [fn(&str) -> String; 4] = [
        |_| "<html><body>Sign in to the network</body></html>".to_owned(),
        |body| body[..body.len() / 2].to_owned(),
        |_| String::new(),
        |body| body.replace("<IsTruncated>false", "<IsTruncated>true"),
    ];
    for page in pages {
        let (_gcs, _front, place) = listed_as(page);
        let error = place.blocking().list_all(&Locator::root()).expect_err("not a list");
        assert_eq!(error.kind(), ErrorKind::Internal, "{error:?}");
    }
}

#[test]
fn a_list_that_goes_back_or_in_circles_ends_in_an_error() {
    let pages: [fn(&str) -> String; 2] = [
        |body| body.replace("a.md", "z.md"),
        |body| {
            let body = body.replace("<IsTruncated>false", "<IsTruncated>true");
            body.replace(
                "</ListBucketResult>",
                "<NextContinuationToken>again</NextContinuationToken></ListBucketResult>",
            )
        },
    ];
    for page in pages {
        let (_gcs, _front, place) = listed_as(page);
        let error = place.blocking().list_all(&Locator::root()).expect_err("it lies");
        assert_eq!(error.kind(), ErrorKind::Internal, "{error:?}");
    }
}

#[test]
fn a_read_is_one_request_and_so_is_a_write() {
    for (front, place) in fronted(|_| ()) {
        let store = place.blocking();
        front.forget();
        let written = store.write(&at("a.md"), "one", Condition::Absent).expect("written");
        assert_eq!(front.count(), 1, "a create on {}", place.backend);
        assert_eq!(store.read(&at("a.md")).expect("read").version, written.version);
        assert_eq!(front.count(), 2, "a read on {}", place.backend);
        assert!(store.read(&at("b.md")).is_err());
        assert_eq!(front.count(), 3, "a read of nothing on {}", place.backend);
        let _ = store.write(&at("a.md"), "two", Condition::Matches(written.version)).expect("written");
        assert_eq!(front.count(), 4, "a replacement on {}", place.backend);
        assert_eq!(store.list_all(&Locator::root()).expect("listed"), [at("a.md")]);
        assert_eq!(front.count(), 5, "a scan on {}", place.backend);
    }
}
