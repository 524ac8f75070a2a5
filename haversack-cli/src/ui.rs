//! The only place that prints: data to stdout, everything else to stderr.

mod progress;

use std::cell::RefCell;
use std::io::{self, BufRead, IsTerminal, Write};
use std::rc::Rc;

use haversack::check::{Finding, Verdict};

pub(crate) use self::progress::Bar;
use crate::error::{CommandError, Fault};
use crate::settings::layers::Warning;
use crate::variables;

/// The two streams of a command.
pub(crate) struct Ui {
    out: Box<dyn Write>,
    err: Box<dyn Write>,
}

/// What a person said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Yes,
    No,
}

/// What a command printed for somebody who is not at a terminal.
#[derive(Clone, Default)]
pub(crate) struct Captured {
    bytes: Rc<RefCell<Vec<u8>>>,
}

impl Captured {
    /// Returns it as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes.borrow()).into_owned()
    }
}

impl Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Ui {
    /// Returns the process's own streams.
    pub(crate) fn terminal() -> Ui {
        // Not locked: a server answers from another thread while this one waits.
        Ui { out: Box::new(io::stdout()), err: Box::new(io::stderr()) }
    }

    /// Returns streams that go nowhere, and what was written to both of them.
    pub(crate) fn captured() -> (Ui, Captured) {
        let captured = Captured::default();
        (Ui { out: Box::new(captured.clone()), err: Box::new(captured.clone()) }, captured)
    }

    /// Prints a line of data.
    pub(crate) fn line(&mut self, text: impl AsRef<str>) -> Result<(), CommandError> {
        // In one piece: whoever reads the other end of a pipe waits for it.
        self.bytes(format!("{}\n", text.as_ref()).as_bytes())
    }

    /// Prints data as it is.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result<(), CommandError> {
        self.out.write_all(bytes)?;
        self.out.flush()?;
        Ok(())
    }

    /// Prints data for programs.
    pub(crate) fn json(&mut self, value: &serde_json::Value) -> Result<(), CommandError> {
        self.line(format!("{value:#}"))
    }

    /// Tells whether a person reads the data, rather than a program or a file.
    pub(crate) fn is_watched(&self) -> bool {
        io::stdout().is_terminal()
    }

    /// Returns a line that says how far something is.
    pub(crate) fn progress(&self) -> Bar {
        Bar::new()
    }

    /// Returns true if there is a person to ask.
    pub(crate) fn can_ask(&self) -> bool {
        io::stdin().is_terminal()
    }

    /// Asks a person; where there is none, the answer must have been given with the command.
    pub(crate) fn ask(&mut self, question: &str) -> Result<Answer, CommandError> {
        if !io::stdin().is_terminal() {
            return Err(CommandError::user(
                "this needs a yes, and there is nobody to ask",
                "Say it with the command: --yes",
            ));
        }
        drop(write!(self.err, "{question} [y/N] "));
        drop(self.err.flush());
        let mut answer = String::new();
        io::stdin().lock().read_line(&mut answer)?;
        let is_yes = matches!(answer.trim().to_lowercase().as_str(), "y" | "yes");
        Ok(if is_yes { Answer::Yes } else { Answer::No })
    }

    /// Returns how many characters go into a line; `None` if there is no such bound.
    pub(crate) fn width(&self) -> Option<usize> {
        let said = std::env::var(variables::COLUMNS).ok().and_then(|columns| columns.parse().ok());
        said.or_else(|| {
            let (terminal_size::Width(width), _) = terminal_size::terminal_size_of(io::stdout())?;
            Some(usize::from(width))
        })
    }

    /// Prints a line that is not data.
    pub(crate) fn note(&mut self, text: impl AsRef<str>) {
        // A remark that cannot be shown is no reason to fail.
        drop(writeln!(self.err, "{}", text.as_ref()));
    }

    /// Prints rows in aligned columns; the first row is the heading.
    pub(crate) fn table(&mut self, rows: &[Vec<String>]) -> Result<(), CommandError> {
        let width = |column: usize| {
            rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        for row in rows {
            let cells = row.iter().enumerate().map(|(column, cell)| format!("{cell:<0$}", width(column)));
            self.line(cells.collect::<Vec<_>>().join("  ").trim_end())?;
        }
        Ok(())
    }

    /// Prints the results of checks, each cure below what it cures.
    pub(crate) fn findings(&mut self, findings: &[Finding]) -> Result<(), CommandError> {
        for Finding { subject, verdict, detail, cure } in findings {
            self.line(format!("{verdict:<4}  {subject:<8}  {detail}"))?;
            if let (Some(cure), Verdict::Warn | Verdict::Fail) = (cure, verdict) {
                self.line(format!("                → {cure}"))?;
            }
        }
        Ok(())
    }

    /// Prints what should be looked at.
    pub(crate) fn warning(&mut self, Warning { message, cure }: &Warning) {
        self.note(format!("Warning: {message}\nHint: {cure}"));
    }

    /// Prints why a command failed; that nobody reads its output any more is nobody's concern.
    pub(crate) fn error(&mut self, error: &CommandError) {
        if error.fault == Fault::BrokenPipe {
            return;
        }
        let mut text = format!("Error: {}\n", error.message);
        let mut cause = error.source.as_deref().map(|source| source as &dyn std::error::Error);
        while let Some(error) = cause {
            text.push_str(&format!("Caused by: {error}\n"));
            cause = error.source();
        }
        if let Some(hint) = &error.hint {
            text.push_str(&format!("Hint: {hint}\n"));
        }
        // There is nowhere left to report to if this fails too.
        drop(self.err.write_all(text.as_bytes()));
    }
}
