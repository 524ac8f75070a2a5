//! The contract of a [`Backend`] as a public table of cases.
//!
//! Every backend runs every case as one named test with one line:
//!
//! ```
//! use std::sync::Arc;
//! use haversack_store::{Backend, InMemory};
//!
//! haversack_store::conformance!(in_memory, {
//!     let backend = Arc::new(InMemory::new());
//!     move || backend.clone() as Arc<dyn Backend>
//! });
//! # fn main() {}
//! ```
//!
//! A case that needs what a backend does not declare is skipped and says so. The table itself is tested:
//! each case must fail at least one deliberately broken backend.

mod bytes;
mod concurrent;
mod conditions;
mod names;
mod tree;

use std::fmt;
use std::sync::Arc;

use crate::{Backend, Blocking, Capabilities, ErrorKind, Locator, Result};

/// One promise of the contract and how to check it.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// The name of the case and of its test.
    pub name: &'static str,
    /// The promise of the backend.
    pub promise: &'static str,
    /// The capabilities that a backend needs for the case to apply.
    pub needs: Capabilities,
    check: fn(&Bench<'_>) -> Checked,
}

/// How a case ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The promise holds.
    Passed,
    /// The backend does not declare these capabilities.
    Skipped(Vec<&'static str>),
    /// The promise does not hold; the text says how.
    Failed(String),
}

impl Case {
    /// Checks the promise on a place that is empty.
    pub fn run(&self, subject: &dyn Subject) -> Outcome {
        let missing = self.needs.missing_from(&subject.open().capabilities());
        if !missing.is_empty() {
            return Outcome::Skipped(missing);
        }
        match (self.check)(&Bench { subject, store: Blocking::new(subject.open()) }) {
            Ok(()) => Outcome::Passed,
            Err(Broken(how)) => Outcome::Failed(how),
        }
    }
}

/// A place to test on.
pub trait Subject: Sync {
    /// Opens the place; called again it opens the same place once more.
    fn open(&self) -> Arc<dyn Backend>;
}

impl<F: Fn() -> Arc<dyn Backend> + Sync> Subject for F {
    fn open(&self) -> Arc<dyn Backend> {
        self()
    }
}

/// The tools of a case.
struct Bench<'a> {
    subject: &'a dyn Subject,
    store: Blocking,
}

/// How a promise was broken.
struct Broken(String);

type Checked = Result<(), Broken>;

impl From<crate::Error> for Broken {
    fn from(error: crate::Error) -> Broken {
        Broken(format!("unexpected error: {error:?}"))
    }
}

/// Fails the case unless `holds`.
fn ensure(holds: bool, what: impl fmt::Display) -> Checked {
    if holds { Ok(()) } else { Err(Broken(what.to_string())) }
}

/// Fails the case unless the two are equal.
fn ensure_eq<T: PartialEq + fmt::Debug>(found: T, expected: T, what: impl fmt::Display) -> Checked {
    ensure(found == expected, format_args!("{what}: found {found:?}, expected {expected:?}"))
}

/// Fails the case unless `result` is an error of `kind`.
fn ensure_refused<T: fmt::Debug>(result: Result<T>, kind: ErrorKind, what: impl fmt::Display) -> Checked {
    match result {
        Err(error) if error.kind() == kind => Ok(()),
        Err(error) => Err(Broken(format!("{what}: expected {kind:?}, got {error:?}"))),
        Ok(value) => Err(Broken(format!("{what}: expected {kind:?}, it succeeded with {value:?}"))),
    }
}

fn at(key: &str) -> Locator {
    Locator::parse(key).expect("the suite's own keys are valid")
}

macro_rules! cases {
    ($d:tt $($module:ident :: $name:ident [$($capability:ident),*] $promise:literal)+) => {
        /// Every promise of the contract.
        pub const CASES: &[Case] = &[$(Case {
            name: stringify!($name),
            promise: $promise,
            needs: Capabilities { $($capability: true,)* ..NOTHING },
            check: $module::$name,
        }),+];

        /// Makes a module with one test for every case, on the place that the expression opens.
        ///
        /// The expression is evaluated for each test and must give an empty place each time.
        #[macro_export]
        macro_rules! conformance {
            ($d module:ident, $d subject:expr) => {
                mod $d module {
                    use super::*;
                    $(#[test]
                    fn $name() {
                        $crate::conformance::check_named(stringify!($name), &$d subject);
                    })+
                }
            };
        }
    };
}

