//! Backends by name.
//!
//! Asking for a name has three answers: registered, known but not in this build, unknown. A miss is an
//! answer, not an error. A caller that needs the backend reports the error; we never use another backend instead.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::backend::Backend;
use crate::capabilities::Capabilities;
use crate::device_local::{self, DeviceLocal};
use crate::error::{Error, ErrorKind, Operation, Result};
use crate::memory::{self, InMemory};
use crate::shared_directory;
use crate::vault;

/// The parameters for opening a backend.
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    /// The directory or URL the backend lives at.
    pub address: String,
    /// The directory for lock files, outside of what is locked.
    pub locks: String,
    /// Further parameters, by their names in the backend's own tools (`AWS_REGION`, `AZURE_STORAGE_ENDPOINT`, …); credentials too.
    pub settings: Settings,
}

/// Settings by name. Some of them are secrets, so nothing shows a value.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Settings(BTreeMap<String, String>);

impl Settings {
    /// Returns the first of these that is set to something.
    pub fn get(&self, names: &[&str]) -> Option<&str> {
        names
            .iter()
            .find_map(|name| self.0.get(*name))
            .map(|value| value.trim())
            .filter(|value| !value.is_empty())
    }

    /// Sets one.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.0.insert(name.into(), value.into());
    }

    /// Returns the names that are set, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Settings {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(pairs: I) -> Settings {
        Settings(pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}

/// Opens a backend.
pub type Open = fn(&OpenOptions) -> Result<Arc<dyn Backend>>;

/// A backend that can be opened by name.
#[derive(Clone, Copy, Debug)]
pub struct Registered {
    /// Its guarantees, known before anything is opened.
    pub capabilities: Capabilities,
    /// How to open it.
    pub open: Open,
}

/// The answer to a name.
#[derive(Clone, Debug)]
pub enum Lookup<'a> {
    /// It can be opened.
    Registered(&'a Registered),
    /// It exists, but not in this build; the text says what it needs.
    NotInThisBuild(&'a str),
    /// No backend of that name is known.
    Unknown,
}

/// The backends that need the feature `cloud`.
const CLOUDS: [&str; 4] = ["anthropic", "azure", "gcs", "s3"];

/// Backends by name; instances are independent of each other.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    registered: BTreeMap<String, Registered>,
    known: BTreeMap<String, String>,
}

impl Registry {
    /// Returns a registry that knows no backend.
    pub fn empty() -> Registry {
        Registry::default()
    }

    /// Returns a registry with every backend of this build, and the names of those that are not in it.
    pub fn standard() -> Registry {
        let mut registry = Registry::empty();
        let standard = [
            (
                device_local::PROTOCOL,
                Registered {
                    capabilities: device_local::CAPABILITIES,
                    open: |options| Ok(Arc::new(DeviceLocal::open(&options.address, &options.locks)?)),
                },
            ),
            (
                shared_directory::PROTOCOL,
                Registered {
                    capabilities: device_local::CAPABILITIES,
                    open: |options| shared_directory::open(&options.address, &options.locks),
                },
            ),
            (
                "memory",
                Registered { capabilities: memory::CAPABILITIES, open: |_| Ok(Arc::new(InMemory::new())) },
            ),
            (
                vault::PROTOCOL,
                Registered {
                    capabilities: vault::CAPABILITIES,
                    open: |options| vault::open(&options.address, &options.locks),
                },
            ),
        ];
        for (name, backend) in standard {
            registry.registered.insert(name.to_owned(), backend);
        }
        for name in CLOUDS {
            #[cfg(feature = "cloud")]
            registry.registered.insert(
                name.to_owned(),
                Registered {
                    capabilities: crate::cloud::CAPABILITIES,
                    open: if name == crate::cloud::ANTHROPIC {
                        crate::cloud::open_anthropic
                    } else {
                        crate::cloud::open
                    },
                },
            );
            #[cfg(not(feature = "cloud"))]
            registry.known.insert(name.to_owned(), "a build with the feature `cloud`".to_owned());
        }
        registry
    }

