//! `haversack join`: this machine becomes one of those of a store.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread::JoinHandle;

use clap::Args;
use haversack::clock::Clock;
use haversack::history::History;
use haversack::history::archive::{self, Bounds};
use haversack::home::Meeting;
use haversack::ids::{ContentHash, Position, Timestamp};
use haversack::log::{Files, StoreFile};
use haversack::store::{Backend, Bytes, InMemory, Locator, block_on};
use haversack::sync::{Author, Context, Progress, Quiet, Recent, Replica, Scope, store_at};
use haversack::vault::Bridge;
use haversack_system::{Backoff, RandomIds, SystemClock};
use serde_json::json;

use super::remote::{Candidate, Instead, NamedArgs};
use crate::app::sync;
use crate::error::CommandError;
use crate::home::join_record::{self, Joined};
use crate::home::store::{is_project_record, open};
use crate::home::{Home, SyncOptions, Work};
use crate::projects::{identity, proof};
use crate::remote::address::{self, Address};
use crate::remote::credential::Cloud;
use crate::remote::site::{self, Asked, Site};
use crate::remote::{self, Remote, Vault};
use crate::settings::Settings;
use crate::settings::tilde;
use crate::ui::moments::{ago, counted};
use crate::ui::paths::quoted;
use crate::ui::{Answer, Ui};

/// The most commits that are looked through for the store's machines.
const MAX_LOOKED_AT: u64 = 2_000;

/// Join a store: merge its memory with this machine's memory
///
/// Shows the store's machines and the files that would merge, and asks. You can undo it: haversack undo --join
#[derive(Debug, Args)]
pub(crate) struct JoinArgs {
    #[command(flatten)]
    pub(crate) named: NamedArgs,

    /// Do not ask
    #[arg(long, short)]
    pub(crate) yes: bool,

    /// Print JSON; asks nothing, and does nothing without --yes
    #[arg(long)]
    pub(crate) json: bool,
}

/// A store as it is.
struct There {
    store: StoreFile,
    /// The machines that wrote to it, and when they last did.
    machines: BTreeMap<String, Timestamp>,
    /// All files, the records of projects among them.
    files: Files,
    /// The records of its projects: they say which checkouts may have the projects' memory.
    records: BTreeMap<Locator, Bytes>,
}

/// The preview of a join.
struct Preview {
    there: There,
    same: usize,
    only_here: usize,
    only_there: usize,
    different: usize,
}

pub(crate) fn cmd_join(ui: &mut Ui, settings: &Settings, args: &JoinArgs) -> Result<ExitCode, CommandError> {
    join(ui, settings, args, || Ok(()))
}

