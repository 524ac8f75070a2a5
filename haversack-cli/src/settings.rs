//! All settings, resolved once; code below here does not know the source of a value.
//!
//! Five layers, a later one wins: defaults, user file, project file, environment, flags. [`load`] reads, the
//! rest decides: [`resolve`] is a function of what was read. A mistake in any layer is an error, also where
//! a higher one overrides it. The project file comes with a repository: it can only narrow what the layers below it say, and programs
//! that must not stop (hooks, servers) go on without it if it is broken.

pub(crate) mod declarations;
pub(crate) mod environment;
pub(crate) mod files;
pub(crate) mod flags;
pub(crate) mod layers;
pub(crate) mod reference;
mod store;
pub(crate) mod time;
pub(crate) mod variables;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use etcetera::AppStrategy;
use haversack::Writer;
use haversack::day::Zone;
use haversack::ids::Timestamp;
use haversack::sync::Budget;

use self::declarations::{DECLARATIONS, Declaration, Value};
use self::files::SettingsFile;
use self::flags::Flag;
use self::layers::{
    Layer, LayerValue, Line, said_in_environment, said_in_flags, said_in_text, warn_of_unknown_variables,
};
use self::store::StorePaths;
use crate::error::{CommandError, Warning};
use crate::settings::environment::Surroundings;
pub(crate) use crate::ui::paths::shown;

/// The settings of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    /// The directory that holds everything.
    pub(crate) home: PathBuf,
    /// The time that a write waits for another process.
    pub(crate) lock_wait: Duration,
    /// The settings of `haversack memory-tool`.
    pub(crate) memory_tool: MemoryTool,
    /// The writer, for the history: an agent and its session.
    pub(crate) writer: Writer,
    /// True if memory stays on this machine, even if there is a remote.
    pub(crate) keep_local: bool,
    /// A remote that is named by settings alone.
    pub(crate) blob: Blob,
    /// The time that a cloud may be silent.
    pub(crate) cloud_wait: Duration,
    /// The time in which a hook may look for passages for an agent.
    pub(crate) hook_wait: Duration,
    /// The environment variables of the clouds' own tools, credentials too.
    pub(crate) cloud: haversack::store::Settings,
    /// The environment variables of the agent that started us.
    pub(crate) surroundings: Surroundings,
    /// Projects whose memory stays on this machine: directories, addresses or names, with commas between them.
    pub(crate) excluded_projects: String,
    /// The most that one sync receives from other machines.
    pub(crate) budget: Budget,
    /// The name of the time zone; empty for the system's.
    pub(crate) time_zone: String,
    /// The time zone in which days are counted.
    pub(crate) zone: Zone,
    /// The moment that this run takes for the present, if it is not the system's.
    pub(crate) fixed_now: Option<Timestamp>,
    /// The tokens of memory that a hook gives to a session at most.
    pub(crate) context_tokens: usize,
    /// True if the end of a session writes its digest.
    pub(crate) is_digest_written: bool,
    /// True if the background process tidies once a day.
    pub(crate) is_tidied_by_itself: bool,
    /// The command that proposes memories; empty for the built-in extractor.
    pub(crate) tidy_command: String,
}

/// A container of an Azure account, by its two settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Blob {
    /// The account's address; empty if not set.
    pub(crate) endpoint: String,
    /// The container; empty if not set.
    pub(crate) container: String,
}

/// The settings of the memory tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MemoryTool {
    /// The characters of a text in one view.
    pub(crate) view_characters: usize,
    /// The longest input line.
    pub(crate) line_bytes: usize,
}

impl Settings {
    /// Returns a warning if only one half of a remote's address is set; `None` if no remote may be used anyway.
    pub(crate) fn half_remote(&self) -> Option<Warning> {
        if self.keep_local {
            return None;
        }
        let (set, missing) = match (self.blob.endpoint.is_empty(), self.blob.container.is_empty()) {
            (false, true) => (variables::BLOB_ENDPOINT, variables::BLOB_CONTAINER),
            (true, false) => (variables::BLOB_CONTAINER, variables::BLOB_ENDPOINT),
            _ => return None,
        };
        Some(Warning {
            message: format!(
                "the remote is only half named: {set} is set and {missing} is not, so nothing is sent"
            ),
            cure: format!("Set {missing} too, or unset {set}"),
        })
    }

