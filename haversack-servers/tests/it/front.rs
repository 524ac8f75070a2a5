//! The actions of a front, before a store whose content can be read.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use haversack_servers::{Act, Answer, Azurite, Front, Gcs, Moto, Responder, azurite, http, moto};

struct Scene {
    gcs: Gcs,
    bucket: String,
    front: Front,
}

impl Scene {
    fn new() -> Scene {
        let gcs = Gcs::start();
        let bucket = gcs.new_bucket();
        let front = Front::before(gcs.endpoint());
        Scene { gcs, bucket, front }
    }

    fn ask(&self, method: &str, body: &[u8]) -> Result<Answer, String> {
        self.ask_with(method, &[], body)
    }

    fn ask_with(&self, method: &str, headers: &[(&str, &str)], body: &[u8]) -> Result<Answer, String> {
        let authorization = format!("Bearer {}", self.gcs.token());
        let mut headers = headers.to_vec();
        headers.push(("authorization", &authorization));
        http::send(method, &format!("{}/{}/note", self.front.url(), self.bucket), &headers, body)
    }

    fn stored(&self) -> Option<String> {
        let found = self.gcs.object(&self.bucket, "note")?;
        Some(String::from_utf8(found).expect("it is text"))
    }
}

#[test]
fn passes_and_writes_down() {
    let scene = Scene::new();
    assert_eq!(scene.ask_with("PUT", &[("x-goog-meta-a", "1")], b"hello").expect("it passes").status, 200);
    assert_eq!(scene.ask("GET", b"").expect("it passes").body, b"hello");
    assert_eq!(scene.ask("DELETE", b"").expect("it passes").status, 204);
    let seen = scene.front.seen();
    let told: Vec<_> = seen
        .iter()
        .map(|seen| (seen.number, seen.method.as_str(), seen.status, seen.request_bytes, seen.response_bytes))
        .collect();
    assert_eq!(
        told,
        [(0, "PUT", Some(200), 5, 0), (1, "GET", Some(200), 0, 5), (2, "DELETE", Some(204), 0, 0)]
    );
    assert_eq!(seen[0].path, format!("/{}/note", scene.bucket));
    assert_eq!(seen[0].header("X-Goog-Meta-A"), Some("1"));
    assert_eq!(seen.iter().map(|seen| seen.is_write()).collect::<Vec<_>>(), [true, false, true]);
    scene.front.forget();
    assert_eq!(scene.front.count(), 0);
}

#[test]
fn answers_instead() {
    let scene = Scene::new();
    scene.front.script(|_| Act::Answer(Answer::throttled(7)));
    let answer = scene.ask("PUT", b"x").expect("it is answered");
    assert_eq!((answer.status, answer.headers.get("retry-after")), (429, Some("7")));
    assert_eq!(scene.stored(), None);
    scene.front.script(|_| Act::answer(401, "no"));
    assert_eq!(scene.ask("GET", b"").expect("it is answered").text(), "no");
}

#[test]
fn commits_and_says_it_failed() {
    let scene = Scene::new();
    scene.front.script(|seen| match seen.number {
        0 => Act::CommitThenAnswer(Answer::new(503)),
        _ => Act::CommitThenDrop,
    });
    assert_eq!(scene.ask("PUT", b"first").expect("it is answered").status, 503);
    assert_eq!(scene.stored().as_deref(), Some("first"));
    scene.ask("PUT", b"second").expect_err("it is not answered");
    assert_eq!(scene.stored().as_deref(), Some("second"));
    assert_eq!(scene.front.seen().iter().map(|seen| seen.status).collect::<Vec<_>>(), [Some(503), None]);
}

#[test]
fn drops_what_it_is_asked() {
    let scene = Scene::new();
    scene.front.script(|_| Act::Drop);
    scene.ask("PUT", b"x").expect_err("it is not answered");
    assert_eq!(scene.stored(), None);
}

#[test]
fn hangs_until_it_is_gone() {
    let scene = Scene::new();
    scene.front.script(|_| Act::Hang);
    let (front, bucket) = (scene.front, scene.bucket);
    let url = format!("{}/{bucket}/note", front.url());
    let client = std::thread::spawn(move || http::send("GET", &url, &[], b""));
    while front.count() == 0 {
        std::thread::yield_now();
    }
    assert!(!client.is_finished());
    drop(front);
    client.join().expect("it returns").expect_err("it is never answered");
}

