//! One client, and many, over stdin and stdout.

use std::collections::BTreeSet;
use std::fs;
use std::sync::Barrier;

use serde_json::{Value, json};

use super::{Client, NEWEST, meta, request, said};
use crate::environment::TestEnv;
use crate::machines::Machines;

#[test]
fn a_fact_is_kept_once_and_found_again() {
    let env = TestEnv::new();
    let mut client = Client::start(&mut env.command(&["mcp"]), "tester");
    let fact = json!({
        "kind": "feedback", "name": "Short answers", "description": "five lines at most",
        "content": "Answer in five lines.\n\n**Why:** the user reads on a phone.",
    });
    let path = "/memories/behavioral/feedback_short-answers.md";
    assert_eq!(client.done("remember", fact.clone()), format!("Remembered in {path}, and in the index."));
    let already = format!("That is remembered already, in {path}. Nothing was written.");
    assert_eq!(client.done("remember", fact), already);
    let other_name = json!({ "kind": "user", "name": "phone", "content": "answer in FIVE lines.\n**Why:** the user reads\non a phone." });
    assert_eq!(client.done("remember", other_name), already);
    let other_fact =
        json!({ "kind": "feedback", "name": "short answers", "content": "Answer in ten lines." });
    let (told, is_error) = client.call("remember", other_fact);
    assert!(
        is_error && told.starts_with(&format!("Error: {path} is there already and says something else.")),
        "{told}"
    );
    let index = client.done("view", json!({ "path": "/memories/behavioral/MEMORY.md" }));
    assert!(index.contains("- [Short answers](feedback_short-answers.md) — five lines at most"), "{index}");
    let found = client.done("recall", json!({ "query": "how short should an answer be" }));
    assert!(found.contains(&format!("{path}:7 (feedback, just now)\n  Answer in five lines.")), "{found}");
    assert_eq!(
        client.done("recall", json!({ "query": "submarine" })),
        "Nothing relevant to \"submarine\" in 2 files.\n"
    );
    let old = "---\nname: old\nsuperseded_by: feedback_short-answers.md\n---\n\nAnswer short: ten lines. Short answers, short.\n";
    client.done("create", json!({ "path": "/memories/notes/old.md", "file_text": old }));
    let found = client.done("recall", json!({ "query": "short answer lines" }));
    let (current, label) =
        (found.find(path), found.find("old.md:6 (text, just now, superseded by feedback_short-answers.md"));
    assert!(current.is_some() && current < label, "{found}");
    let (told, is_error) = client.call("remember", json!({ "kind": "mood", "name": "x", "content": "y" }));
    assert!(is_error && told.starts_with("Error: There is no kind \"mood\"."), "{told}");
    let key = concat!("The key is AKIA", "Z7QK3XN5PLVT2RWD.");
    let told = client.done("remember", json!({ "kind": "reference", "name": "key", "content": key }));
    assert!(told.contains("\nLine 7 looks like "), "{told}");
    assert_eq!(client.end(), Some(0));
}

#[test]
fn the_six_commands_say_what_models_have_learnt() {
    let env = TestEnv::new();
    let mut client = Client::start(&mut env.command(&["mcp"]), "tester");
    let path = "/memories/notes.md";
    let text = json!({ "path": path, "file_text": "one\ntwo\n" });
    assert_eq!(client.done("create", text.clone()), format!("File created successfully at: {path}"));
    assert_eq!(client.call("create", text), (format!("Error: File {path} already exists"), true));
    client.done("insert", json!({ "path": path, "insert_line": 1, "insert_text": "between" }));
    client.done("str_replace", json!({ "path": path, "old_str": "two", "new_str": "three" }));
    let view = client.done("view", json!({ "path": path, "view_range": [1, 3] }));
    assert_eq!(
        view,
        format!(
            "Here's the content of {path} with line numbers:\n     1\tone\n     2\tbetween\n     3\tthree"
        )
    );
    client.done("rename", json!({ "old_path": path, "new_path": "/memories/other.md" }));
    client.done("delete", json!({ "path": "/memories/other.md" }));
    for (tool, arguments, told) in [
        ("view", json!({ "path": "/memories/../x" }), "Path /memories/../x would escape /memories directory"),
        ("view", json!({}), "Error: The parameter `path` of `view` is missing"),
        ("delete", json!({ "path": "/memories" }), "Cannot delete the /memories directory itself"),
        ("recall", json!({ "query": "x", "path": "../x" }), "Error: "),
    ] {
        let (text, is_error) = client.call(tool, arguments);
        assert!(is_error && text.starts_with(told), "{tool}: {text}");
    }
    let unknown = client.ask("tools/call", json!({ "name": "format_disk", "arguments": {} }));
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    let image = env.path(".local/share/haversack/memory/dot.png");
    fs::write(image, b"\x89PNG\r\n\x1a\nrest").expect("written");
    let shown =
        client.ask("tools/call", json!({ "name": "view", "arguments": { "path": "/memories/dot.png" } }));
    assert_eq!(shown["result"]["content"][0]["mimeType"], "image/png", "{shown}");
}