    /// Returns the stores of the home; the personal one is the first.
    pub(crate) fn stores(&self) -> Vec<StorePaths> {
        vec![StorePaths::personal(&self.home)]
    }

    /// Returns the store that this run works on.
    pub(crate) fn store(&self) -> StorePaths {
        self.stores().swap_remove(0)
    }

    /// Returns the directory of the store's files.
    pub(crate) fn memory(&self) -> PathBuf {
        self.store().memory()
    }

    /// Returns the file that changes and extends the kinds of memory.
    pub(crate) fn kinds(&self) -> PathBuf {
        self.home.join("kinds.toml")
    }

    /// Returns the directory of the store's state.
    pub(crate) fn state(&self) -> PathBuf {
        self.store().state()
    }

    /// Returns the directory of the lock files, which must be outside of what they lock.
    pub(crate) fn locks(&self) -> PathBuf {
        self.home.join("state").join("locks")
    }

    /// Returns the directory of the lock files for what several homes of this user may share.
    pub(crate) fn shared_locks(&self) -> PathBuf {
        match default_home() {
            Ok(home) => home.join("state").join("locks"),
            Err(_) => self.locks(),
        }
    }
}

/// Settings, and where they come from for those who explain them.
#[derive(Clone, Debug)]
pub(crate) struct Resolved {
    pub(crate) settings: Settings,
    pub(crate) user_file: SettingsFile,
    pub(crate) project_file: SettingsFile,
    pub(crate) warnings: Vec<Warning>,
    layers: BTreeMap<&'static str, Layer>,
}

impl Resolved {
    /// Returns the layer that a setting's value comes from.
    pub(crate) fn layer(&self, key: &str) -> &Layer {
        self.layers.get(key).expect("every setting is in some layer")
    }

    /// Returns every setting with its value and layer.
    pub(crate) fn each(&self) -> impl Iterator<Item = (&'static str, Value, &Layer)> {
        DECLARATIONS.iter().map(|Declaration { key, read, .. }| (*key, read(&self.settings), self.layer(key)))
    }
}

/// The treatment of a broken project file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BrokenProjectFile {
    /// Stop: a person runs a command and can mend the file.
    Fails,
    /// Go on without it, with a warning: the file must not silence an agent's memory.
    IsIgnored,
}

/// Reads every layer and resolves it; makes nothing, not even the home.
pub(crate) fn load(flags: &[Flag], broken: BrokenProjectFile) -> Result<Resolved, CommandError> {
    let environment = environment();
    let given = given(&environment, flags)?;
    let home = home(&given, default_home)?;
    let directory = std::env::current_dir().map_err(|error| CommandError {
        source: Some(error.into()),
        ..CommandError::user(
            "the current directory, where a project's settings may be, cannot be found",
            "Change to a directory that exists: cd",
        )
    })?;
    let user_file = files::read_user(&home.0)?;
    let mut warnings = Vec::new();
    let project_file = match files::read_project(&directory).and_then(checked) {
        Ok(file) => file,
        Err(error) if broken == BrokenProjectFile::IsIgnored => {
            let message = format!("we ignore the settings of this project: {}", error.in_one_line());
            warnings.push(Warning { message, cure: error.hint.unwrap_or_default() });
            SettingsFile { path: directory.join(files::PROJECT_FILE), text: None }
        }
        Err(error) => return Err(error),
    };
    let mut resolved = resolve(home, user_file, project_file, given)?;
    resolved.settings.writer = writer(&environment);
    resolved.settings.cloud = cloud(&environment);
    resolved.settings.surroundings = Surroundings::of(&environment);
    warnings.extend(warn_of_unknown_variables(&environment));
    warnings.extend(resolved.settings.half_remote());
    Ok(Resolved { warnings, ..resolved })
}

/// Returns a project file in which every line is a setting that a project may have.
fn checked(file: SettingsFile) -> Result<SettingsFile, CommandError> {
    said_in_text(&file.path, file.text.as_deref().unwrap_or_default(), Layer::Project)?;
    Ok(file)
}

