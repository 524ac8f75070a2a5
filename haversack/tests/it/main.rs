//! The engine over real backends.

mod batch;
mod carried;
mod conflicts;
mod days;
mod graph;
mod home;
mod log;
mod merge;
mod migrate;
mod secrets;
mod secrets_corpus;
mod storage;
mod subjects;
mod sync;
mod tidy;
mod tool;
mod vault;
mod verbs;
