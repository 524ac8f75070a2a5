//! Stores that lie: each lies as it says, and tells the truth otherwise.

use haversack_servers::{Answer, Azurite, Front, Gcs, Liar, Moto, azurite, http, moto};

/// A store's behaviour on a write whose condition fails: if it says so, and if the old content stays.
#[derive(Debug, PartialEq, Eq)]
struct Verdict {
    refuses: bool,
    keeps: bool,
}

const HONEST: Verdict = Verdict { refuses: true, keeps: true };
const BLIND: Verdict = Verdict { refuses: false, keeps: false };
const FALSE: Verdict = Verdict { refuses: true, keeps: false };

/// Returns what a liar does when something is there that should be absent, and when something else is there.
fn expected(liar: Liar) -> [Verdict; 2] {
    match liar {
        Liar::IgnoresAll => [BLIND, BLIND],
        Liar::RefusesButWrites => [FALSE, FALSE],
        Liar::IgnoresMatch => [HONEST, BLIND],
        Liar::IgnoresAbsent => [BLIND, HONEST],
    }
}

fn verdict(ask: impl Fn(&str, &[(&str, &str)], &[u8]) -> Answer, condition: (&str, &str)) -> Verdict {
    assert!(matches!(ask("PUT", &[], b"old").status, 200 | 201));
    let answer = ask("PUT", &[condition], b"new");
    assert!(matches!(answer.status, 200 | 201 | 409 | 412), "{}: {}", answer.status, answer.text());
    Verdict { refuses: matches!(answer.status, 409 | 412), keeps: ask("GET", &[], b"").body == b"old" }
}

#[test]
fn over_the_fake() {
    for liar in Liar::ALL {
        let gcs = Gcs::start();
        let front = Front::before(gcs.endpoint());
        front.lie(liar);
        let authorization = format!("Bearer {}", gcs.token());
        let url = format!("{}/{}/note", front.url(), gcs.new_bucket());
        let ask = |method: &str, headers: &[(&str, &str)], body: &[u8]| {
            let headers = [headers, &[("authorization", authorization.as_str())]].concat();
            http::send(method, &url, &headers, body).expect("it is answered")
        };
        let name = "x-goog-if-generation-match";
        assert_eq!([verdict(ask, (name, "0")), verdict(ask, (name, "7"))], expected(liar), "{liar:?}");
        assert_eq!(ask("DELETE", &[], b"").status, 204);
        assert_eq!(ask("PUT", &[(name, "0")], b"x").status, 200, "{liar:?}: what holds is done");
    }
}

#[test]
fn over_moto() {
    let Some(moto) = Moto::shared() else { return };
    for liar in Liar::ALL {
        let front = Front::before(moto.endpoint());
        front.lie(liar);
        let note = format!("/{}/note", moto.new_bucket());
        let ask = |method: &str, headers: &[(&str, &str)], body: &[u8]| {
            moto::signed(front.url(), method, &note, headers, body).expect("it is answered")
        };
        let found = [verdict(ask, ("if-none-match", "*")), verdict(ask, ("if-match", "\"another\""))];
        assert_eq!(found, expected(liar), "{liar:?}");
    }
}

#[test]
fn over_azurite_which_verifies_signatures() {
    let Some(azurite) = Azurite::shared() else { return };
    for liar in Liar::ALL {
        let front = Front::before(azurite.endpoint());
        front.sign_as(azurite.account(), azurite.key());
        front.lie(liar);
        let note = format!("{}/note", azurite.new_container());
        let ask = |method: &str, headers: &[(&str, &str)], body: &[u8]| {
            azurite::signed(front.url(), method, &note, headers, body).expect("it is answered")
        };
        let found = [verdict(ask, ("if-none-match", "*")), verdict(ask, ("if-match", "\"0x0\""))];
        assert_eq!(found, expected(liar), "{liar:?}");
    }
}
