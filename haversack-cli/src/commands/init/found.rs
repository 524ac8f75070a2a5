//! The projects on this machine, their memory, and the files that stay here.

use std::path::Path;

use haversack::store::Locator;

use crate::agents::claude_code::ClaudeCode;
use crate::app::projects::{Listed, listed};
use crate::error::CommandError;
use crate::home::gate::NothingPrivate;
use crate::projects::Project;
use crate::projects::registry::ProjectRegistry;
use crate::settings::Settings;
use crate::ui::Ui;
use crate::ui::moments::counted;

/// The most names of held files.
const MAX_NAMED: usize = 5;

/// The findings.
pub(crate) struct Found {
    listed: Vec<Listed>,
    /// True if Claude Code was ever used here.
    is_here: bool,
    /// Files that stay, as people find them, and why.
    held: Vec<(String, String)>,
    /// Files of projects that are sent.
    outgoing: Outgoing,
    /// Files of the home's own memory that are sent.
    own: Outgoing,
}

/// Files that are sent.
#[derive(Default)]
struct Outgoing {
    files: usize,
    bytes: u64,
    has_persona: bool,
}

/// The names of files that belong to a persona.
const PERSONA: [&str; 6] = [
    "voice_calibration.md",
    "self_observations.md",
    "running_commitments.md",
    "running_jokes_and_callbacks.md",
    "philosophical_threads.md",
    "unsent_drafts.md",
];

impl Found {
    /// Looks for it; changes nothing.
    pub(crate) fn look(settings: &Settings) -> Result<Found, CommandError> {
        let claude = ClaudeCode::expected(settings)?;
        let listed = listed(settings, &claude, &ProjectRegistry::of(settings)?);
        let gate = NothingPrivate::of(settings)?;
        let (mut held, mut outgoing, mut own) = (Vec::new(), Outgoing::default(), Outgoing::default());
        for project in listed.iter().filter(|listed| listed.is_carried) {
            sort(&project.memory, Some(&project.label), &gate, &mut outgoing, &mut held);
        }
        sort(&settings.memory(), None, &gate, &mut own, &mut held);
        held.sort();
        Ok(Found { listed, is_here: claude.is_here(), held, outgoing, own })
    }

    /// Returns the projects that are carried.
    pub(crate) fn carried(&self) -> impl Iterator<Item = &Project> {
        self.listed.iter().filter(|listed| listed.is_carried).filter_map(|listed| listed.project.as_ref())
    }

    /// Returns how many files are sent to a new store.
    pub(crate) fn to_carry(&self) -> usize {
        self.outgoing.files + self.own.files
    }

    /// Returns why nothing is sent, in words.
    pub(crate) fn why_nothing(&self) -> &'static str {
        match self.listed.iter().any(|listed| listed.files > 0) {
            true => "the memory above stays here",
            false => "there is no memory here",
        }
    }

    /// Returns how many files are sent and of what size, in words.
    pub(crate) fn to_send(&self) -> String {
        let mut remarks = Vec::new();
        if self.own.files > 0 {
            remarks.push(format!("{} of the home's own memory", counted(self.own.files, "file")));
        }
        if self.outgoing.has_persona || self.own.has_persona {
            remarks.push("includes persona".to_owned());
        }
        let remarks = match remarks.is_empty() {
            true => String::new(),
            false => format!(" ({})", remarks.join("; ")),
        };
        let bytes = size(self.outgoing.bytes + self.own.bytes);
        format!("{}, {bytes}{remarks}", counted(self.to_carry(), "file"))
    }

    /// Says what was found.
    pub(crate) fn tell(&self, ui: &mut Ui, is_sent: bool) -> Result<(), CommandError> {
        if !self.is_here {
            return ui.line("Claude Code was not found on this machine.");
        }
        if self.listed.is_empty() {
            return ui.line("Found Claude Code: no project has memory yet.");
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

/// Adds the files of a directory to the outgoing or the held ones. `label` names the directory to people.
fn sort(
    directory: &Path,
    label: Option<&str>,
    gate: &NothingPrivate,
    out: &mut Outgoing,
    held: &mut Vec<(String, String)>,
) {
    let mut directories = vec![directory.to_owned()];
    while let Some(inner) = directories.pop() {
        for entry in std::fs::read_dir(&inner).into_iter().flatten().flatten() {
            let path = entry.path();
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() && entry.file_name() != ".haversack" {
                directories.push(path);
            } else if kind.is_file()
                && let Ok(name) = path.strip_prefix(directory)
                && let Ok(locator) = Locator::parse(&name.to_string_lossy())
                && let Ok(content) = std::fs::read(&path)
            {
                match haversack::sync::Gate::holds(gate, &locator, &content) {
                    Some(hold) => {
                        let name = crate::home::gate::named(&locator);
                        let name = label.map_or(name.clone(), |label| format!("{label}/{name}"));
                        held.push((name, hold.why));
                    }
                    None => {
                        out.files += 1;
                        out.bytes += content.len() as u64;
                        out.has_persona |= is_persona(locator.name());
                    }
                }
            }
        }
    }
}

/// Returns true if a file is part of a persona: it is about people, promises or a voice, rather than about a project.
fn is_persona(name: &str) -> bool {
    name.starts_with("relationship_") || PERSONA.contains(&name)
}

/// Returns a size as people say it.
fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} bytes"),
        1024..1_048_576 => format!("{} KB", bytes.div_ceil(1024)),
        _ => format!("{:.1} MB", bytes as f64 / 1_048_576.0),
    }
}
