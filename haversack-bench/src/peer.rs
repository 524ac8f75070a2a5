//! A child that answers every line with a line, until it is told no more.

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A running child; it is ended when this is dropped.
pub struct Peer {
    name: &'static str,
    child: Child,
    commands: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Peer {
    /// Starts `command`, which errors call `name`.
    pub fn start(name: &'static str, command: &mut Command) -> io::Result<Peer> {
        let failed = |why: String| io::Error::other(format!("{name} did not start: {why}"));
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| failed(error.to_string()))?;
        let commands = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().ok_or_else(|| failed("it has no stdout".into()))?);
        Ok(Peer { name, child, commands, answers })
    }

    /// Returns the number of its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a line, which ends with a newline, and puts the answer in the place of what is in `answer`.
    pub fn ask(&mut self, line: &[u8], answer: &mut Vec<u8>) -> io::Result<()> {
        let commands = self.commands.as_mut().expect("it is only taken away in the end");
        commands.write_all(line).map_err(|error| self.stopped(&error.to_string()))?;
        self.hear(answer)
    }

    /// Waits for a line that was not asked for.
    pub fn hear(&mut self, answer: &mut Vec<u8>) -> io::Result<()> {
        answer.clear();
        self.answers.read_until(b'\n', answer)?;
        match answer.pop() {
            Some(b'\n') => Ok(()),
            Some(_) | None => Err(self.stopped("its answer ended early")),
        }
    }

    fn stopped(&self, why: &str) -> io::Error {
        io::Error::other(format!("{} stopped: {why}", self.name))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It ends when there are no more commands; waiting keeps it from outliving its directory.
        self.commands = None;
        drop(self.child.wait());
    }
}
