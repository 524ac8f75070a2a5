//! Signing in as an agent, against a token endpoint on this machine that looks at everything it is sent.

mod entra;
mod failing;
mod keys;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_lite::future::block_on;
use haversack_store::cloud::AgentIdentity;
use haversack_store::cloud::agent_identity::{
    AgentSettings, Certificate, HOP_TIMEOUT, PrivateKey, STORAGE_SCOPE,
};
use object_store::CredentialProvider;
use object_store::azure::AzureCredential;
use tempfile::TempDir;

use self::entra::{Entra, Reply, answers};

const TENANT: &str = "11111111-aaaa-4bbb-8ccc-000000000001";
const BLUEPRINT: &str = "22222222-aaaa-4bbb-8ccc-000000000002";
const AGENT: &str = "33333333-aaaa-4bbb-8ccc-000000000003";
const USER: &str = "44444444-aaaa-4bbb-8ccc-000000000004";

/// Returns a fixture's path.
fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/agent-identity").join(name)
}

/// A user's key file: only its owner can read it.
struct Desk {
    directory: TempDir,
}

impl Desk {
    fn new() -> Desk {
        Desk { directory: TempDir::new().expect("a temporary directory") }
    }

    fn key(&self, name: &str, mode: u32) -> PathBuf {
        let path = self.directory.path().join("key.pem");
        let _ = std::fs::copy(fixture(name), &path).expect("copied");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("set");
        }
        path
    }

    fn settings(&self, authority: &str) -> AgentSettings {
        AgentSettings {
            tenant: TENANT.to_owned(),
            blueprint_app_id: BLUEPRINT.to_owned(),
            agent_id: AGENT.to_owned(),
            agent_user_id: USER.to_owned(),
            certificate: Certificate::File(fixture("test-only-certificate.pem")),
            private_key: PrivateKey::File(self.key("test-only-rsa.pkcs8.pem", 0o600)),
            authority: authority.to_owned(),
            scope: STORAGE_SCOPE.to_owned(),
            hop_timeout: HOP_TIMEOUT,
        }
    }

    fn identity(&self, authority: &str) -> AgentIdentity {
        AgentIdentity::new(self.settings(authority)).expect("good settings")
    }
}

/// A clock that goes when it is told to.
#[derive(Clone)]
struct Hands {
    start: Instant,
    seconds: Arc<AtomicU64>,
}

impl Hands {
    fn new() -> Hands {
        Hands { start: Instant::now(), seconds: Arc::default() }
    }

    fn go(&self, seconds: u64) {
        let _ = self.seconds.fetch_add(seconds, Ordering::SeqCst);
    }

    fn give(&self, identity: AgentIdentity) -> AgentIdentity {
        let hands = self.clone();
        identity.with_clock(move || hands.start + Duration::from_secs(hands.seconds.load(Ordering::SeqCst)))
    }
}

fn token(identity: &AgentIdentity) -> String {
    match &*block_on(identity.credential()).expect("signed in") {
        AzureCredential::BearerToken(token) => token.clone(),
        other => panic!("a bearer token, not {other:?}"),
    }
}

#[test]
fn the_three_hops_are_exact() {
    let entra = Entra::honest();
    let desk = Desk::new();
    let identity = desk.identity(&entra.authority());
    assert_eq!(token(&identity), entra::storage_token(1));
    let asked = entra.asked();
    assert_eq!(asked.len(), 3);

    let path = format!("/{TENANT}/oauth2/v2.0/token");
    for request in &asked {
        assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", path.as_str()));
        assert_eq!(request.header("content-type"), "application/x-www-form-urlencoded");
    }
    let assertion = asked[0].field("client_assertion").to_owned();
    let exchange = "api://AzureADTokenExchange/.default";
    let bearer = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
    asked[0].has_exactly(&[
        ("client_id", BLUEPRINT),
        ("scope", exchange),
        ("fmi_path", AGENT),
        ("grant_type", "client_credentials"),
        ("client_assertion_type", bearer),
        ("client_assertion", &assertion),
    ]);
    asked[1].has_exactly(&[
        ("client_id", AGENT),
        ("scope", exchange),
        ("grant_type", "client_credentials"),
        ("client_assertion_type", bearer),
        ("client_assertion", &entra::first_token(1)),
    ]);
    asked[2].has_exactly(&[
        ("client_id", AGENT),
        ("scope", "https://storage.azure.com/.default"),
        ("grant_type", "user_fic"),
        ("client_assertion_type", bearer),
        ("client_assertion", &entra::first_token(1)),
        ("user_id", USER),
        ("user_federated_identity_credential", &entra::second_token(1)),
        ("requested_token_use", "on_behalf_of"),
    ]);

    let claims = entra::verified(&assertion);
    assert_eq!(claims["aud"], format!("{}{path}", entra.authority()));
    assert_eq!((claims["iss"].as_str(), claims["sub"].as_str()), (Some(BLUEPRINT), Some(BLUEPRINT)));
    let issued = claims["iat"].as_u64().expect("a time");
    assert_eq!(claims["nbf"].as_u64(), Some(issued));
    assert_eq!(claims["exp"].as_u64(), Some(issued + 600));
    assert_eq!(claims["jti"].as_str().map(str::len), Some(36));
    assert_eq!(claims.as_object().expect("claims").len(), 7, "{claims}");
}

