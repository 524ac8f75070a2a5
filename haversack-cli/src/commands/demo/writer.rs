//! One of the demo's processes: adds lines to a file and says which are safe.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use haversack::store::{Blocking, Bytes, Condition, DeviceLocal, Error, ErrorKind, Locator};

use crate::error::CommandError;
use crate::ui::Ui;

/// How a writer changes a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum How {
    /// Only what it read is replaced; otherwise it reads again.
    CompareAndSwap,
    /// Whatever is there is replaced by what it read plus its change.
    ReplaceWholeFile,
}

impl How {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            How::CompareAndSwap => "compare-and-swap",
            How::ReplaceWholeFile => "replace-whole-file",
        }
    }
}

/// Write as one of the demo's processes
#[derive(Debug, Args)]
pub(crate) struct WriterArgs {
    root: PathBuf,
    locks: PathBuf,
    key: String,
    name: String,
    edits: usize,
    how: How,
}

pub(crate) fn cmd_demo_writer(ui: &mut Ui, args: &WriterArgs) -> Result<ExitCode, CommandError> {
    let store = Blocking::new(Arc::new(DeviceLocal::open(&args.root, &args.locks)?));
    let locator = Locator::parse(&args.key)
        .map_err(|error| CommandError::user(error.to_string(), "This command is the demo's own"))?;
    for number in 0..args.edits {
        let line = format!("{} {number}", args.name);
        add_line(&store, &locator, &line, args.how)?;
        ui.line(&line)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn add_line(store: &Blocking, locator: &Locator, line: &str, how: How) -> Result<(), Error> {
    loop {
        let (mut bytes, read) = match store.read(locator) {
            Ok(object) => (object.bytes.to_vec(), Condition::Matches(object.version)),
            Err(error) if error.kind() == ErrorKind::NotFound => (Vec::new(), Condition::Absent),
            Err(error) => return Err(error),
        };
        bytes.extend_from_slice(format!("{line}\n").as_bytes());
        let condition = match how {
            How::CompareAndSwap => read,
            How::ReplaceWholeFile => Condition::Any,
        };
        match store.write(locator, Bytes::from(bytes), condition) {
            Err(error) if error.kind() == ErrorKind::Conflict => {}
            result => return result.map(drop),
        }
    }
}
