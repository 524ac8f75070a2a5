//! Bounds the sessions of a server.
//!
//! Clients of the older revisions open a session and often leave without closing it. `rmcp` bounds how long a session is idle, but not how many there
//! are, so this wraps its manager:
//!
//! 1. There are at most [`MAX_SESSIONS`]. A new one takes the place of the idle session that was used longest ago, which is closed: its
//!    client gets 404 and opens another, as the protocol wants it.
//! 2. A session is in use while one of its requests is answered or its client listens to a stream. If all are in use, a new one is refused.
//! 3. A session that was not used for [`SESSION_IDLE`] is closed.

use std::cell::Cell;
use std::collections::HashMap;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_lite::Stream;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::local::{
    LocalSessionManager, LocalSessionManagerError,
};
use rmcp::transport::streamable_http_server::session::{
    EventStore, RestoreOutcome, ServerSseMessage, SessionId, SessionManager,
};

/// The most sessions at once.
pub(super) const MAX_SESSIONS: usize = 128;

/// The idle time after which a session is closed.
pub(super) const SESSION_IDLE: Duration = Duration::from_secs(30 * 60);

tokio::task_local! {
    /// True if a session was refused while the current request was answered.
    static WAS_FULL: Cell<bool>;
}

/// Answers a request, and returns true if it was refused because all sessions are in use.
pub(super) async fn noting_full<T>(answering: impl Future<Output = T>) -> (T, bool) {
    WAS_FULL
        .scope(Cell::new(false), async {
            let answer = answering.await;
            (answer, WAS_FULL.with(Cell::get))
        })
        .await
}

/// The sessions of a server.
#[derive(Debug)]
pub(super) struct Sessions {
    inner: LocalSessionManager,
    max: usize,
    used: Arc<Mutex<Uses>>,
    /// Held while a session is made, so that two do not take the same place.
    making: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Uses {
    /// The number of uses: a clock that always moves.
    count: u64,
    sessions: HashMap<SessionId, Use>,
}

/// How a session is used.
#[derive(Clone, Copy, Debug, Default)]
struct Use {
    /// The number of its last use.
    last: u64,
    /// The number of open requests and streams.
    open: usize,
}

/// A request or a stream of a session, until it is dropped.
#[derive(Debug)]
struct InUse {
    id: SessionId,
    used: Arc<Mutex<Uses>>,
}

impl Default for Sessions {
    fn default() -> Sessions {
        Sessions::new(MAX_SESSIONS, SESSION_IDLE)
    }
}

impl Sessions {
    fn new(max: usize, idle: Duration) -> Sessions {
        let mut inner = LocalSessionManager::default();
        inner.session_config.keep_alive = Some(idle);
        Sessions { inner, max, used: Arc::default(), making: tokio::sync::Mutex::default() }
    }

    fn used(&self) -> MutexGuard<'_, Uses> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn use_of(&self, id: &SessionId) -> InUse {
        self.used().touch(id, |used| used.open += 1);
        InUse { id: id.clone(), used: self.used.clone() }
    }

    /// Closes idle sessions, those first that were used longest ago, until there is room for one more.
    async fn make_room(&self) -> Result<(), SessionsError> {
        loop {
            let oldest = {
                let used = self.used();
                if used.sessions.len() < self.max {
                    return Ok(());
                }
                let idle = used.sessions.iter().filter(|(_, used)| used.open == 0);
                idle.min_by_key(|(_, used)| used.last).map(|(id, _)| id.clone())
            };
            let Some(oldest) = oldest else { return Err(SessionsError::Full) };
            self.close_session(&oldest).await?;
        }
    }
}

impl Uses {
    fn touch(&mut self, id: &SessionId, how: impl FnOnce(&mut Use)) {
        self.count += 1;
        let last = self.count;
        if let Some(used) = self.sessions.get_mut(id) {
            used.last = last;
            how(used);
        }
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.touch(&self.id, |used| used.open = used.open.saturating_sub(1));
    }
}

/// A stream whose session is in use as long as a client listens.
struct LiveStream<S> {
    stream: Pin<Box<S>>,
    _in_use: InUse,
}

impl<S: Stream> Stream for LiveStream<S> {
    type Item = S::Item;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<S::Item>> {
        self.get_mut().stream.as_mut().poll_next(context)
    }
}

/// Why a session could not be used.
#[derive(Debug)]
pub(super) enum SessionsError {
    /// All are in use.
    Full,
    Other(LocalSessionManagerError),
}

