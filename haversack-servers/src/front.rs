//! A front before a server: it passes requests on, writes them down, and misbehaves when told to.
//!
//! Requests and answers are taken whole before they are passed on. The client's `Host` is kept, since signatures cover it.

mod act;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

pub use act::Act;

use crate::http::{Address, Answer, Asked, Connection, Handler, Headers, Listening, Reply};
use crate::{signing, tls};

/// After how long a connection to the server is not used again: the server might be closing it.
const IDLE: Duration = Duration::from_secs(1);

/// A front; it stops listening when this is dropped.
pub struct Front {
    url: String,
    shared: Arc<Shared>,
    _listening: Listening,
}

/// A request that came by.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The number of requests before it, since the front was started or reset.
    pub number: usize,
    /// The method.
    pub method: String,
    /// The path with the query, as it was sent.
    pub path: String,
    /// The headers.
    pub headers: Headers,
    /// How large its body is.
    pub request_bytes: usize,
    /// The status for the client; `None` before that, and if there was no answer.
    pub status: Option<u16>,
    /// How large the body is that the client was sent.
    pub response_bytes: usize,
}

impl Seen {
    /// Returns whether it asks for a change.
    pub fn is_write(&self) -> bool {
        matches!(self.method.as_str(), "PUT" | "POST" | "PATCH" | "DELETE")
    }

    /// Returns the first value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)
    }
}

/// Decides about each request.
type Script = dyn Fn(&Seen) -> Act + Send + Sync;

struct Shared {
    upstream: Address,
    state: Mutex<State>,
}

struct State {
    script: Arc<Script>,
    delay: Duration,
    seen: Vec<Seen>,
    /// The number of resets: requests from before a reset are not recorded.
    round: usize,
    signer: Option<(String, String)>,
    /// The lock of writers, if writes are let through one after the other.
    turn: Option<Arc<tokio::sync::Mutex<()>>>,
}

impl Front {
    /// Starts a front before the server of a URL, which may be one of ours that speaks TLS.
    pub fn before(upstream: &str) -> Front {
        Front::listen(false, upstream)
    }

    /// Starts a front that speaks TLS, with a certificate of [`crate::tls`].
    pub fn before_tls(upstream: &str) -> Front {
        Front::listen(true, upstream)
    }

    fn listen(https: bool, upstream: &str) -> Front {
        let upstream = Address::parse(upstream).unwrap_or_else(|why| panic!("{why}"));
        let path = upstream.path.trim_end_matches('/').to_owned();
        let state = State {
            script: Arc::new(|_| Act::Pass),
            delay: Duration::ZERO,
            seen: Vec::new(),
            round: 0,
            signer: None,
            turn: None,
        };
        let shared = Arc::new(Shared { upstream, state: Mutex::new(state) });
        let for_connections = Arc::clone(&shared);
        let listening = Listening::start(https, move || -> Handler {
            let shared = Arc::clone(&for_connections);
            // As the client keeps a connection to us, we keep one to the server.
            let link = Arc::new(tokio::sync::Mutex::new(None));
            Box::new(move |asked| {
                let (shared, link) = (Arc::clone(&shared), Arc::clone(&link));
                Box::pin(async move { shared.take(asked, &mut *link.lock().await).await })
            })
        });
        let scheme = if https { "https" } else { "http" };
        Front { url: format!("{scheme}://{}{path}", listening.host()), shared, _listening: listening }
    }

    /// Returns the server's URL with the front's address in it, without a slash at the end.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the certificate that a client has to trust when the front speaks TLS.
    pub fn ca_pem(&self) -> &'static str {
        tls::ca_pem()
    }

    /// Lets a function decide what becomes of each request from now on; before, all are passed.
    pub fn script(&self, script: impl Fn(&Seen) -> Act + Send + Sync + 'static) {
        self.shared.change(|state| state.script = Arc::new(script));
    }

    /// Waits so long with every request from now on, whatever the script says.
    pub fn delay(&self, delay: Duration) {
        self.shared.change(|state| state.delay = delay);
    }

    /// Lets one write through at a time from now on: a server that checks a condition and then writes, without a lock, keeps it so.
    pub fn one_write_at_a_time(&self) {
        self.shared.change(|state| state.turn = Some(Arc::default()));
    }

    /// Signs with an Azure account's key what lost headers here, if the client signed it so.
    ///
    /// A server that verifies signatures would see that something is missing.
    pub fn sign_as(&self, account: &str, key: &str) {
        let signer = (account.to_owned(), key.to_owned());
        self.shared.change(|state| state.signer = Some(signer));
    }

    /// Returns every request since the start, or since it was told to forget.
    pub fn seen(&self) -> Vec<Seen> {
        self.shared.change(|state| state.seen.clone())
    }

    /// Returns how many those are.
    pub fn count(&self) -> usize {
        self.shared.change(|state| state.seen.len())
    }

    /// Forgets the requests so far; the next has number 0.
    pub fn forget(&self) {
        self.shared.change(|state| {
            state.seen.clear();
            state.round += 1;
        });
    }
}

