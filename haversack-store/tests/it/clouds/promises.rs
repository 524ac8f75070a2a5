//! Storages that lie are found out before anything is trusted to them.

use haversack_servers::Liar;
use haversack_store::{ErrorKind, block_on, cloud};

use super::fronted;

#[test]
fn honest_storages_pass() {
    for (_front, place) in fronted(|_| ()) {
        let found = block_on(cloud::examine(&place.options, "test")).expect("it keeps its promises");
        assert!(!found.credential.is_empty());
        assert!(found.ahead_seconds.is_some_and(|ahead| ahead.abs() < 60), "{found:?}");
        assert_eq!(place.blocking().list_all(&haversack_store::Locator::root()).expect("listed"), []);
    }
}

#[test]
fn liars_are_refused() {
    for liar in [Liar::IgnoresAll, Liar::RefusesButWrites, Liar::IgnoresMatch, Liar::IgnoresAbsent] {
        for (_front, place) in fronted(|front| front.lie(liar)) {
            let error = block_on(cloud::examine(&place.options, "test")).expect_err("it lies");
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{liar:?} on {}: {error:?}", place.backend);
        }
    }
}