    /// Adds a backend; a name that is empty, malformed or taken is refused.
    pub fn register(&mut self, name: &str, backend: Registered) -> Result<(), BadRegistration> {
        self.check_free(name)?;
        self.insert(name, backend);
        Ok(())
    }

    /// Adds a backend, or replaces the one of that name; a name that is empty or malformed is refused.
    ///
    /// Returns the backend that was replaced.
    pub fn clobber(
        &mut self,
        name: &str,
        backend: Registered,
    ) -> Result<Option<Registered>, BadRegistration> {
        check_name(name)?;
        Ok(self.insert(name, backend))
    }

    fn insert(&mut self, name: &str, backend: Registered) -> Option<Registered> {
        self.known.remove(name);
        self.registered.insert(name.to_owned(), backend)
    }

    fn check_free(&self, name: &str) -> Result<(), BadRegistration> {
        check_name(name)?;
        if self.registered.contains_key(name) {
            return Err(BadRegistration::Taken(name.to_owned()));
        }
        Ok(())
    }

    /// Returns the backend registered under `name`, if there is one.
    pub fn get(&self, name: &str) -> Option<&Registered> {
        self.registered.get(name)
    }

    /// Returns which of the three answers `name` has.
    pub fn look_up(&self, name: &str) -> Lookup<'_> {
        match (self.registered.get(name), self.known.get(name)) {
            (Some(registered), _) => Lookup::Registered(registered),
            (None, Some(needs)) => Lookup::NotInThisBuild(needs),
            (None, None) => Lookup::Unknown,
        }
    }

    /// Returns the registered names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.registered.keys().map(String::as_str)
    }

    /// Returns the names that are not in this build with what they need, sorted.
    pub fn known(&self) -> impl Iterator<Item = (&str, &str)> {
        self.known.iter().map(|(name, needs)| (name.as_str(), needs.as_str()))
    }

    /// Returns the backend called `name` if it promises what is `required`, without opening it.
    pub fn choose(&self, name: &str, required: &Capabilities) -> Result<&Registered> {
        let refuse = |kind, message| Err(Error::at(kind, Operation::Select, name, message));
        match self.look_up(name) {
            Lookup::Registered(registered) => {
                let missing = required.missing_from(&registered.capabilities);
                if missing.is_empty() {
                    return Ok(registered);
                }
                let missing = missing.join(", ");
                refuse(ErrorKind::Unsupported, format!("backend \"{name}\" does not offer: {missing}"))
            }
            Lookup::NotInThisBuild(needs) => {
                refuse(ErrorKind::Unsupported, format!("backend \"{name}\" needs {needs}"))
            }
            Lookup::Unknown => {
                let names = self.names().collect::<Vec<_>>().join(", ");
                let name = name.escape_debug();
                refuse(ErrorKind::Invalid, format!("there is no backend \"{name}\"; this build has: {names}"))
            }
        }
    }

    /// Opens the backend called `name` if it promises what is `required`.
    ///
    /// A refusal leaves no trace: nothing is opened or created before the answer is yes.
    pub fn select(
        &self,
        name: &str,
        options: &OpenOptions,
        required: &Capabilities,
    ) -> Result<Arc<dyn Backend>> {
        (self.choose(name, required)?.open)(options)
    }
}

fn check_name(name: &str) -> Result<(), BadRegistration> {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.is_empty() {
        return Err(BadRegistration::EmptyName);
    }
    if !name.chars().all(fits) {
        return Err(BadRegistration::MalformedName(name.to_owned()));
    }
    Ok(())
}

/// A registration that is a programming mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadRegistration {
    /// The name is empty.
    EmptyName,
    /// The name has other characters than lower-case letters, digits and dashes.
    MalformedName(String),
    /// Another backend has the name.
    Taken(String),
}

impl fmt::Display for BadRegistration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadRegistration::EmptyName => f.write_str("a backend cannot be registered without a name"),
            BadRegistration::MalformedName(name) => {
                let name = name.escape_debug();
                write!(f, "\"{name}\" cannot name a backend: use lower-case letters, digits and dashes")
            }
            BadRegistration::Taken(name) => {
                write!(f, "a backend \"{name}\" is registered already; clobber it to replace it")
            }
        }
    }
}

