//! The page: the memory in the user's browser, served to this machine only.
//!
//! 1. [`PageServer::new`] makes the secrets of this run: a directory in the address, a cookie, a token for forms.
//! 2. A one-time code opens the page: `enter` exchanges it for the cookie. The code stands in a file that only the user can read, which the browser
//!    opens, so that it is in no list of processes.
//! 3. Every request passes the checks of [`admission`], before anything of it is used.
//! 4. A view is made of data of `app` and written as HTML; every text in it is escaped. Forms carry the token; a change is made with the content that
//!    the user saw.
//! 5. The server ends after a while without requests.
//!
//! # Invariants
//! 1. Only a browser with the code gets in, and only requests of our own page change something (`page::admission`, `page::browser::attacks`).
//! 2. Nothing in a memory becomes an element, and the page asks no other server (`page::hostile`, `page::browser::hostile`).
//! 3. An edit of the page never overwrites a text that its user did not see (`page::edits`).

mod admission;
mod data;
mod export;
mod form;
mod kept;
mod shell;
mod text;
mod view;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use haversack::ids::{ContentHash, Ids, Timestamp};
use haversack_system::RandomIds;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION, REFERRER_POLICY,
    SET_COOKIE, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use hyper::{Method, Request, Response, StatusCode};
use maud::Markup;
use tokio::net::TcpListener;

use self::admission::{Admission, Codes, Refusal, Target, cookie};
use self::data::{PageData, locked};
pub(crate) use self::export::{Export, MARK, export};
use self::form::Fields;
use self::shell::{SCRIPT, STYLE, View, document, refusal, welcome};
use self::view::edit::Outcome;
use crate::error::CommandError;
use crate::serve::http::{self, Body, ConnectionSlot, READ_WAIT};
use crate::settings::Resolved;

/// The largest form. A text may have three times its bytes in it.
const MAX_BODY_BYTES: usize = 4 * 1024 * 1024;

/// The interval at which we check if the page is still used.
const GLANCE: Duration = Duration::from_millis(200);

/// The things that a browser may do with our answers: load our own files and send forms to us, nothing else.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// A server of the page.
pub(crate) struct PageServer {
    address: SocketAddr,
    /// The directory that everything is in.
    prefix: String,
    session: String,
    admission: Admission,
    codes: Codes,
    data: PageData,
    /// The version of the style and the script, so that a browser never uses those of another release.
    version: String,
    /// The moment of the last request that was let in, and the requests under way.
    last: Mutex<Instant>,
    underway: AtomicU64,
}

/// Returns random text of 128 bits.
fn secret() -> String {
    RandomIds.next().iter().map(|byte| format!("{byte:02x}")).collect()
}

impl PageServer {
    /// Makes a server for a listener's address.
    pub(crate) fn new(resolved: &Resolved, address: SocketAddr, last_visit: Option<Timestamp>) -> PageServer {
        let session = [secret(), secret()].concat();
        let token = [secret(), secret()].concat();
        PageServer {
            address,
            prefix: secret(),
            admission: Admission::new(address.to_string(), &session, &token),
            session,
            codes: Codes::default(),
            data: PageData::new(resolved, token, last_visit),
            version: ContentHash::of([STYLE, SCRIPT].concat().as_bytes()).to_string()[..12].to_owned(),
            last: Mutex::new(Instant::now()),
            underway: AtomicU64::new(0),
        }
    }

    /// Returns an address that opens the page once.
    pub(crate) fn new_entrance(&self) -> String {
        let code = secret();
        self.codes.add(&code);
        format!("http://{}/{}/enter?code={code}", self.address, self.prefix)
    }

    /// Serves until no request came for `idle`, or `stop` is done.
    pub(crate) async fn serve(
        self: Arc<PageServer>,
        listener: TcpListener,
        idle: Duration,
        stop: impl Future<Output = ()>,
    ) {
        let warm = self.clone();
        // It is looked at the memory while the browser starts.
        drop(tokio::task::spawn_blocking(move || warm.data.warm_up()));
        let server = self.clone();
        let answer = move |request, slot: Arc<ConnectionSlot>| {
            let server = server.clone();
            async move { server.answer(request, &slot).await }
        };
        let ended = async {
            tokio::select! {
                () = self.idle(idle) => {}
                () = stop => {}
            }
        };
        http::accept(listener, answer, ended).await;
        self.data.end();
    }

