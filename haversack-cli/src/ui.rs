//! The only place that prints: data to stdout, everything else to stderr.
//!
//! Names of files and machines, and passages of memory, are text of others. So every line has its control characters and bidirectional overrides
//! escaped ([`haversack::display`]). Only [`Ui::bytes`] prints data as it is, and not to a terminal, which would obey it.

pub(crate) mod abbreviations;
pub(crate) mod colors;
pub(crate) mod moments;
pub(crate) mod pager;
pub(crate) mod paths;
mod progress;
pub(crate) mod wrap;

use std::io::{self, BufRead, IsTerminal, Write};

use clap::builder::styling::Style;
use haversack::check::{Finding, Verdict};
use haversack::display;

use self::abbreviations::Abbreviations;
use self::colors::Colors;
pub(crate) use self::progress::Bar;
use crate::error::{CommandError, Fault, Warning};

/// The two streams of a command.
pub(crate) struct Ui {
    out: Box<dyn Write>,
    err: Box<dyn Write>,
    reader: Reader,
    presentation: Presentation,
    /// The data and the notes of a command with long output, until it ends.
    page: Option<Page>,
    /// Short names for places, used in every line.
    abbreviations: Abbreviations,
}

/// The user's wishes about the output.
#[derive(Clone, Debug, Default)]
pub(crate) struct Presentation {
    /// The number of characters in a line.
    pub(crate) columns: Option<usize>,
    pub(crate) colors: Colors,
    /// True if the environment asks for no colours.
    pub(crate) is_colorless: bool,
    /// The command of the pager; `None` for no pager.
    pub(crate) pager: Option<String>,
}

/// Output that waits for the end of its command.
#[derive(Default)]
struct Page {
    data: Vec<u8>,
    notes: String,
}

/// The reader of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reader {
    /// A terminal, which obeys escape sequences.
    Terminal,
    /// A program or a file.
    Program,
}

/// The user's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Yes,
    No,
}

impl Ui {
    /// Returns the process's own streams.
    pub(crate) fn terminal(presentation: Presentation) -> Ui {
        // Not locked: a server answers from another thread while this one waits.
        let reader = if io::stdout().is_terminal() { Reader::Terminal } else { Reader::Program };
        Ui {
            out: Box::new(io::stdout()),
            err: Box::new(io::stderr()),
            reader,
            presentation,
            page: None,
            abbreviations: Abbreviations::default(),
        }
    }

    /// Shows these short names from now on.
    pub(crate) fn abbreviate(&mut self, abbreviations: Abbreviations) {
        self.abbreviations = abbreviations;
    }

    /// Lets a pager show the output of this command if it is longer than the screen.
    pub(crate) fn page(&mut self) {
        if self.is_watched() && self.presentation.pager.is_some() && self.page.is_none() {
            self.page = Some(Page::default());
        }
    }

    /// Prints the output that waits for the end of the command.
    pub(crate) fn finish(&mut self) -> Result<(), CommandError> {
        let rows = terminal_size::terminal_size_of(io::stdout());
        self.finish_on(rows.map(|(_, terminal_size::Height(rows))| usize::from(rows)))
    }

    fn finish_on(&mut self, rows: Option<usize>) -> Result<(), CommandError> {
        let Some(Page { data, notes }) = self.page.take() else { return Ok(()) };
        let columns = self.width().unwrap_or(usize::MAX).max(1);
        let text = String::from_utf8_lossy(&data);
        let needed: usize = text.lines().map(|line| line.chars().count().div_ceil(columns).max(1)).sum();
        let is_long = rows.is_some_and(|rows| needed >= rows);
        let pager = self.presentation.pager.clone().filter(|_| is_long);
        if !pager.is_some_and(|pager| pager::show(&pager, &data)) {
            self.write(&data)?;
        }
        drop(self.err.write_all(notes.as_bytes()));
        Ok(())
    }

    /// Prints whole lines of data, each in its style if colours are on.
    pub(crate) fn painted(&mut self, text: &str, style: impl Fn(&str) -> Style) -> Result<(), CommandError> {
        let text = self.abbreviations.apply(text).into_owned();
        self.painted_quote(&text, style)
    }

    /// Prints whole lines as [`Ui::quote`] does, each in its style if colours are on.
    pub(crate) fn painted_quote(
        &mut self,
        text: &str,
        style: impl Fn(&str) -> Style,
    ) -> Result<(), CommandError> {
        let escaped = display::lines(text);
        match self.is_colored() {
            true => self.write(colors::painted(&escaped, style).as_bytes()),
            false => self.write(escaped.as_bytes()),
        }
    }