const NOTHING: Capabilities = Capabilities {
    concurrent_writers: false,
    conflict_files: false,
    encryption: false,
    sync: false,
    create_if_absent: false,
    update_if_match: false,
    conditional_delete: false,
    flat_append: false,
    empty_directories: false,
    tree: false,
    atomic_rename: false,
    exchange: false,
    durable: false,
    refuses_case_twins: false,
};

cases! { $
    bytes::exact_bytes [] "bytes come back exactly: LF, CRLF, CR, no newline at the end, not ASCII, binary, empty"
    bytes::overwriting [] "a write without condition replaces the whole content"
    bytes::reading_nothing [] "reading what is not there says so, and so does asking about it"
    bytes::versions [] "a write returns the version that reading reports, and other content has another one"
    bytes::appending [] "an append creates or extends, tells where its bytes begin, and changes the version"
    bytes::barrier [] "what was appended before a barrier is there after it"
    bytes::preparing [] "what was prepared is there, whole, whatever was there; and only names of our own can be"
    bytes::large_object [] "an object of 64 MiB comes back exactly"
    bytes::text [] "text is UTF-8 or refused, absent text is none"
    bytes::survives_reopening [durable] "what was acknowledged is there when the place is opened again"
    bytes::fingerprints [] "a fingerprint that has settled changes when the content does"
    conditions::create_if_absent [create_if_absent] "a create refuses what exists and leaves it alone"
    conditions::update_if_match [update_if_match] "an update with a stale version, or of nothing, is refused and changes nothing"
    conditions::conditional_delete [conditional_delete] "a delete with a stale version, or of nothing, is refused and removes nothing"
    conditions::deleting [] "a deleted object is gone, and deleting it again is fine"
    conditions::deleting_only_directories [] "a delete that demands absence removes an empty directory and no object, and the root stays"
    tree::listing_children [] "a listing has the immediate children and nothing else, sorted"
    tree::listing_nothing [] "listing what is not there, or an object, gives nothing"
    tree::informing [] "sizes are those of the content, and a directory has none"
    tree::making_directories [empty_directories] "a directory can be made, made again, listed and removed when empty"
    tree::full_directories_stay [] "a directory with something in it is not deleted"
    tree::files_are_not_directories [tree] "an object cannot have children and a directory has no content"
    tree::renaming [] "a rename moves content and version, and makes the directories on the way"
    tree::renaming_directories [atomic_rename] "renaming a directory moves everything below it"
    tree::renaming_never_clobbers [] "a rename to a name that is taken moves nothing"
    tree::renaming_nothing [] "a rename of nothing, of the root or into itself is refused"
    tree::exchanging [exchange] "two objects change places with their versions, or nothing happens"
    tree::scanning [] "a scan finds every object below the prefix, in key order"
    tree::scanning_resumes [] "a scan resumed after a key gives exactly the keys after it"
    tree::scanning_many [] "a scan over 10,000 objects finds each once"
    tree::own_names_are_hidden [] "what is Haversack's own can be read and written, and is not listed or scanned"
    names::unicode_is_one [] "composed and decomposed spellings are one object"
    names::case_twins [refuses_case_twins] "a new name that differs from another only by case is refused"
    names::unportable_names [] "a new name that some platform cannot hold is refused"
    names::odd_names_are_literal [] "names that look like paths, patterns or options elsewhere are just names"
    names::longest_names [] "the longest segment, long keys and deep ones work"
    concurrent::counter_of_sixteen [update_if_match, concurrent_writers] "16 writers counting by compare-and-swap end exact"
    concurrent::racing_creates [create_if_absent, concurrent_writers] "of racing creates exactly one wins"
    concurrent::racing_appends [concurrent_writers] "appends of several writers are all there and never mixed"
    concurrent::readers_never_see_half [] "a reader sees a complete old or a complete new object"
    concurrent::locks_exclude [] "a lock has one holder, is refused while held, and is free afterwards"
}

/// Runs the case called `name`; panics if the promise is broken.
///
/// # Panics
/// If the case fails or does not exist: it is called from tests.
#[expect(clippy::print_stderr, reason = "a skipped case must be visible in the test's output")]
pub fn check_named(name: &str, subject: &dyn Subject) {
    let case = CASES.iter().find(|case| case.name == name).expect("the macro names the cases of the table");
    match case.run(subject) {
        Outcome::Passed => {}
        Outcome::Skipped(missing) => eprintln!("skipped: {name} needs {}", missing.join(", ")),
        Outcome::Failed(how) => panic!("{name}: {}\n  {how}", case.promise),
    }
}