    /// Waits until no request came for so long.
    async fn idle(&self, idle: Duration) {
        while self.underway.load(Ordering::Relaxed) > 0 || locked(&self.last).elapsed() < idle {
            tokio::time::sleep(GLANCE).await;
        }
    }

    async fn answer(
        self: Arc<PageServer>,
        request: Request<Incoming>,
        slot: &ConnectionSlot,
    ) -> Response<Body> {
        let path = request.uri().path().to_owned();
        let inside = path.strip_prefix('/').and_then(|path| path.strip_prefix(self.prefix.as_str()));
        let place = inside.and_then(|path| path.strip_prefix('/')).map(str::to_owned);
        let target = if place.as_deref() == Some("enter") { Target::Entrance } else { Target::Inside };
        if let Err(why) = self.admission.judge(request.method(), target, request.headers()) {
            return refused(why);
        }
        let Some(place) = place else { return not_found() };
        let query = Fields::parse(request.uri().query().unwrap_or_default()).unwrap_or_default();
        if target == Target::Entrance {
            return self.enter(&query);
        }
        // The connection has shown the cookie, so strangers cannot push it out.
        let _ = slot.admit();
        *locked(&self.last) = Instant::now();
        self.underway.fetch_add(1, Ordering::Relaxed);
        let response = self.clone().inside(request, place, query).await;
        self.underway.fetch_sub(1, Ordering::Relaxed);
        *locked(&self.last) = Instant::now();
        response
    }

    /// Exchanges a code for the cookie.
    fn enter(&self, query: &Fields) -> Response<Body> {
        if !self.codes.take(query.get("code")) {
            let why =
                "This address was used already, or is too old. Open the page again with: haversack open";
            return page(StatusCode::FORBIDDEN, &refusal("This address opens nothing", why));
        }
        let mut response = page(StatusCode::OK, &welcome());
        if let Ok(value) = HeaderValue::from_str(&cookie(&self.session, &self.prefix)) {
            response.headers_mut().insert(SET_COOKIE, value);
        }
        response
    }

    async fn inside(
        self: Arc<PageServer>,
        request: Request<Incoming>,
        place: String,
        query: Fields,
    ) -> Response<Body> {
        match (request.method(), place.as_str()) {
            (&Method::GET, "style.css") => asset("text/css; charset=utf-8", STYLE),
            (&Method::GET, "script.js") => asset("text/javascript; charset=utf-8", SCRIPT),
            (&Method::GET, "") => go_to("now"),
            (&Method::GET, _) => self.work(move |server| server.view(&place, &query)).await,
            (&Method::POST, _) => {
                let body = Limited::new(request.into_body(), MAX_BODY_BYTES);
                let body = match tokio::time::timeout(READ_WAIT, body.collect()).await {
                    Ok(Ok(body)) => body.to_bytes(),
                    Ok(Err(_)) => {
                        return plain(
                            StatusCode::PAYLOAD_TOO_LARGE,
                            "The form is too large. Nothing was changed.",
                        );
                    }
                    Err(_) => {
                        return plain(
                            StatusCode::REQUEST_TIMEOUT,
                            "The form did not come in time. Nothing was changed.",
                        );
                    }
                };
                let fields = std::str::from_utf8(&body).ok().and_then(Fields::parse);
                let Some(fields) = fields else {
                    return plain(StatusCode::BAD_REQUEST, "The form is not text. Nothing was changed.");
                };
                if !self.admission.has_token(fields.get("token")) {
                    return plain(
                        StatusCode::FORBIDDEN,
                        "The form is not of this page. Nothing was changed. Open the page again.",
                    );
                }
                self.work(move |server| server.act(&place, &fields)).await
            }
            _ => plain(StatusCode::METHOD_NOT_ALLOWED, "GET or POST"),
        }
    }

    /// Does work that waits for the disk, beside the connections.
    async fn work(
        self: Arc<PageServer>,
        work: impl FnOnce(&PageServer) -> Response<Body> + Send + 'static,
    ) -> Response<Body> {
        let done = tokio::task::spawn_blocking(move || work(&self)).await;
        done.unwrap_or_else(|_| {
            plain(StatusCode::INTERNAL_SERVER_ERROR, "This view failed. Please report it.")
        })
    }

