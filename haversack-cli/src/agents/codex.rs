//! Our server among the MCP servers that Codex starts (`config.toml`). Pure: text in, text out.
//!
//! The file is its owner's: comments, order and everything else in it stay, and an entry of our name that is not ours is left alone.

use std::path::Path;

use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike, Value};

use crate::agents::claude_code::servers::{NAME, is_ours};
use crate::agents::claude_code::wiring::{Unfit, split_mark, unfit};

/// The key of the servers.
const SERVERS: &str = "mcp_servers";

/// Returns the file with our server for this home; another program's server of that name stays.
pub(crate) fn with_server(text: &str, program: &Path, home: &Path) -> Result<String, Unfit> {
    let command = program.display().to_string();
    let arguments = ["--home", &home.display().to_string(), "mcp"].map(str::to_owned);
    edit(text, |document| {
        match entry_in(document)? {
            Entry::SomebodyElses => return Ok(()),
            Entry::Ours(there, with) if there == command && with == arguments => return Ok(()),
            Entry::Ours(..) => take_out(document),
            Entry::None => {}
        }
        let list: Array = arguments.iter().map(String::as_str).collect();
        let servers = document.entry(SERVERS).or_insert_with(|| {
            let mut table = Table::new();
            // Its heading would be a line that says nothing.
            table.set_implicit(true);
            Item::Table(table)
        });
        match servers {
            Item::Table(servers) => {
                let mut entry = Table::new();
                entry.insert("command", command.into());
                entry.insert("args", Item::Value(Value::Array(list)));
                servers.insert(NAME, Item::Table(entry));
            }
            Item::Value(Value::InlineTable(servers)) => {
                let mut entry = InlineTable::new();
                entry.insert("command", command.into());
                entry.insert("args", Value::Array(list));
                servers.insert(NAME, Value::InlineTable(entry));
            }
            _ => return unfit(format!("\"{SERVERS}\" in it is no table")),
        }
        Ok(())
    })
}

/// Returns the file without a server of ours.
pub(crate) fn without_server(text: &str) -> Result<String, Unfit> {
    edit(text, |document| {
        if let Entry::Ours(..) = entry_in(document)? {
            take_out(document);
        }
        Ok(())
    })
}

/// Returns the program and the arguments of the server of ours, if there is one.
pub(crate) fn ours_in(text: &str) -> Result<Option<(String, Vec<String>)>, Unfit> {
    let (_, body) = split_mark(text);
    Ok(match entry_in(&parse(body)?)? {
        Entry::Ours(command, arguments) => Some((command, arguments)),
        Entry::None | Entry::SomebodyElses => None,
    })
}

/// Returns the file in which the server of ours is another program; remarks and everything else stay.
pub(crate) fn with_program(text: &str, program: &Path) -> Result<String, Unfit> {
    edit(text, |document| {
        let Entry::Ours(..) = entry_in(document)? else { return Ok(()) };
        let servers = document.get_mut(SERVERS).and_then(Item::as_table_like_mut);
        let entry = servers.and_then(|servers| servers.get_mut(NAME)).and_then(Item::as_table_like_mut);
        if let Some(Item::Value(command)) = entry.and_then(|entry| entry.get_mut("command")) {
            let decor = command.decor().clone();
            *command = program.display().to_string().into();
            *command.decor_mut() = decor;
        }
        Ok(())
    })
}

/// The entry under our name.
enum Entry {
    None,
    /// The command and its arguments.
    Ours(String, Vec<String>),
    SomebodyElses,
}

fn entry_in(document: &DocumentMut) -> Result<Entry, Unfit> {
    let Some(servers) = document.get(SERVERS) else { return Ok(Entry::None) };
    let Some(servers) = servers.as_table_like() else {
        return unfit(format!("\"{SERVERS}\" in it is no table"));
    };
    let Some(entry) = servers.get(NAME) else { return Ok(Entry::None) };
    let told = entry.as_table_like().and_then(command_of);
    Ok(match told {
        Some((command, arguments)) if is_ours(&command, &arguments) => Entry::Ours(command, arguments),
        Some(_) | None => Entry::SomebodyElses,
    })
}

fn command_of(entry: &dyn TableLike) -> Option<(String, Vec<String>)> {
    let command = entry.get("command")?.as_str()?.to_owned();
    let arguments = entry.get("args")?.as_array()?.iter().map(|one| Some(one.as_str()?.to_owned()));
    Some((command, arguments.collect::<Option<_>>()?))
}

/// Removes our entry. Comments above it may belong to the text before it: they stay, at the end.
fn take_out(document: &mut DocumentMut) {
    let Some(servers) = document.get_mut(SERVERS).and_then(Item::as_table_like_mut) else { return };
    let entry = servers.remove(NAME);
    // A heading that a user wrote stays.
    let is_over = servers.is_empty() && document[SERVERS].as_table().is_some_and(Table::is_implicit);
    if is_over {
        document.remove(SERVERS);
    }
    let above = entry.as_ref().and_then(Item::as_table).and_then(|entry| entry.decor().prefix()?.as_str());
    if let Some(above) = above.filter(|above| above.contains('#')) {
        let trailing = document.trailing().as_str().unwrap_or_default();
        document.set_trailing(format!("{above}{trailing}"));
    }
}

