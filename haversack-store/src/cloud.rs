//! The clouds: Azure Blob, S3 and GCS, one backend over the credentials and signatures of `object_store`.
//!
//! The requests are our own: what a lost answer means, when a request may be repeated and what a refusal is about are decided here,
//! and a list with one odd key in it is still a list.

mod address;
pub mod agent_identity;
mod anthropic;
mod az_login;
mod backend;
mod download;
mod examine;
#[cfg(feature = "keychain")]
pub mod keychain;
mod listing;
mod local_locks;
mod open;
mod profile;
mod program;
mod refusal;
mod runtime;
mod service;
mod sign;
mod wire;

pub use agent_identity::AgentIdentity;
pub(crate) use anthropic::open as open_anthropic;
pub use anthropic::{ANTHROPIC, ANTHROPIC_KEY, ANTHROPIC_READ_ONLY, ANTHROPIC_SERVER};
pub(crate) use backend::CAPABILITIES;
pub use download::download;
pub use examine::{Examined, examine, probe, reach};
pub(crate) use open::open;
pub use open::{AGENT, AZ_PROGRAM, CERTIFICATES, CREDENTIAL, WAIT_SECONDS};
pub use refusal::Refusal;
