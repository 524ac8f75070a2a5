//! Makes a new file; one in the memory of a project gets its line in the project's index.

use haversack::remember::{self, RememberOutcome};
use haversack::store::{Locator, block_on};
use haversack::{View, remember::is_indexed};

use crate::error::CommandError;
use crate::home::store::open;
use crate::projects::border;
use crate::projects::names::locate;
use crate::settings::Settings;

/// A file that was made.
pub(crate) struct Created {
    pub(crate) version: String,
    /// True if the index of its directory has a line for it now.
    pub(crate) is_indexed: bool,
}

/// The place of a new file.
pub(crate) struct NewPlace {
    pub(crate) locator: Locator,
    /// True if the file is a memory of the current directory's project.
    is_projects: bool,
}

/// Returns the place of a new file. A bare name in a checkout whose memory is carried belongs to that project; a path is taken as it is.
pub(crate) fn place(settings: &Settings, path: &str) -> Result<NewPlace, CommandError> {
    let project = if path.contains('/') { None } else { border::place_here(settings) };
    match project {
        Some(project) => {
            let locator = project.child(path).map_err(|error| {
                CommandError::user(error.to_string(), "Name a place inside the memory: haversack ls")
            })?;
            Ok(NewPlace { locator, is_projects: true })
        }
        None => Ok(NewPlace { locator: locate(settings, path)?, is_projects: false }),
    }
}

/// Makes a file, and in a project's memory the line of the index, both or neither.
pub(crate) fn create(
    settings: &Settings,
    place: &NewPlace,
    content: Vec<u8>,
) -> Result<Created, CommandError> {
    let memory = open(settings)?;
    let NewPlace { locator, is_projects } = place;
    let text = std::str::from_utf8(&content).ok().filter(|_| *is_projects && is_indexed(locator));
    let Some(text) = text else {
        let version = block_on(memory.create(locator, content))?;
        return Ok(Created { version: version.as_str().to_owned(), is_indexed: false });
    };
    match block_on(remember::keep(&memory, &remember::written(locator, text)))? {
        RememberOutcome::New => {}
        RememberOutcome::Same | RememberOutcome::Taken => {
            return Err(CommandError::user(
                format!("cannot create {locator}: something is there already"),
                "Change the existing file with edit, str-replace, insert or append, or choose another name",
            ));
        }
    }
    let version = match block_on(memory.view(locator))? {
        View::File(object) => object.version.as_str().to_owned(),
        View::Directory(_) => return Err(CommandError::ours("the new file is a directory")),
    };
    Ok(Created { version, is_indexed: true })
}
