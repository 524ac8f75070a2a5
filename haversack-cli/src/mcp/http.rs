//! The server over HTTP, and who may talk to it.
//!
//! A page in the user's browser can send requests to this machine too, so a request must name a host and an origin that are this machine's, and the
//! token, which only its user can read. Nothing of a body is looked at before that.
//!
//! # Invariants
//! 1. Only what is listed gets through (`http::the_matrix_of_hosts_origins_and_tokens`).
//! 2. Bodies, headers, connections and requests at once are bounded, in size and in time (`http::limits`).

mod gate;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

pub(crate) use self::gate::{Gate, Refusal};
use super::Server;

/// Where the protocol is spoken.
pub(crate) const PATH: &str = "/mcp";

/// The largest body of a request.
pub(crate) const MAX_BODY_BYTES: usize = 4 * 1024 * 1024;

/// How many requests are worked on at once.
const MAX_REQUESTS: usize = 64;

/// How many connections there are at once; most of them wait.
const MAX_CONNECTIONS: usize = 256;

/// How long a client has for its headers, and then for its body.
const READ_WAIT: Duration = Duration::from_secs(30);

/// How long a request may take until its answer begins.
const ANSWER_WAIT: Duration = Duration::from_secs(120);

type Body = BoxBody<Bytes, Infallible>;
type Service = StreamableHttpService<Server, LocalSessionManager>;

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
    // Hosts and origins are the gate's: it knows what the user allowed.
    let config = StreamableHttpServerConfig::default()
        .disable_allowed_hosts()
        .with_json_response(true)
        .with_max_request_body_bytes(MAX_BODY_BYTES);
    let ended = config.cancellation_token.clone();
    let service = StreamableHttpService::new(move || Ok(server()), Arc::default(), config);
    let door = Arc::new(Door { gate, service, requests: Semaphore::new(MAX_REQUESTS) });
    let connections = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut stop = std::pin::pin!(stop);
    loop {
        let accepted = tokio::select! {
            () = &mut stop => break,
            accepted = async {
                let permit = connections.clone().acquire_owned().await;
                (listener.accept().await, permit)
            } => accepted,
        };
        let (Ok((stream, _)), permit) = accepted else {
            // Out of descriptors, say: others may end meanwhile.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let door = door.clone();
        tokio::spawn(async move {
            let _permit = permit;
            let answer = service_fn(move |request| {
                let door = door.clone();
                async move { Ok::<_, Infallible>(door.answer(request).await) }
            });
            let connection = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(READ_WAIT)
                .serve_connection(TokioIo::new(stream), answer);
            // A client that goes away is no concern of ours.
            drop(connection.await);
        });
    }
    ended.cancel();
}

impl Door {
    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        if let Err(refusal) = self.gate.judge(request.headers()) {
            return refused(&refusal);
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
            let mut response = plain(
                StatusCode::SERVICE_UNAVAILABLE,
                format!("{MAX_REQUESTS} requests are under way; try again"),
            );
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
            return response;
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
        match tokio::time::timeout(ANSWER_WAIT, self.service.handle(request)).await {
            // A session that was ended is over; clients take an answer that leaves it open for a failure.
            Ok(mut response) if is_goodbye && response.status() == StatusCode::ACCEPTED => {
                *response.status_mut() = StatusCode::NO_CONTENT;
                response
            }
            Ok(response) => response,
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

fn plain(status: StatusCode, text: impl Into<String>) -> Response<Body> {
    let mut response = Response::new(Full::new(Bytes::from(format!("{}\n", text.into()))).boxed());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

/// Tells whether nobody but this machine can reach an address.
pub(crate) fn is_loopback(address: &SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}
