//! What there is on this machine: projects, their memory, and what of it stays.

use haversack::store::Locator;

use crate::agents::claude_code::ClaudeCode;
use crate::commands::project::{Listed, listed};
use crate::error::CommandError;
use crate::home::gate::NothingPrivate;
use crate::projects::Project;
use crate::projects::book::Book;
use crate::settings::Settings;
use crate::ui::Ui;
use crate::ui::moments::counted;

/// How many files that are held back are named.
const MAX_NAMED: usize = 5;

/// What was found.
pub(crate) struct Found {
    listed: Vec<Listed>,
    /// Whether Claude Code was ever here.
    is_here: bool,
    /// Files that stay, as people find them, and why.
    held: Vec<(String, String)>,
}

impl Found {
    /// Looks for it; changes nothing.
    pub(crate) fn look(settings: &Settings) -> Result<Found, CommandError> {
        let claude = ClaudeCode::expected(settings)?;
        let listed = listed(settings, &claude, &Book::of(settings)?);
        let gate = NothingPrivate::of(settings)?;
        let mut held = Vec::new();
        for project in listed.iter().filter(|listed| listed.is_carried) {
            held.extend(held_in(project, &gate));
        }
        Ok(Found { listed, is_here: claude.is_here(), held })
    }

    /// Returns the projects that are carried.
    pub(crate) fn carried(&self) -> impl Iterator<Item = &Project> {
        self.listed.iter().filter(|listed| listed.is_carried).filter_map(|listed| listed.project.as_ref())
    }

    /// Returns how many files are carried.
    pub(crate) fn to_carry(&self) -> usize {
        let files: usize =
            self.listed.iter().filter(|listed| listed.is_carried).map(|listed| listed.files).sum();
        files.saturating_sub(self.held.len())
    }

    /// Says what was found.
    pub(crate) fn tell(&self, ui: &mut Ui, is_sent: bool) -> Result<(), CommandError> {
        if !self.is_here {
            return ui.line("Claude Code was not found on this machine.");
        }
        let files: usize = self.listed.iter().map(|listed| listed.files).sum();
        let bytes: u64 = self.listed.iter().map(|listed| listed.bytes).sum();
        let projects = counted(self.listed.len(), "project");
        ui.line(format!(
            "Found Claude Code: {projects} with memory, {}, {}",
            counted(files, "file"),
            size(bytes)
        ))?;
        let rows: Vec<Vec<String>> = self
            .listed
            .iter()
            .map(|listed| {
                vec![format!("  {}", listed.label), counted(listed.files, "file"), listed.remark.clone()]
            })
            .collect();
        ui.table(&rows)?;
        if !self.held.is_empty() && is_sent {
            let what = match self.held.len() {
                1 => "1 file stays here".to_owned(),
                count => format!("{count} files stay here"),
            };
            ui.line(format!("  {what}, and will not be sent:"))?;
            for (name, why) in self.held.iter().take(MAX_NAMED) {
                ui.line(format!("    {name}: {why}"))?;
            }
        }
        Ok(())
    }
}

fn held_in(listed: &Listed, gate: &NothingPrivate) -> Vec<(String, String)> {
    let mut held = Vec::new();
    let mut directories = vec![listed.memory.clone()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
            let path = entry.path();
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() && entry.file_name() != ".haversack" {
                directories.push(path);
            } else if kind.is_file()
                && let Ok(name) = path.strip_prefix(&listed.memory)
                && let Ok(locator) = Locator::parse(&name.to_string_lossy())
                && let Ok(content) = std::fs::read(&path)
                && let Some(hold) = haversack::sync::Gate::holds(gate, &locator, &content)
            {
                held.push((format!("{}/{}", listed.label, crate::home::gate::named(&locator)), hold.why));
            }
        }
    }
    held.sort();
    held
}

/// Returns a size as people say it.
fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} bytes"),
        1024..1_048_576 => format!("{} KB", bytes.div_ceil(1024)),
        _ => format!("{:.1} MB", bytes as f64 / 1_048_576.0),
    }
}
