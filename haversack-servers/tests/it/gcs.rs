//! The fake of Google Cloud Storage.

use haversack_servers::{Answer, Gcs, http};

struct Bucket {
    gcs: Gcs,
    name: String,
}

impl Bucket {
    fn new() -> Bucket {
        let gcs = Gcs::start();
        let name = gcs.new_bucket();
        Bucket { gcs, name }
    }

    fn ask(&self, method: &str, key: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let authorization = format!("Bearer {}", self.gcs.token());
        let mut headers = headers.to_vec();
        headers.push(("authorization", &authorization));
        let url = format!("{}/{}{key}", self.gcs.endpoint(), self.name);
        http::send(method, &url, &headers, body).expect("it answers")
    }

    fn put_if(&self, key: &str, generation: &str, body: &[u8]) -> Answer {
        self.ask("PUT", key, &[("x-goog-if-generation-match", generation)], body)
    }

    /// Returns the keys and prefixes of a page, and the token for the next.
    fn page(&self, query: &str) -> (Vec<String>, Option<String>) {
        let text = self.ask("GET", &format!("?list-type=2{query}"), &[], b"").text();
        let inside = |text: &str, name: &str| -> Vec<String> {
            let begin = format!("<{name}>");
            let parts = text.split(begin.as_str()).skip(1);
            parts.map(|part| part.split("</").next().unwrap_or_default().to_owned()).collect()
        };
        let mut found = inside(&text, "Key");
        found.extend(inside(&text, "CommonPrefixes><Prefix"));
        (found, inside(&text, "NextContinuationToken").pop())
    }
}

#[test]
fn keeps_objects_with_what_was_said_of_them() {
    let bucket = Bucket::new();
    let headers = [("content-type", "text/markdown"), ("x-goog-meta-writer", "a user")];
    let put = bucket.ask("PUT", "/a%2Fnote%20%C3%A9.md", &headers, b"0123456789");
    assert_eq!(put.status, 200);
    assert_eq!(bucket.gcs.object(&bucket.name, "a/note é.md").as_deref(), Some(b"0123456789".as_slice()));
    for method in ["GET", "HEAD"] {
        let got = bucket.ask(method, "/a/note%20%C3%A9.md", &[], b"");
        for name in ["etag", "x-goog-generation"] {
            assert_eq!(got.headers.get(name), put.headers.get(name), "{method} {name}");
        }
        assert_eq!(got.headers.get("content-length"), Some("10"));
        assert_eq!(got.headers.get("x-goog-meta-writer"), Some("a user"));
        assert_eq!(got.headers.get("content-type"), Some("text/markdown"));
        assert!(got.headers.get("last-modified").is_some_and(|date| date.ends_with(" GMT")));
    }
    let e_tag = put.headers.get("etag").expect("it has one");
    assert_eq!(bucket.ask("GET", "/a%2Fnote%20%C3%A9.md", &[("if-none-match", e_tag)], b"").status, 304);
    for (range, status, body) in [
        ("bytes=2-4", 206, "234"),
        ("bytes=7-", 206, "789"),
        ("bytes=-2", 206, "89"),
        ("bytes=8-99", 206, "89"),
    ] {
        let got = bucket.ask("GET", "/a%2Fnote%20%C3%A9.md", &[("range", range)], b"");
        assert_eq!((got.status, got.text().as_str()), (status, body), "{range}");
    }
    assert_eq!(bucket.ask("GET", "/a%2Fnote%20%C3%A9.md", &[("range", "bytes=10-")], b"").status, 416);
}

#[test]
fn heeds_generations() {
    let bucket = Bucket::new();
    assert_eq!(bucket.put_if("/note", "7", b"x").status, 412);
    let first = bucket.put_if("/note", "0", b"x");
    assert_eq!(first.status, 200);
    assert_eq!(bucket.put_if("/note", "0", b"y").status, 412);
    let first = first.headers.get("x-goog-generation").expect("it has one").to_owned();
    // The same content: another generation, the same tag.
    let second = bucket.put_if("/note", &first, b"x");
    assert_eq!(second.status, 200);
    let second = second.headers.get("x-goog-generation").expect("it has one").to_owned();
    assert_ne!(first, second);
    assert_eq!(bucket.put_if("/note", &first, b"y").status, 412);
    let delete = |generation: &str| {
        bucket.ask("DELETE", "/note", &[("x-goog-if-generation-match", generation)], b"").status
    };
    assert_eq!([delete(&first), delete(&second), delete(&second)], [412, 204, 404]);
    assert_eq!(bucket.gcs.object(&bucket.name, "note"), None);
}

