//! `haversack project`: the projects on this machine, and whether their memory is carried.

mod private;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use haversack::store::{BackendExt, Locator, block_on};
use serde_json::{Value, json};

use crate::agents::claude_code::ClaudeCode;
use crate::agents::claude_code::private::is_private;
use crate::error::CommandError;
use crate::home::mounts;
use crate::home::store::open_to_look;
use crate::projects::bind::{self, AskedBy, Bound};
use crate::projects::discover::{self, Found};
use crate::projects::registry::{self, ProjectRegistry};
use crate::projects::{Project, id_of_prefix, identity, prefix_of};
use crate::remote::Remote;
use crate::settings::tilde;
use crate::settings::{Settings, flags, shown};
use crate::ui::Ui;
use crate::ui::moments::counted;
use crate::ui::paths::quoted;

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

/// A project, or a memory directory whose project is not known.
pub(crate) struct Listed {
    /// Its name for people.
    pub(crate) label: String,
    pub(crate) files: usize,
    pub(crate) bytes: u64,
    /// Its place, or the reason why it is not carried.
    pub(crate) remark: String,
    pub(crate) is_carried: bool,
    /// The project; `None` if its directory is gone or unknown.
    pub(crate) project: Option<Project>,
    pub(crate) memory: PathBuf,
}

/// Returns every project with memory on this machine.
pub(crate) fn listed(settings: &Settings, claude: &ClaudeCode, registry: &ProjectRegistry) -> Vec<Listed> {
    let mut listed = Vec::new();
    let mut memories = BTreeSet::new();
    let found = discover::discover(claude);
    let bound: BTreeSet<PathBuf> =
        mounts::of(settings).unwrap_or_default().into_iter().map(|mount| mount.directory).collect();
    for Found { memory, root, files, bytes } in found {
        let real = memory.canonicalize().unwrap_or_else(|_| memory.clone());
        if is_private(&memory) {
            let is_carried = bound.contains(&real);
            listed.push(of_worktree(settings, claude, registry, memory, (files, bytes), is_carried));
            continue;
        }
        let seen = registry.seen.iter().find(|seen| seen.memory == real).map(|seen| seen.root.clone());
        memories.insert(real);
        match root.filter(|root| root.is_dir()).or(seen).filter(|root| root.is_dir()) {
            Some(root) => listed.push(of_project(
                settings,
                Project::of(settings, claude, registry, &root),
                (files, bytes),
            )),
            None => {
                let name = memory.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
                let is_carried = memory.canonicalize().is_ok_and(|memory| bound.contains(&memory));
                let remark = format!(
                    "its project's directory is unknown: haversack project bind DIRECTORY --from {}",
                    tilde(settings, &memory)
                );
                listed.push(Listed {
                    label: name.into_owned(),
                    files,
                    bytes,
                    remark: if is_carried {
                        "its project's directory is unknown; synced".to_owned()
                    } else {
                        remark
                    },
                    is_carried,
                    project: None,
                    memory,
                });
            }
        }
    }
    for seen in registry.seen.iter().filter(|seen| !memories.contains(&seen.memory) && seen.root.is_dir()) {
        let project = Project::of(settings, claude, registry, &seen.root);
        let is_new = listed.iter().all(|other| other.memory != project.memory.path);
        if is_new && project.memory.path.is_dir() {
            let size = discover::count(&project.memory.path);
            listed.push(of_project(settings, project, size));
        }
    }
    // One that has memory of its own and nothing in it yet.
    for private in &registry.private {
        let project = Project::of(settings, claude, registry, &private.checkout);
        if project.is_private && listed.iter().all(|other| other.memory != project.memory.path) {
            let size = discover::count(&project.memory.path);
            listed.push(of_project(settings, project, size));
        }
    }
    listed
}

/// Returns what is listed of a private memory directory: its worktree, unless that is gone or shares again.
fn of_worktree(
    settings: &Settings,
    claude: &ClaudeCode,
    registry: &ProjectRegistry,
    memory: PathBuf,
    size: (usize, u64),
    is_carried: bool,
) -> Listed {
    let checkout =
        registry.private.iter().find(|private| private.memory == memory).map(|found| &found.checkout);
    let project = checkout.map(|checkout| Project::of(settings, claude, registry, checkout));
    if let Some(project) = project.filter(|project| project.is_private && project.memory.path == memory) {
        return of_project(settings, project, size);
    }
    let name = memory.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    let from = tilde(settings, &memory);
    Listed {
        label: name.into_owned(),
        files: size.0,
        bytes: size.1,
        remark: match is_carried {
            true => "was private to a worktree; synced".to_owned(),
            false => format!(
                "was private to a worktree, stays on this machine: haversack project bind DIRECTORY --from {from}"
            ),
        },
        is_carried,
        project: None,
        memory,
    }
}

