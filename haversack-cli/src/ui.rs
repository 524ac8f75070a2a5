//! The only place that prints: data to stdout, everything else to stderr.
//!
//! Names of files and machines, and passages of memory, are text of others. So every line has its control characters and bidirectional overrides
//! escaped ([`haversack::display`]). Only [`Ui::bytes`] prints data as it is, and not to a terminal, which would obey it.

pub(crate) mod abbreviations;
pub(crate) mod moments;
pub(crate) mod paths;
mod progress;

use std::io::{self, BufRead, IsTerminal, Write};

use haversack::check::{Finding, Verdict};
use haversack::display;

use self::abbreviations::Abbreviations;
pub(crate) use self::progress::Bar;
use crate::error::{CommandError, Fault, Warning};

/// The two streams of a command.
pub(crate) struct Ui {
    out: Box<dyn Write>,
    err: Box<dyn Write>,
    reader: Reader,
    /// The number of characters in a line, as the user set it.
    columns: Option<usize>,
    /// Short names for places, used in every line.
    abbreviations: Abbreviations,
}

/// What reads the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reader {
    /// A terminal, which obeys escape sequences.
    Terminal,
    /// A program or a file.
    Program,
}

/// What a person said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Yes,
    No,
}

impl Ui {
    /// Returns the process's own streams. `columns` is the number of characters in a line if the user set it.
    pub(crate) fn terminal(columns: Option<usize>) -> Ui {
        // Not locked: a server answers from another thread while this one waits.
        let reader = if io::stdout().is_terminal() { Reader::Terminal } else { Reader::Program };
        Ui {
            out: Box::new(io::stdout()),
            err: Box::new(io::stderr()),
            reader,
            columns,
            abbreviations: Abbreviations::default(),
        }
    }

    /// Shows these short names from now on.
    pub(crate) fn abbreviate(&mut self, abbreviations: Abbreviations) {
        self.abbreviations = abbreviations;
    }

    /// Prints a line of data.
    pub(crate) fn line(&mut self, text: impl AsRef<str>) -> Result<(), CommandError> {
        // In one piece: whoever reads the other end of a pipe waits for it.
        self.text(&format!("{}\n", text.as_ref()))
    }

    /// Prints whole lines of data.
    pub(crate) fn text(&mut self, text: &str) -> Result<(), CommandError> {
        let text = self.abbreviations.apply(text).into_owned();
        self.quote(&text)
    }

    /// Prints whole lines that hold passages of files: no name in them is replaced.
    pub(crate) fn quote(&mut self, text: &str) -> Result<(), CommandError> {
        self.write(display::lines(text).as_bytes())
    }