/// Programs that run on Node give their servers sockets, not pipes.
#[cfg(unix)]
#[test]
fn sockets_are_as_good_as_pipes() {
    use std::io::{BufRead, BufReader, Write};
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;
    let env = TestEnv::new();
    let (mut input, stdin) = UnixStream::pair().expect("made");
    let (output, stdout) = UnixStream::pair().expect("made");
    output.set_read_timeout(Some(std::time::Duration::from_secs(60))).expect("set");
    let mut command = env.command(&["mcp"]);
    command.env("HAVERSACK_SYNC", "off").stdin(OwnedFd::from(stdin)).stdout(OwnedFd::from(stdout));
    let mut process = command.spawn().expect("it starts");
    // Its ends are held here too, until this is gone.
    drop(command);
    let discover = request(1, "server/discover", json!({ "_meta": meta("tester") }));
    input.write_all(format!("{discover}\n").as_bytes()).expect("it reads");
    let mut line = String::new();
    let answered = BufReader::new(&output).read_line(&mut line);
    if answered.is_err() {
        drop(process.kill());
    } else {
        drop(input);
    }
    let ended = process.wait().expect("it ended");
    assert!(line.contains("supportedVersions"), "{answered:?} {line}");
    assert_eq!(ended.code(), Some(0));
}

#[test]
fn calls_made_at_once_are_done_in_order() {
    let env = TestEnv::new();
    let mut client = Client::start(&mut env.command(&["mcp"]), "tester");
    let path = "/memories/count.md";
    let mut calls = vec![("create", json!({ "path": path, "file_text": "0" }))];
    calls.extend((0..40).map(|number| {
        (
            "str_replace",
            json!({ "path": path, "old_str": number.to_string(), "new_str": (number + 1).to_string() }),
        )
    }));
    let lines: String = calls
        .iter()
        .zip(100..)
        .map(|((tool, arguments), id)| {
            format!("{}\n", request(id, "tools/call", json!({ "name": tool, "arguments": arguments })))
        })
        .collect();
    std::io::Write::write_all(client.input.as_mut().expect("open"), lines.as_bytes()).expect("it reads");
    for _ in &calls {
        let answer = client.receive();
        let (told, is_error) = said(&answer["result"]);
        assert!(!is_error, "{told}");
    }
    assert!(client.done("view", json!({ "path": path })).ends_with("     1\t40"));
}

#[test]
fn the_newest_revision_needs_no_hello() {
    let env = TestEnv::new();
    let mut client = Client::silent(&mut env.command(&["mcp"]));
    let found = client.ask("server/discover", json!({ "_meta": meta("tester") }));
    let versions = found["result"]["supportedVersions"].as_array().unwrap_or_else(|| panic!("{found}"));
    assert!(versions.contains(&json!(NEWEST)) && versions.contains(&json!("2025-11-25")), "{found}");
    assert!(!env.path(".local/share/haversack").exists(), "it answered before anything was opened");
    let tools = client.ask("tools/list", json!({ "_meta": meta("tester") }));
    assert_eq!(tools["result"]["tools"].as_array().map(Vec::len), Some(16), "{tools}");
    let arguments = json!({ "path": "/memories/a.md", "file_text": "lamp" });
    let created = client
        .ask("tools/call", json!({ "name": "create", "arguments": arguments, "_meta": meta("tester") }));
    assert_eq!(said(&created["result"]).0, "File created successfully at: /memories/a.md");
}

