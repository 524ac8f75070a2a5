//! Object stores for tests and benchmarks: real servers, fakes, and fronts that misbehave.
//!
//! Everything listens on loopback, at a port that the system chose, and keeps its data in a temporary directory. It ends
//! when its handle is dropped, and in any case with the process that started it, however that ended. Calls block, and may be made inside a runtime.
//!
//! [`Azurite`], [`Moto`], [`SeaweedFs`] and [`Syncthing`] are programs that `cargo xtask tools` installs. Where one is missing its `start` says
//! so and returns `None`, unless the environment demands it ([`tools::REQUIRED`]): then that is a failure.
//!
//! ```no_run
//! use haversack_servers::{Act, Answer, Azurite, Front};
//!
//! let Some(azurite) = Azurite::shared() else { return };
//! let container = azurite.new_container();
//! let front = Front::before(azurite.endpoint());
//! // The first write is carried out, and its writer is told that it failed.
//! front.script(|seen| match seen.number {
//!     0 => Act::CommitThenAnswer(Answer::new(503)),
//!     _ => Act::Pass,
//! });
//! let url = format!("{}/{container}", front.url());
//! ```

pub mod azurite;
pub mod front;
pub mod gcs;
pub mod http;
pub mod liar;
pub mod memory_stores;
pub mod moto;
mod process;
pub mod responder;
mod runtime;
pub mod seaweed;
mod signing;
pub mod syncthing;
pub mod tls;
pub mod tools;

pub use azurite::Azurite;
pub use front::{Act, Front, Seen};
pub use gcs::Gcs;
pub use http::{Answer, Asked, Headers};
pub use liar::Liar;
pub use moto::Moto;
pub use responder::Responder;
pub use seaweed::SeaweedFs;
pub use syncthing::Syncthing;

/// Returns a new name: letters and digits after `start`.
fn fresh_name(start: &str) -> String {
    let mut chance = [0; 8];
    getrandom::fill(&mut chance).expect("the system has randomness");
    format!("{start}{:016x}", u64::from_le_bytes(chance))
}