    /// Prints data as it is. On a terminal, what the terminal would obey is escaped.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result<(), CommandError> {
        match self.reader {
            Reader::Program => self.write(bytes),
            Reader::Terminal => self.quote(&String::from_utf8_lossy(bytes)),
        }
    }

    /// Prints data for programs.
    pub(crate) fn json(&mut self, value: &serde_json::Value) -> Result<(), CommandError> {
        self.write(display::json(&format!("{value:#}\n")).as_bytes())
    }

    /// Prints data for programs that read a value from each line.
    pub(crate) fn json_line(&mut self, value: &serde_json::Value) -> Result<(), CommandError> {
        self.write(display::json(&format!("{value}\n")).as_bytes())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), CommandError> {
        self.out.write_all(bytes)?;
        self.out.flush()?;
        Ok(())
    }

    /// Tells whether a person reads the data, rather than a program or a file.
    pub(crate) fn is_watched(&self) -> bool {
        self.reader == Reader::Terminal
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
        let question = self.abbreviations.apply(question).into_owned();
        drop(write!(self.err, "{} [y/N] ", display::lines(&question)));
        drop(self.err.flush());
        let mut answer = String::new();
        io::stdin().lock().read_line(&mut answer)?;
        let is_yes = matches!(answer.trim().to_lowercase().as_str(), "y" | "yes");
        Ok(if is_yes { Answer::Yes } else { Answer::No })
    }

    /// Asks a person for a line; `None` at the end of the input.
    pub(crate) fn prompt(&mut self, question: &str) -> Result<Option<String>, CommandError> {
        drop(write!(self.err, "{} ", display::lines(question)));
        drop(self.err.flush());
        let mut answer = String::new();
        let count = io::stdin().lock().read_line(&mut answer)?;
        Ok((count > 0).then(|| answer.trim().to_owned()))
    }

    /// Returns how many characters go into a line; `None` if there is no such bound.
    pub(crate) fn width(&self) -> Option<usize> {
        self.columns.or_else(|| {
            let (terminal_size::Width(width), _) = terminal_size::terminal_size_of(io::stdout())?;
            Some(usize::from(width))
        })
    }

    /// Prints a line that is not data.
    pub(crate) fn note(&mut self, text: impl AsRef<str>) {
        // A remark that cannot be shown is no reason to fail.
        let text = self.abbreviations.apply(text.as_ref()).into_owned();
        drop(writeln!(self.err, "{}", display::lines(&text)));
    }

    /// Prints rows in aligned columns; the first row is the heading.
    pub(crate) fn table(&mut self, rows: &[Vec<String>]) -> Result<(), CommandError> {
        let shown = |cell: &String| self.abbreviations.apply(cell).into_owned();
        let rows: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(shown).collect()).collect();
        let width = |column: usize| {
            rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        for row in &rows {
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
        // There is nowhere left to report to if this fails too.
        let text = self.abbreviations.apply(&error.text()).into_owned();
        drop(self.err.write_all(display::lines(&text).as_bytes()));
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;

    /// The bytes that were written to both streams.
    #[derive(Clone, Default)]
    struct Captured {
        bytes: Rc<RefCell<Vec<u8>>>,
    }

    impl Write for Captured {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.bytes.borrow_mut().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Content that clears the screen, rings, overwrites its line and turns the reading direction around.
    const HOSTILE: &str = "one\u{1b}[2J\n\ttwo\u{7}\r\nthree\rover\u{9b}31m\u{202e}\n";

    fn printed(reader: Reader, print: impl FnOnce(&mut Ui)) -> String {
        let captured = Captured::default();
        let (out, err) = (Box::new(captured.clone()), Box::new(captured.clone()));
        print(&mut Ui { out, err, reader, columns: None, abbreviations: Abbreviations::default() });
        String::from_utf8_lossy(&captured.bytes.borrow()).into_owned()
    }

    #[test]
    fn content_is_exact_for_programs_and_escaped_on_a_terminal() {
        let print = |ui: &mut Ui| ui.bytes(HOSTILE.as_bytes()).expect("written");
        assert_eq!(printed(Reader::Program, print), HOSTILE);
        let shown = "one\\u{1b}[2J\n\ttwo\\u{7}\r\nthree\\rover\\u{9b}31m\\u{202e}\n";
        assert_eq!(printed(Reader::Terminal, print), shown);
        // A control character of one byte, which is no UTF-8: some terminals obey it.
        let raw = printed(Reader::Terminal, |ui| ui.bytes(b"\x9b31m\n").expect("written"));
        assert_eq!(raw, "\u{fffd}31m\n");
    }

    #[test]
    fn lines_notes_and_errors_are_always_escaped() {
        for reader in [Reader::Program, Reader::Terminal] {
            let shown = printed(reader, |ui| {
                ui.line("a\u{1b}b").expect("written");
                ui.note("c\u{202e}d");
                ui.error(&CommandError::user("e\u{1b}f", "g\u{7}h"));
                ui.table(&[vec!["i\u{9b}".to_owned(), "j".to_owned()]]).expect("written");
            });
            let expected = "a\\u{1b}b\nc\\u{202e}d\nError: e\\u{1b}f\nHint: g\\u{7}h\ni\\u{9b}  j\n";
            assert_eq!(shown, expected);
        }
    }

    #[test]
    fn json_keeps_its_value() {
        let value = serde_json::json!({ "text": HOSTILE });
        let shown = printed(Reader::Program, |ui| ui.json(&value).expect("written"));
        assert!(!shown.contains(['\u{202e}', '\u{9b}', '\u{1b}']), "{shown}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).expect("JSON"), value);
    }
}