#[test]
fn resolve_shows_conflicts_and_settles_the_chosen_one() {
    let env = TestEnv::new();
    let mut client = Client::start(&mut env.command(&["mcp"]), "tester");
    let path = "/memories/lamp.md";
    let pile = "turns every 12 s\n> [also, from desktop:]\nturns every 15 s\n\nIt is white.\n";
    let text = format!("{pile}\nred door\n> [also, from laptop:]\ngreen door\n");
    client.done("create", json!({ "path": path, "file_text": text }));
    let shown = client.done("resolve", json!({ "path": path }));
    assert!(shown.contains("2, from desktop:") && shown.contains("turns every 15 s"), "{shown}");
    let (told, is_error) = client.call("resolve", json!({ "path": path, "keep": "2" }));
    assert!(is_error && told.contains("several conflicts"), "{told}");
    let id = shown.split_whitespace().next().expect("letters");
    let (told, is_error) = client.call("resolve", json!({ "path": path, "keep": "x", "conflict": id }));
    assert!(is_error && told.contains("neither the number of a passage"), "{told}");
    let told = client.done("resolve", json!({ "path": path, "keep": "2", "conflict": id }));
    assert!(told.contains("Kept 2 in lamp.md"), "{told}");
    assert!(client.done("resolve", json!({ "path": path, "keep": "1" })).contains("Kept 1 in lamp.md"));
    assert!(client.done("resolve", json!({ "path": path })).contains("No conflicts"));
    let left = client.done("view", json!({ "path": path }));
    assert!(left.contains("turns every 15 s") && left.contains("red door"), "{left}");
    assert!(!left.contains("[also, from") && !left.contains("12 s"), "{left}");
}

#[test]
fn proposals_are_listed_accepted_edited_and_rejected() {
    let env = TestEnv::new();
    let texts =
        ["Always paint the door green.", "Always paint the pier white.", "Always wind the clock at noon."];
    let event = |(number, text): (usize, &&str)| {
        json!({ "id": format!("{number:08x}-0000"), "direction": "inbound", "sender": "Ada", "summary": text }).to_string() + "\n"
    };
    let events: String = texts.iter().enumerate().map(event).collect();
    env.run(&["create", "interactions/2026-03-02.jsonl", &events]);
    env.run(&["tidy", "--day", "2026-03-05"]);
    let mut client = Client::start(&mut env.command(&["mcp"]), "tester");
    let shown = client.done("proposals", json!({}));
    assert!(shown.contains("Said by Ada") && shown.contains("+Always paint the pier white."), "{shown}");
    let ids: Vec<&str> = shown.lines().filter_map(|line| Some(line.split_once("  behavioral/")?.0)).collect();
    let [first, second, third] = ids[..] else { panic!("{shown}") };
    let told = client.done("proposals", json!({ "id": first, "answer": "accept" }));
    assert!(told.starts_with("Added to behavioral/feedback_"), "{told}");
    let told =
        client.done("proposals", json!({ "id": second, "answer": "accept", "text": "Only in these words." }));
    let target = told.trim_start_matches("Added to ").trim();
    let text = client.done("view", json!({ "path": format!("/memories/{target}") }));
    assert!(text.contains("Only in these words."), "{text}");
    let told = client.done("proposals", json!({ "id": third, "answer": "reject" }));
    assert_eq!(told, "Rejected. It will not be proposed again.");
    let again = client.done("proposals", json!({ "id": third, "answer": "accept" }));
    assert!(again.starts_with("No proposal with this id waits"), "{again}");
    let (told, is_error) = client.call("proposals", json!({ "id": first, "answer": "perhaps" }));
    assert!(is_error && told.contains("`answer` is accept or reject"), "{told}");
    assert_eq!(client.done("proposals", json!({})), "No proposal waits.");
}

