//! Memory in clouds, as users meet it: real servers, lines that break, and storages that answer anything.

mod added;
mod bad_line;
mod costs;
mod crowd;
mod devices;
mod five;
mod foreign;
mod kept_local;
mod killed;
mod migrated;
mod refusals;
mod retries;
mod signed_in;

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Arc;

use haversack::store::{
    Backend, BackendExt, Bytes, Locator, OpenOptions, Registry, Settings as CloudSettings, block_on,
};
use haversack_servers::{Azurite, Front, Gcs, Moto};

use crate::machines::Machines;

/// Returns how often to do something: a few times, or very often in a soak.
fn times(test: usize, soak: usize) -> usize {
    if std::env::var_os("HAVERSACK_SOAK").is_some() { soak } else { test }
}

/// An empty container behind a front, and what a user sets to reach it.
struct Place {
    backend: &'static str,
    url: String,
    container: String,
    /// The variables of the endpoint.
    plain: Vec<(&'static str, String)>,
    /// The variables with secrets.
    secrets: Vec<(&'static str, String)>,
    /// Everything that is asked comes by here.
    front: Front,
    /// Ends with the place.
    gcs: Option<Gcs>,
}

impl Place {
    /// A new container of Azurite; `None` if it is not installed.
    fn azure() -> Option<Place> {
        let azurite = Azurite::shared()?;
        let front = Front::before(azurite.endpoint());
        front.sign_as(azurite.account(), azurite.key());
        let container = azurite.new_container();
        Some(Place {
            backend: "azure",
            url: format!("az://{container}/memory"),
            plain: vec![
                ("AZURE_STORAGE_ACCOUNT_NAME", azurite.account().to_owned()),
                ("AZURE_STORAGE_ENDPOINT", front.url().to_owned()),
            ],
            secrets: vec![("AZURE_STORAGE_ACCOUNT_KEY", azurite.key().to_owned())],
            container,
            front,
            gcs: None,
        })
    }

    /// A new bucket of moto; `None` if it is not installed.
    fn s3() -> Option<Place> {
        let moto = Moto::shared()?;
        let front = Front::before(moto.endpoint());
        let container = moto.new_bucket();
        Some(Place {
            backend: "s3",
            url: format!("s3://{container}/memory"),
            plain: vec![
                ("AWS_ENDPOINT_URL", front.url().to_owned()),
                ("AWS_REGION", moto.region().to_owned()),
            ],
            secrets: vec![
                ("AWS_ACCESS_KEY_ID", moto.key_id().to_owned()),
                // It takes any.
                ("AWS_SECRET_ACCESS_KEY", "wJalr-only-for-tests-4f1c6d".to_owned()),
            ],
            container,
            front,
            gcs: None,
        })
    }

    /// A new bucket of a stand-in for Google's.
    fn gcs() -> Place {
        let gcs = Gcs::start();
        let front = Front::before(gcs.endpoint());
        let container = gcs.new_bucket();
        Place {
            backend: "gcs",
            url: format!("gs://{container}/memory"),
            plain: vec![("GOOGLE_BASE_URL", front.url().to_owned())],
            secrets: vec![("GOOGLE_BEARER_TOKEN", gcs.token())],
            container,
            front,
            gcs: Some(gcs),
        }
    }

    /// Every cloud whose server is there.
    fn each() -> Vec<Place> {
        [Place::azure(), Place::s3(), Some(Place::gcs())].into_iter().flatten().collect()
    }

    /// Returns a command in a shell where all variables are set.
    fn in_shell(&self, machines: &Machines, machine: &str, arguments: &[&str]) -> Command {
        let mut command = machines.command(machine, arguments);
        command.envs(self.plain.iter().chain(&self.secrets).map(|(name, value)| (name, value)));
        command
    }

    /// Returns what a command shows, with the same names every time.
    fn shown(&self, machines: &Machines, command: &mut Command) -> String {
        self.plainly(&crate::machines::without_times(&machines.env.shown(command)))
    }

    /// Takes out what is different each time.
    fn plainly(&self, text: &str) -> String {
        let address = self.front.url().split("://").nth(1).unwrap_or_default();
        let address = address.split('/').next().unwrap_or_default();
        without_milliseconds(&text.replace(&self.container, "CONTAINER").replace(address, "SERVER"))
    }

    /// Runs a command without anything of a shell, as a hook does.
    fn run(&self, machines: &Machines, machine: &str, arguments: &[&str]) -> String {
        self.shown(machines, &mut machines.command(machine, arguments))
    }

    /// Runs a command that must succeed.
    #[track_caller]
    fn done(&self, machines: &Machines, machine: &str, arguments: &[&str]) -> String {
        let shown = self.run(machines, machine, arguments);
        assert!(shown.starts_with("exit 0\n"), "{machine} {arguments:?} on {}: {shown}", self.backend);
        shown
    }

    /// Lets a machine begin a store here.
    #[track_caller]
    fn add(&self, machines: &Machines, machine: &str, more: &[&str]) {
        let mut arguments = vec!["remote", "add", &self.url, "--device", machine, "--credential", "file"];
        arguments.extend(more);
        let shown = self.shown(machines, &mut self.in_shell(machines, machine, &arguments));
        assert!(shown.starts_with("exit 0\n"), "on {}: {shown}", self.backend);
        self.done(machines, machine, &["sync"]);
    }

    /// Lets a machine join the store.
    #[track_caller]
    fn join(&self, machines: &Machines, machine: &str, more: &[&str]) {
        let mut arguments = vec!["join", &self.url, "--device", machine, "--credential", "file", "--yes"];
        arguments.extend(more);
        let shown = self.shown(machines, &mut self.in_shell(machines, machine, &arguments));
        assert!(shown.starts_with("exit 0\n"), "on {}: {shown}", self.backend);
    }

    /// Returns a laptop that began and a desktop that joined; no plain copies, so that requests can be counted.
    fn laptop_and_desktop(&self, files: &[(&str, &str)]) -> Machines {
        let machines = Machines::new();
        for (path, text) in files {
            machines.write("laptop", path, text);
        }
        self.add(&machines, "laptop", &["--no-mirror"]);
        self.join(&machines, "desktop", &["--no-mirror"]);
        machines
    }

    /// Opens it, as the engine is handed it.
    fn open(&self) -> Arc<dyn Backend> {
        self.open_below("")
    }

    fn open_below(&self, prefix: &str) -> Arc<dyn Backend> {
        let settings: CloudSettings =
            self.plain.iter().chain(&self.secrets).map(|(name, value)| (*name, value.as_str())).collect();
        let address = format!("{}{prefix}", self.url);
        let registered = Registry::standard().get(self.backend).copied().expect("in this build");
        (registered.open)(&OpenOptions { address, settings, ..OpenOptions::default() }).expect("it opens")
    }

    /// Returns every object, ours too.
    fn objects(&self) -> BTreeMap<String, Bytes> {
        let backend = self.open();
        let mut all = BTreeMap::new();
        let ours = Locator::reserved(".haversack").expect("ours");
        let mut places = [Locator::root(), ours]
            .iter()
            .flat_map(|directory| block_on(backend.list_all(directory)).expect("listed"))
            .collect::<Vec<_>>();
        places.push(Locator::reserved("manifest.json").expect("ours"));
        for place in places {
            if let Ok(object) = block_on(backend.read(&place)) {
                all.insert(place.to_string(), object.bytes);
            }
        }
        all
    }
}

/// Takes how long something took out of a text.
fn without_milliseconds(text: &str) -> String {
    let mut shown = String::new();
    for line in text.split_inclusive('\n') {
        let words: Vec<&str> = line.split(' ').collect();
        let is_time = |index: usize| {
            words[index].bytes().all(|byte| byte.is_ascii_digit())
                && words.get(index + 1).is_some_and(|next| next.trim_end() == "ms")
        };
        let words = words.iter().enumerate();
        let words: Vec<&str> = words
            .map(|(index, word)| if !word.is_empty() && is_time(index) { "SOME" } else { word })
            .collect();
        shown.push_str(&words.join(" "));
    }
    shown
}

/// One named test for each cloud.
macro_rules! in_each_cloud {
    ($($name:ident),+ $(,)?) => {$(
        mod $name {
            use super::super::Place;

            #[test]
            fn azure() {
                if let Some(place) = Place::azure() {
                    super::$name(&place);
                }
            }

            #[test]
            fn s3() {
                if let Some(place) = Place::s3() {
                    super::$name(&place);
                }
            }

            #[test]
            fn gcs() {
                super::$name(&Place::gcs());
            }
        }
    )+};
}
use in_each_cloud;
