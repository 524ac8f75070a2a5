//! Memories as resources: `haversack:///memories/…`, one for each file.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures_lite::StreamExt;
use haversack::store::{EntryKind, Info, Locator, block_on};
use haversack::{Reason, View};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use rmcp::model::{
    ErrorData, ListResourcesResult, ReadResourceResult, Resource, ResourceContents, ResourceTemplate,
};
use serde_json::json;

use super::tool_handler::ToolHandler;
use crate::error::CommandError;
use crate::projects::border::Breadth;

/// The beginning of every memory's address.
const ROOT: &str = "haversack:///memories/";

/// The number of memories on a page.
const PAGE: usize = 200;

/// The characters that an address does not encode.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// Returns the address of a memory.
pub(super) fn uri(locator: &Locator) -> String {
    format!("{ROOT}{}", utf8_percent_encode(locator.as_str(), PLAIN))
}

/// Returns the memory of an address.
pub(super) fn locate(uri: &str) -> Result<Locator, ErrorData> {
    let path = uri.strip_prefix(ROOT).and_then(|path| percent_decode_str(path).decode_utf8().ok());
    let locator = path.and_then(|path| Locator::parse(&path).ok());
    locator.ok_or_else(|| not_found(uri, format!("there is no resource {uri:?}")))
}

/// Returns the error for an address that has no memory; clients look for the address in its data.
fn not_found(uri: &str, why: String) -> ErrorData {
    ErrorData::resource_not_found(why, Some(json!({ "uri": uri })))
}

/// Returns a page of all memories, after a place.
pub(super) fn list(handler: &ToolHandler, after: Option<&str>) -> Result<ListResourcesResult, ErrorData> {
    let after = after.map(Locator::parse).transpose();
    let after = after.map_err(|_| ErrorData::invalid_params("the cursor is none of ours", None))?;
    let memory = handler.memory().map_err(|error| failed(&error))?;
    // As a recall: the memory of other projects is not offered unasked.
    let projects = handler.reach(Breadth::ThisProject);
    let is_offered = |info: &Info| info.kind == EntryKind::File && projects.hold(&info.locator);
    let mut infos: Vec<Info> = Vec::new();
    let page = async {
        let mut pages = memory.files().scan(&Locator::root(), after.as_ref());
        while let Some(page) = pages.next().await {
            infos.extend(page?.infos.into_iter().filter(is_offered));
            if infos.len() > PAGE {
                break;
            }
        }
        Ok::<(), haversack::store::Error>(())
    };
    block_on(page).map_err(|error| failed(&error.into()))?;
    let is_more = infos.len() > PAGE;
    infos.truncate(PAGE);
    let mut result = ListResourcesResult::with_all_items(infos.iter().map(described).collect());
    result.next_cursor = infos.last().filter(|_| is_more).map(|info| info.locator.to_string());
    Ok(result)
}

fn described(info: &Info) -> Resource {
    let resource = Resource::new(uri(&info.locator), info.locator.as_str()).with_size(info.size_bytes);
    resource.with_mime_type(media_type(&info.locator))
}

/// Returns how any memory is addressed.
pub(super) fn template() -> ResourceTemplate {
    ResourceTemplate::new(format!("{ROOT}{{+path}}"), "memory")
        .with_description("A file of the memory, by its path")
}

/// Returns the content of a memory.
pub(super) fn read(handler: &ToolHandler, uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let locator = locate(uri)?;
    let memory = handler.memory().map_err(|error| failed(&error))?;
    let object = match block_on(memory.view(&locator)) {
        Ok(View::File(object)) => object,
        Ok(View::Directory(_)) => {
            return Err(not_found(uri, format!("{uri} is a directory: use the tool view")));
        }
        Err(error) if *error.reason() == Reason::NotFound => {
            return Err(not_found(uri, format!("there is no resource {uri:?}")));
        }
        Err(error) => return Err(failed(&error.into())),
    };
    let contents = match std::str::from_utf8(&object.bytes) {
        Ok(text) => ResourceContents::text(text, uri),
        Err(_) => ResourceContents::blob(STANDARD.encode(&object.bytes), uri),
    };
    Ok(ReadResourceResult::new(vec![contents.with_mime_type(media_type(&locator))]))
}

fn media_type(locator: &Locator) -> &'static str {
    let extension = locator.name().rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    match extension.as_deref() {
        Some("md") => "text/markdown",
        Some("json") => "application/json",
        Some("jsonl") => "application/jsonl",
        Some("yaml" | "yml") => "application/yaml",
        Some("png") => "image/png",
        Some("jpg" | "jpeg") => "image/jpeg",
        _ => "text/plain",
    }
}

fn failed(error: &CommandError) -> ErrorData {
    let hint = error.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
    ErrorData::internal_error(format!("{}{hint}", error.message), None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_places_are_the_same() {
        for path in ["a.md", "claude_memory/lighthouse/user role ü%.md", "日本/x?#.md"] {
            let locator = Locator::parse(path).expect("valid");
            let address = uri(&locator);
            assert!(address.is_ascii() && !address.contains([' ', '?', '#']), "{address}");
            assert_eq!(locate(&address).expect("ours"), locator);
        }
        for uri in [
            "file:///etc/passwd",
            "haversack:///memories/../etc/passwd",
            "haversack:///memories/%2e%2e/etc/passwd",
            "haversack:///memories/%ff",
            "haversack:///memories/.haversack/store.json",
            "haversack:///memoriesX/a.md",
        ] {
            assert!(locate(uri).is_err(), "{uri}");
        }
    }
}
