//! The bare C loop: compiled once, then a child that is told what to do and answers how long it took.

use std::cell::RefCell;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::measure::Nanoseconds;
use crate::{Outcome, SOURCE};

/// Compiles the loop into `directory` and returns the program.
pub(crate) fn compile(directory: &Path) -> Outcome<PathBuf> {
    let program = directory.join("bare");
    let status =
        Command::new("cc").args(["-O2", "-Wall", "-pthread", "-o"]).arg(&program).arg(SOURCE).status();
    match status {
        Ok(status) if status.success() => Ok(program),
        Ok(status) => Err(format!("cc could not compile benches/bare.c ({status})").into()),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Err("the peer is a C program and there is no C compiler called cc: install gcc or clang".into())
        }
        Err(error) => Err(format!("cc did not start: {error}").into()),
    }
}

/// A running loop that works in one directory.
pub(crate) struct Bare {
    child: Child,
    pipes: RefCell<Pipes>,
}

struct Pipes {
    commands: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Bare {
    /// Starts the loop in `directory`.
    pub(crate) fn start(program: &Path, directory: &Path) -> Outcome<Bare> {
        let mut child = Command::new(program)
            .current_dir(directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("the bare C loop did not start: {error}"))?;
        let commands = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().ok_or("the bare C loop has no stdout")?);
        Ok(Bare { child, pipes: RefCell::new(Pipes { commands, answers }) })
    }

    /// Does `command` once for each key and returns how long each took.
    ///
    /// `size` is in bytes for contents, and a number of files for `scan` and `list`. Of `threads` it is the
    /// milliseconds, and what is returned is how many writes each thread did.
    pub(crate) fn run<K: AsRef<str>>(
        &self,
        command: &str,
        size: usize,
        keys: &[K],
    ) -> Outcome<Vec<Nanoseconds>> {
        let mut line = format!("{command} {size}");
        for key in keys {
            line.push(' ');
            line.push_str(key.as_ref());
        }
        line.push('\n');
        let mut pipes = self.pipes.borrow_mut();
        pipes.commands.as_mut().ok_or("the bare C loop was stopped")?.write_all(line.as_bytes())?;
        let mut answer = String::new();
        pipes.answers.read_line(&mut answer)?;
        let samples: Vec<Nanoseconds> =
            answer.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
        if samples.len() != keys.len() {
            return Err(format!("the bare C loop stopped in `{command}`").into());
        }
        Ok(samples)
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        // It ends when there are no more commands; waiting keeps it from outliving its directory.
        self.pipes.get_mut().commands = None;
        drop(self.child.wait());
    }
}