/// Returns what is compiled in.
pub(crate) fn defaults() -> Result<Vec<LayerValue>, CommandError> {
    let text = include_str!("settings/defaults.toml");
    said_in_text(Path::new("defaults.toml"), text, |_| Layer::Default)
}

/// Returns what was given to this process: what the environment says, then what the flags say.
fn given(environment: &BTreeMap<String, OsString>, flags: &[Flag]) -> Result<Vec<LayerValue>, CommandError> {
    let mut said = said_in_environment(environment)?;
    said.extend(said_in_flags(flags)?);
    Ok(said)
}

/// Returns the writer, as the environment names it.
fn writer(environment: &BTreeMap<String, OsString>) -> Writer {
    let said = |name: &str| {
        let value = environment.get(name).map(|value| value.to_string_lossy().into_owned());
        value.filter(|value| !value.is_empty())
    };
    Writer { agent: said(variables::AGENT), session: said(variables::SESSION), cause: None }
}

/// Returns what the environment says to the clouds' own tools.
fn cloud(environment: &BTreeMap<String, OsString>) -> haversack::store::Settings {
    let is_theirs = |name: &str| variables::CLOUD_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    let theirs = environment.iter().filter(|(name, _)| is_theirs(name));
    theirs.filter_map(|(name, value)| Some((name.clone(), value.to_str()?.to_owned()))).collect()
}

/// Returns the home and where it is named; the files' layers are read from there.
fn home(
    given: &[LayerValue],
    default: impl FnOnce() -> Result<PathBuf, CommandError>,
) -> Result<(PathBuf, Layer), CommandError> {
    let named = given.iter().rev().find_map(|said| match &said.value {
        Value::Directory(path) if said.key == declarations::HOME => Some((path.clone(), said.layer.clone())),
        _ => None,
    });
    match named {
        Some(home) => Ok(home),
        None => Ok((default()?, Layer::Default)),
    }
}

/// Resolves the layers.
fn resolve(
    (home, home_layer): (PathBuf, Layer),
    user_file: SettingsFile,
    project_file: SettingsFile,
    given: Vec<LayerValue>,
) -> Result<Resolved, CommandError> {
    let in_file = |file: &SettingsFile, layer: fn(Line) -> Layer| {
        let text = file.text.as_deref().unwrap_or_default();
        said_in_text(&file.path, text, layer)
    };
    let low_to_high =
        [defaults()?, in_file(&user_file, Layer::User)?, in_file(&project_file, Layer::Project)?, given];
    let mut values = BTreeMap::new();
    let mut layers = BTreeMap::from([(declarations::HOME, home_layer)]);
    for LayerValue { key, value, layer } in low_to_high.into_iter().flatten() {
        let is_wider = match (&layer, &value, values.get(key)) {
            (Layer::Project(_), Value::Number(new), Some(Value::Number(old))) => new >= old,
            // It is about the project, not about the home: the project's own record reads it.
            (Layer::Project(_), Value::Switch(_), _) => true,
            _ => false,
        };
        if key != declarations::HOME && !is_wider {
            values.insert(key, value);
            layers.insert(key, layer);
        }
    }
    let number = |key| match values.get(key) {
        Some(Value::Number(number)) => *number,
        _ => unreachable!("every number has a default, and no layer says anything else"),
    };
    let text = |key| match values.get(key) {
        Some(Value::Text(text)) => text.clone(),
        _ => unreachable!("every text has a default, and no layer says anything else"),
    };
    let size = |key| usize::try_from(number(key)).expect("every range ends below 4 GiB");
    let is_on = |key| values.get(key) == Some(&Value::Switch(true));
    let settings = Settings {
        home,
        lock_wait: Duration::from_secs(number(declarations::LOCK_WAIT_SECONDS)),
        memory_tool: MemoryTool {
            view_characters: size(declarations::VIEW_CHARACTERS),
            line_bytes: size(declarations::LINE_BYTES),
        },
        writer: Writer::default(),
        keep_local: is_on(declarations::KEEP_MEMORY_LOCAL),
        blob: Blob {
            endpoint: text(declarations::BLOB_ENDPOINT),
            container: text(declarations::BLOB_CONTAINER),
        },
        cloud_wait: Duration::from_secs(number(declarations::CLOUD_WAIT_SECONDS)),
        hook_wait: Duration::from_millis(number(declarations::RECALL_HOOK_MILLISECONDS)),
        cloud: haversack::store::Settings::default(),
        surroundings: Surroundings::default(),
        excluded_projects: text(declarations::PROJECTS_EXCLUDE),
        budget: Budget {
            files: number(declarations::RECEIVE_FILES),
            bytes: number(declarations::RECEIVE_MEGABYTES) * 1_000_000,
        },
        zone: time::zone_of(&text(declarations::TIME_ZONE)).expect("every layer's zone was checked"),
        time_zone: text(declarations::TIME_ZONE),
        fixed_now: None,
        context_tokens: size(declarations::CONTEXT_TOKENS),
        is_digest_written: is_on(declarations::DIGEST_AUTO),
        is_tidied_by_itself: values.get(declarations::TIDY_AUTO) == Some(&Value::Switch(true)),
        tidy_command: text(declarations::TIDY_COMMAND),
    };
    Ok(Resolved { settings, user_file, project_file, warnings: Vec::new(), layers })
}

