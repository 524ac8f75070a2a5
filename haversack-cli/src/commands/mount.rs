//! `haversack mount`: a directory that another program writes, carried with this memory.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use haversack::carried::Access;
use haversack::store::{BackendExt, Condition, DeviceLocal, Locator, block_on};
use serde_json::json;

use crate::app::memory_stores::{self, MemoryStore};
use crate::error::CommandError;
use crate::home::mounts::{self, Mount};
use crate::home::{self, Home};
use crate::projects::names::parse_place;
use crate::projects::registry;
use crate::remote::Remote;
use crate::settings::{Settings, flags, shown, tilde};
use crate::ui::Ui;
use crate::ui::moments::counted;
use crate::ui::paths::quoted;

/// Bind directories that other programs write to places in this memory
#[derive(Debug, Args)]
#[command(mut_subcommands(flags::accept))]
pub(crate) struct MountArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Bind a directory: its files are synced, and files of that place appear in it
    Add {
        /// The directory; or a memory store of Anthropic's, as anthropic:memstore_…, which every sync brings together with its place
        directory: PathBuf,
        /// The place of its files in the memory, as claude_memory/lighthouse
        prefix: String,
        /// Only read the memory store, and never write it
        #[arg(long)]
        read_only: bool,
    },
    /// Show the bound directories
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Let a directory go; its files stay in it
    Remove {
        /// The directory
        directory: PathBuf,
    },
}