#[test]
fn wants_its_token_and_a_bucket_that_exists() {
    let bucket = Bucket::new();
    let url = format!("{}/{}/note", bucket.gcs.endpoint(), bucket.name);
    assert_eq!(http::send("PUT", &url, &[], b"x").expect("it answers").status, 401);
    let wrong = [("authorization", "Bearer somebody")];
    assert_eq!(http::send("PUT", &url, &wrong, b"x").expect("it answers").status, 401);
    bucket.gcs.expect_token("somebody");
    assert_eq!(http::send("PUT", &url, &wrong, b"x").expect("it answers").status, 200);
    let elsewhere = format!("{}/nowhere/note", bucket.gcs.endpoint());
    assert!(http::send("GET", &elsewhere, &wrong, b"").expect("it answers").text().contains("NoSuchBucket"));
    assert_eq!(bucket.ask("POST", "/note?uploads", &[], b"").status, 501);
}

#[test]
fn lists_a_page_at_a_time() {
    let bucket = Bucket::new();
    for number in 0..2500 {
        bucket.gcs.put(&bucket.name, &format!("n/{number:04}"), "x");
    }
    let (mut all, mut token, mut pages) = (Vec::new(), None, 0);
    loop {
        let query = token.map_or_else(String::new, |token| format!("&continuation-token={token}"));
        let (page, next) = bucket.page(&format!("&prefix=n/{query}"));
        assert!(page.len() <= 1000);
        all.extend(page);
        pages += 1;
        token = next;
        if token.is_none() {
            break;
        }
    }
    assert_eq!((all, pages), (bucket.gcs.keys(&bucket.name), 3));
    assert_eq!(bucket.page("&start-after=n/2497").0, ["n/2498", "n/2499"]);
    // Exactly a page is all there is.
    assert_eq!(bucket.page("&start-after=n/1499").1, None);
}

#[test]
fn lists_directories_once() {
    let bucket = Bucket::new();
    for key in ["a", "b/1", "b/2", "b/c/3", "c/4", "d", "<odd & \"key\">"] {
        bucket.gcs.put(&bucket.name, key, "x");
    }
    let odd = "&lt;odd &amp; &quot;key&quot;&gt;";
    assert_eq!(bucket.page("&delimiter=/").0, [odd, "a", "d", "b/", "c/"]);
    assert_eq!(bucket.page("&delimiter=%2F&prefix=b%2F").0, ["b/1", "b/2", "b/c/"]);
    let (mut all, mut token, mut rounds) = (Vec::new(), String::new(), 0);
    loop {
        let (page, next) = bucket.page(&format!("&delimiter=/&max-keys=1{token}"));
        all.extend(page);
        rounds += 1;
        let Some(next) = next else { break };
        token = format!("&continuation-token={next}");
    }
    assert_eq!((all, rounds), ([odd, "a", "b/", "c/", "d"].map(str::to_owned).to_vec(), 5));
}

#[test]
fn one_of_sixteen_racers_wins() {
    let bucket = Bucket::new();
    let mut generation = "0".to_owned();
    for _ in 0..20 {
        let statuses = std::thread::scope(|scope| {
            let race = |number: u8| bucket.put_if("/note", &generation, &[number]).status;
            let racers: Vec<_> = (0..16).map(|number| scope.spawn(move || race(number))).collect();
            racers.into_iter().map(|racer| racer.join().expect("it answers")).collect::<Vec<_>>()
        });
        assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
        assert_eq!(statuses.iter().filter(|status| **status == 412).count(), 15, "{statuses:?}");
        let got = bucket.ask("GET", "/note", &[], b"");
        let winner = statuses.iter().position(|status| *status == 200).expect("there is one");
        assert_eq!(usize::from(got.body[0]), winner);
        generation = got.headers.get("x-goog-generation").expect("it has one").to_owned();
    }
}
