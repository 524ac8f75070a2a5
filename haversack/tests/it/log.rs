//! The formats of the log, seen from outside: what they write, and what they make of what others wrote.

mod abridged;
mod chain;
mod examples;
mod golden;
mod hostile;
mod lies;
mod names;
mod round_trip;
