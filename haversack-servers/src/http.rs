//! Requests and answers as plain values, and both ends of HTTP/1.1.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::client::conn::http1::SendRequest;
use hyper::header::{HeaderName, HeaderValue};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::Sleep;

use crate::runtime::{runtime, wait_for};
use crate::tls;

/// Headers that speak of one connection, or that are worked out anew.
const OF_THE_CONNECTION: [&str; 6] =
    ["connection", "content-length", "expect", "keep-alive", "proxy-connection", "transfer-encoding"];

/// The interval of a body that trickles.
const TRICKLE: Duration = Duration::from_millis(50);

/// Names in lower case with their values, in the order they came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headers(pub Vec<(String, String)>);

impl Headers {
    /// Returns the first value of a name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// Gives a name this one value.
    pub fn set(&mut self, name: &str, value: impl Into<String>) {
        self.remove(name);
        self.0.push((name.to_ascii_lowercase(), value.into()));
    }

    /// Takes a name away, and returns whether it was there.
    pub fn remove(&mut self, name: &str) -> bool {
        let before = self.0.len();
        self.0.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self.0.len() < before
    }

    fn read(map: &hyper::HeaderMap) -> Headers {
        let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        Headers(map.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect())
    }

    fn write(&self, map: &mut hyper::HeaderMap) {
        for (name, value) in &self.0 {
            let name = HeaderName::from_bytes(name.as_bytes());
            if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(value.as_bytes())) {
                map.append(name, value);
            }
        }
    }
}

impl From<&[(&str, &str)]> for Headers {
    fn from(pairs: &[(&str, &str)]) -> Headers {
        Headers(pairs.iter().map(|(name, value)| (name.to_ascii_lowercase(), (*value).to_owned())).collect())
    }
}

/// A request as a server here got it.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The method.
    pub method: String,
    /// The path with the query, as it was sent.
    pub path: String,
    /// The headers.
    pub headers: Headers,
    /// The whole body.
    pub body: Bytes,
}

impl Asked {
    /// Returns a value from the query, decoded.
    pub fn query(&self, name: &str) -> Option<String> {
        let (_, query) = self.path.split_once('?')?;
        query.split('&').find_map(|pair| {
            let (known, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(known) == name).then(|| decode(value))
        })
    }

    /// Returns a value from a body that is a form, decoded.
    pub fn form(&self, name: &str) -> Option<String> {
        let form = Asked { path: format!("?{}", String::from_utf8_lossy(&self.body)), ..self.clone() };
        form.query(name)
    }
}

/// Decodes what a query or a form has for a name or a value.
pub(crate) fn decode(text: &str) -> String {
    let spaced = text.replace('+', " ");
    percent_encoding::percent_decode_str(&spaced).decode_utf8_lossy().into_owned()
}

/// An answer, whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The headers; what belongs to the connection is added when it is sent.
    pub headers: Headers,
    /// The body.
    pub body: Vec<u8>,
}

impl Answer {
    /// Returns an answer without headers and body.
    pub fn new(status: u16) -> Answer {
        Answer { status, ..Answer::default() }
    }

    /// Returns it with one more header.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: impl Into<String>) -> Answer {
        self.headers.set(name, value);
        self
    }

    /// Returns it with this body.
    #[must_use]
    pub fn with_body(mut self, body: impl Into<Vec<u8>>) -> Answer {
        self.body = body.into();
        self
    }

    /// Returns what a server says that wants to be left alone for some seconds.
    pub fn throttled(seconds: u32) -> Answer {
        Answer::new(429).with_header("retry-after", seconds.to_string())
    }

    /// Returns the body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// Sends one request over a connection of its own and returns the answer; the error says what went wrong.
///
/// Over TLS it trusts the authority of this process ([`tls::ca_pem`]) only.
pub fn send(method: &str, url: &str, headers: &[(&str, &str)], body: &[u8]) -> Result<Answer, String> {
    let address = Address::parse(url)?;
    let asked = Asked {
        method: method.to_owned(),
        path: address.path.clone(),
        headers: Headers::from(headers),
        body: Bytes::copy_from_slice(body),
    };
    send_as(&address, asked)
}

