//! A fake of Google Cloud Storage: as much of its XML API as a client needs that keeps plain objects.
//!
//! No server to install heeds generations and answers as the real one does, so this stands in until there is a real bucket. Invariants:
//! - A condition is checked and the write done under one lock: of racing writers one wins. `gcs::one_of_sixteen_racers_wins`
//! - Every write has a generation of its own; the ETag follows from the content alone, as with the real one.
//! - Unknown requests are refused with 501, never silently.

mod listing;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use jiff::Timestamp;
use percent_encoding::percent_decode_str;
use ring::digest::{SHA256, digest};

use crate::fresh_name;
use crate::http::{Answer, Asked, Handler, Headers, Listening, Reply};
use crate::signing::hex;

/// Headers of a write that its reads give back.
const KEPT: [&str; 5] =
    ["cache-control", "content-disposition", "content-encoding", "content-language", "content-type"];

/// The beginning of a user's own headers.
const OWN: &str = "x-goog-meta-";

/// The header that names the generation there must be; 0 is none.
const IF_GENERATION: &str = "x-goog-if-generation-match";

/// The fake; it stops listening when this is dropped.
pub struct Gcs {
    endpoint: String,
    state: Arc<Mutex<State>>,
    _listening: Listening,
}

struct State {
    token: String,
    /// The latest generation; microseconds when it began, as the real ones look.
    generation: i64,
    buckets: BTreeMap<String, Bucket>,
}

type Bucket = BTreeMap<String, Object>;

struct Object {
    body: Bytes,
    generation: i64,
    e_tag: String,
    modified: Timestamp,
    kept: Headers,
}

impl Gcs {
    /// Starts an empty one.
    pub fn start() -> Gcs {
        Gcs::listen(false)
    }

    /// Starts an empty one that speaks TLS, with a certificate of [`crate::tls`].
    pub fn start_tls() -> Gcs {
        Gcs::listen(true)
    }

    fn listen(https: bool) -> Gcs {
        let state = State {
            token: fresh_name("token-"),
            generation: Timestamp::now().as_microsecond(),
            buckets: BTreeMap::new(),
        };
        let state = Arc::new(Mutex::new(state));
        let for_connections = Arc::clone(&state);
        let listening = Listening::start(https, move || -> Handler {
            let state = Arc::clone(&for_connections);
            Box::new(move |asked| {
                let answer = lock(&state).respond(&asked);
                Box::pin(async move { Reply::Whole(answer) })
            })
        });
        let scheme = if https { "https" } else { "http" };
        Gcs { endpoint: format!("{scheme}://{}", listening.host()), state, _listening: listening }
    }

    /// Returns its URL, without a slash at the end; buckets are in the path.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Returns the bearer token that it wants.
    pub fn token(&self) -> String {
        lock(&self.state).token.clone()
    }

    /// Makes it want another token from now on.
    pub fn expect_token(&self, token: &str) {
        lock(&self.state).token = token.to_owned();
    }

    /// Makes a new bucket, and returns its name.
    pub fn new_bucket(&self) -> String {
        let name = fresh_name("test-");
        lock(&self.state).buckets.insert(name.clone(), Bucket::new());
        name
    }

    /// Returns an object's content.
    pub fn object(&self, bucket: &str, key: &str) -> Option<Vec<u8>> {
        lock(&self.state).buckets.get(bucket)?.get(key).map(|object| object.body.to_vec())
    }

    /// Returns the keys of a bucket, in order.
    pub fn keys(&self, bucket: &str) -> Vec<String> {
        lock(&self.state).buckets.get(bucket).into_iter().flat_map(|bucket| bucket.keys().cloned()).collect()
    }

