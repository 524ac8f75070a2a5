//! The data that the views share: the settings, the list of memories, the texts for the search, and the results of looks that take long.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use haversack::graph::draw::Picture;
use haversack::ids::Timestamp;
use haversack_recall::{MemorySearch, Recalled};
use maud::{Markup, html};

use super::kept::Kept;
use crate::app::devices::devices_among;
use crate::app::doctor::{Examination, examine};
use crate::app::graph::everything_among;
use crate::app::history::{HistoryInShort, in_short};
use crate::app::memories::Catalogue;
use crate::app::recall::{NotRecalled, RecallRequest, recall, recall_as_known, refresh_search, search};
use crate::app::status::{Extent, Finders, Status, status_with};
use crate::app::tidy::{TidyOutlook, outlook};
use crate::error::CommandError;
use crate::home::findings::conflicts_in;
use crate::home::store::open_to_look;
use crate::projects::names::Names;
use crate::serve::mcp::sync_scheduler::SyncScheduler;
use crate::settings::{Resolved, Settings};

/// The time for which a list of memories and the index of the search serve further requests. Typing in the search asks many times a second.
const FRESH: Duration = Duration::from_millis(1500);

/// The time for which a status serves further requests.
const STATUS_FRESH: Duration = Duration::from_secs(5);

/// How long the plans of a tidy serve further requests. They read every file whose name does not say its kind.
const OUTLOOK_FRESH: Duration = Duration::from_secs(60);

/// The state of a running page.
pub(super) struct PageData {
    resolved: Resolved,
    /// The token of forms that change something.
    token: String,
    /// The last visit before this one.
    pub(super) last_visit: Option<Timestamp>,
    catalogue: Kept<Catalogue>,
    changes: Kept<HistoryInShort>,
    status: Kept<Status>,
    outlook: Kept<TidyOutlook>,
    /// The search; it keeps its index between two questions.
    search: Arc<MemorySearch>,
    /// Stands for the index of the search: made whenever the index was refreshed.
    indexed: Kept<()>,
    /// The graph, and the list that it was made of.
    graph: Mutex<Option<(Arc<Catalogue>, Arc<Picture>)>>,
    examined: Mutex<Option<(Timestamp, Arc<Examination>)>>,
    scheduler: SyncScheduler,
}