#[test]
fn two_agents_come_apart_in_the_history() {
    let machines = Machines::laptop_and_desktop(&[("shared.md", "lamp\n")]);
    let mut one = Client::start(&mut machines.command("laptop", &["mcp"]), "claude-code");
    let mut two = Client::start(&mut machines.command("laptop", &["mcp"]), "other\nagent");
    one.done("create", json!({ "path": "/memories/one.md", "file_text": "mine" }));
    two.done("create", json!({ "path": "/memories/two.md", "file_text": "mine" }));
    two.done("str_replace", json!({ "path": "/memories/shared.md", "old_str": "lamp", "new_str": "lens" }));
    let event = json!({ "summary": "asked for the lamp", "sender": "a teammate", "direction": "inbound", "agent": "forged" });
    one.done("event", event);
    machines.write("laptop", "by_hand.md", "the user's\n");
    let mut named = machines.command("laptop", &["mcp"]);
    named.env("HAVERSACK_AGENT", "night-shift").env("HAVERSACK_SESSION", "s1");
    let mut named = Client::start(&mut named, "claude-code");
    named.done("create", json!({ "path": "/memories/night.md", "file_text": "quiet" }));
    assert_eq!((one.end(), two.end(), named.end()), (Some(0), Some(0), Some(0)));
    machines.done("laptop", &["sync"]);
    machines.done("desktop", &["sync"]);
    let log = machines.done("desktop", &["log", "--json"]);
    let log: Value = serde_json::from_str(
        log.split("--- stdout\n").nth(1).and_then(|rest| rest.split("--- stderr").next()).expect("stdout"),
    )
    .expect("JSON");
    let mut seen = BTreeSet::new();
    let mut sessions = BTreeSet::new();
    for change in log["changes"].as_array().expect("changes") {
        let agent = change["agent"].as_str().unwrap_or("-").to_owned();
        sessions.insert((agent.clone(), change["session"].as_str().map(str::to_owned)));
        for file in change["files"].as_array().expect("files") {
            let path = file["path"].as_str().expect("a path").split('/').next().expect("a name").to_owned();
            seen.insert((agent.clone(), path));
        }
    }
    for (agent, path) in [
        ("claude-code", "one.md"),
        ("claude-code", "interactions"),
        ("otheragent", "two.md"),
        ("otheragent", "shared.md"),
        ("-", "by_hand.md"),
        ("night-shift", "night.md"),
    ] {
        assert!(seen.contains(&(agent.to_owned(), path.to_owned())), "{agent} {path}: {seen:?}");
    }
    assert!(sessions.contains(&("night-shift".to_owned(), Some("s1".to_owned()))), "{sessions:?}");
    let own = sessions.iter().filter(|(agent, session)| agent != "-" && session.is_some()).count();
    assert_eq!(own, 3, "{sessions:?}");
    let mut look = Client::start(&mut machines.command("desktop", &["mcp"]), "tester");
    let history = look.done("history", json!({ "path": "/memories/shared.md", "limit": 1 }));
    assert!(history.contains("laptop otheragent session "), "{history}");
    let (refused, is_error) = look.call("history", json!({ "path": "/memories/typo.md" }));
    assert!(
        is_error && refused.contains("there is no typo.md in the memory, nor in its history"),
        "{refused}"
    );
    let undone = look.done("undo", json!({ "path": "/memories/shared.md" }));
    assert!(undone.contains("Undone."), "{undone}");
    assert_eq!(machines.read("desktop", "shared.md").as_deref(), Some("lamp\n"));
    let day = fs::read_dir(machines.path("desktop", "interactions"))
        .expect("there")
        .next()
        .expect("a day")
        .expect("read");
    let line = fs::read_to_string(day.path()).expect("read");
    assert!(
        line.contains("\"agent\":\"claude-code\"")
            && line.contains("\"device\":\"laptop\"")
            && !line.contains("forged"),
        "{line}"
    );
}

#[test]
fn several_events_become_one_commit() {
    let machines = Machines::laptop_and_desktop(&[("lamp.md", "white\n")]);
    let mut client = Client::start(&mut machines.command("laptop", &["mcp"]), "tester");
    for summary in ["asked for oil", "got the oil", "thanked"] {
        client.done("event", json!({ "summary": summary, "sender": "me", "direction": "outbound" }));
    }
    assert_eq!(client.end(), Some(0));
    machines.settle(&["laptop", "desktop"]);
    let log = machines.done("desktop", &["log", "interactions"]);
    assert_eq!(log.matches("DATE TIME").count(), 1, "{log}");
}

#[test]
fn sixty_four_clients_lose_nothing() {
    const CLIENTS: usize = 64;
    const EDITS: usize = 4;
    let env = TestEnv::new();
    let start = "list\n";
    env.run(&["create", "shared.md", start]);
    let path = env.path(".local/share/haversack/memory/shared.md");
    fs::write(&path, start).expect("written");
    let barrier = Barrier::new(CLIENTS);
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (env, barrier) = (&env, &barrier);
            scope.spawn(move || {
                let mut session = Client::start(&mut env.command(&["mcp"]), "tester");
                barrier.wait();
                for edit in 0..EDITS {
                    let line = format!("list\nclient {client} edit {edit}");
                    session.done(
                        "str_replace",
                        json!({ "path": "/memories/shared.md", "old_str": "list", "new_str": line }),
                    );
                }
                assert_eq!(session.end(), Some(0));
            });
        }
    });
    let text = fs::read_to_string(path).expect("there");
    let lines: BTreeSet<&str> = text.lines().collect();
    for client in 0..CLIENTS {
        for edit in 0..EDITS {
            assert!(lines.contains(format!("client {client} edit {edit}").as_str()), "{client} {edit}");
        }
    }
    assert_eq!(text.lines().count(), CLIENTS * EDITS + 1);
}

