//! Bounds the connections of a server, so that clients without the token cannot keep out clients that have it.
//!
//! 1. Every connection begins as a stranger. There are at most [`MAX_STRANGERS`]: the next one takes the place of the oldest, which is closed.
//! 2. The first request with the right token makes it a client's. There are at most [`MAX_CLIENTS`]: the next one is refused, and no
//!    connection of a client is closed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// The most connections that have not shown the token.
pub(super) const MAX_STRANGERS: usize = 256;

/// The most connections that have.
pub(crate) const MAX_CLIENTS: usize = 256;

/// The connections of a server.
#[derive(Debug, Default)]
pub(super) struct Connections {
    all: Mutex<All>,
}

#[derive(Debug, Default)]
struct All {
    /// The number of connections so far.
    count: u64,
    /// Connections without a token, the oldest first. Dropping the sender closes the connection.
    strangers: BTreeMap<u64, oneshot::Sender<()>>,
    clients: BTreeMap<u64, oneshot::Sender<()>>,
}

/// The place of one connection, which is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    number: u64,
    connections: Arc<Connections>,
}

/// Tells if a connection with the token is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    Granted,
    /// There are [`MAX_CLIENTS`] already.
    Full,
}

impl Connections {
    /// Gives a new connection a place; the returned receiver ends when the connection is to be closed.
    pub(super) fn open(self: &Arc<Connections>) -> (ConnectionSlot, oneshot::Receiver<()>) {
        let (sender, closed) = oneshot::channel();
        let mut all = self.all();
        all.count += 1;
        let number = all.count;
        if all.strangers.len() >= MAX_STRANGERS {
            all.strangers.pop_first();
        }
        all.strangers.insert(number, sender);
        (ConnectionSlot { number, connections: self.clone() }, closed)
    }

    fn all(&self) -> MutexGuard<'_, All> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectionSlot {
    /// Makes the connection a client's: it has shown the token.
    pub(crate) fn admit(&self) -> Admission {
        let mut all = self.connections.all();
        if all.clients.contains_key(&self.number) {
            return Admission::Granted;
        }
        if all.clients.len() >= MAX_CLIENTS {
            return Admission::Full;
        }
        if let Some(sender) = all.strangers.remove(&self.number) {
            all.clients.insert(self.number, sender);
        }
        Admission::Granted
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut all = self.connections.all();
        all.strangers.remove(&self.number);
        all.clients.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn is_closed(receiver: &mut oneshot::Receiver<()>) -> bool {
        receiver.try_recv() == Err(oneshot::error::TryRecvError::Closed)
    }

    #[test]
    fn oldest_stranger_makes_room_and_clients_stay() {
        let connections = Arc::new(Connections::default());
        let (client, mut client_closed) = connections.open();
        assert_eq!(client.admit(), Admission::Granted);
        let mut strangers: Vec<_> = (0..MAX_STRANGERS + 10).map(|_| connections.open()).collect();
        let closed: BTreeSet<usize> =
            (0..strangers.len()).filter(|at| is_closed(&mut strangers[*at].1)).collect();
        assert_eq!(closed, (0..10).collect());
        assert!(!is_closed(&mut client_closed));
        assert_eq!(connections.all().strangers.len(), MAX_STRANGERS);
        // A request that was under way on a connection that is being closed takes no client's place.
        assert_eq!(strangers[0].0.admit(), Admission::Granted);
        assert_eq!(connections.all().clients.len(), 1);
        drop(strangers);
        assert_eq!(connections.all().strangers.len(), 0);
    }

    #[test]
    fn clients_are_bounded_and_make_room_when_they_leave() {
        let connections = Arc::new(Connections::default());
        let mut clients = Vec::new();
        for _ in 0..MAX_CLIENTS {
            let (client, closed) = connections.open();
            assert_eq!(client.admit(), Admission::Granted);
            clients.push((client, closed));
        }
        let (next, _closed) = connections.open();
        assert_eq!(next.admit(), Admission::Full);
        assert_eq!(clients[0].0.admit(), Admission::Granted, "it has its place");
        clients.pop();
        assert_eq!(next.admit(), Admission::Granted);
    }
}