    fn view(&self, place: &str, query: &Fields) -> Response<Body> {
        let data = &self.data;
        if place == "memories" && query.get("part") == "list" {
            return match view::memories::part(data, query) {
                Ok(list) => page(StatusCode::OK, &list),
                Err(error) => plain(StatusCode::INTERNAL_SERVER_ERROR, error.in_one_line()),
            };
        }
        let shown = match place {
            "now" => view::now::view(data, query),
            "memories" => view::memories::view(data, query),
            "memory" => view::memory::view(data, query),
            "edit" => view::edit::view(data, query),
            "undo" => view::undo::view(data, query),
            "change" => view::change::view(data, query),
            "conflicts" => view::conflicts::view(data, query),
            "inbox" => view::inbox::view(data, query),
            "tidy" => view::tidy::view(data, query),
            "next" => view::next::view(data, query),
            "time" => view::time::view(data, query),
            "graph" => view::graph::view(data, query),
            "machines" => view::machines::view(data, query),
            "health" => view::health::view(data, query),
            _ => return not_found(),
        };
        match shown {
            Ok(view) => page(StatusCode::OK, &document(&view, &self.version)),
            Err(error) => self.failed(&error),
        }
    }

    fn act(&self, place: &str, fields: &Fields) -> Response<Body> {
        let data = &self.data;
        let outcome = match place {
            "edit" => view::edit::save(data, fields),
            "delete" => view::edit::delete(data, fields),
            "undo" => view::undo::carry_out(data, fields),
            "resolve" => view::conflicts::settle(data, fields),
            "answer" => view::inbox::answer(data, fields),
            "pin" => view::pin::carry_out(data, fields),
            "health" => view::health::check(data, fields),
            _ => return not_found(),
        };
        match outcome {
            Ok(Outcome::GoTo(address)) => go_to(&address),
            Ok(Outcome::Refused(view)) => page(StatusCode::CONFLICT, &document(&view, &self.version)),
            Err(error) => self.failed(&error),
        }
    }

    /// Returns an error with its cause and its cure, in the frame of the page.
    fn failed(&self, error: &CommandError) -> Response<Body> {
        let names = self.data.names();
        let told = names.abbreviations().apply(&error.text()).into_owned();
        page(StatusCode::UNPROCESSABLE_ENTITY, &document(&View::of_error(&told), &self.version))
    }
}

fn refused(why: Refusal) -> Response<Body> {
    match why {
        Refusal::Host | Refusal::Site => plain(StatusCode::FORBIDDEN, why.to_string()),
        Refusal::Session => page(StatusCode::UNAUTHORIZED, &refusal("This page is closed", &why.to_string())),
    }
}

fn not_found() -> Response<Body> {
    plain(StatusCode::NOT_FOUND, "There is no such view.")
}

/// Sends the browser to another view, with GET.
fn go_to(address: &str) -> Response<Body> {
    let mut response = answer(StatusCode::SEE_OTHER, "text/plain; charset=utf-8", Bytes::new());
    if let Ok(value) = HeaderValue::from_str(address) {
        response.headers_mut().insert(LOCATION, value);
    }
    response
}

fn page(status: StatusCode, content: &Markup) -> Response<Body> {
    answer(status, "text/html; charset=utf-8", Bytes::from(content.0.clone()))
}

fn plain(status: StatusCode, text: impl Into<String>) -> Response<Body> {
    answer(status, "text/plain; charset=utf-8", Bytes::from(format!("{}\n", text.into())))
}

fn asset(kind: &'static str, content: &'static str) -> Response<Body> {
    let mut response = answer(StatusCode::OK, kind, Bytes::from_static(content.as_bytes()));
    // The address of a file changes with its content.
    response
        .headers_mut()
        .insert(CACHE_CONTROL, HeaderValue::from_static("private, max-age=86400, immutable"));
    response
}

fn answer(status: StatusCode, kind: &'static str, content: Bytes) -> Response<Body> {
    let mut response = Response::new(Full::new(content).boxed());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    for (name, value) in [
        (CONTENT_TYPE, kind),
        (CONTENT_SECURITY_POLICY, POLICY),
        (CACHE_CONTROL, "no-store"),
        // Not "no-referrer": browsers would then send forms of our own pages with the origin "null".
        (REFERRER_POLICY, "same-origin"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}