fn of_project(settings: &Settings, project: Project, (files, bytes): (usize, u64)) -> Listed {
    let why_not = project.why_not(settings);
    Listed {
        label: project.label(settings),
        files,
        bytes,
        is_carried: why_not.is_none(),
        remark: why_not
            .unwrap_or_else(|| project.address.clone().unwrap_or_else(|| tilde(settings, &project.root))),
        memory: project.memory.path.clone(),
        project: Some(project),
    }
}

fn list(ui: &mut Ui, settings: &Settings, as_json: bool) -> Result<(), CommandError> {
    let claude = ClaudeCode::expected(settings)?;
    let registry = ProjectRegistry::of(settings)?;
    let listed = listed(settings, &claude, &registry);
    let elsewhere = elsewhere(settings, &listed)?;
    if as_json {
        let each = listed.iter().map(to_json);
        let elsewhere = elsewhere.iter().map(|(id, files)| json!({ "id": id, "files": files }));
        return ui.json(&json!({
            "projects": each.collect::<Vec<_>>(),
            "only_elsewhere": elsewhere.collect::<Vec<_>>(),
            "excluded": registry.exclude,
        }));
    }
    let mut rows = vec![["project", "memories", ""].map(str::to_owned).to_vec()];
    let has_remote = Remote::for_looking(settings)?.is_some();
    let bound = mounts::of(settings)?;
    for listed in &listed {
        let project = listed.project.as_ref().filter(|_| has_remote && listed.is_carried);
        let is_bound =
            bound.iter().any(|mount| project.and_then(Project::prefix).as_ref() == Some(&mount.prefix));
        let remark = match project.filter(|_| !is_bound) {
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

/// Returns the locator of a project's memory, which messages show as the short name of the project.
pub(crate) fn shown_id(id: &str) -> String {
    prefix_of(id).map_or_else(|| id.to_owned(), |prefix| prefix.to_string())
}

/// Returns the projects of the store that are not bound here, and how many files they have.
pub(crate) fn elsewhere(
    settings: &Settings,
    listed: &[Listed],
) -> Result<Vec<(String, usize)>, CommandError> {
    let projects = listed.iter().filter_map(|listed| listed.project.as_ref());
    let here: BTreeSet<&str> =
        projects.filter(|project| !project.is_private).filter_map(|project| project.id.as_deref()).collect();
    let bound = mounts::of(settings)?;
    let mut ids: std::collections::BTreeMap<String, usize> = std::collections::BTreeMap::new();
    let place = Locator::parse("claude_memory").expect("a plain name");
    let memory = open_to_look(settings)?;
    for locator in block_on(memory.files().list_all(&place))? {
        let id = locator.as_str().split('/').nth(1).unwrap_or_default();
        let is_bound = bound.iter().any(|mount| id_of_prefix(&mount.prefix) == Some(id));
        if !is_bound && !here.contains(id) && !id.ends_with(".agents") && !id.ends_with(".agents-local") {
            *ids.entry(id.to_owned()).or_default() += 1;
        }
    }
    Ok(ids.into_iter().collect())
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
    let claude = ClaudeCode::expected(settings)?;
    let directory = existing(directory)?;
    let Some(id) =
        identity::id_of_name(name).filter(|id| !id.ends_with(".agents") && !id.ends_with(".agents-local"))
    else {
        return Err(CommandError::user(
            format!("\"{name}\" is no name for a project"),
            "Take a word of letters and digits",
        ));
    };
    let project = Project::of(settings, &claude, &ProjectRegistry::of(settings)?, &directory);
    let before = project.id.clone();
    match &project.address {
        Some(address) => registry::name_everywhere(settings, address, &id)?,
        None => {
            let _turn = registry::turn(settings)?;
            let mut registry = ProjectRegistry::of(settings)?;
            registry.name(&project.root, &id);
            registry.save(settings)?;
        }
    }
    ui.note(match &project.address {
        Some(address) => format!("{address} is {id} from now on, on all your machines"),
        None => format!(
            "{} is {id} from now on. On another machine: haversack project name DIRECTORY {id}",
            tilde(settings, &project.root)
        ),
    });
    if let Some(before) = before.filter(|before| *before != id) {
        ui.note(format!("The files stay under {before} too, until you run: haversack delete --recursive claude_memory/{before}"));
    }
    // Private memory stays private; the name is the repository's.
    bind(ui, settings, if project.is_private { &project.root } else { &directory }, None)
}

fn bind(ui: &mut Ui, settings: &Settings, directory: &Path, from: Option<&Path>) -> Result<(), CommandError> {
    let claude = ClaudeCode::expected(settings)?;
    let directory = existing(directory)?;
    let project = Project::of(settings, &claude, &ProjectRegistry::of(settings)?, &directory);
    let label = project.label(settings);
    let unagreed = bind::unagreed(settings, &project)?;
    let bound = bind::bind(settings, &claude, &project, AskedBy::User)?;
    let project = Project::of(settings, &claude, &ProjectRegistry::of(settings)?, &directory);
    for directory in &unagreed {
        ui.note(format!("You agreed: {} is synced with {label}", tilde(settings, directory)));
    }
    match &bound {
        Bound::NeedsConsent(_) => {
            return Err(CommandError::user(
                format!("{label} stays on this machine"),
                project.why_not(settings).unwrap_or_default(),
            ));
        }
        Bound::Local => {
            let why = project.why_not(settings).unwrap_or_default();
            return Err(CommandError::user(
                format!("{label} stays on this machine"),
                if project.is_excluded && !project.is_private {
                    "It was excluded: haversack project exclude --undo".to_owned()
                } else {
                    why
                },
            ));
        }
        Bound::Unclear { before } => {
            let root = quoted(&tilde(settings, &project.root));
            return Err(CommandError::user(
                format!("the directory of {label} held another project until now: {before}"),
                format!(
                    "If it is the same project at a new address: haversack project name {root} {before}. If not, give it a name: haversack project name {root} NAME"
                ),
            ));
        }
        Bound::Already => ui.note(format!("{label} is synced already")),
        Bound::New => ui.note(format!("{label} is synced from now on")),
        Bound::Moved { files } => {
            ui.note(format!("{label} is synced from here now; its {} came along", counted(*files, "file")));
        }
    }
    if let (Some(from), Some(id)) = (from, &project.id) {
        bind::bind_left_over(settings, from, id)?;
        ui.note(format!("The files in {} belong to {label} now", shown(from)));
    }
    if Remote::for_looking(settings)?.is_some() {
        ui.note("Send it: haversack sync");
    }
    Ok(())
}

fn exclude(ui: &mut Ui, settings: &Settings, what: &str) -> Result<(), CommandError> {
    let what = named(what);
    {
        let _turn = registry::turn(settings)?;
        let mut registry = ProjectRegistry::of(settings)?;
        if !registry.exclude.contains(&what) {
            registry.exclude.push(what.clone());
        }
        registry.save(settings)?;
    }
    let let_go = rebind(settings)?;
    ui.note(format!(
        "{what} stays on this machine from now on. Files that were sent before stay in the remote"
    ));
    for label in let_go {
        ui.note(format!("Stopped syncing {label}. Its files stay where they are"));
    }
    Ok(())
}

fn include(ui: &mut Ui, settings: &Settings, what: &str) -> Result<(), CommandError> {
    let what = named(what);
    let is_known = {
        let _turn = registry::turn(settings)?;
        let mut registry = ProjectRegistry::of(settings)?;
        let before = registry.exclude.len();
        registry.exclude.retain(|other| *other != what);
        registry.save(settings)?;
        registry.exclude.len() < before
    };
    if !is_known {
        return Err(CommandError::user(
            format!("{what} was not excluded by this command"),
            "List the projects: haversack project list --json. Settings can exclude a project too: haversack config list",
        ));
    }
    rebind(settings)?;
    ui.note(format!("{what} is synced again"));
    Ok(())
}

/// Binds or lets go every project that was seen here; returns what those are called that were let go.
fn rebind(settings: &Settings) -> Result<Vec<String>, CommandError> {
    let claude = ClaudeCode::expected(settings)?;
    let registry = ProjectRegistry::of(settings)?;
    let mut let_go = Vec::new();
    for seen in registry.seen.iter().filter(|seen| seen.root.is_dir()) {
        let project = Project::of(settings, &claude, &registry, &seen.root);
        let before = mounts::of(settings)?.len();
        bind::bind(settings, &claude, &project, AskedBy::Nobody)?;
        if mounts::of(settings)?.len() < before {
            let_go.push(project.label(settings));
        }
    }
    Ok(let_go)
}

/// Returns a directory by its full path; anything else as it was said.
fn named(what: &str) -> String {
    match Path::new(what).canonicalize() {
        Ok(directory) => shown(&directory),
        Err(_) => what.to_owned(),
    }
}

fn existing(directory: &Path) -> Result<PathBuf, CommandError> {
    directory.canonicalize().ok().filter(|directory| directory.is_dir()).ok_or_else(|| {
        CommandError::user(
            format!("there is no directory {}", shown(directory)),
            "Give the directory of the project",
        )
    })
}