#[cfg(test)]
impl Settings {
    /// Returns the default settings of a home, for tests.
    pub(crate) fn of_home(home: PathBuf) -> Settings {
        let file = || SettingsFile { path: home.join("config.toml"), text: None };
        let resolved = resolve((home.clone(), Layer::Default), file(), file(), Vec::new());
        resolved.expect("the defaults are settings").settings
    }
}

/// Returns the environment; what is no text in a name is replaced, since all of ours are text.
fn environment() -> BTreeMap<String, OsString> {
    let each = std::env::vars_os().map(|(name, value)| {
        let name = name.to_string_lossy();
        // Windows does not tell names apart by case.
        (if cfg!(windows) { name.to_uppercase() } else { name.into_owned() }, value)
    });
    each.collect()
}

/// Returns the default home of this system.
fn default_home() -> Result<PathBuf, CommandError> {
    let arguments = etcetera::AppStrategyArgs {
        top_level_domain: String::new(),
        author: String::new(),
        app_name: "haversack".to_owned(),
    };
    let unknown = |_| {
        let message = "this user has no home directory";
        CommandError::user(
            message,
            format!("Set HOME, or choose a directory with --home or {}", variables::HOME),
        )
    };
    #[cfg(any(target_os = "macos", target_os = "ios"))]
    let home = etcetera::app_strategy::Apple::new(arguments).map_err(unknown)?.data_dir();
    #[cfg(windows)]
    let home = etcetera::app_strategy::Windows::new(arguments).map_err(unknown)?.cache_dir();
    #[cfg(not(any(target_os = "macos", target_os = "ios", windows)))]
    let home = etcetera::app_strategy::Xdg::new(arguments).map_err(unknown)?.data_dir();
    Ok(home)
}

/// Returns a path as people write it, their own directory as `~`.
pub(crate) fn tilde(settings: &Settings, path: &Path) -> String {
    let user = settings.surroundings.user.as_ref().and_then(|user| user.canonicalize().ok());
    match user.as_ref().and_then(|user| path.strip_prefix(user).ok()) {
        Some(rest) if !rest.as_os_str().is_empty() => format!("~/{}", rest.display()),
        _ => shown(path),
    }
}

#[cfg(test)]
mod tests {
    use super::declarations::Kind;
    use super::*;

    /// The texts of all layers, before parsing.
    #[derive(Default)]
    struct Layers {
        user: String,
        project: String,
        environment: BTreeMap<String, OsString>,
        flags: Vec<Flag>,
    }

    impl Layers {
        fn resolve(&self) -> Result<Resolved, CommandError> {
            let file = |path: &str, text: &str| SettingsFile { path: path.into(), text: Some(text.into()) };
            let given = given(&self.environment, &self.flags)?;
            let home = home(&given, || Ok("/from/default".into()))?;
            resolve(home, file("user.toml", &self.user), file("project.toml", &self.project), given)
        }

