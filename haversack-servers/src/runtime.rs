//! The runtime of everything in this process that listens or sends.

use std::future::Future;
use std::sync::{OnceLock, mpsc};

use tokio::runtime::{Builder, Runtime};

static RUNTIME: OnceLock<Runtime> = OnceLock::new();

/// Returns the runtime of this process's servers.
pub(crate) fn runtime() -> &'static Runtime {
    RUNTIME.get_or_init(|| {
        let started =
            Builder::new_multi_thread().worker_threads(2).thread_name("servers").enable_all().build();
        started.expect("the system starts two more threads")
    })
}

/// Runs a future there and waits for it, inside another runtime or outside.
pub(crate) fn wait_for<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> T {
    let (sender, receiver) = mpsc::sync_channel(1);
    runtime().spawn(async move { sender.send(future.await) });
    receiver.recv().expect("a future of ours does not panic")
}