#[test]
fn each_sign_in_has_an_assertion_of_its_own() {
    let entra = Entra::honest();
    let desk = Desk::new();
    let identity = desk.identity(&entra.authority());
    assert_eq!(token(&identity), entra::storage_token(1));
    identity.forget();
    assert_eq!(token(&identity), entra::storage_token(2));
    let asked = entra.asked();
    let id = |at: usize| entra::verified(asked[at].field("client_assertion"))["jti"].clone();
    assert_ne!(id(0), id(3));
}

#[test]
fn the_token_is_refreshed_after_55_minutes() {
    // The lifetime of a token, and the time that it is used.
    let cases = [(3600, 55 * 60), (3599, 3299), (5400, 55 * 60), (86_400, 55 * 60), (900, 600), (301, 1)];
    for (lifetime, used) in cases {
        let entra = Entra::start(answers(move |request| request.issued(lifetime)));
        let desk = Desk::new();
        let hands = Hands::new();
        let identity = hands.give(desk.identity(&entra.authority()));
        let first = token(&identity);
        hands.go(used - 1);
        assert_eq!(token(&identity), first, "{lifetime}");
        assert_eq!(entra.asked().len(), 3, "{lifetime}");
        hands.go(1);
        assert_ne!(token(&identity), first, "{lifetime}");
        assert_eq!(entra.asked().len(), 6, "{lifetime}");
    }
}