        /// Adds `key` to one layer.
        fn say(&mut self, layer: &str, declaration: &Declaration, value: &str) {
            let Declaration { key, variable, kind, .. } = declaration;
            let in_file =
                if matches!(kind, Kind::Text | Kind::Zone) { format!("{value:?}") } else { value.to_owned() };
            let flag = |name| Flag { name, key: (*key).to_owned(), value: value.into() };
            match layer {
                "default" => {}
                "user" => self.user.push_str(&format!("\n{key} = {in_file}\n")),
                "project" => self.project.push_str(&format!("\n\n{key} = {in_file}\n")),
                "environment" => drop(self.environment.insert((*variable).to_owned(), value.into())),
                "--config" => self.flags.push(flag("--config")),
                "--home" => self.flags.push(flag("--home")),
                _ => unreachable!("no such layer"),
            }
        }
    }

    /// Returns the value of `key` and the place it comes from.
    fn shown_of(resolved: &Resolved, key: &str) -> (String, String) {
        let (_, value, layer) = resolved.each().find(|(other, ..)| *other == key).expect("declared");
        (value.to_string(), layer.to_string())
    }

    #[test]
    fn each_layer_wins_over_those_below_it() {
        for declaration in DECLARATIONS {
            let Declaration { key, variable, kind, .. } = declaration;
            let layers: Vec<(&str, String, &str)> = match kind {
                Kind::Home => vec![
                    ("default", "/from/default".into(), "default"),
                    ("environment", "/from/variable".into(), variable),
                    ("--config", "/from/config".into(), "--config"),
                    ("--config", "/from/later/config".into(), "--config"),
                    ("--home", "/from/home".into(), "--home"),
                ],
                Kind::Number(range) => {
                    let number = |n: u64| (range.start() + n).to_string();
                    let default = defaults().expect("sound").into_iter().find(|said| said.key == *key);
                    vec![
                        ("default", default.expect("a default").value.to_string(), "default"),
                        ("user", number(2), "user.toml:2"),
                        // A project can only lower a number.
                        ("project", number(1), "project.toml:3"),
                        ("environment", number(3), variable),
                        ("--config", number(4), "--config"),
                        ("--config", number(5), "--config"),
                    ]
                }
                Kind::Zone => vec![
                    ("default", String::new(), "default"),
                    ("user", "AAA1".into(), "user.toml:2"),
                    ("environment", "BBB2".into(), variable),
                    ("--config", "CCC3".into(), "--config"),
                ],
                Kind::Text => vec![
                    ("default", String::new(), "default"),
                    ("user", "of user".into(), "user.toml:2"),
                    ("environment", "of environment".into(), variable),
                    ("--config", "of flag".into(), "--config"),
                ],
                Kind::Switch => vec![
                    ("default", "false".into(), "default"),
                    ("user", "true".into(), "user.toml:2"),
                    ("environment", "false".into(), variable),
                    ("--config", "true".into(), "--config"),
                ],
            };
            let mut said = Layers::default();
            let is_for_projects = declarations::FOR_PROJECTS.contains(key);
            for (layer, value, place) in
                layers.into_iter().filter(|(layer, ..)| *layer != "project" || is_for_projects)
            {
                said.say(layer, declaration, &value);
                let resolved = said.resolve().expect("resolved");
                assert_eq!(shown_of(&resolved, key), (value, place.to_owned()), "{key} by {layer}");
            }
        }
    }

    #[test]
    fn a_lower_layer_stays_where_a_higher_one_is_silent() {
        let [_, lock_wait, view, line, ..] = DECLARATIONS else { unreachable!("more are declared") };
        let mut layers = Layers::default();
        layers.say("user", lock_wait, "1");
        layers.say("project", view, "1002");
        layers.say("environment", line, "65539");
        let resolved = layers.resolve().expect("resolved");
        let expected = Settings {
            home: "/from/default".into(),
            lock_wait: Duration::from_secs(1),
            memory_tool: MemoryTool { view_characters: 1002, line_bytes: 65539 },
            writer: Writer::default(),
            keep_local: false,
            blob: Blob::default(),
            cloud_wait: Duration::from_secs(30),
            hook_wait: Duration::from_millis(20),
            cloud: haversack::store::Settings::default(),
            surroundings: Surroundings::default(),
            excluded_projects: String::new(),
            budget: Budget { files: 200_000, bytes: 2_000_000_000 },
            time_zone: String::new(),
            zone: time::zone_of("").expect("the system's"),
            fixed_now: None,
            context_tokens: 2_000,
            is_digest_written: false,
            is_tidied_by_itself: false,
            tidy_command: String::new(),
        };
        assert_eq!(resolved.settings, expected);
        let names: Vec<&str> = resolved.each().take(4).map(|(_, _, layer)| layer.name()).collect();
        assert_eq!(names, ["default", "user", "project", "environment"]);
    }

