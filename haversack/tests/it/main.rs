//! The engine over real backends.

mod batch;
mod storage;
mod subjects;
mod tool;
mod verbs;