impl fmt::Display for SessionsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SessionsError::Full => write!(f, "{MAX_SESSIONS} sessions are in use"),
            SessionsError::Other(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SessionsError {}

impl From<LocalSessionManagerError> for SessionsError {
    fn from(error: LocalSessionManagerError) -> SessionsError {
        SessionsError::Other(error)
    }
}

impl SessionManager for Sessions {
    type Error = SessionsError;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        let _making = self.making.lock().await;
        if let Err(error) = self.make_room().await {
            // `rmcp` answers 500 for every error. The caller knows the right code.
            let _ = WAS_FULL.try_with(|was_full| was_full.set(true));
            return Err(error);
        }
        let (id, transport) = self.inner.create_session().await?;
        let mut used = self.used();
        used.sessions.insert(id.clone(), Use::default());
        used.touch(&id, |_| {});
        Ok((id, transport))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        let _in_use = self.use_of(id);
        Ok(self.inner.initialize_session(id, message).await?)
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        Ok(self.inner.has_session(id).await?)
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        self.used().sessions.remove(id);
        Ok(self.inner.close_session(id).await?)
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let in_use = self.use_of(id);
        let stream = self.inner.create_stream(id, message).await?;
        Ok(LiveStream { stream: Box::pin(stream), _in_use: in_use })
    }

    async fn accept_message(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Result<(), Self::Error> {
        let _in_use = self.use_of(id);
        Ok(self.inner.accept_message(id, message).await?)
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let in_use = self.use_of(id);
        let stream = self.inner.create_standalone_stream(id).await?;
        Ok(LiveStream { stream: Box::pin(stream), _in_use: in_use })
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let in_use = self.use_of(id);
        let stream = self.inner.resume(id, last_event_id).await?;
        Ok(LiveStream { stream: Box::pin(stream), _in_use: in_use })
    }

    async fn restore_session(&self, _: SessionId) -> Result<RestoreOutcome<Self::Transport>, Self::Error> {
        // There is no store to restore one from.
        Ok(RestoreOutcome::NotSupported)
    }

    fn event_store(&self) -> Option<Arc<dyn EventStore>> {
        self.inner.event_store()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::Full;
    use hyper::body::Bytes;
    use hyper::{Request, StatusCode};
    use rmcp::ServerHandler;
    use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

    use super::*;

    #[derive(Clone)]
    struct Nothing;

    impl ServerHandler for Nothing {}

    /// Opens a session; returns the status of the answer, and true if all were in use.
    async fn open(service: &StreamableHttpService<Nothing, Sessions>) -> (StatusCode, bool) {
        let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"tester","version":"1"}}}"#;
        let request = Request::post("/mcp")
            .header("host", "localhost")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .body(Full::new(Bytes::from(hello)))
            .expect("a request");
        let (response, was_full) = noting_full(service.handle(request)).await;
        (response.status(), was_full)
    }

    fn with_sessions(
        max: usize,
        idle: Duration,
        test: impl AsyncFnOnce(Arc<Sessions>, StreamableHttpService<Nothing, Sessions>),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("built");
        let sessions = Arc::new(Sessions::new(max, idle));
        let service = StreamableHttpService::new(
            || Ok(Nothing),
            sessions.clone(),
            StreamableHttpServerConfig::default(),
        );
        runtime.block_on(test(sessions, service));
    }

    async fn count(sessions: &Sessions) -> (usize, usize) {
        let kept = sessions.inner.sessions.read().await.len();
        (sessions.used().sessions.len(), kept)
    }

    #[test]
    fn sessions_are_bounded() {
        with_sessions(3, SESSION_IDLE, async |sessions, service| {
            for _ in 0..20 {
                assert_eq!(open(&service).await, (StatusCode::OK, false));
                assert!(count(&sessions).await.0 <= 3);
            }
            assert_eq!(count(&sessions).await, (3, 3));
            let held: Vec<InUse> = {
                let ids: Vec<SessionId> = sessions.used().sessions.keys().cloned().collect();
                ids.iter().map(|id| sessions.use_of(id)).collect()
            };
            assert_eq!(open(&service).await, (StatusCode::INTERNAL_SERVER_ERROR, true));
            assert_eq!(count(&sessions).await, (3, 3));
            drop(held);
            assert_eq!(open(&service).await, (StatusCode::OK, false));
            assert_eq!(count(&sessions).await, (3, 3));
        });
    }

    #[test]
    fn idle_sessions_are_given_back() {
        with_sessions(100, Duration::from_millis(1), async |sessions, service| {
            for _ in 0..50 {
                open(&service).await;
            }
            // However long it takes: the test only ends when all are gone.
            while count(&sessions).await != (0, 0) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        });
    }
}