    /// Prints recalled memories as [`Ui::quote`] does. In colours, their places and the words of the query stand out. `matches` returns where
    /// those words are in a line.
    pub(crate) fn recalled(
        &mut self,
        text: &str,
        matches: impl Fn(&str) -> Vec<std::ops::Range<usize>>,
    ) -> Result<(), CommandError> {
        let escaped = display::lines(text);
        match self.is_colored() {
            true => self.write(colors::painted_recall(&escaped, matches).as_bytes()),
            false => self.write(escaped.as_bytes()),
        }
    }

    /// Prints data as [`Ui::bytes`] does, each line in its style if colours are on.
    pub(crate) fn painted_bytes(
        &mut self,
        bytes: &[u8],
        style: impl Fn(&str) -> Style,
    ) -> Result<(), CommandError> {
        match self.is_colored() {
            true => self.painted_quote(&String::from_utf8_lossy(bytes), style),
            false => self.bytes(bytes),
        }
    }

    fn is_colored(&self) -> bool {
        match self.presentation.colors {
            Colors::Always => true,
            Colors::Never => false,
            Colors::Auto => self.is_watched() && !self.presentation.is_colorless,
        }
    }

    /// Returns true if notes are in colours: they have a stream of their own.
    fn has_colored_notes(&self) -> bool {
        match self.presentation.colors {
            Colors::Always => true,
            Colors::Never => false,
            Colors::Auto => io::stderr().is_terminal() && !self.presentation.is_colorless,
        }
    }

    /// Prints whole lines that are not data.
    fn notes(&mut self, text: &str) {
        let text = self.abbreviations.apply(text);
        let escaped = display::lines(&text);
        let shown = match self.has_colored_notes() {
            true => colors::painted(&escaped, colors::note),
            false => escaped.into_owned(),
        };
        match &mut self.page {
            Some(page) => page.notes.push_str(&shown),
            // A remark that cannot be shown is no reason to fail.
            None => drop(self.err.write_all(shown.as_bytes())),
        }
    }

    /// Prints a line of data.
    pub(crate) fn line(&mut self, text: impl AsRef<str>) -> Result<(), CommandError> {
        // In one piece, for a reader at the other end of a pipe.
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
        if let Some(page) = &mut self.page {
            page.data.extend_from_slice(bytes);
            return Ok(());
        }
        self.out.write_all(bytes)?;
        self.out.flush()?;
        Ok(())
    }

    /// Returns true if a person reads the data, rather than a program or a file.
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
                "this needs your yes, and this is not a terminal",
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
        self.presentation.columns.or_else(terminal_columns)
    }

    /// Prints a line that is not data.
    pub(crate) fn note(&mut self, text: impl AsRef<str>) {
        self.notes(&format!("{}\n", text.as_ref()));
    }

    /// Returns true if no cell of a table would be wrapped.
    pub(crate) fn fits(&self, rows: &[Vec<String>]) -> bool {
        wrap::widths(rows, self.width().filter(|_| self.is_watched())) == wrap::widths(rows, None)
    }

    /// Prints rows in aligned columns; the first row is the heading. On a terminal, long cells are wrapped.
    pub(crate) fn table(&mut self, rows: &[Vec<String>]) -> Result<(), CommandError> {
        let shown = |cell: &String| self.abbreviations.apply(cell).into_owned();
        let rows: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(shown).collect()).collect();
        let widths = wrap::widths(&rows, self.width().filter(|_| self.is_watched()));
        for row in &rows {
            for line in wrap::row(row, &widths) {
                self.line(line)?;
            }
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

    /// Prints the error of a command. A closed output is ignored.
    pub(crate) fn error(&mut self, error: &CommandError) {
        if error.fault == Fault::BrokenPipe {
            return;
        }
        self.notes(&error.text());
    }
}