pub(crate) fn cmd_mount(
    ui: &mut Ui,
    settings: &Settings,
    args: &MountArgs,
) -> Result<ExitCode, CommandError> {
    match &args.action {
        Action::Add { directory, prefix, read_only } => match store_of(directory) {
            Some(address) => add_store(ui, settings, address, prefix, *read_only)?,
            None if *read_only => {
                return Err(CommandError::user(
                    "only a memory store can be read only",
                    "Leave --read-only out: haversack mount add DIRECTORY PREFIX",
                ));
            }
            None => add(ui, settings, directory, prefix)?,
        },
        Action::List { json } => list(ui, settings, *json)?,
        Action::Remove { directory } => match store_of(directory) {
            Some(address) => remove_store(ui, settings, address)?,
            None => remove(ui, settings, directory)?,
        },
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the address if it is that of a memory store.
fn store_of(directory: &Path) -> Option<&str> {
    directory.to_str().filter(|text| text.starts_with(memory_stores::ADDRESS))
}

fn add_store(
    ui: &mut Ui,
    settings: &Settings,
    address: &str,
    prefix: &str,
    is_read_only: bool,
) -> Result<(), CommandError> {
    let prefix = parse_place(settings, prefix)?;
    let access = if is_read_only { Access::ReadOnly } else { Access::ReadAndWrite };
    memory_stores::add(
        settings,
        MemoryStore { address: address.to_owned(), prefix: prefix.clone(), access },
    )?;
    ui.note(format!("{address} is {prefix} in this memory. Bring both together: haversack sync"));
    Ok(())
}

fn remove_store(ui: &mut Ui, settings: &Settings, address: &str) -> Result<(), CommandError> {
    if !memory_stores::remove(settings, address)? {
        return Err(CommandError::user(
            format!("{address} is not bound"),
            "See the bound directories: haversack mount list",
        ));
    }
    ui.note(format!("Stopped syncing {address}. Its files stay there and here."));
    Ok(())
}

fn add(ui: &mut Ui, settings: &Settings, directory: &Path, prefix: &str) -> Result<(), CommandError> {
    let prefix = parse_place(settings, prefix)?;
    let no_directory = || {
        CommandError::user(
            format!("there is no directory {}", shown(directory)),
            "Make it first, or choose another one",
        )
    };
    let real = directory.canonicalize().map_err(|_| no_directory())?;
    if !real.is_dir() {
        return Err(no_directory());
    }
    if prefix.is_root() {
        return Err(CommandError::user(
            "a directory is bound to a place in the memory, not to all of it",
            "Name one: haversack mount add DIRECTORY claude_memory/lighthouse",
        ));
    }
    if let Some(why) = mounts::refused(settings, &real) {
        return Err(CommandError::user(
            format!("{} is not bound: {why}", shown(&real)),
            "Bind the directory with the memory files alone",
        ));
    }
    registry::refuse_private(settings, &real)?;
    let mut all = mounts::of(settings)?;
    if let Some(other) = all.iter().find(|mount| mount.directory == real) {
        return Err(CommandError::user(
            format!("{} is bound to {} already", shown(&real), other.prefix),
            format!("Unbind it first: haversack mount remove {}", quoted(&shown(&real))),
        ));
    }
    all.push(Mount { directory: real.clone(), prefix: prefix.clone() });
    mounts::save(settings, &all)?;
    Home::open(settings)?.tidy(settings)?;
    ui.note(format!("{} is {prefix} in this memory", shown(&real)));
    if Remote::of(settings)?.is_some() {
        ui.note("Send it: haversack sync");
    }
    Ok(())
}

fn list(ui: &mut Ui, settings: &Settings, as_json: bool) -> Result<(), CommandError> {
    let mounts = mounts::of(settings)?;
    let stores = memory_stores::of(settings)?;
    if as_json {
        let each = mounts.iter().map(|mount| {
            json!({ "directory": shown(&mount.directory), "prefix": mount.prefix.as_str(), "is_there": mount.is_there() })
        });
        let stores = stores.iter().map(|store| {
            let is_read_only = store.access == Access::ReadOnly;
            json!({ "address": store.address, "prefix": store.prefix.as_str(), "read_only": is_read_only })
        });
        let stores: Vec<_> = stores.collect();
        return ui.json(&json!({ "mounts": each.collect::<Vec<_>>(), "memory_stores": stores }));
    }
    for mount in &mounts {
        let missing = if mount.is_there() { "" } else { "  (not there)" };
        ui.line(format!("{}  {}{missing}", mount.prefix, tilde(settings, &mount.directory)))?;
    }
    for store in &stores {
        let access = if store.access == Access::ReadOnly { "  (only read)" } else { "" };
        ui.line(format!("{}  {}{access}", store.prefix, store.address))?;
    }
    if mounts.is_empty() && stores.is_empty() {
        ui.note("No directory is bound. Bind one: haversack mount add DIRECTORY PREFIX");
    }
    Ok(())
}

fn remove(ui: &mut Ui, settings: &Settings, directory: &Path) -> Result<(), CommandError> {
    let real = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
    let mut all = mounts::of(settings)?;
    let absolute = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
    let is_it = |mount: &Mount| mount.directory == real || mount.directory == absolute;
    let Some(index) = all.iter().position(is_it) else {
        if mounts::forget_unbound(settings, &absolute)? {
            ui.note(format!("{} is forgotten; its files stay where they are", shown(&absolute)));
            return Ok(());
        }
        return Err(CommandError::user(
            format!("{} is not bound", shown(directory)),
            "List the bound directories: haversack mount list",
        ));
    };
    let mount = all.remove(index);
    let has_remote = Remote::of(settings)?.is_some();
    if mount.is_there() && has_remote {
        let home = Home::open(settings)?;
        let place = home.places().find(|place| place.name == shown(&mount.directory));
        let waiting = place.map(|place| place.look()).transpose()?.map_or(0, |look| look.waiting());
        if waiting > 0 {
            return Err(CommandError::user(
                format!("{} in {} not sent yet", counted(waiting, "change"), shown(&mount.directory)),
                "Send them first: haversack sync",
            ));
        }
    }
    if mount.is_there() && !has_remote && !all.iter().any(|other| other.prefix == mount.prefix) {
        // The memory has the only copies: it keeps the directory's files.
        copy_back(settings, &mount)?;
    }
    mounts::save(settings, &all)?;
    forget_state(settings, &mount)?;
    ui.note(format!("{} is on its own again; its files stay in it", shown(&mount.directory)));
    Ok(())
}

fn copy_back(settings: &Settings, mount: &Mount) -> Result<(), CommandError> {
    let from = home::open_mount(settings, mount)?;
    let to = DeviceLocal::open(settings.memory(), settings.locks())?;
    block_on(async {
        for locator in from.list_all(&Locator::root()).await? {
            let object = from.read(&locator).await?;
            if let Ok(place) = mount.prefix.child(locator.as_str()) {
                let _ = haversack::store::Backend::write(&to, &place, object.bytes, Condition::Any).await?;
            }
        }
        Ok(())
    })
}

/// Forgets what was agreed on: if the directory is bound again, it is merged like a new one.
fn forget_state(settings: &Settings, mount: &Mount) -> Result<(), CommandError> {
    let state = DeviceLocal::open(mount.state(settings), settings.locks())?;
    Ok(block_on(haversack::sync::forget(&state))?)
}