/// Edits a text as a document, and leaves one alone in which nothing changes.
fn edit(text: &str, change: impl FnOnce(&mut DocumentMut) -> Result<(), Unfit>) -> Result<String, Unfit> {
    let (mark, body) = split_mark(text);
    // The ends of lines are written as one sort: as they all were, or else the plain ones.
    let plain = body.replace("\r\n", "\n");
    let mut document = parse(&plain)?;
    let before = document.to_string();
    change(&mut document)?;
    let edited = document.to_string();
    if edited == before {
        // Byte for byte, whatever else is odd about it.
        return Ok(text.to_owned());
    }
    let is_all = body.contains("\r\n") && body.matches('\n').count() == body.matches("\r\n").count();
    Ok(format!("{mark}{}", if is_all { edited.replace('\n', "\r\n") } else { edited }))
}

fn parse(text: &str) -> Result<DocumentMut, Unfit> {
    text.parse().or_else(|error: toml_edit::TomlError| unfit(format!("it is not TOML: {}", error.message())))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file made by hand.
    const FOREIGN: &str = "# mine\nmodel = \"gpt\"   # the good one\n\n[mcp_servers.other]\ncommand = \"x\" # theirs\n\n[profiles.fast]\nmodel = \"mini\"\n# last\n";

    fn with(text: &str) -> String {
        with_server(text, Path::new("/opt/haversack"), Path::new("/home/me/h")).expect("fits")
    }

    #[test]
    fn it_is_added_and_everything_else_stays() {
        insta::assert_snapshot!(with(FOREIGN), @r#"
        # mine
        model = "gpt"   # the good one

        [mcp_servers.other]
        command = "x" # theirs

        [mcp_servers.haversack]
        command = "/opt/haversack"
        args = ["--home", "/home/me/h", "mcp"]

        [profiles.fast]
        model = "mini"
        # last
        "#);
        insta::assert_snapshot!(with(""), @r#"
        [mcp_servers.haversack]
        command = "/opt/haversack"
        args = ["--home", "/home/me/h", "mcp"]
        "#);
    }

    #[test]
    fn it_is_added_once_and_taken_out_again() {
        for text in [
            "",
            "model = \"gpt\"\n",
            "model = \"gpt\"",
            "\u{feff}# mine\r\nmodel = \"gpt\"\r\n\r\n[tui]\r\ntheme = \"dark\"\r\n",
            "[mcp_servers]\n",
            "mcp_servers = { other = { command = \"x\" } }\n",
            "mcp_servers.other.command = \"x\"\n",
            FOREIGN,
        ] {
            let wired = with(text);
            assert_eq!(with(&wired), wired, "{text}");
            assert_eq!(without_server(text).expect("fits"), text);
            assert!(wired.contains("\"/home/me/h\""), "{wired}");
            assert_eq!(wired.contains("\r\n"), text.contains("\r\n"), "{wired:?}");
            let moved = with_server(&wired, Path::new("/usr/bin/haversack"), Path::new("/h")).expect("fits");
            assert_eq!(moved.matches("\"mcp\"").count(), 1, "{moved}");
            let out = without_server(&wired).expect("fits");
            assert_eq!(out.trim_end(), text.trim_end(), "{wired}");
        }
        let remark = without_server(&with("a = 1\n").replace("[mcp", "# about a\n[mcp")).expect("fits");
        assert!(remark.contains("a = 1\n") && remark.contains("# about a\n"), "{remark}");
    }

    #[test]
    fn program_changes_and_everything_else_stays() {
        for text in [
            "# mine\na = 1\n\n[mcp_servers.haversack] # ours\nargs = [\"--home\", \"/h\", \"mcp\"]\ncommand =  \"PROGRAM\" # here\nenv = {}\n\n[z]\n",
            "\u{feff}mcp_servers = { haversack = { command = \"PROGRAM\", args = [\"--home\", \"/h\", \"mcp\"] } }\r\n",
        ] {
            let [old, new] =
                ["/gone/haversack", "/h/bin/haversack"].map(|program| text.replace("PROGRAM", program));
            assert_eq!(with_program(&old, Path::new("/h/bin/haversack")).expect("fits"), new);
            let found = ours_in(&new).expect("fits").expect("ours");
            assert_eq!(
                found,
                ("/h/bin/haversack".to_owned(), ["--home", "/h", "mcp"].map(str::to_owned).into())
            );
            let foreign = old.replace("\"mcp\"", "\"mcp\", \"--debug\"");
            assert_eq!(with_program(&foreign, Path::new("/h/bin/haversack")).expect("fits"), foreign);
            assert_eq!(ours_in(&foreign).expect("fits"), None);
        }
    }

    #[test]
    fn what_is_not_ours_stays() {
        for text in [
            "[mcp_servers.haversack]\ncommand = \"/my/script\"\nargs = [\"mcp\"]\n",
            "[mcp_servers.haversack]\nurl = \"http://127.0.0.1:7830/mcp\"\n",
            "[mcp_servers.haversack]\ncommand = \"haversack\"\nargs = [\"--home\", \"/h\", \"mcp\", \"--debug\"]\n",
        ] {
            assert_eq!((with(text), without_server(text).expect("fits")), (text.to_owned(), text.to_owned()));
        }
        for text in ["mcp_servers = 7", "[[mcp_servers]]\n", "a =", "[a]\n[a]\n"] {
            assert!(with_server(text, Path::new("/opt/haversack"), Path::new("/h")).is_err(), "{text}");
        }
    }
}