/// The connection to the server that belongs to a client's, and when it was last used.
type Link = Option<(Connection, Instant)>;

impl Shared {
    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Writes a request down, asks the script and does what it says.
    async fn take(&self, asked: Asked, link: &mut Link) -> Reply {
        let (seen, round, script, delay, turn) = self.change(|state| {
            let seen = Seen {
                number: state.seen.len(),
                method: asked.method.clone(),
                path: asked.path.clone(),
                headers: asked.headers.clone(),
                request_bytes: asked.body.len(),
                status: None,
                response_bytes: 0,
            };
            state.seen.push(seen.clone());
            let turn = state.turn.clone().filter(|_| seen.is_write());
            (seen, state.round, Arc::clone(&state.script), state.delay, turn)
        });
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        let number = seen.number;
        // A script is the test's code and may wait for something.
        let Ok(act) = tokio::task::spawn_blocking(move || script(&seen)).await else { return Reply::Gone };
        let _turn = match &turn {
            Some(turn) => Some(turn.lock().await),
            None => None,
        };
        let reply = self.act(act, asked, link).await;
        if let Reply::Whole(answer) | Reply::Trickling(answer, _) = &reply {
            self.change(|state| {
                if let (true, Some(seen)) = (state.round == round, state.seen.get_mut(number)) {
                    seen.status = Some(answer.status);
                    seen.response_bytes = answer.body.len();
                }
            });
        }
        reply
    }

    async fn act(&self, act: Act, asked: Asked, link: &mut Link) -> Reply {
        match act {
            Act::Pass => Reply::Whole(self.forward(&asked, link).await),
            Act::Answer(answer) => Reply::Whole(answer),
            Act::CommitThenAnswer(answer) => {
                self.forward(&asked, link).await;
                Reply::Whole(answer)
            }
            Act::CommitThenDrop => {
                self.forward(&asked, link).await;
                Reply::Gone
            }
            Act::Drop => Reply::Gone,
            Act::Hang => std::future::pending().await,
            Act::Slow { bytes_per_second } => {
                Reply::Trickling(self.forward(&asked, link).await, bytes_per_second)
            }
            Act::Delay(delay) => {
                tokio::time::sleep(delay).await;
                Reply::Whole(self.forward(&asked, link).await)
            }
            Act::Change(change) => {
                let mut answer = self.forward(&asked, link).await;
                change(&mut answer);
                Reply::Whole(answer)
            }
            Act::WithoutHeaders(names) => {
                let stripped = self.without(asked, &names);
                Reply::Whole(self.forward(&stripped, link).await)
            }
            Act::RefuseButWrite(names) => {
                let answer = self.forward(&asked, link).await;
                if matches!(answer.status, 404 | 409 | 412) {
                    let stripped = self.without(asked, &names);
                    self.forward(&stripped, link).await;
                }
                Reply::Whole(answer)
            }
        }
    }

    /// Returns a request without some headers, signed once more if need be.
    fn without(&self, mut asked: Asked, names: &[&str]) -> Asked {
        let lost = names.iter().filter(|name| asked.headers.remove(name)).count();
        let by_key = asked.headers.get("authorization").is_some_and(|value| value.starts_with("SharedKey "));
        if let (true, true, Some((account, key))) =
            (lost > 0, by_key, self.change(|state| state.signer.clone()))
        {
            asked.headers.set("authorization", signing::shared_key(&account, &key, &asked));
        }
        asked
    }

    /// Passes a request on. A server that cannot be reached is a 502, as with any proxy.
    async fn forward(&self, asked: &Asked, link: &mut Link) -> Answer {
        let failed = |why: String| Answer::new(502).with_body(format!("the front has no answer: {why}"));
        let kept = match link.take() {
            Some((mut connection, last)) if last.elapsed() < IDLE => {
                connection.is_open().await.then_some(connection)
            }
            _ => None,
        };
        let mut connection = match kept {
            Some(connection) => connection,
            None => match Connection::open(&self.upstream).await {
                Ok(connection) => connection,
                Err(why) => return failed(why),
            },
        };
        match connection.exchange(asked, &self.upstream.host).await {
            Ok(answer) => {
                *link = Some((connection, Instant::now()));
                answer
            }
            Err(why) => failed(why),
        }
    }
}
