//! Crashes, faults and foreign programs at every call of the device-local backend.

mod appends;
mod apple;
mod cases;
mod copies;
mod counting;
mod crash;
mod durability;
mod editor;
mod fault;
mod lost;
mod mutants;
mod recovery;
mod remembered;
mod shorten;
mod sync;
mod tidy;
mod twice;
mod twins;
mod vault;
mod verbs;
mod world;
