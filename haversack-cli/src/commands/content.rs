//! The content that a command is given: as an argument, or on stdin.

use std::io::Read;

use crate::error::CommandError;

/// The most that is read from stdin; what is larger is no memory.
const MAX_STDIN_BYTES: u64 = 64 * 1024 * 1024;

/// Returns the text of an argument, or stdin if it was left out.
pub(crate) fn content(argument: Option<&str>) -> Result<Vec<u8>, CommandError> {
    if let Some(text) = argument {
        return Ok(text.as_bytes().to_vec());
    }
    let mut bytes = Vec::new();
    std::io::stdin().take(MAX_STDIN_BYTES + 1).read_to_end(&mut bytes).map_err(|error| CommandError {
        source: Some(error.into()),
        ..CommandError::user("stdin could not be read", "Give the text as an argument")
    })?;
    if bytes.len() as u64 > MAX_STDIN_BYTES {
        let message = format!("stdin has more than {MAX_STDIN_BYTES} bytes");
        return Err(CommandError::user(
            message,
            "Split it into smaller files: an agent must be able to read a memory",
        ));
    }
    Ok(bytes)
}

/// Returns the text of an argument, or stdin if it was left out, which must then be text.
pub(crate) fn text(argument: Option<&str>) -> Result<String, CommandError> {
    String::from_utf8(content(argument)?).map_err(|error| CommandError {
        source: Some(error.utf8_error().into()),
        ..CommandError::user("the input is not text", "Give UTF-8 text")
    })
}
