//! The servers themselves: they start, answer, misbehave as told, and leave nothing behind.

mod azurite;
mod front;
mod gcs;
mod liars;
mod object_store_client;
mod process;
mod responder;
mod s3;
