//! The kinds of memory of a home: those of the program, changed and extended by `kinds.toml`.

use haversack::kind::{Kind, Kinds};

use crate::error::CommandError;
use crate::settings::{Settings, shown};

/// Returns the kinds of this home: those that are compiled in, changed and extended by its `kinds.toml`.
pub(crate) fn load(settings: &Settings) -> Result<Kinds, CommandError> {
    let path = settings.kinds();
    let built_in = Kinds::built_in();
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(built_in.clone()),
        Err(error) => {
            let hint = "Make it readable text, or move it away";
            let failed = CommandError::user(format!("{} cannot be read", shown(&path)), hint);
            return Err(CommandError { source: Some(error.into()), ..failed });
        }
    };
    built_in.with(&text).map_err(|error| {
        let hint = "See the keys of a kind: haversack kinds show user";
        CommandError::user(format!("in {}: {error}", shown(&path)), hint)
    })
}

/// Returns the kind that a user names.
pub(crate) fn named<'k>(kinds: &'k Kinds, name: &str) -> Result<&'k Kind, CommandError> {
    kinds.get(name).ok_or_else(|| {
        let alike = |kind: &&Kind| (strsim::jaro_winkler(&kind.name, name) * 1e6) as u64;
        let nearest = kinds.iter().max_by_key(alike).map(|kind| format!("; did you mean {}?", kind.name));
        let message = format!("there is no kind {name}{}", nearest.unwrap_or_default());
        CommandError::user(message, "List the kinds: haversack kinds")
    })
}