    /// Puts an object there behind the clients' backs, under any name.
    pub fn put(&self, bucket: &str, key: &str, body: impl Into<Bytes>) {
        let mut state = lock(&self.state);
        assert!(state.buckets.contains_key(bucket), "there is no bucket {bucket}");
        state.store(bucket, key, body.into(), Headers::default());
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    fn respond(&mut self, asked: &Asked) -> Answer {
        let wanted = format!("Bearer {}", self.token);
        if asked.headers.get("authorization") != Some(wanted.as_str()) {
            return refusal(401, "AuthenticationRequired", "Authentication required.");
        }
        let path = asked.path.split('?').next().unwrap_or_default().trim_start_matches('/');
        let (bucket, key) = path.split_once('/').unwrap_or((path, ""));
        let decoded = |text: &str| percent_decode_str(text).decode_utf8().map(|text| text.into_owned());
        let (Ok(bucket), Ok(key)) = (decoded(bucket), decoded(key)) else {
            return refusal(400, "InvalidURI", "The name is not UTF-8.");
        };
        if !self.buckets.contains_key(&bucket) {
            return refusal(404, "NoSuchBucket", "The specified bucket does not exist.");
        }
        let several_parts =
            ["uploads", "uploadId", "partNumber"].iter().any(|name| asked.query(name).is_some());
        match asked.method.as_str() {
            _ if several_parts => unknown(asked),
            "GET" if key.is_empty() => listing::list(&self.buckets[&bucket], &bucket, asked),
            "GET" | "HEAD" if !key.is_empty() => self.read(&bucket, &key, asked),
            "PUT" if !key.is_empty() => self.write(&bucket, &key, asked),
            "DELETE" if !key.is_empty() => self.delete(&bucket, &key, asked),
            _ => unknown(asked),
        }
    }

    fn read(&self, bucket: &str, key: &str, asked: &Asked) -> Answer {
        let wanted = asked.query("generation");
        let found = self.buckets[bucket].get(key);
        let found =
            found.filter(|object| wanted.is_none_or(|wanted| wanted == object.generation.to_string()));
        let Some(object) = found else { return no_such_key() };
        if asked.headers.get(IF_GENERATION).is_some_and(|wanted| wanted != object.generation.to_string())
            || asked.headers.get("if-match").is_some_and(|tags| !names(tags, &object.e_tag))
        {
            return precondition_failed();
        }
        let described = object.describe(200);
        if asked.headers.get("if-none-match").is_some_and(|tags| names(tags, &object.e_tag)) {
            return Answer { status: 304, ..described };
        }
        match asked.headers.get("range").and_then(|range| parse_range(range, object.body.len())) {
            None => described.with_body(object.body.to_vec()),
            Some(Err(())) => refusal(416, "InvalidRange", "The requested range cannot be satisfied.")
                .with_header("content-range", format!("bytes */{}", object.body.len())),
            Some(Ok((from, to))) => {
                let range = format!("bytes {from}-{}/{}", to - 1, object.body.len());
                let part = object.describe(206).with_header("content-range", range);
                part.with_body(object.body[from..to].to_vec())
            }
        }
    }

    fn write(&mut self, bucket: &str, key: &str, asked: &Asked) -> Answer {
        let present = self.buckets[bucket].get(key).map(|object| object.generation);
        if asked.headers.get(IF_GENERATION).is_some_and(|wanted| wanted != present.unwrap_or(0).to_string()) {
            return precondition_failed();
        }
        let (body, kept) = match asked.headers.get("x-goog-copy-source") {
            None => {
                let is_kept = |name: &str| KEPT.contains(&name) || name.starts_with(OWN);
                let kept = asked.headers.0.iter().filter(|(name, _)| is_kept(name)).cloned().collect();
                (asked.body.clone(), Headers(kept))
            }
            Some(source) => {
                let source = percent_decode_str(source.trim_start_matches('/')).decode_utf8_lossy();
                let source =
                    source.split_once('/').and_then(|(bucket, key)| self.buckets.get(bucket)?.get(key));
                let Some(source) = source else { return no_such_key() };
                (source.body.clone(), source.kept.clone())
            }
        };
        let object = self.store(bucket, key, body, kept);
        Answer::new(200)
            .with_header("etag", object.e_tag.clone())
            .with_header("x-goog-generation", object.generation.to_string())
            .with_header("x-goog-metageneration", "1")
    }

    fn delete(&mut self, bucket: &str, key: &str, asked: &Asked) -> Answer {
        let Some(object) = self.buckets[bucket].get(key) else { return no_such_key() };
        if asked.headers.get(IF_GENERATION).is_some_and(|wanted| wanted != object.generation.to_string()) {
            return precondition_failed();
        }
        self.buckets.get_mut(bucket).expect("it was just read").remove(key);
        Answer::new(204)
    }

    fn store(&mut self, bucket: &str, key: &str, body: Bytes, kept: Headers) -> &Object {
        self.generation += 1;
        let e_tag = format!("\"{}\"", hex(&digest(&SHA256, &body).as_ref()[..16]));
        let object = Object { body, generation: self.generation, e_tag, modified: Timestamp::now(), kept };
        let objects = self.buckets.entry(bucket.to_owned()).or_default();
        objects.insert(key.to_owned(), object);
        &objects[key]
    }
}

impl Object {
    /// Returns an answer that says everything of the object but its content.
    fn describe(&self, status: u16) -> Answer {
        let mut answer = Answer::new(status);
        answer.headers = self.kept.clone();
        answer
            .with_header("etag", self.e_tag.clone())
            .with_header("last-modified", self.modified.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string())
            .with_header("x-goog-generation", self.generation.to_string())
            .with_header("x-goog-metageneration", "1")
            .with_header("x-goog-stored-content-length", self.body.len().to_string())
    }
}

/// Returns whether a list of tags names this one.
fn names(tags: &str, e_tag: &str) -> bool {
    let bare = |tag: &str| tag.trim().trim_start_matches("W/").trim_matches('"').to_owned();
    tags.trim() == "*" || tags.split(',').any(|tag| bare(tag) == bare(e_tag))
}

/// Returns where a range begins and ends in so many bytes, or that there is nothing in it; `None` if it is to be ignored.
fn parse_range(range: &str, size: usize) -> Option<Result<(usize, usize), ()>> {
    let (from, to) = range.strip_prefix("bytes=")?.split_once('-')?;
    let (from, to) = match (from, to) {
        ("", last) => (size.saturating_sub(last.parse().ok()?), size),
        (from, "") => (from.parse().ok()?, size),
        (from, to) => (from.parse().ok()?, to.parse::<usize>().ok()?.saturating_add(1).min(size)),
    };
    Some(if from < to { Ok((from, to)) } else { Err(()) })
}

fn refusal(status: u16, code: &str, message: &str) -> Answer {
    let body = format!(
        "<?xml version='1.0' encoding='UTF-8'?><Error><Code>{code}</Code><Message>{message}</Message></Error>"
    );
    Answer::new(status).with_header("content-type", "application/xml; charset=UTF-8").with_body(body)
}

fn no_such_key() -> Answer {
    refusal(404, "NoSuchKey", "The specified key does not exist.")
}

fn precondition_failed() -> Answer {
    refusal(412, "PreconditionFailed", "At least one of the pre-conditions you specified did not hold.")
}

fn unknown(asked: &Asked) -> Answer {
    refusal(501, "NotImplemented", &format!("The fake has no {} for that.", asked.method))
}