#[test]
fn a_client_that_dies_leaves_whole_files_and_no_server() {
    let env = TestEnv::new();
    let content = "lamp ".repeat(20_000);
    for round in 0..6 {
        let mut client = Client::start(&mut env.command(&["mcp"]), "tester");
        let lines: String = (0..8)
            .map(|file| {
                let arguments =
                    json!({ "path": format!("/memories/{round}/{file}.md"), "file_text": content });
                format!(
                    "{}\n",
                    request(100 + file, "tools/call", json!({ "name": "create", "arguments": arguments }))
                )
            })
            .collect();
        // The last call is cut in the middle.
        std::io::Write::write_all(
            client.input.as_mut().expect("open"),
            &lines.as_bytes()[..lines.len() - 1000],
        )
        .expect("sent");
        if round % 2 == 0 {
            // The client is gone, and with it both ends.
            drop(client.input.take());
            let output = std::mem::replace(&mut client.output, std::io::BufReader::new(empty_output()));
            drop(output);
            assert!(client.process.wait().expect("ended").code().is_some());
        } else {
            client.receive();
            client.process.kill().expect("killed");
        }
    }
    let memory = env.path(".local/share/haversack/memory");
    let mut whole = 0;
    for round in 0..6 {
        let Ok(files) = fs::read_dir(memory.join(round.to_string())) else { continue };
        for file in files {
            let path = file.expect("listed").path();
            if path.extension().is_some_and(|extension| extension == "md") {
                assert_eq!(fs::read_to_string(&path).expect("read"), content, "{path:?}");
                whole += 1;
            }
        }
    }
    assert!(whole >= 3, "{whole}");
    let shown = env.run(&["ls"]);
    assert!(shown.starts_with("exit 0"), "{shown}");
}

/// Returns a stream that is empty, in the place of one that is to be closed.
fn empty_output() -> std::process::ChildStdout {
    let mut child =
        std::process::Command::new("true").stdout(std::process::Stdio::piped()).spawn().expect("started");
    let output = child.stdout.take().expect("piped");
    child.wait().expect("ended");
    output
}

#[test]
fn what_is_no_protocol_does_no_harm() {
    let env = TestEnv::new();
    for nonsense in [
        "",
        "\n\n",
        "{}\n",
        "hello\n",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\"}\n",
        "\u{0}\u{0}\n",
    ] {
        let mut client = Client::silent(&mut env.command(&["mcp"]));
        std::io::Write::write_all(client.input.as_mut().expect("open"), nonsense.as_bytes()).expect("sent");
        assert!(client.end().is_some(), "{nonsense:?}");
    }
    let mut client = Client::start(&mut env.command(&["mcp"]), "tester");
    client.send(&json!("what?"));
    client.send(&json!({ "jsonrpc": "2.0", "id": "x", "method": "no/such" }));
    assert!(client.done("status", json!({})).starts_with("On this machine only"));
}

