//! The pictures of the page, made by the real program and a real browser from a sample memory.

use crate::run::{cargo, project, step};
use crate::tools;

/// The variable that tells the test where to put its pictures.
const DIRECTORY: &str = "HAVERSACK_SCREENSHOTS";

/// Makes all pictures of the page in `docs/pictures`.
pub(crate) fn run() -> Result<(), String> {
    tools::for_tests()?;
    let arguments =
        ["test", "--package", "haversack-cli", "--test", "it", "--", "page::pictures::", "--nocapture"];
    let mut command = cargo(&arguments);
    command.env(DIRECTORY, project().join("docs/pictures")).env("HAVERSACK_TOOLS_REQUIRED", "1");
    step("pictures of the page", &mut command)
}