/// Sends one request as it is, over a connection of its own.
pub(crate) fn send_as(address: &Address, asked: Asked) -> Result<Answer, String> {
    let address = address.clone();
    wait_for(async move {
        let mut connection = Connection::open(&address).await?;
        connection.exchange(&asked, &address.host).await
    })
}

/// A URL taken apart.
#[derive(Clone, Debug)]
pub(crate) struct Address {
    pub(crate) https: bool,
    /// Host and port.
    pub(crate) host: String,
    /// The path with the query; it begins with a slash, or is just one.
    pub(crate) path: String,
}

impl Address {
    pub(crate) fn parse(url: &str) -> Result<Address, String> {
        let (scheme, rest) = url.split_once("://").ok_or_else(|| format!("{url} is not a URL"))?;
        let (host, path) = match rest.find(['/', '?']) {
            Some(at) => rest.split_at(at),
            None => (rest, "/"),
        };
        let https = match scheme {
            "http" => false,
            "https" => true,
            _ => return Err(format!("{url} is not a URL of a web server")),
        };
        if !host.contains(':') {
            return Err(format!("{url} names no port"));
        }
        Ok(Address { https, host: host.to_owned(), path: path.to_owned() })
    }
}

/// A connection to a server.
pub(crate) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    driver: JoinHandle<()>,
}

impl Connection {
    pub(crate) async fn open(address: &Address) -> Result<Connection, String> {
        let stream =
            TcpStream::connect(&address.host).await.map_err(|error| format!("no connection: {error}"))?;
        // Nothing is gained by waiting for more to send.
        drop(stream.set_nodelay(true));
        if address.https {
            let name = address.host.split(':').next().unwrap_or_default().to_owned();
            let name = name.try_into().map_err(|_| format!("{} is no name of a server", address.host))?;
            let stream = tokio_rustls::TlsConnector::from(tls::client()).connect(name, stream).await;
            Connection::over(stream.map_err(|error| format!("no TLS: {error}"))?).await
        } else {
            Connection::over(stream).await
        }
    }

    async fn over(
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    ) -> Result<Connection, String> {
        let (sender, driver) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(chain)?;
        // Its failure reaches the caller that waits for an answer.
        let driver = tokio::spawn(async move { drop(driver.await) });
        Ok(Connection { sender, driver })
    }

    /// Returns whether the server has not closed it.
    pub(crate) async fn is_open(&mut self) -> bool {
        self.sender.ready().await.is_ok()
    }

    /// Sends a request and returns the whole answer. A `Host` that the request has is kept.
    pub(crate) async fn exchange(&mut self, asked: &Asked, host: &str) -> Result<Answer, String> {
        self.sender.ready().await.map_err(chain)?;
        let mut request = Request::builder()
            .method(asked.method.as_str())
            .uri(asked.path.as_str())
            .body(Full::new(asked.body.clone()))
            .map_err(|error| format!("the request is not sound: {error}"))?;
        let mut headers = asked.headers.clone();
        for name in OF_THE_CONNECTION {
            headers.remove(name);
        }
        if headers.get("host").is_none() {
            headers.set("host", host);
        }
        if !asked.body.is_empty() || !matches!(asked.method.as_str(), "GET" | "HEAD") {
            headers.set("content-length", asked.body.len().to_string());
        }
        headers.write(request.headers_mut());
        let answer = self.sender.send_request(request).await.map_err(chain)?;
        let (parts, body) = answer.into_parts();
        let body = body.collect().await.map_err(chain)?.to_bytes().to_vec();
        Ok(Answer { status: parts.status.as_u16(), headers: Headers::read(&parts.headers), body })
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// Says an error with everything behind it.
fn chain(error: hyper::Error) -> String {
    let mut said = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(cause) = source {
        said = format!("{said}: {cause}");
        source = cause.source();
    }
    said
}

/// The answer to a request.
pub(crate) enum Reply {
    /// It is answered.
    Whole(Answer),
    /// It is answered, so many bytes of the body in a second.
    Trickling(Answer, usize),
    /// The connection is closed.
    Gone,
}

/// One connection's way to answer.
pub(crate) type Handler =
    Box<dyn Fn(Asked) -> Pin<Box<dyn Future<Output = Reply> + Send + 'static>> + Send + Sync + 'static>;

/// Something that listens until it is dropped.
pub(crate) struct Listening {
    address: SocketAddr,
    task: Option<JoinHandle<Infallible>>,
}

impl Listening {
    /// Listens on loopback; every connection gets a handler of its own from `accept`.
    pub(crate) fn start(https: bool, accept: impl Fn() -> Handler + Send + 'static) -> Listening {
        let (listener, address) = wait_for(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has free ports");
            let address = listener.local_addr().expect("it listens");
            (listener, address)
        });
        let tls = https.then(|| tokio_rustls::TlsAcceptor::from(tls::server()));
        let task = runtime().spawn(async move {
            // When this task ends, its connections do.
            let mut connections = tokio::task::JoinSet::new();
            loop {
                while connections.try_join_next().is_some() {}
                // Out of descriptors for a moment: those who wait will be served.
                let Ok((stream, _)) = listener.accept().await else {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                    continue;
                };
                drop(stream.set_nodelay(true));
                let (handler, tls) = (accept(), tls.clone());
                connections.spawn(async move {
                    match tls {
                        None => serve(stream, handler).await,
                        // A client that does not trust us goes away here.
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                serve(stream, handler).await;
                            }
                        }
                    }
                });
            }
        });
        Listening { address, task: Some(task) }
    }

    /// Returns where it listens: host and port.
    pub(crate) fn host(&self) -> String {
        self.address.to_string()
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
            // After the drop, the port is closed.
            wait_for(async move { drop(task.await) });
        }
    }
}

