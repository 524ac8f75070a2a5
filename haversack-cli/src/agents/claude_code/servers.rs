//! Our server among the MCP servers that Claude Code starts for its user (`.claude.json`). Pure: text in, text out.
//!
//! The file is Claude Code's own, and full of other things: only our entry is touched, and only if it is ours.

use std::path::Path;

use jsonc_parser::cst::{CstInputValue, CstObject};

use super::wiring::{Unfit, count, no_object, parse, set_text, split_mark, unfit};

/// Its name there.
pub(crate) const NAME: &str = "haversack";

/// The key of the servers.
const SERVERS: &str = "mcpServers";

/// Returns the file with our server for this home; another program's server of that name stays.
pub(crate) fn with_server(text: &str, program: &Path, home: &Path) -> Result<String, Unfit> {
    let wanted =
        (program.display().to_string(), ["--home", &home.display().to_string(), "mcp"].map(str::to_owned));
    match entry_in(text)? {
        Entry::SomebodyElses => return Ok(text.to_owned()),
        Entry::Ours(command, arguments) if command == wanted.0 && arguments == wanted.1 => {
            return Ok(text.to_owned());
        }
        Entry::Ours(..) | Entry::None => {}
    }
    let without = without_server(text)?;
    let (mark, body) = split_mark(&without);
    let root = parse(if body.trim().is_empty() { "{}\n" } else { body })?;
    let settings = root.object_value().ok_or_else(no_object)?;
    let Some(servers) = settings.object_value_or_create(SERVERS) else {
        return unfit(format!("\"{SERVERS}\" in it is no object"));
    };
    let text = |text: String| CstInputValue::String(text);
    let entry = CstInputValue::Object(vec![
        ("type".to_owned(), text("stdio".to_owned())),
        ("command".to_owned(), text(wanted.0)),
        ("args".to_owned(), CstInputValue::Array(wanted.1.map(text).into())),
    ]);
    servers.append(NAME, entry);
    Ok(format!("{mark}{root}"))
}

/// Returns the file without a server of ours.
pub(crate) fn without_server(text: &str) -> Result<String, Unfit> {
    let Entry::Ours(..) = entry_in(text)? else { return Ok(text.to_owned()) };
    let (mark, body) = split_mark(text);
    let root = parse(body)?;
    let settings = root.object_value().ok_or_else(no_object)?;
    if let Some(servers) = settings.object_value(SERVERS) {
        if let Some(property) = servers.get(NAME) {
            property.remove();
        }
        if servers.properties().is_empty()
            && let Some(property) = settings.get(SERVERS)
        {
            property.remove();
        }
    }
    Ok(format!("{mark}{root}"))
}

/// Returns true if a server of ours is there.
pub(crate) fn is_in(text: &str) -> bool {
    matches!(entry_in(text), Ok(Entry::Ours(..)))
}

/// Returns the program and the arguments of the server of ours, if there is one.
pub(crate) fn ours_in(text: &str) -> Result<Option<(String, Vec<String>)>, Unfit> {
    Ok(match entry_in(text)? {
        Entry::Ours(command, arguments) => Some((command, arguments)),
        Entry::None | Entry::SomebodyElses => None,
    })
}

/// Returns the file in which the server of ours is another program; everything else stays byte for byte.
pub(crate) fn with_program(text: &str, program: &Path) -> Result<String, Unfit> {
    let Entry::Ours(..) = entry_in(text)? else { return Ok(text.to_owned()) };
    let (mark, body) = split_mark(text);
    let root = parse(body)?;
    let servers = root.object_value().and_then(|settings| settings.object_value(SERVERS));
    let entry = servers.and_then(|servers| servers.object_value(NAME));
    set_text(entry.as_ref(), "command", &program.display().to_string());
    Ok(format!("{mark}{root}"))
}

/// The entry under our name.
enum Entry {
    None,
    /// The command and its arguments.
    Ours(String, Vec<String>),
    SomebodyElses,
}