#[test]
fn a_lifetime_may_be_a_text_or_missing() {
    for (said, used) in [(r#""expires_in":"3599","#, 3299), ("", 300)] {
        let entra = Entra::start(answers(move |request| {
            let token = request.next_token();
            Reply::json(200, format!(r#"{{{said}"token_type":"Bearer","access_token":"{token}"}}"#))
        }));
        let desk = Desk::new();
        let hands = Hands::new();
        let identity = hands.give(desk.identity(&entra.authority()));
        let first = token(&identity);
        hands.go(used - 1);
        assert_eq!(token(&identity), first, "{said}");
        hands.go(1);
        assert_ne!(token(&identity), first, "{said}");
    }
}

#[test]
fn fifty_who_ask_at_once_share_one_chain() {
    // Also tokens that are too short to keep: a waiting caller gets the awaited result.
    for lifetime in [3600, 10] {
        // The first hop waits until everybody has asked.
        let (gate, opened) = channel();
        let entra = Entra::start(answers(move |request| {
            if request.hop() == 1 {
                let _ = opened.recv();
            }
            request.issued(lifetime)
        }));
        let desk = Desk::new();
        let identity = desk.identity(&entra.authority());
        let everybody = ask(&identity, 50, gate);
        assert_eq!(everybody, vec![Ok(entra::storage_token(1)); 50]);
        assert_eq!(entra.asked().len(), 3);
    }
}

#[test]
fn fifty_who_ask_at_once_share_one_refusal() {
    let (gate, opened) = channel();
    let entra = Entra::start(answers(move |_| {
        let _ = opened.recv();
        Reply::refusal("invalid_client", "AADSTS700027: bad")
    }));
    let desk = Desk::new();
    let identity = desk.identity(&entra.authority());
    let everybody = ask(&identity, 50, gate);
    assert!(
        everybody.iter().all(|outcome| outcome.as_ref().is_err_and(|error| error.contains("AADSTS700027")))
    );
    assert_eq!(entra.asked().len(), 1);
    // A later caller is an attempt of its own.
    let _ = block_on(identity.credential()).expect_err("refused again");
    assert_eq!(entra.asked().len(), 2);
}

/// Lets many ask from one thread, and the endpoint answer once all of them have.
fn ask(identity: &AgentIdentity, many: usize, gate: Sender<()>) -> Vec<Result<String, String>> {
    let outcomes = Mutex::new(Vec::new());
    let executor = async {
        let mut waiting: Vec<_> = (0..many).map(|_| Box::pin(identity.credential())).collect();
        for one in &mut waiting {
            assert!(futures_lite::future::poll_once(one.as_mut()).await.is_none(), "everybody waits");
        }
        // From now on, a caller is answered at once.
        drop(gate);
        for one in waiting {
            let outcome = one.await.map(|credential| match &*credential {
                AzureCredential::BearerToken(token) => token.clone(),
                other => panic!("a bearer token, not {other:?}"),
            });
            outcomes.lock().expect("one thread").push(outcome.map_err(|error| error.to_string()));
        }
    };
    block_on(executor);
    outcomes.into_inner().expect("one thread")
}

#[test]
fn who_gives_up_leaves_the_way_free() {
    let entra = Entra::start({
        let mut first = true;
        answers(move |request| match std::mem::take(&mut first) {
            true => Reply::Hang,
            false => request.issued(3600),
        })
    });
    let desk = Desk::new();
    let identity = desk.identity(&entra.authority());
    block_on(async {
        let mut impatient = Box::pin(identity.credential());
        assert!(futures_lite::future::poll_once(impatient.as_mut()).await.is_none());
        // Until it has asked, there is nothing to give up.
        entra.wait_for(1);
        drop(impatient);
    });
    assert!(token(&identity).starts_with("storage-"));
}

#[test]
fn refused_token_is_replaced_after_forget() {
    let entra = Entra::honest();
    let desk = Desk::new();
    let identity = desk.identity(&entra.authority());
    let first = token(&identity);
    identity.forget();
    assert_ne!(token(&identity), first);
    assert_eq!(entra.asked().len(), 6);
}

#[test]
fn a_token_that_is_still_good_outlives_an_outage() {
    let is_away = Arc::new(Mutex::new(None::<Reply>));
    let away = is_away.clone();
    let entra = Entra::start(answers(move |request| match &*away.lock().expect("whole") {
        Some(reply) => reply.clone(),
        None => request.issued(2 * 60 * 60),
    }));
    let desk = Desk::new();
    let hands = Hands::new();
    let identity = hands.give(desk.identity(&entra.authority()));
    let first = token(&identity);
    *is_away.lock().expect("whole") = Some(Reply::json(503, "{}"));
    hands.go(56 * 60);
    assert_eq!(token(&identity), first, "Entra is away, and the token is good for another hour");
    assert_eq!(entra.asked().len(), 4);
    assert_eq!(token(&identity), first);
    assert_eq!(entra.asked().len(), 4, "it is not asked each time");
    hands.go(61);
    assert_eq!(token(&identity), first);
    assert_eq!(entra.asked().len(), 5);
    hands.go(60 * 60);
    let _ = block_on(identity.credential()).expect_err("the last five minutes are not used");
    // A refusal is not an outage.
    *is_away.lock().expect("whole") = None;
    let second = token(&identity);
    *is_away.lock().expect("whole") = Some(Reply::refusal("invalid_grant", "AADSTS50057: disabled"));
    hands.go(56 * 60);
    let refused = block_on(identity.credential()).expect_err("refused");
    assert!(refused.message().contains("AADSTS50057"), "{refused} {second}");
}

#[test]
fn the_storage_library_takes_it() {
    let entra = Entra::honest();
    let desk = Desk::new();
    let identity = Arc::new(desk.identity(&entra.authority()));
    let provider: Arc<dyn CredentialProvider<Credential = AzureCredential>> = identity;
    let credential = block_on(provider.get_credential()).expect("signed in");
    assert!(matches!(&*credential, AzureCredential::BearerToken(token) if *token == entra::storage_token(1)));

    let refusing = Entra::start(answers(|_| Reply::refusal("invalid_client", "AADSTS700027: bad")));
    let identity = desk.identity(&refusing.authority());
    let object_store::Error::Generic { source, .. } =
        block_on(identity.get_credential()).expect_err("refused")
    else {
        panic!("a generic error")
    };
    let error = source.downcast_ref::<haversack_store::Error>().expect("ours");
    assert_eq!(error.kind(), haversack_store::ErrorKind::Denied);
}

#[test]
fn a_container_is_tried_as_the_agent() {
    let entra = Entra::honest();
    let desk = Desk::new();
    let identity = desk.identity(&entra.authority());
    let listing = "<?xml version=\"1.0\"?><EnumerationResults><Blobs/><NextMarker/></EnumerationResults>";
    let said = |status: u16, body: &str| Reply::Http {
        status,
        headers: "Content-Type: application/xml\r\n".to_owned(),
        body: body.into(),
    };
    let refusal = "<Error><Code>AuthorizationPermissionMismatch</Code></Error>";
    let cases = [
        (said(200, listing), None),
        (said(403, refusal), Some(haversack_store::ErrorKind::Denied)),
        (said(401, ""), Some(haversack_store::ErrorKind::Denied)),
        (said(404, ""), Some(haversack_store::ErrorKind::NotFound)),
        (said(503, ""), Some(haversack_store::ErrorKind::Unavailable)),
        (Reply::Drop, Some(haversack_store::ErrorKind::Unavailable)),
    ];
    for (reply, kind) in cases {
        let blobs = Entra::start(answers(move |_| reply.clone()));
        let outcome = block_on(identity.try_container(&blobs.authority(), "agent-1"));
        assert_eq!(outcome.as_ref().err().map(haversack_store::Error::kind), kind, "{outcome:?}");
        let asked = blobs.asked();
        assert_eq!(asked.len(), 1, "{kind:?}");
        assert_eq!(asked[0].header("authorization"), format!("Bearer {}", entra::storage_token(1)));
        assert_eq!(asked[0].path, "/agent-1?restype=container&comp=list&maxresults=1");
        assert!(!format!("{outcome:?}").contains("hhhh"), "{outcome:?}");
    }
    assert_eq!(entra.asked().len(), 3);
    let open =
        block_on(identity.try_container("http://storage.example.org", "agent-1")).expect_err("refused");
    assert_eq!(open.kind(), haversack_store::ErrorKind::Invalid, "{open}");
}