impl std::error::Error for BadRegistration {}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_memory() -> Registered {
        Registered { capabilities: memory::CAPABILITIES, open: |_| Ok(Arc::new(InMemory::new())) }
    }

    #[test]
    fn three_answers() {
        let mut registry = Registry::standard();
        registry.known.insert("tape".to_owned(), "a build with the feature `tape`".to_owned());
        assert!(matches!(registry.look_up("memory"), Lookup::Registered(_)));
        assert!(matches!(registry.look_up("tape"), Lookup::NotInThisBuild(_)));
        assert!(matches!(registry.look_up("floppy"), Lookup::Unknown));
        assert!(registry.get("tape").is_none() && registry.get("floppy").is_none());
    }

    #[test]
    fn bad_registrations_are_loud() {
        let mut registry = Registry::standard();
        registry.known.insert("tape".to_owned(), "a build with the feature `tape`".to_owned());
        assert_eq!(registry.register("", in_memory()), Err(BadRegistration::EmptyName));
        assert_eq!(registry.register("A b", in_memory()), Err(BadRegistration::MalformedName("A b".into())));
        assert_eq!(registry.register("memory", in_memory()), Err(BadRegistration::Taken("memory".into())));
        assert_eq!(registry.register("tape", in_memory()), Ok(()));
        assert!(matches!(registry.look_up("tape"), Lookup::Registered(_)));
    }

    #[test]
    fn registered_name_is_replaced_only_by_clobber() {
        let mut registry = Registry::empty();
        let durable = Registered {
            capabilities: Capabilities { durable: true, ..memory::CAPABILITIES },
            ..in_memory()
        };
        registry.register("mine", in_memory()).expect("free");
        assert_eq!(registry.register("mine", durable), Err(BadRegistration::Taken("mine".into())));
        assert!(!registry.get("mine").expect("registered").capabilities.durable, "the first one stays");
        let replaced = registry.clobber("mine", durable).expect("a good name").expect("one was there");
        assert!(!replaced.capabilities.durable);
        assert!(registry.get("mine").expect("registered").capabilities.durable);
        assert!(registry.clobber("other", in_memory()).expect("a good name").is_none());
        let refused = registry.clobber("", in_memory()).map(|_| ());
        assert_eq!(refused, Err(BadRegistration::EmptyName));
    }

    #[test]
    fn instances_are_independent() {
        let mut one = Registry::empty();
        one.register("mine", in_memory()).expect("free");
        assert!(Registry::empty().get("mine").is_none());
        let standard = Registry::standard();
        let names: Vec<&str> = standard.names().filter(|name| !CLOUDS.contains(name)).collect();
        assert_eq!(names, ["device-local", "file", "memory", "vault"]);
    }

    #[test]
    fn refusals_say_what_is_missing() {
        let mut registry = Registry::standard();
        registry.known.insert("tape".to_owned(), "a build with the feature `tape`".to_owned());
        let durable = Capabilities { durable: true, ..Capabilities::default() };
        let create_if_absent = Capabilities { create_if_absent: true, ..Capabilities::default() };
        let text = |name, wanted: &Capabilities| registry.choose(name, wanted).expect_err(name).to_string();
        assert_eq!(text("memory", &durable), "backend \"memory\" does not offer: durable");
        let names = registry.names().collect::<Vec<_>>().join(", ");
        assert_eq!(
            text("floppy", &durable),
            format!("there is no backend \"floppy\"; this build has: {names}")
        );
        assert_eq!(
            text("tape", &Capabilities::default()),
            "backend \"tape\" needs a build with the feature `tape`"
        );
        // If several machines write at once, create-if-absent cannot hold.
        assert_eq!(text("vault", &create_if_absent), "backend \"vault\" does not offer: create-if-absent");
        #[cfg(not(feature = "cloud"))]
        assert_eq!(
            text("s3", &Capabilities::default()),
            "backend \"s3\" needs a build with the feature `cloud`"
        );
    }
}