fn entry_in(text: &str) -> Result<Entry, Unfit> {
    let (_, body) = split_mark(text);
    if body.trim().is_empty() {
        return Ok(Entry::None);
    }
    let root = parse(body)?;
    let settings = root.object_value().ok_or_else(no_object)?;
    if count(&settings, SERVERS) > 1 {
        return unfit(format!("it has \"{SERVERS}\" twice"));
    }
    let Some(property) = settings.get(SERVERS) else { return Ok(Entry::None) };
    let Some(servers) = property.object_value() else {
        return unfit(format!("\"{SERVERS}\" in it is no object"));
    };
    let Some(entry) = servers.get(NAME) else { return Ok(Entry::None) };
    let told = entry.object_value().and_then(|entry| command_of(&entry));
    Ok(match told {
        Some((command, arguments)) if is_ours(&command, &arguments) => Entry::Ours(command, arguments),
        Some(_) | None => Entry::SomebodyElses,
    })
}

fn command_of(entry: &CstObject) -> Option<(String, Vec<String>)> {
    let command = entry.get("command")?.value()?.as_string_lit()?.decoded_value().ok()?;
    let arguments = entry.array_value("args").map(|list| list.elements()).unwrap_or_default();
    let arguments = arguments.iter().map(|one| one.as_string_lit()?.decoded_value().ok());
    Some((command, arguments.collect::<Option<_>>()?))
}

/// Returns true if a command line is what we put there: a home, and the word that serves it.
pub(crate) fn is_ours(command: &str, arguments: &[String]) -> bool {
    let is_haversack = Path::new(command).file_stem().is_some_and(|name| name == NAME);
    is_haversack && matches!(arguments, [option, _, verb] if option == "--home" && verb == "mcp")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(text: &str) -> String {
        with_server(text, Path::new("/opt/haversack"), Path::new("/home/me/h")).expect("fits")
    }

    #[test]
    fn it_is_added_once_and_taken_out_again() {
        for text in [
            "",
            "{}\n",
            "{\n  \"userID\": \"7f\", // mine\n  \"projects\": {}\n}\n",
            "{\n  \"mcpServers\": {\n    \"other\": { \"command\": \"x\" }\n  },\n  \"z\": 1\n}",
        ] {
            let wired = with(text);
            assert_eq!(with(&wired), wired);
            assert!(is_in(&wired) && wired.contains("\"/home/me/h\""), "{wired}");
            let moved = with_server(&wired, Path::new("/usr/bin/haversack"), Path::new("/h")).expect("fits");
            assert_eq!(moved.matches("\"mcp\"").count(), 1, "{moved}");
            let out = without_server(&wired).expect("fits");
            let [out, text] = [out.as_str(), if text.is_empty() { "{}" } else { text }]
                .map(|text| text.split_whitespace().collect::<String>());
            assert_eq!(out, text);
        }
    }

    #[test]
    fn program_changes_and_everything_else_stays() {
        let text = |command: &str, arguments: &str| {
            format!(
                "{{ \"mcpServers\": {{\"haversack\" :{{\"env\":{{}}, \"command\":  \"{command}\", // ours\n\"args\": {arguments} }},\"z\":{{}}}},\r\n}}"
            )
        };
        let ours = r#"["--home", "/h", "mcp"]"#;
        let new = with_program(&text("/gone/haversack", ours), Path::new("/h/bin/haversack")).expect("fits");
        assert_eq!(new, text("/h/bin/haversack", ours));
        let found = ours_in(&new).expect("fits").expect("ours");
        assert_eq!(found, ("/h/bin/haversack".to_owned(), ["--home", "/h", "mcp"].map(str::to_owned).into()));
        let foreign = text("/gone/haversack", "[]");
        assert_eq!(with_program(&foreign, Path::new("/h/bin/haversack")).expect("fits"), foreign);
        assert_eq!(ours_in(&foreign).expect("fits"), None);
    }

    #[test]
    fn what_is_not_ours_stays() {
        for text in [
            "{\"mcpServers\":{\"haversack\":{\"command\":\"/my/script\",\"args\":[\"mcp\"]}}}",
            "{\"mcpServers\":{\"haversack\":{\"type\":\"http\",\"url\":\"http://127.0.0.1:7830/mcp\"}}}",
            "{\"mcpServers\":{\"haversack\":{\"command\":\"haversack\",\"args\":[\"--home\",\"/h\",\"mcp\",\"--debug\"]}}}",
        ] {
            assert_eq!((with(text), without_server(text).expect("fits")), (text.to_owned(), text.to_owned()));
        }
        for text in ["[]", "{", "{\"mcpServers\":[]}", "{\"mcpServers\":{},\"mcpServers\":{}}"] {
            assert!(with_server(text, Path::new("/opt/haversack"), Path::new("/h")).is_err(), "{text}");
        }
    }
}
