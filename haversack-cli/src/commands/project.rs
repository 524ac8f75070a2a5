//! `haversack project`: the projects on this machine, and whether their memory is carried.

mod private;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::app::projects::{
    self, BoundProject, Listed, NamedProject, Projects, projects, shown_id, waits_for_session,
};
use crate::error::CommandError;
use crate::projects::bind::{Bound, bind_left_over};
use crate::remote::Remote;
use crate::settings::tilde;
use crate::settings::{Settings, flags, shown};
use crate::ui::Ui;
use crate::ui::moments::counted;

/// Manage projects, and choose which of them are synced
#[derive(Debug, Args)]
#[command(mut_subcommands(flags::accept))]
pub(crate) struct ProjectArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Show the projects on this machine, and those that are only on others
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Give a project a name, because it has no repository or shares its memory with another
    Name {
        /// Its directory
        directory: PathBuf,
        /// The name, the same on every machine
        name: String,
    },
    /// Sync a project's memory from now on, also from directories that its repository names (in the checkout or in its settings)
    Bind {
        /// Its directory; the current one if left out
        directory: Option<PathBuf>,
        /// Import the memory directory of an old checkout
        #[arg(long, value_name = "MEMORY")]
        from: Option<PathBuf>,
    },
    /// Keep the memory of some projects on this machine: a directory, a repository as github.com/acme, or a name
    Exclude {
        /// The project
        what: String,
        /// Sync them again
        #[arg(long)]
        undo: bool,
    },
    /// Give one worktree private memory, which stays on this machine and is never sent; all other checkouts share theirs
    Private {
        /// Its directory; the current one if left out
        directory: Option<PathBuf>,
        /// Share the repository's memory again; the private files stay where they are
        #[arg(long)]
        undo: bool,
    },
}

pub(crate) fn cmd_project(
    ui: &mut Ui,
    settings: &Settings,
    args: &ProjectArgs,
) -> Result<ExitCode, CommandError> {
    match &args.action {
        Action::List { json } => list(ui, settings, *json)?,
        Action::Name { directory, name } => give_name(ui, settings, directory, name)?,
        Action::Bind { directory, from } => {
            let directory = directory.clone().unwrap_or(PathBuf::from("."));
            bind(ui, settings, &directory, from.as_deref())?;
        }
        Action::Exclude { what, undo: false } => exclude(ui, settings, what)?,
        Action::Exclude { what, undo: true } => include(ui, settings, what)?,
        Action::Private { directory, undo } => {
            let directory = directory.clone().unwrap_or(PathBuf::from("."));
            match undo {
                false => private::begin(ui, settings, &directory)?,
                true => private::end(ui, settings, &directory)?,
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn list(ui: &mut Ui, settings: &Settings, as_json: bool) -> Result<(), CommandError> {
    let Projects { here, elsewhere, excluded } = projects(settings)?;
    if as_json {
        let each = here.iter().map(to_json);
        let elsewhere = elsewhere.iter().map(|(id, files)| json!({ "id": id, "files": files }));
        return ui.json(&json!({
            "projects": each.collect::<Vec<_>>(),
            "only_elsewhere": elsewhere.collect::<Vec<_>>(),
            "excluded": excluded,
        }));
    }
    let mut rows = vec![["project", "memories", ""].map(str::to_owned).to_vec()];
    for (listed, waits) in here.iter().zip(waits_for_session(settings, &here)?) {
        let remark = match listed.project.as_ref().filter(|_| waits) {
            Some(project) => format!(
                "{}: synced from its next session on (to keep it here: haversack project exclude {})",
                listed.remark,
                project.known_as(settings)
            ),
            None => listed.remark.clone(),
        };
        rows.push(vec![listed.label.clone(), listed.files.to_string(), remark]);
    }
    rows.extend(elsewhere.iter().map(|(id, files)| {
        let remark = "not on this machine yet: its memory arrives when you first open Claude Code in it";
        vec![shown_id(id), files.to_string(), remark.to_owned()]
    }));
    if rows.len() == 1 {
        ui.note("No project has memory here yet. It is found when you open Claude Code in one.");
        return Ok(());
    }
    ui.table(&rows)
}

fn to_json(listed: &Listed) -> Value {
    let project = listed.project.as_ref();
    json!({
        "id": project.and_then(|project| project.id.as_ref()),
        "label": listed.label,
        "address": project.and_then(|project| project.address.as_ref()),
        "directory": project.map(|project| shown(&project.root)),
        "memory": shown(&listed.memory),
        "files": listed.files,
        "bytes": listed.bytes,
        "carried": listed.is_carried,
        "private": project.is_some_and(|project| project.is_private),
    })
}

fn give_name(ui: &mut Ui, settings: &Settings, directory: &Path, name: &str) -> Result<(), CommandError> {
    let NamedProject { id, before, address, root, directory } = projects::name(settings, directory, name)?;
    ui.note(match &address {
        Some(address) => format!("{address} is {id} from now on, on all your machines"),
        None => format!(
            "{} is {id} from now on. On another machine: haversack project name DIRECTORY {id}",
            tilde(settings, &root)
        ),
    });
    if let Some(before) = before {
        // No command to delete them: the short form of the old name can mean the memory that is in use.
        ui.note(format!("The files that were synced before also stay under the old name, {before}."));
    }
    bind(ui, settings, &directory, None)
}

fn bind(ui: &mut Ui, settings: &Settings, directory: &Path, from: Option<&Path>) -> Result<(), CommandError> {
    let BoundProject { label, bound, agreed, id } = projects::bind(settings, directory)?;
    for directory in &agreed {
        ui.note(format!("You agreed: {} is synced with {label}", tilde(settings, directory)));
    }
    match bound {
        Bound::Already => ui.note(format!("{label} is synced already")),
        Bound::Moved { files } => {
            ui.note(format!("{label} is synced from here now; its {} came along", counted(files, "file")));
        }
        Bound::New | Bound::Local | Bound::NeedsConsent(_) | Bound::Unclear { .. } => {
            ui.note(format!("{label} is synced from now on"));
        }
    }
    if let (Some(from), Some(id)) = (from, id) {
        bind_left_over(settings, from, &id)?;
        ui.note(format!("The files in {} belong to {label} now", shown(from)));
    }
    if Remote::for_looking(settings)?.is_some() {
        ui.note("Send it: haversack sync");
    }
    Ok(())
}

fn exclude(ui: &mut Ui, settings: &Settings, what: &str) -> Result<(), CommandError> {
    let (what, let_go) = projects::exclude(settings, what)?;
    ui.note(format!(
        "{what} stays on this machine from now on. Files that were sent before stay in the remote"
    ));
    for label in let_go {
        ui.note(format!("Stopped syncing {label}. Its files stay where they are"));
    }
    Ok(())
}

fn include(ui: &mut Ui, settings: &Settings, what: &str) -> Result<(), CommandError> {
    let what = projects::include(settings, what)?;
    ui.note(format!("{what} is synced again"));
    Ok(())
}