/// Returns the width of the terminal that shows stdout.
pub(crate) fn terminal_columns() -> Option<usize> {
    let (terminal_size::Width(width), _) = terminal_size::terminal_size_of(io::stdout())?;
    Some(usize::from(width))
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
        let (presentation, page) = (Presentation::default(), None);
        print(&mut Ui { out, err, reader, presentation, page, abbreviations: Abbreviations::default() });
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

    /// Returns the output of a terminal of 60 columns and 5 rows with a pager that writes into a file.
    fn paged(print: impl FnOnce(&mut Ui)) -> (String, Option<String>) {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let file = directory.path().join("paged");
        let captured = Captured::default();
        let presentation = Presentation {
            columns: Some(60),
            colors: Colors::Never,
            is_colorless: false,
            pager: Some(format!("cat > '{}'", file.display())),
        };
        let (out, err) = (Box::new(captured.clone()), Box::new(captured.clone()));
        let abbreviations = Abbreviations::default();
        let mut ui = Ui { out, err, reader: Reader::Terminal, presentation, page: None, abbreviations };
        print(&mut ui);
        ui.finish_on(Some(5)).expect("shown");
        let printed = String::from_utf8_lossy(&captured.bytes.borrow()).into_owned();
        (printed, std::fs::read_to_string(file).ok())
    }

    #[test]
    fn pager_shows_long_output_and_notes_follow() {
        let lines = |ui: &mut Ui, count: usize| {
            ui.page();
            ui.note("remark");
            (0..count).try_for_each(|line| ui.line(line.to_string())).expect("kept");
        };
        assert_eq!(paged(|ui| lines(ui, 3)), ("0\n1\n2\nremark\n".to_owned(), None));
        let long = "0\n1\n2\n3\n4\n".to_owned();
        assert_eq!(paged(|ui| lines(ui, 5)), ("remark\n".to_owned(), Some(long.clone())));
        // Three lines that take two rows each.
        let wide = |ui: &mut Ui| {
            ui.page();
            (0..3).try_for_each(|_| ui.line("x".repeat(100))).expect("kept");
        };
        assert!(paged(wide).1.is_some());
        let without = |ui: &mut Ui| {
            ui.presentation.pager = Some("no-such-pager 2>/dev/null".to_owned());
            lines(ui, 5);
        };
        assert_eq!(paged(without).0, format!("{long}remark\n"));
    }

    #[test]
    fn short_names_are_in_painted_lines_notes_and_tables_but_not_in_quotes() {
        let shown = printed(Reader::Program, |ui| {
            let pair = ("claude_memory/lighthouse-1f".to_owned(), "lighthouse".to_owned());
            ui.abbreviate(Abbreviations::new([pair]));
            ui.presentation.colors = Colors::Always;
            let place = "claude_memory/lighthouse-1f/a.md";
            ui.painted(&format!("+{place}\n"), colors::diff).expect("written");
            ui.painted_quote(&format!("+{place}\n"), colors::diff).expect("written");
            ui.note(format!("Hint: {place}"));
            ui.error(&CommandError::user(place, place));
            ui.table(&[vec![place.to_owned(), "b".to_owned()]]).expect("written");
        });
        let expected = [
            "\u{1b}[32m+lighthouse/a.md\u{1b}[0m",
            "\u{1b}[32m+claude_memory/lighthouse-1f/a.md\u{1b}[0m",
            "\u{1b}[36mHint: lighthouse/a.md\u{1b}[0m",
            "\u{1b}[31mError: lighthouse/a.md\u{1b}[0m",
            "\u{1b}[36mHint: lighthouse/a.md\u{1b}[0m",
            "lighthouse/a.md  b",
        ];
        assert_eq!(shown.lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn table_wraps_on_a_narrow_terminal() {
        let rows = [
            ["setting", "meaning"],
            ["lock-wait-seconds", "How long a write waits for another process that writes"],
        ];
        let rows = rows.map(|row| row.map(str::to_owned).to_vec());
        let (shown, _) = paged(|ui| ui.table(&rows).expect("written"));
        assert_eq!(
            shown,
            "setting            meaning\nlock-wait-seconds  How long a write waits for another\n                   process that writes\n"
        );
        let piped = printed(Reader::Program, |ui| ui.table(&rows).expect("written"));
        assert_eq!(piped.lines().count(), 2);
    }

    #[test]
    fn colors_follow_the_wish_of_the_user() {
        let colored = |reader: Reader, colors: Colors, is_colorless: bool| {
            printed(reader, |ui| {
                ui.presentation = Presentation { colors, is_colorless, ..Presentation::default() };
                ui.painted("+\u{1b}[2J\n", colors::diff).expect("written");
            })
            .contains("\u{1b}[32m+\\u{1b}[2J\u{1b}[0m\n")
        };
        assert!(colored(Reader::Terminal, Colors::Auto, false));
        assert!(!colored(Reader::Terminal, Colors::Auto, true));
        assert!(!colored(Reader::Program, Colors::Auto, false));
        assert!(colored(Reader::Program, Colors::Always, true));
        assert!(!colored(Reader::Terminal, Colors::Never, false));
    }

    #[test]
    fn json_keeps_its_value() {
        let value = serde_json::json!({ "text": HOSTILE });
        let shown = printed(Reader::Program, |ui| ui.json(&value).expect("written"));
        assert!(!shown.contains(['\u{202e}', '\u{9b}', '\u{1b}']), "{shown}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).expect("JSON"), value);
    }
}