/// Takes a lock; a view that panicked leaves nothing half-done behind.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl PageData {
    pub(super) fn new(resolved: &Resolved, token: String, last_visit: Option<Timestamp>) -> PageData {
        PageData {
            resolved: resolved.clone(),
            token,
            last_visit,
            catalogue: Kept::new(FRESH),
            changes: Kept::new(FRESH),
            status: Kept::new(STATUS_FRESH),
            outlook: Kept::new(OUTLOOK_FRESH),
            search: Arc::new(search(&resolved.settings)),
            indexed: Kept::new(FRESH),
            graph: Mutex::default(),
            examined: Mutex::default(),
            scheduler: SyncScheduler::new(&resolved.settings),
        }
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.resolved.settings
    }

    pub(super) fn now(&self) -> Timestamp {
        self.settings().now()
    }

    /// Returns the names that people see; locators if the records of projects cannot be read.
    pub(super) fn names(&self) -> Names {
        Names::of(self.settings()).unwrap_or_default()
    }

    /// Returns the list of memories. After a change by this page it is new; else it can be a moment old.
    pub(super) fn catalogue(&self) -> Result<Arc<Catalogue>, CommandError> {
        look_at_memories(&self.catalogue, self.settings())
    }

    /// Returns the status, at most some seconds old, and never older than our own last change.
    pub(super) fn status(&self) -> Result<Arc<Status>, CommandError> {
        let (settings, catalogue, changes) =
            (self.settings().clone(), self.catalogue.clone(), self.changes.clone());
        self.status.get(move |_| {
            // The status asks for the list and the history at its end. They are looked at while it looks at the files itself.
            let (list, history, beside) = (catalogue.clone(), changes.clone(), settings.clone());
            drop(std::thread::spawn(move || drop(look_at_memories(&list, &beside))));
            let beside = settings.clone();
            drop(std::thread::spawn(move || drop(look_at_history(&history, &beside))));
            let finders = Finders {
                conflicts: &|| {
                    conflicts_in(&settings, &look_at_memories(&catalogue, &settings)?.may_conflict())
                },
                devices: &|_| devices_among(&settings, look_at_history(&changes, &settings)?.as_ref()),
            };
            Ok(Arc::new(status_with(&settings, Extent::Short, &finders)?))
        })
    }

    /// Returns the changes on this machine in short, the newest first.
    pub(super) fn changes(&self) -> Result<Arc<HistoryInShort>, CommandError> {
        look_at_history(&self.changes, self.settings())
    }

    /// Returns which files leave when.
    pub(super) fn outlook(&self) -> Result<Arc<TidyOutlook>, CommandError> {
        let (settings, catalogue) = (self.settings().clone(), self.catalogue.clone());
        self.outlook.get(move |_| {
            let catalogue = look_at_memories(&catalogue, &settings)?;
            Ok(Arc::new(outlook(&settings, &catalogue)?))
        })
    }

    /// Returns the graph of the whole memory.
    pub(super) fn graph(&self, catalogue: &Arc<Catalogue>) -> Result<Arc<Picture>, CommandError> {
        let mut kept = locked(&self.graph);
        // Nodes are files too, so a changed node is a changed list.
        if let Some((_, picture)) = kept.as_ref().filter(|(of, _)| Arc::ptr_eq(of, catalogue)) {
            return Ok(picture.clone());
        }
        let memories =
            catalogue.iter().map(|listed| (&listed.locator, listed.kind.as_str(), &listed.written));
        let picture = Arc::new(everything_among(self.settings(), memories)?);
        *kept = Some((catalogue.clone(), picture.clone()));
        Ok(picture)
    }

    /// Finds memories by their words.
    pub(super) fn find(&self, wanted: RecallRequest) -> Result<Recalled, NotRecalled> {
        self.index().map_err(NotRecalled::CouldNotLook)?;
        let memory = open_to_look(self.settings()).map_err(NotRecalled::CouldNotLook)?;
        let found = match recall_as_known(self.settings(), &memory, &self.search, wanted.clone()) {
            // The index was lost. A recall makes it again.
            Err(NotRecalled::CouldNotLook(_)) => recall(self.settings(), &memory, &self.search, wanted),
            found => found,
        };
        found.map(|found| found.recalled)
    }

    /// Takes the changes of the memory into the index of the search.
    fn index(&self) -> Result<(), CommandError> {
        let (settings, search) = (self.settings().clone(), self.search.clone());
        self.indexed.get(move |_| refresh_search(&settings, &search).map(Arc::new)).map(drop)
    }

    /// Looks at everything once, so that the first view does not have to wait for it.
    pub(super) fn warm_up(&self) {
        // A look that fails is tried again by the view, which tells why.
        drop(self.status());
        drop(self.changes());
        drop(self.index());
        self.store_list();
    }

    /// Leaves the list of memories for the next page.
    fn store_list(&self) {
        if let Ok(catalogue) = self.catalogue() {
            catalogue.store(self.settings());
        }
    }

    /// Returns the last examination, if there was one.
    pub(super) fn examined(&self) -> Option<(Timestamp, Arc<Examination>)> {
        locked(&self.examined).clone()
    }

    /// Checks everything that memory depends on.
    pub(super) fn examine(&self) {
        let examination = examine(&self.resolved);
        *locked(&self.examined) = Some((self.now(), Arc::new(examination)));
    }

    /// Notes that a view changed the memory: everything is looked at again, and the change is sent soon.
    pub(super) fn wrote(&self) {
        self.catalogue.spoil();
        self.changes.spoil();
        self.status.spoil();
        self.outlook.spoil();
        self.indexed.spoil();
        self.scheduler.wrote();
    }

    /// Ends the process that sends changes.
    pub(super) fn end(&self) {
        self.scheduler.end();
        self.store_list();
    }

    /// Returns the field that every form with a change needs.
    pub(super) fn token_field(&self) -> Markup {
        html! { input type="hidden" name="token" value=(self.token); }
    }
}

/// Looks at the list of memories again if it is not fresh.
fn look_at_memories(kept: &Kept<Catalogue>, settings: &Settings) -> Result<Arc<Catalogue>, CommandError> {
    let settings = settings.clone();
    kept.get(move |earlier| {
        let earlier = earlier.cloned();
        earlier
            .unwrap_or_else(|| Arc::new(Catalogue::stored(&settings).unwrap_or_default()))
            .look_again(&settings)
    })
}

/// Looks at the history again if it is not fresh.
fn look_at_history(
    kept: &Kept<HistoryInShort>,
    settings: &Settings,
) -> Result<Arc<HistoryInShort>, CommandError> {
    let settings = settings.clone();
    kept.get(move |earlier| in_short(&settings, earlier.map(Arc::as_ref)).map(Arc::new))
}
