//! The server over HTTP, and who may talk to it.
//!
//! A page in the user's browser can send requests to this machine too, so a request must name a host and an origin that are this machine's, and the
//! token, which only its user can read. Nothing of a body is looked at before that.
//!
//! # Invariants
//! 1. Only listed requests get through (`http::the_matrix_of_hosts_origins_and_tokens`).
//! 2. Bodies, headers, connections and requests at once are bounded, in size and in time (`http::limits`).
//! 3. Connections without the token do not keep a client waiting (`http::stalled_connections_do_not_keep_a_client_waiting`).
//! 4. Sessions are bounded, and given back when they are idle (`http::sessions_are_bounded_and_the_oldest_idle_one_is_closed`).

mod accept;
mod connections;
mod gate;
mod sessions;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONNECTION, CONTENT_TYPE, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use hyper::{Method, Request, Response, StatusCode};
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

pub(crate) use self::accept::{Body, READ_WAIT, accept, listen};
pub(crate) use self::connections::{Admission, ConnectionSlot, MAX_CLIENTS};
pub(crate) use self::gate::{Gate, Refusal};
use self::sessions::{MAX_SESSIONS, Sessions};
use super::mcp::Server;

/// The path of the protocol.
pub(crate) const PATH: &str = "/mcp";

/// The largest body of a request.
pub(crate) const MAX_BODY_BYTES: usize = 4 * 1024 * 1024;

/// The most requests at once.
const MAX_REQUESTS: usize = 64;

/// The time until an answer must begin.
const ANSWER_WAIT: Duration = Duration::from_secs(120);

type Service = StreamableHttpService<Server, Sessions>;

struct Door {
    gate: Gate,
    service: Service,
    requests: Semaphore,
}

/// Serves until `stop` is done.
pub(crate) async fn serve(
    listener: TcpListener,
    gate: Gate,
    server: impl Fn() -> Server + Send + Sync + 'static,
    stop: impl Future<Output = ()>,
) {
    // The gate checks hosts and origins: it has the user's settings.
    let config = StreamableHttpServerConfig::default()
        .disable_allowed_hosts()
        .with_json_response(true)
        .with_max_request_body_bytes(MAX_BODY_BYTES);
    let ended = config.cancellation_token.clone();
    let service = StreamableHttpService::new(move || Ok(server()), Arc::new(Sessions::default()), config);
    let door = Arc::new(Door { gate, service, requests: Semaphore::new(MAX_REQUESTS) });
    let answer = move |request, slot: Arc<ConnectionSlot>| {
        let door = door.clone();
        async move { door.answer(request, &slot).await }
    };
    accept(listener, answer, stop).await;
    ended.cancel();
}

impl Door {
    async fn answer(&self, request: Request<Incoming>, place: &ConnectionSlot) -> Response<Body> {
        if let Err(refusal) = self.gate.judge(request.headers()) {
            return refused(&refusal);
        }
        if place.admit() == Admission::Full {
            let mut response = busy(format!("{MAX_CLIENTS} connections are open; close some, or try again"));
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            return response;
        }
        if request.uri().path() != PATH {
            return plain(StatusCode::NOT_FOUND, format!("the protocol is spoken at {PATH}"));
        }
        if ![Method::POST, Method::GET, Method::DELETE].contains(request.method()) {
            let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "POST, GET or DELETE");
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST, GET, DELETE"));
            return response;
        }
        if request.method() == Method::POST && !is_json(&request) {
            return plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the body must be application/json");
        }
        let Ok(_permit) = self.requests.try_acquire() else {
            return busy(format!("{MAX_REQUESTS} requests are under way; try again"));
        };
        let (parts, body) = request.into_parts();
        let body = match tokio::time::timeout(READ_WAIT, Limited::new(body, MAX_BODY_BYTES).collect()).await {
            Ok(Ok(body)) => body.to_bytes(),
            Ok(Err(error)) if error.is::<LengthLimitError>() => {
                return plain(
                    StatusCode::PAYLOAD_TOO_LARGE,
                    format!("a body has at most {MAX_BODY_BYTES} bytes"),
                );
            }
            Ok(Err(_)) => return plain(StatusCode::BAD_REQUEST, "the body broke off"),
            Err(_) => return plain(StatusCode::REQUEST_TIMEOUT, "the body did not come in time"),
        };
        let is_goodbye = parts.method == Method::DELETE;
        let request = Request::from_parts(parts, Full::new(body));
        let answering = sessions::noting_full(self.service.handle(request));
        match tokio::time::timeout(ANSWER_WAIT, answering).await {
            Ok((_, true)) => busy(format!("{MAX_SESSIONS} sessions are in use; close one, or try again")),
            // A session that was ended is over; clients take an answer that leaves it open for a failure.
            Ok((mut response, false)) if is_goodbye && response.status() == StatusCode::ACCEPTED => {
                *response.status_mut() = StatusCode::NO_CONTENT;
                response
            }
            Ok((response, false)) => response,
            Err(_) => plain(StatusCode::GATEWAY_TIMEOUT, "the answer did not come in time"),
        }
    }
}

fn is_json<B>(request: &Request<B>) -> bool {
    let said = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    said.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json")
}

fn refused(refusal: &Refusal) -> Response<Body> {
    let status = match refusal {
        Refusal::Host | Refusal::Origin => StatusCode::FORBIDDEN,
        Refusal::Token => StatusCode::UNAUTHORIZED,
    };
    let mut response = plain(status, refusal.to_string());
    if *refusal == Refusal::Token {
        response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

/// Returns the answer to a request that could be served a little later.
fn busy(why: String) -> Response<Body> {
    let mut response = plain(StatusCode::SERVICE_UNAVAILABLE, why);
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

fn plain(status: StatusCode, text: impl Into<String>) -> Response<Body> {
    let mut response = Response::new(Full::new(Bytes::from(format!("{}\n", text.into()))).boxed());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

/// Returns true if only this machine can reach an address.
pub(crate) fn is_loopback(address: &SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}
