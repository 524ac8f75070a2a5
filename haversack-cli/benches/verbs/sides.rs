//! Those who carry out the same steps: ours in process, and ours through a pipe.

use std::cell::RefCell;
use std::io;
use std::path::Path;
use std::process::Command as Program;

use haversack::memory_tool::MemoryTool;
use haversack::store::block_on;
use haversack_bench::measure::{Contender, Nanoseconds, timed};
use haversack_bench::peer::Peer;
use serde_json::Value;

use crate::steps::{Step, to_json};

/// The most characters that one view can be set to show: more than there are in any text here.
pub(crate) const VIEW_CHARACTERS: usize = 1_000_000;

/// A side that carries out steps.
pub(crate) trait Side {
    /// Carries out all steps and returns how long those took that are timed; a refusal is an error.
    fn run(&mut self, steps: &[Step]) -> io::Result<Vec<Nanoseconds>>;
}

/// Lets `side` carry out the steps of each round.
pub(crate) fn contender<'a>(
    side: &'a RefCell<impl Side>,
    steps: impl Fn(usize) -> Vec<Step> + 'a,
) -> Contender<'a> {
    Box::new(move |round| Ok(side.borrow_mut().run(&steps(round))?))
}

/// Returns what a step gives that was refused, which ends the benchmark: one of refusals measures nothing.
pub(crate) fn refused(side: &str, step: &Step, answer: &str) -> io::Error {
    let shown: String = format!("{:?}", step.command).chars().take(200).collect();
    io::Error::other(format!("{side} refused {shown}: {answer}"))
}

impl Side for MemoryTool {
    fn run(&mut self, steps: &[Step]) -> io::Result<Vec<Nanoseconds>> {
        let mut samples = Vec::new();
        for step in steps {
            // A side consumes the command; the clone is not part of the SDK's time either.
            let command = step.command.clone();
            let answer = timed(&mut samples, || block_on(self.answer(command)));
            if answer.is_error {
                return Err(refused("the library", step, &answer.content.to_string()));
            }
            if !step.is_timed {
                samples.pop();
            }
        }
        Ok(samples)
    }
}

/// A long-lived `haversack memory-tool`.
pub(crate) struct Bridge {
    peer: Peer,
}

impl Bridge {
    /// Starts the process on the memory of `home`.
    pub(crate) fn start(haversack: &Path, home: &Path) -> io::Result<Bridge> {
        let mut program = Program::new(haversack);
        program.arg("--home").arg(home).arg("--config");
        program.arg(format!("memory-tool.view-characters={VIEW_CHARACTERS}")).arg("memory-tool");
        Ok(Bridge { peer: Peer::start("haversack memory-tool", &mut program)? })
    }
}

impl Side for Bridge {
    fn run(&mut self, steps: &[Step]) -> io::Result<Vec<Nanoseconds>> {
        let mut samples = Vec::new();
        let mut answer = Vec::new();
        for step in steps {
            let line = format!("{}\n", to_json(&step.command));
            timed(&mut samples, || self.peer.ask(line.as_bytes(), &mut answer))?;
            let told: Value = serde_json::from_slice(&answer)?;
            if told["is_error"] != false {
                return Err(refused("haversack memory-tool", step, &told.to_string()));
            }
            if !step.is_timed {
                samples.pop();
            }
        }
        Ok(samples)
    }
}
