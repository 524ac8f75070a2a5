//! Listens, accepts connections and serves each, for every server of ours.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::combinators::BoxBody;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpSocket};

use super::connections::{ConnectionSlot, Connections};

/// The most bytes of a request's head.
const MAX_HEAD_BYTES: usize = 64 * 1024;

/// The number of connections that the system keeps for us until we accept them; the next one would have to try again a second later.
const MAX_WAITING: u32 = 1024;

/// The number of connections that are accepted before those that are open get a turn: far fewer than may be open without a token.
const MAX_ACCEPTED_AT_ONCE: usize = 32;

/// The time that a client has for its headers, and then for its body.
pub(crate) const READ_WAIT: Duration = Duration::from_secs(30);

pub(crate) type Body = BoxBody<Bytes, Infallible>;

/// Listens on an address.
pub(crate) fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // A server that is started again takes its old port at once. Elsewhere this would let two servers share one.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(MAX_WAITING)
}

/// Answers the requests of all connections until `stop` is done.
pub(crate) async fn accept<A, F>(listener: TcpListener, answer: A, stop: impl Future<Output = ()>)
where
    A: Fn(Request<Incoming>, Arc<ConnectionSlot>) -> F + Clone + Send + 'static,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    let connections = Arc::new(Connections::default());
    let mut stop = std::pin::pin!(stop);
    let mut accepted_at_once = 0;
    loop {
        let accepted = tokio::select! {
            () = &mut stop => break,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, _)) = accepted else {
            // Out of descriptors, say: others may end meanwhile.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let (slot, closed) = connections.open();
        let answer = answer.clone();
        tokio::spawn(async move {
            let slot = Arc::new(slot);
            let service = service_fn(move |request| {
                let answering = answer(request, slot.clone());
                async move { Ok::<_, Infallible>(answering.await) }
            });
            let connection = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(READ_WAIT)
                .max_buf_size(MAX_HEAD_BYTES)
                .serve_connection(TokioIo::new(stream), service);
            // A client that goes away is no concern of ours.
            tokio::select! {
                _ = connection => {}
                _ = closed => {}
            }
        });
        // Connections read what they were sent long before so many others arrive that they would have to make room.
        accepted_at_once += 1;
        if accepted_at_once == MAX_ACCEPTED_AT_ONCE {
            accepted_at_once = 0;
            tokio::task::yield_now().await;
        }
    }
}
