//! Everything that can be set, resolved once; below here nobody asks where a value came from.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use etcetera::AppStrategy;

use crate::error::CommandError;
use crate::variables;

/// The settings of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    /// The directory that holds everything.
    pub(crate) home: PathBuf,
    /// Where the home was named.
    pub(crate) home_layer: Layer,
}

/// Where a value comes from; a later one wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Layer {
    Default,
    Environment,
    Flag,
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Layer::Default => "default",
            Layer::Environment => variables::HOME,
            Layer::Flag => "--home",
        })
    }
}

impl Settings {
    /// Resolves the settings from the flags and the environment.
    pub(crate) fn resolve(
        home: Option<PathBuf>,
        environment: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Settings, CommandError> {
        let (home, home_layer) = match (home, environment(variables::HOME)) {
            (Some(home), _) => (home, Layer::Flag),
            (None, Some(home)) => (PathBuf::from(home), Layer::Environment),
            (None, None) => (default_home()?, Layer::Default),
        };
        if home.as_os_str().is_empty() {
            let message = format!("the home directory given by {home_layer} is empty");
            return Err(CommandError::user(message, "Name a directory, or leave it out for the default"));
        }
        Ok(Settings { home, home_layer })
    }

    /// Returns the directory of the default store's files.
    pub(crate) fn memory(&self) -> PathBuf {
        self.home.join("memory")
    }

    /// Returns the directory of the lock files, which must be outside of what they lock.
    pub(crate) fn locks(&self) -> PathBuf {
        self.home.join("state").join("locks")
    }
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
            format!("Set HOME, or name a directory with --home or {}", variables::HOME),
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

/// Returns a path as people write it.
pub(crate) fn shown(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flag_wins_over_the_environment_and_that_over_the_default() {
        let environment = |_: &str| Some(OsString::from("/from/environment"));
        let by_flag = Settings::resolve(Some("/from/flag".into()), environment).expect("resolved");
        assert_eq!((by_flag.home, by_flag.home_layer), ("/from/flag".into(), Layer::Flag));
        let by_environment = Settings::resolve(None, environment).expect("resolved");
        assert_eq!(by_environment.home, PathBuf::from("/from/environment"));
        assert_eq!(by_environment.home_layer, Layer::Environment);
        assert_eq!(Settings::resolve(None, |_| None).map(|s| s.home_layer).ok(), Some(Layer::Default));
    }

    #[test]
    fn an_empty_home_is_refused_not_taken_for_the_current_directory() {
        assert!(Settings::resolve(None, |_| Some(OsString::new())).is_err());
    }
}