#[test]
fn is_slow_when_told() {
    let scene = Scene::new();
    scene.gcs.put(&scene.bucket, "note", "x".repeat(400));
    scene.front.script(|_| Act::Slow { bytes_per_second: 2000 });
    let started = Instant::now();
    assert_eq!(scene.ask("GET", b"").expect("it is answered").body.len(), 400);
    // Never faster than told; how much slower is the machine's affair.
    assert!(started.elapsed() >= Duration::from_millis(180));
    scene.front.script(|_| Act::Delay(Duration::from_millis(60)));
    scene.front.delay(Duration::from_millis(60));
    let started = Instant::now();
    assert_eq!(scene.ask("GET", b"").expect("it is answered").status, 200);
    assert!(started.elapsed() >= Duration::from_millis(120));
}

#[test]
fn alters_what_comes_back() {
    let scene = Scene::new();
    scene.gcs.put(&scene.bucket, "note", "the truth");
    scene.front.script(|_| {
        Act::change(|answer| {
            answer.headers.set("x-goog-generation", "1");
            answer.body = b"a much longer lie".to_vec();
        })
    });
    let answer = scene.ask("GET", b"").expect("it is answered");
    assert_eq!(
        (answer.text().as_str(), answer.headers.get("x-goog-generation")),
        ("a much longer lie", Some("1"))
    );
}

#[test]
fn loses_headers_when_told() {
    let scene = Scene::new();
    scene.gcs.put(&scene.bucket, "note", "old");
    let absent = [("x-goog-if-generation-match", "0")];
    assert_eq!(scene.ask_with("PUT", &absent, b"new").expect("it passes").status, 412);
    scene.front.script(|_| Act::WithoutHeaders(vec!["x-goog-if-generation-match"]));
    assert_eq!(scene.ask_with("PUT", &absent, b"new").expect("it passes").status, 200);
    scene.front.script(|_| Act::RefuseButWrite(vec!["x-goog-if-generation-match"]));
    assert_eq!(scene.ask_with("PUT", &absent, b"newer").expect("it passes").status, 412);
    assert_eq!(scene.stored().as_deref(), Some("newer"));
}

#[test]
fn keeps_the_host_the_client_named() {
    let responder = Responder::start(|_| Answer::new(200));
    let front = Front::before(responder.url());
    http::send("GET", front.url(), &[], b"").expect("it is answered");
    let asked = responder.asked();
    assert_eq!(asked[0].headers.get("host"), front.url().strip_prefix("http://"));
}

#[test]
fn says_502_when_nobody_is_behind_it() {
    let responder = Responder::start(|_| Answer::new(200));
    let front = Front::before(responder.url());
    drop(responder);
    assert_eq!(http::send("GET", front.url(), &[], b"").expect("it is answered").status, 502);
}

#[test]
fn speaks_tls_on_both_sides() {
    let responder = Responder::start_tls(|asked| Answer::new(200).with_body(asked.path.clone()));
    let front = Front::before_tls(&format!("{}/account/", responder.url()));
    let answer = http::send("GET", &format!("{}/x?y=z", front.url()), &[], b"").expect("it is answered");
    assert_eq!(answer.text(), "/account/x?y=z");
}

#[test]
fn counts_every_one_of_many() {
    let hits = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&hits);
    let responder = Responder::start(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        Answer::new(200)
    });
    let front = Front::before(responder.url());
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..25 {
                    assert_eq!(http::send("GET", front.url(), &[], b"").expect("it is answered").status, 200);
                }
            });
        }
    });
    let mut numbers: Vec<_> = front.seen().iter().map(|seen| seen.number).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..200).collect::<Vec<_>>());
    assert_eq!(hits.load(Ordering::Relaxed), 200);
}

#[test]
fn signatures_pass_through_to_real_servers() {
    if let Some(azurite) = Azurite::shared() {
        let blob = format!("{}/a%20note.md", azurite.new_container());
        let front = Front::before(azurite.endpoint());
        let ask = |method: &str, headers: &[(&str, &str)], body: &[u8]| {
            azurite::signed(front.url(), method, &blob, headers, body).expect("it is answered")
        };
        assert_eq!(ask("PUT", &[("if-none-match", "*")], b"x").status, 201);
        assert_eq!(ask("PUT", &[("if-none-match", "*")], b"y").status, 409);
        assert_eq!(ask("HEAD", &[], b"").headers.get("content-length"), Some("1"));
        assert_eq!(ask("GET", &[], b"").body, b"x");
    }
    if let Some(moto) = Moto::shared() {
        let note = format!("/{}/note.md", moto.new_bucket());
        let front = Front::before(moto.endpoint());
        let ask = |method: &str, body: &[u8]| {
            moto::signed(front.url(), method, &note, &[], body).expect("it is answered")
        };
        assert_eq!(ask("PUT", b"x").status, 200);
        assert_eq!(ask("GET", b"").body, b"x");
    }
}