    #[test]
    fn every_number_has_a_default_and_ends_up_in_its_own_field() {
        let untouched = Layers::default().resolve().expect("every default is there and in range");
        for declaration in DECLARATIONS {
            let Kind::Number(range) = &declaration.kind else { continue };
            for value in [range.start(), range.end()] {
                let mut layers = Layers::default();
                layers.say("--config", declaration, &value.to_string());
                let resolved = layers.resolve().expect("both ends are in range");
                for ((key, now, layer), (_, before, _)) in resolved.each().zip(untouched.each()) {
                    let is_set = key == declaration.key;
                    assert_eq!(now, if is_set { Value::Number(*value) } else { before }, "{key}");
                    assert_eq!(layer.name(), if is_set { "flag" } else { "default" }, "{key}");
                }
            }
        }
    }

    #[test]
    fn a_mistake_counts_also_where_a_higher_layer_overrides_it() {
        let lock_wait = &DECLARATIONS[1];
        for wrong in ["user", "project", "environment"] {
            let mut layers = Layers::default();
            layers.say(wrong, lock_wait, "3601");
            layers.say("--config", lock_wait, "5");
            assert!(layers.resolve().is_err(), "{wrong}");
        }
        let mut layers = Layers::default();
        layers.say("environment", &DECLARATIONS[0], "");
        layers.say("--home", &DECLARATIONS[0], "/from/home");
        assert!(layers.resolve().is_err(), "an empty home is not taken for the current directory");
    }

    #[test]
    fn project_file_cannot_widen_anything() {
        for declaration in DECLARATIONS.iter().filter(|declaration| declaration.kind != Kind::Home) {
            let key = declaration.key;
            let mut layers = Layers::default();
            match &declaration.kind {
                Kind::Number(range) if declarations::FOR_PROJECTS.contains(&key) => {
                    layers.say("user", declaration, &range.start().to_string());
                    layers.say("project", declaration, &range.end().to_string());
                    let resolved = layers.resolve().expect("resolved");
                    assert_eq!(shown_of(&resolved, key).0, range.start().to_string(), "{key}");
                    continue;
                }
                Kind::Number(range) => layers.say("project", declaration, &range.start().to_string()),
                Kind::Switch => layers.say("project", declaration, "false"),
                Kind::Text => layers.say("project", declaration, "https://elsewhere.example"),
                Kind::Zone => layers.say("project", declaration, "UTC"),
                Kind::Home => unreachable!("filtered"),
            }
            let error = layers.resolve().expect_err("refused");
            let is_said = ["a project cannot set", "can only keep memory here"];
            assert!(is_said.iter().any(|said| error.message.contains(said)), "{key}: {}", error.message);
        }
        // It is about the project alone: the home goes on carrying other projects.
        let keep_local = declarations::declared(declarations::KEEP_MEMORY_LOCAL).expect("declared");
        let mut layers = Layers::default();
        layers.say("project", keep_local, "true");
        assert!(!layers.resolve().expect("resolved").settings.keep_local);
    }

    #[test]
    fn the_default_home_is_not_asked_for_where_another_is_named() {
        let no_home = || Err(CommandError::ours("asked"));
        let said = said_in_flags(&[Flag { name: "--home", key: "home".into(), value: "/named".into() }]);
        let (path, _) = home(&said.expect("sound"), no_home).expect("named");
        assert_eq!(path, Path::new("/named"));
        assert!(home(&[], no_home).is_err());
    }
}