/// Joins a store. `bind` binds this machine's projects, after the store was found and before the preview is made.
pub(crate) fn join(
    ui: &mut Ui,
    settings: &Settings,
    args: &JoinArgs,
    bind: impl FnOnce() -> Result<(), CommandError>,
) -> Result<ExitCode, CommandError> {
    remote::refuse_local(settings)?;
    let asked = Asked { command: "haversack join", typed: &args.named.url };
    let Address { url, note } = address::address(ui, settings, asked)?;
    if Remote::recorded(settings)?.is_some_and(|remote| remote.url == url) {
        ui.note("This machine has joined already. Bring it up to date: haversack sync");
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(note) = note {
        ui.note(note);
    }
    let named = NamedArgs { url, ..args.named.clone() };
    let candidate = Candidate::named(ui, settings, asked, &named, Instead::OfNothing)?;
    let ahead = Ahead::begin(settings, candidate.remote());
    let mut remote = candidate.admit(ui, settings)?;
    let url = &remote.url.clone();
    let bar = ui.progress();
    let looked = match ahead.and_then(Ahead::end) {
        Some(found) => Ok(found),
        None => look_there(settings, &remote, &args.named.url, &bar),
    };
    bar.end();
    let (meeting, there) = looked?;
    bind()?;
    let is_known = |prefix: &Locator| there.files.keys().any(|file| file.is_within(prefix));
    for checkout in proof::unbind_unproven(settings, &there.records, is_known)? {
        ui.note(format!(
            "{0} gets no memory: it does not prove that it is the project it names. If it is yours: haversack project bind {0}",
            quoted(&tilde(settings, &checkout))
        ));
    }
    let home = Home::open(settings)?;
    let memory = open(settings)?;
    let mut here = block_on(join_record::hashes(memory.files()))?;
    here.retain(|locator, _| !is_project_record(locator));
    let preview = Preview::of(there, &here);
    let store = &preview.there.store;
    let ours = home.memory().look()?.store;
    // The bases from the time with this store tell which lines were removed since.
    let returns_to = Some(store.store).filter(|store| ours != Some(*store));
    if let Some(ours) = ours.filter(|ours| *ours != store.store)
        && !home.has_left(store.store)?
    {
        return Err(CommandError::user(
            format!(
                "this home already belongs to the store {ours}, and two merged stores are hard to separate"
            ),
            "Use another home for the new store: haversack --home DIRECTORY join URL",
        ));
    }
    if let Some(id) = old_id_in(&preview.there.files) {
        return Err(CommandError::user(
            format!(
                "this store has a project id of the old form ({id}), which is not safe: another repository can be made to have the same id"
            ),
            format!(
                "On a machine that already uses this store, start a session in that project and follow its hint. If you do not need the notes of that project, delete them there: haversack delete --recursive claude_memory/{id}"
            ),
        ));
    }
    let device = free_name(remote.device.clone(), &preview.there.machines);
    if args.json {
        ui.json(&preview.to_json(&device))?;
        if !args.yes {
            return Ok(ExitCode::SUCCESS);
        }
    } else {
        preview.tell(ui, &here)?;
    }
    let question = "Join and merge? You can take it back with: haversack undo --join";
    if !args.yes && ui.ask(question)? == Answer::No {
        ui.note("Nothing was changed.");
        return Ok(ExitCode::from(1));
    }
    // Free the preview before the sync, which needs the memory.
    drop(preview);
    join_record::keep(settings, memory.files(), &here)?;
    let is_back = match returns_to {
        Some(store) => home.return_to(settings, store)?,
        None => false,
    };
    drop((home, memory, here));
    // A folder's log of this home is another one now.
    let meeting = if is_back { remote::meeting(settings, &remote)? } else { meeting };
    let time = SystemClock.now();
    let mut record =
        Joined { url: url.clone(), device: device.clone(), time, published: Vec::new(), position: None };
    record.save(settings)?;
    remote.device = device;
    remote.save(settings)?;
    let options = SyncOptions::new(Work::Sync, "join");
    let bar = ui.progress();
    let summary = sync::sync_with(settings, &remote, &meeting, &options, &bar);
    bar.end();
    let summary = summary?;
    record.published.clone_from(&summary.published);
    record.position = summary.position;
    record.save(settings)?;
    if !args.json {
        ui.text(&sync::text(&summary))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns a project id of the old form that a store has.
fn old_id_in(files: &Files) -> Option<String> {
    let id = |locator: &Locator| {
        let below = locator.as_str().strip_prefix("claude_memory/")?;
        Some(below.split('/').next()?.to_owned())
    };
    files.keys().filter_map(|locator| id(&locator)).find(|id| identity::is_old_id(id))
}

/// Looks at a store in a cloud while it is not known yet whether this machine may use it.
///
/// Nothing comes of it where that fails: what is wrong is told by who tries it, or by who looks again.
struct Ahead(JoinHandle<Option<Found>>);

/// A store, and the remote that remembers what was read of it.
type Found = (Meeting, There);

impl Ahead {
    /// Begins, where it would take a while.
    fn begin(settings: &Settings, remote: &Remote) -> Option<Ahead> {
        Cloud::of(&remote.url)?;
        let backend = remote::open(settings, remote).ok()?;
        let url = remote.url.clone();
        let look = move || {
            let meeting = Meeting::log(backend);
            let there = store_there(meeting.remote(), &url, &Quiet).ok()?;
            Some((meeting, there))
        };
        std::thread::Builder::new().name("look-ahead".to_owned()).spawn(look).ok().map(Ahead)
    }

    fn end(self) -> Option<Found> {
        self.0.join().ok().flatten()
    }
}

/// Looks at the store in a remote.
fn look_there(
    settings: &Settings,
    remote: &Remote,
    typed: &str,
    progress: &dyn Progress,
) -> Result<Found, CommandError> {
    let url = &remote.url;
    let meeting = remote::meeting(settings, remote).map_err(|error| match Cloud::of(url) {
        Some(_) => error,
        None => {
            let hint = "Write the address as in file:///home/me/memory. It must be a place where another machine or home began a store";
            CommandError { hint: Some(hint.to_owned()), ..error }
        }
    })?;
    if remote::is_vault(url) && site::look(settings, remote)? == Site::Arriving {
        return Err(site::arriving(Asked { command: "haversack join", typed }));
    }
    let there = match remote::vault(settings, remote)? {
        Some(vault) => vault_there(&vault, url, progress)?,
        None => store_there(meeting.remote(), url, progress)?,
    };
    // The sync uses the same meeting place, which remembers the commits that were read.
    Ok((meeting, there))
}

/// Looks at a folder that is replicated without leaving anything there or here.
fn vault_there(vault: &Vault, url: &str, progress: &dyn Progress) -> Result<There, CommandError> {
    let patience = Backoff::new();
    if block_on(store_at(vault.folder.clone(), &patience))?.is_none() {
        return Err(nothing_at(url));
    }
    let author = Author::default();
    let context =
        Context { patience: &patience, progress, ..Context::new(&SystemClock, &RandomIds, &author) };
    let home: Arc<dyn Backend> = Arc::new(InMemory::new());
    block_on(async {
        Bridge::open(vault.folder.clone(), home.clone(), &RandomIds).await?.take_in_only(context).await
    })?;
    store_there(&home, url, progress)
}

fn nothing_at(url: &str) -> CommandError {
    CommandError::user(
        format!("there is no store at {url}"),
        format!(
            "Start one with this machine's files: haversack remote add {}, then haversack sync",
            quoted(url)
        ),
    )
}

/// Looks at a store without leaving anything there or here.
fn store_there(
    backend: &Arc<dyn Backend>,
    url: &str,
    progress: &dyn Progress,
) -> Result<There, CommandError> {
    let patience = Backoff::new();
    let Some(store) = block_on(store_at(backend.clone(), &patience))? else {
        return Err(nothing_at(url));
    };
    let author = Author::default();
    let context =
        Context { patience: &patience, progress, ..Context::new(&SystemClock, &RandomIds, &author) };
    let state = Arc::new(InMemory::new());
    let working = Arc::new(InMemory::new());
    let (files, head, read) = block_on(async {
        let replica = Replica::open(working.clone(), state.clone(), backend.clone(), &RandomIds).await?;
        // Only the records of projects are read; of all other files the names are enough.
        let mut replica = replica.with_scope(Scope::within(proof::records()));
        replica.pull(context).await?;
        let read = replica.take_recent().into_iter().filter_map(Recent::read).collect();
        Ok::<_, haversack::sync::SyncError>((replica.log_files().clone(), replica.position(), read))
    })?;
    let records = block_on(join_record::all(&*working))?;
    // Commits that were read need not be requested again.
    let everything = Bounds { bytes: u64::MAX, oldest: Timestamp(i64::MIN) };
    block_on(archive::keep(&*state, store.store, read, everything))?;
    let machines = machines(backend.clone(), state, &store, head, &patience)?;
    Ok(There { store, machines, files, records })
}

fn machines(
    backend: Arc<dyn Backend>,
    state: Arc<dyn Backend>,
    store: &StoreFile,
    head: Option<Position>,
    patience: &Backoff,
) -> Result<BTreeMap<String, Timestamp>, CommandError> {
    let mut history = block_on(History::open(state, Some(backend), store.store, patience))?;
    let newest = head.map_or(0, Position::number);
    let mut machines = BTreeMap::new();
    for number in (1..=newest).rev().take(usize::try_from(MAX_LOOKED_AT).unwrap_or(usize::MAX)) {
        let Some(position) = Position::new(number) else { break };
        let Some(commit) = block_on(history.commit(position))? else { break };
        machines.entry(commit.device.clone()).or_insert(commit.time);
        history.forget();
    }
    Ok(machines)
}

/// Returns a name that no other machine has.
fn free_name(name: String, machines: &BTreeMap<String, Timestamp>) -> String {
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    let mut names = std::iter::once(name.clone()).chain(numbered);
    names.find(|name| !machines.contains_key(name)).unwrap_or(name)
}

impl There {
    /// Returns how many files of the user's it has.
    fn count(&self) -> usize {
        self.files.len() - self.records.len()
    }
}

impl Preview {
    /// Compares a store with what is here.
    fn of(there: There, here: &BTreeMap<Locator, ContentHash>) -> Preview {
        let only_there = there.files.keys().filter(|locator| !here.contains_key(locator));
        let only_there = only_there.filter(|locator| !is_project_record(locator)).count();
        let mut preview = Preview { there, same: 0, only_here: 0, only_there, different: 0 };
        for (locator, hash) in here {
            match preview.there.files.get(locator) {
                None => preview.only_here += 1,
                Some(content) if content.hash == *hash => preview.same += 1,
                Some(_) => preview.different += 1,
            }
        }
        preview
    }

    fn tell(&self, ui: &mut Ui, here: &BTreeMap<Locator, ContentHash>) -> Result<(), CommandError> {
        let now = SystemClock.now();
        let machine = |(name, time): (&String, &Timestamp)| format!("{name}, {}", ago(now, *time));
        let There { store, machines, .. } = &self.there;
        let machines: Vec<String> = machines.iter().map(machine).collect();
        if machines.is_empty() && self.there.count() == 0 {
            let name = &store.name;
            let next = match here.len() {
                0 => String::new(),
                count => format!(" The memory of this machine is sent there: {}.", counted(count, "file")),
            };
            return ui
                .line(format!("The store of \"{name}\" is empty: no machine has sent anything yet.{next}"));
        }
        ui.line(format!(
            "The store of \"{}\": {} ({}), {}.",
            store.name,
            counted(machines.len(), "machine"),
            machines.join(" · "),
            counted(self.there.count(), "file")
        ))?;
        if here.is_empty() {
            return Ok(());
        }
        let Preview { same, only_here, only_there, different, .. } = self;
        ui.line(format!(
            "  same {same} · only here {only_here} · only there {only_there} · different {different} (will be merged, nothing is dropped)"
        ))
    }

    fn to_json(&self, device: &str) -> serde_json::Value {
        let There { store, machines, .. } = &self.there;
        let machines = machines.iter();
        let machines = machines.map(|(name, time)| json!({ "name": name, "last_change": time.to_string() }));
        json!({
            "store": { "id": store.store.to_string(), "name": store.name, "created": store.created.to_string() },
            "machines": machines.collect::<Vec<_>>(),
            "files": self.there.count(),
            "same": self.same,
            "only_here": self.only_here,
            "only_there": self.only_there,
            "different": self.different,
            "device": device,
        })
    }
}