#[test]
fn memories_are_resources_and_changes_are_told() {
    let env = TestEnv::new();
    let memory = env.path(".local/share/haversack/memory");
    fs::create_dir_all(memory.join("many")).expect("made");
    for number in 0..450 {
        fs::write(memory.join(format!("many/{number:03}.md")), "x").expect("written");
    }
    fs::write(memory.join("ä b.md"), "lamp").expect("written");
    let mut client = Client::start(&mut env.command(&["mcp"]), "tester");
    let (mut names, mut cursor, mut pages) = (BTreeSet::new(), None, 0);
    loop {
        let params = cursor.map_or(json!({}), |cursor: Value| json!({ "cursor": cursor }));
        let page = client.ask("resources/list", params);
        let found = page["result"]["resources"].as_array().unwrap_or_else(|| panic!("{page}"));
        names.extend(found.iter().map(|resource| resource["uri"].as_str().expect("an address").to_owned()));
        pages += 1;
        cursor = page["result"].get("nextCursor").filter(|cursor| !cursor.is_null()).cloned();
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!((names.len(), pages), (451, 3));
    let uri = "haversack:///memories/%C3%A4%20b.md";
    assert!(names.contains(uri), "{names:?}");
    let read = client.ask("resources/read", json!({ "uri": uri }));
    assert_eq!(read["result"]["contents"][0]["text"], "lamp", "{read}");
    for unknown in ["haversack:///memories/none.md", "file:///etc/passwd", "haversack:///memories/../x"] {
        let read = client.ask("resources/read", json!({ "uri": unknown }));
        assert_eq!(read["error"]["code"], -32002, "{read}");
    }
    client.ask("resources/subscribe", json!({ "uri": uri }));
    // A user with an editor changes the file until the client is told. The first look may come after the first change.
    let updated = (0..).find_map(|round| {
        fs::write(memory.join("ä b.md"), format!("lens {round}")).expect("written");
        let prompts = client.next;
        client.next += 1;
        client.send(&request(prompts, "prompts/list", json!({})));
        std::iter::from_fn(|| Some(client.receive()))
            .take_while(|message| message["id"] != prompts)
            .find(|message| message["method"] == "notifications/resources/updated")
            .or_else(|| {
                std::thread::sleep(std::time::Duration::from_millis(100));
                None
            })
            .filter(|_| round < 600 || panic!("never told"))
    });
    assert_eq!(updated.expect("told")["params"]["uri"], uri);
}

#[test]
fn lines_that_are_no_message_get_an_error_and_the_server_goes_on() {
    const PARSE_ERROR: i64 = -32700;
    const INVALID_REQUEST: i64 = -32600;
    let long = "x".repeat(10 * 1024 * 1024);
    let too_long = "x".repeat(17 * 1024 * 1024);
    let cases: &[(&str, &[u8], i64, Value)] = &[
        ("words", b"hello", PARSE_ERROR, Value::Null),
        ("half an object", b"{\"jsonrpc\":\"2.0\",", PARSE_ERROR, Value::Null),
        (
            "bytes that are no UTF-8",
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\xfe\"}",
            PARSE_ERROR,
            Value::Null,
        ),
        ("10 MiB of nothing", long.as_bytes(), PARSE_ERROR, Value::Null),
        ("more than a message may have", too_long.as_bytes(), PARSE_ERROR, Value::Null),
        ("a list", b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]", INVALID_REQUEST, Value::Null),
        ("an empty list", b"[]", INVALID_REQUEST, Value::Null),
        ("a number", b"42", INVALID_REQUEST, Value::Null),
        ("an empty object", b"{}", INVALID_REQUEST, Value::Null),
        (
            "a method that is no text",
            b"{\"jsonrpc\":\"2.0\",\"id\":\"seven\",\"method\":7}",
            INVALID_REQUEST,
            json!("seven"),
        ),
        ("another version", b"{\"jsonrpc\":\"1.0\",\"id\":9,\"method\":\"ping\"}", INVALID_REQUEST, json!(9)),
    ];
    let env = TestEnv::new();
    // Before the hello of a client, and after it.
    for is_greeted in [false, true] {
        let mut command = env.command(&["mcp"]);
        let mut client =
            if is_greeted { Client::start(&mut command, "tester") } else { Client::silent(&mut command) };
        for (what, line, code, id) in cases {
            // Lines without content get no answer: the next answer is the one to the case.
            for part in [&b"\n\r\n  \n"[..], line, b"\n"] {
                client.write(part);
            }
            let answer = client.receive();
            assert_eq!(answer["error"]["code"], *code, "{what}: {answer}");
            assert_eq!(answer.get("id"), Some(id), "{what}: {answer}");
            assert_eq!(answer["jsonrpc"], "2.0", "{what}: {answer}");
        }
        // A notification is never answered, whatever it says.
        client.write(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/nobody/knows\",\"params\":{}}\n");
        assert_eq!(client.ask("ping", json!({}))["result"], json!({}));
        if is_greeted {
            client.done("status", json!({}));
        }
        assert_eq!(client.end(), Some(0));
    }
}

#[test]
fn message_that_is_cut_at_the_end_of_the_input_gets_an_error() {
    let env = TestEnv::new();
    let mut client = Client::start(&mut env.command(&["mcp"]), "tester");
    client.write(b"{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"pi");
    client.close_input();
    let answer = client.receive();
    assert_eq!(
        (&answer["error"]["code"], answer.get("id")),
        (&json!(-32700), Some(&Value::Null)),
        "{answer}"
    );
    assert_eq!(client.end(), Some(0));
}
