//! The Anthropic SDK's local memory tool, in a Python process that measures itself.

use std::io;
use std::path::Path;
use std::process::Command as Program;

use haversack_bench::measure::Nanoseconds;
use haversack_bench::peer::Peer;
use serde_json::Value;

use crate::sides::Side;
use crate::steps::{Step, to_json};

/// The process's source.
const DRIVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/verbs/sdk.py");

/// The SDK's tool.
pub(crate) struct Sdk {
    peer: Peer,
    /// Its version, for readers of the figures.
    pub(crate) version: String,
}

impl Sdk {
    /// Starts the tool on a memory whose files will be in `directory`'s `memories`.
    pub(crate) fn start(python: &Path, directory: &Path) -> io::Result<Sdk> {
        let mut peer = Peer::start("the SDK", Program::new(python).arg(DRIVER).arg(directory))?;
        let mut version = Vec::new();
        peer.hear(&mut version)?;
        let version = serde_json::from_slice(&version)?;
        Ok(Sdk { peer, version })
    }
}

impl Side for Sdk {
    fn run(&mut self, steps: &[Step]) -> io::Result<Vec<Nanoseconds>> {
        let inputs: Value = steps.iter().map(|step| to_json(&step.command)).collect();
        let mut answer = Vec::new();
        self.peer.ask(format!("{inputs}\n").as_bytes(), &mut answer)?;
        let samples: Vec<Nanoseconds> = serde_json::from_slice(&answer)?;
        Ok(samples
            .into_iter()
            .zip(steps)
            .filter(|(_, step)| step.is_timed)
            .map(|(sample, _)| sample)
            .collect())
    }
}
