//! Runs requests on one small runtime of this process, so that a backend works under any executor.

use std::future::Future;
use std::sync::OnceLock;

use tokio::runtime::{Builder, Runtime};

/// Starts once per process, with the first cloud that is opened, and ends with it.
static RUNTIME: OnceLock<Runtime> = OnceLock::new();

/// Returns the runtime, having told TLS which cryptography to use.
fn runtime() -> &'static Runtime {
    RUNTIME.get_or_init(|| {
        // A program that embeds us may have installed one already, which serves as well.
        drop(rustls::crypto::ring::default_provider().install_default());
        let started =
            Builder::new_multi_thread().worker_threads(1).thread_name("haversack-http").enable_all().build();
        started.expect("the system starts one more thread")
    })
}

/// Runs a future on the runtime; the caller needs none of its own.
///
/// A caller that goes away stops what it asked for at its next pause, as dropping a future does everywhere.
pub(crate) async fn run<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> T {
    struct Stop(tokio::task::AbortHandle);
    impl Drop for Stop {
        fn drop(&mut self) {
            self.0.abort();
        }
    }
    let task = runtime().spawn(future);
    let _stop = Stop(task.abort_handle());
    match task.await {
        Ok(value) => value,
        Err(failed) => std::panic::resume_unwind(failed.into_panic()),
    }
}

/// Does something on the side that takes a while.
pub(crate) fn soon(work: impl FnOnce() + Send + 'static) {
    drop(runtime().spawn_blocking(work));
}

/// Returns a client as every request needs it: no redirects, no compression, one protocol.
pub(crate) fn client_builder() -> reqwest::ClientBuilder {
    // Building one asks for the cryptography.
    runtime();
    reqwest::Client::builder()
        .user_agent(concat!("haversack/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .http1_only()
}
