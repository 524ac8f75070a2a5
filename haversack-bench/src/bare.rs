//! The bare C loop: compiled once, then a child that is told what to do and answers how long it took.

use std::cell::RefCell;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Outcome;
use crate::measure::Nanoseconds;
use crate::peer::Peer;

/// The loop's source.
const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/bare.c");

/// Compiles the loop into `directory` and returns the program.
pub fn compile(directory: &Path) -> Outcome<PathBuf> {
    let program = directory.join("bare");
    let status =
        Command::new("cc").args(["-O2", "-Wall", "-pthread", "-o"]).arg(&program).arg(SOURCE).status();
    match status {
        Ok(status) if status.success() => Ok(program),
        Ok(status) => Err(format!("cc could not compile bare.c ({status})").into()),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Err("the peer is a C program and there is no C compiler called cc: install gcc or clang".into())
        }
        Err(error) => Err(format!("cc did not start: {error}").into()),
    }
}

/// A running loop that works in one directory.
pub struct Bare {
    peer: RefCell<Peer>,
}

/// The cost of one run of a program.
#[derive(Clone, Copy, Debug)]
pub struct Spent {
    /// The time its CPUs worked for it, in its own code and in the system's.
    pub cpu: Nanoseconds,
    /// The time from its start to its end.
    pub elapsed: Nanoseconds,
}

impl Bare {
    /// Starts the loop in `directory`.
    pub fn start(program: &Path, directory: &Path) -> Outcome<Bare> {
        let peer = Peer::start("the bare C loop", Command::new(program).current_dir(directory))?;
        Ok(Bare { peer: RefCell::new(peer) })
    }

    /// Does `command` once for each key and returns how long each took.
    ///
    /// `size` is in bytes for contents, and a number of files for `scan`, `list` and `durable`. Of `threads` it is the
    /// milliseconds, and what is returned is how many writes each thread did.
    pub fn run<K: AsRef<str>>(&self, command: &str, size: usize, keys: &[K]) -> Outcome<Vec<Nanoseconds>> {
        self.ask(command, size, keys, keys.len())
    }

    /// Runs a program to its end once; neither its name nor an argument has a space.
    pub fn spawn(&self, words: &[&str]) -> Outcome<Spent> {
        match self.ask("spawn", 1, words, 2)?.as_slice() {
            &[cpu, elapsed] => Ok(Spent { cpu, elapsed }),
            _ => unreachable!("two were asked for"),
        }
    }

    fn ask<K: AsRef<str>>(
        &self,
        command: &str,
        size: usize,
        words: &[K],
        count: usize,
    ) -> Outcome<Vec<Nanoseconds>> {
        let mut line = format!("{command} {size}");
        for word in words {
            line.push(' ');
            line.push_str(word.as_ref());
        }
        line.push('\n');
        let mut answer = Vec::new();
        self.peer.borrow_mut().ask(line.as_bytes(), &mut answer)?;
        let answer = str::from_utf8(&answer)?;
        let numbers: Vec<Nanoseconds> =
            answer.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
        if numbers.len() != count {
            return Err(format!("the bare C loop answered `{answer}` to `{command}`").into());
        }
        Ok(numbers)
    }
}