async fn serve(stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static, handler: Handler) {
    let handler = Arc::new(handler);
    let service = hyper::service::service_fn(move |request: Request<Incoming>| {
        let handler = Arc::clone(&handler);
        async move { respond(request, &handler).await }
    });
    // The client sees a failure as the end of the connection.
    drop(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await);
}

/// Why a connection is closed without an answer.
#[derive(Debug)]
struct Closed;

impl std::fmt::Display for Closed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("closed on purpose")
    }
}

impl std::error::Error for Closed {}

async fn respond(request: Request<Incoming>, handler: &Handler) -> Result<Response<Paced>, Closed> {
    let (parts, body) = request.into_parts();
    // A client that stops in the middle of a request gets no answer.
    let body = body.collect().await.map_err(|_| Closed)?.to_bytes();
    let path = parts.uri.path_and_query().map_or_else(|| parts.uri.path().to_owned(), ToString::to_string);
    let is_head = parts.method == hyper::Method::HEAD;
    let asked =
        Asked { method: parts.method.to_string(), path, headers: Headers::read(&parts.headers), body };
    let (mut answer, bytes_per_second) = match handler(asked).await {
        Reply::Whole(answer) => (answer, usize::MAX),
        Reply::Trickling(answer, bytes_per_second) => (answer, bytes_per_second),
        Reply::Gone => return Err(Closed),
    };
    // The length in the answer to a HEAD is of a body that is not sent.
    let length = answer.headers.get("content-length").map(str::to_owned);
    for name in OF_THE_CONNECTION {
        answer.headers.remove(name);
    }
    if is_head {
        let length = length.unwrap_or_else(|| answer.body.len().to_string());
        answer.headers.set("content-length", length);
        answer.body.clear();
    }
    let mut response = Response::new(Paced::new(answer.body.into(), bytes_per_second));
    *response.status_mut() = hyper::StatusCode::from_u16(answer.status).map_err(|_| Closed)?;
    answer.headers.write(response.headers_mut());
    Ok(response)
}

/// A body that is sent at most so fast.
struct Paced {
    rest: Bytes,
    step: usize,
    pause: Option<Pin<Box<Sleep>>>,
}

impl Paced {
    fn new(body: Bytes, bytes_per_second: usize) -> Paced {
        let step = match bytes_per_second {
            usize::MAX => usize::MAX,
            _ => (bytes_per_second / 20).max(1),
        };
        Paced { rest: body, step, pause: None }
    }
}

impl Body for Paced {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.rest.is_empty() {
            return Poll::Ready(None);
        }
        if self.step != usize::MAX {
            let pause = self.pause.get_or_insert_with(|| Box::pin(tokio::time::sleep(TRICKLE)));
            if pause.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            self.pause = None;
        }
        let step = self.step.min(self.rest.len());
        Poll::Ready(Some(Ok(Frame::data(self.rest.split_to(step)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len() as u64)
    }
}
