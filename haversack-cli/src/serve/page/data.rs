//! What the views share: the settings, the list of memories, the texts for the search, and the results of looks that take long.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use haversack::ids::Timestamp;
use haversack_recall::MemorySearch;
use maud::{Markup, html};

use crate::app::doctor::{Examination, examine};
use crate::app::memories::Catalogue;
use crate::app::recall::search;
use crate::app::status::{Extent, Status, status};
use crate::error::CommandError;
use crate::projects::names::Names;
use crate::serve::mcp::sync_scheduler::SyncScheduler;
use crate::settings::{Resolved, Settings};

/// How long a list of memories serves further requests. Typing in the search asks many times a second.
const FRESH: Duration = Duration::from_millis(1500);

/// How long a status serves further requests.
const STATUS_FRESH: Duration = Duration::from_secs(5);

/// The state of a running page.
pub(super) struct PageData {
    resolved: Resolved,
    /// The token of forms that change something.
    token: String,
    /// The last visit before this one.
    pub(super) last_visit: Option<Timestamp>,
    catalogue: Mutex<Aged<Catalogue>>,
    status: Mutex<Aged<Option<Arc<Status>>>>,
    /// The search; it keeps its index between two questions.
    pub(super) search: MemorySearch,
    examined: Mutex<Option<(Timestamp, Arc<Examination>)>>,
    scheduler: SyncScheduler,
}

/// A value, and the moment of the look at it; `None` if it is known to be old.
#[derive(Debug, Default)]
struct Aged<T> {
    value: T,
    looked: Option<Instant>,
}

impl<T> Aged<T> {
    fn is_fresh(&self, life: Duration) -> bool {
        self.looked.is_some_and(|looked| looked.elapsed() < life)
    }
}

/// Takes a lock; a view that panicked leaves nothing half-done behind.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The list of memories, for the time of one view.
pub(super) struct Listing<'d>(MutexGuard<'d, Aged<Catalogue>>);

impl std::ops::Deref for Listing<'_> {
    type Target = Catalogue;

    fn deref(&self) -> &Catalogue {
        &self.0.value
    }
}

impl PageData {
    pub(super) fn new(resolved: &Resolved, token: String, last_visit: Option<Timestamp>) -> PageData {
        PageData {
            resolved: resolved.clone(),
            token,
            last_visit,
            catalogue: Mutex::default(),
            status: Mutex::new(Aged { value: None, looked: None }),
            search: search(&resolved.settings),
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

    /// Returns the list of memories, at most a moment old.
    pub(super) fn catalogue(&self) -> Result<Listing<'_>, CommandError> {
        let mut catalogue = locked(&self.catalogue);
        if !catalogue.is_fresh(FRESH) {
            catalogue.value.refresh(self.settings())?;
            catalogue.looked = Some(Instant::now());
        }
        Ok(Listing(catalogue))
    }

    /// Returns the status, at most some seconds old, and never older than our own last change.
    pub(super) fn status(&self) -> Result<Arc<Status>, CommandError> {
        let mut kept = locked(&self.status);
        if let Some(status) = kept.value.as_ref().filter(|_| kept.is_fresh(STATUS_FRESH)) {
            return Ok(status.clone());
        }
        let looked = Arc::new(status(self.settings(), Extent::Short)?);
        *kept = Aged { value: Some(looked.clone()), looked: Some(Instant::now()) };
        Ok(looked)
    }

    /// Looks at everything once, so that the first view does not have to wait for it.
    pub(super) fn warm_up(&self) {
        // A look that fails is tried again by the view, which tells why.
        drop(self.status());
        drop(self.catalogue());
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
        locked(&self.catalogue).looked = None;
        locked(&self.status).looked = None;
        self.scheduler.wrote();
    }

    /// Ends the process that sends changes.
    pub(super) fn end(&self) {
        self.scheduler.end();
    }

    /// Returns the field that every form with a change needs.
    pub(super) fn token_field(&self) -> Markup {
        html! { input type="hidden" name="token" value=(self.token); }
    }
}
