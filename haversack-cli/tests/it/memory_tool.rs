//! The bridge, as a program with the memory tool talks to it.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::Barrier;

use serde_json::{Value, json};

use crate::environment::TestEnv;

/// A running `haversack memory-tool`.
struct Tool {
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Tool {
    fn start(env: &TestEnv) -> Tool {
        Tool::start_with(env, &["memory-tool"])
    }

    fn start_with(env: &TestEnv, arguments: &[&str]) -> Tool {
        let mut process =
            env.command(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let (input, output) = (process.stdin.take(), process.stdout.take());
        Tool { process, input, output: BufReader::new(output.expect("piped")) }
    }

    /// Sends one line and returns what comes back for it.
    fn send(&mut self, line: &[u8]) -> Value {
        let input = self.input.as_mut().expect("still open");
        input.write_all(line).and_then(|()| input.write_all(b"\n")).expect("it reads");
        self.receive()
    }

    fn receive(&mut self) -> Value {
        let mut answer = String::new();
        self.output.read_line(&mut answer).expect("it answers");
        serde_json::from_str(&answer).unwrap_or_else(|error| panic!("{error}: {answer:?}"))
    }

    fn ask(&mut self, command: &Value) -> (String, bool) {
        let answer = self.send(command.to_string().as_bytes());
        let text = answer["content"].as_str().unwrap_or_else(|| panic!("no text: {answer}"));
        (text.to_owned(), answer["is_error"].as_bool().expect("a boolean"))
    }

    /// Ends the input and returns the exit code and whatever else comes out.
    fn end(mut self) -> (Option<i32>, String) {
        drop(self.input.take());
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).expect("it ends");
        (self.process.wait().expect("it ended").code(), rest)
    }
}

impl Drop for Tool {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

fn view(path: &str) -> Value {
    json!({ "command": "view", "path": path })
}

#[test]
fn a_conversation() {
    let env = TestEnv::new();
    let mut tool = Tool::start(&env);
    let header = "Here're the files and directories up to 2 levels deep in /memories, excluding hidden items and node_modules:";
    assert_eq!(tool.ask(&view("/memories")), (format!("{header}\n4.0K\t/memories"), false));
    let path = "/memories/lighthouse/ports.md";
    let (text, is_error) =
        tool.ask(&json!({ "command": "create", "path": path, "file_text": "staging 5433\n" }));
    assert_eq!(
        (text.as_str(), is_error),
        ("File created successfully at: /memories/lighthouse/ports.md", false)
    );
    let (text, is_error) = tool.ask(&json!({ "command": "create", "path": path, "file_text": "x" }));
    assert_eq!((text.as_str(), is_error), ("Error: File /memories/lighthouse/ports.md already exists", true));
    let edit = json!({ "command": "str_replace", "path": path, "old_str": "5433", "new_str": "5434 \"ü\"\u{2028}\\" });
    assert!(tool.ask(&edit).0.ends_with("     1\tstaging 5434 \"ü\"\u{2028}\\\n     2\t"));
    assert!(!tool.ask(&json!({ "command": "rename", "old_path": path, "new_path": "/memories/p.md" })).1);
    assert!(!tool.ask(&json!({ "command": "delete", "path": "/memories/lighthouse" })).1);
    let stored =
        std::fs::read_to_string(env.path(".local/share/haversack/memory/p.md")).expect("a plain file");
    assert_eq!(stored, "staging 5434 \"ü\"\u{2028}\\\n");
    assert_eq!(tool.end(), (Some(0), String::new()), "the end of the input is the end");
}

#[test]
fn index_that_overflows_is_told_in_the_answer() {
    let env = TestEnv::new();
    let mut tool = Tool::start(&env);
    let text: String = (0..200).map(|number| format!("- [{number}](note-{number}.md) — x\n")).collect();
    let create = json!({ "command": "create", "path": "/memories/a/MEMORY.md", "file_text": text });
    assert_eq!(tool.ask(&create).0, "File created successfully at: /memories/a/MEMORY.md");
    let insert = json!({ "command": "insert", "path": "/memories/a/MEMORY.md", "insert_line": 0, "insert_text": "- one more\n" });
    let (told, is_error) = tool.ask(&insert);
    let warning =
        "a/MEMORY.md has 201 lines now, and sessions read the first 200. What is cut: haversack index";
    assert!(told.ends_with(&format!("\n{warning}")) && !is_error, "{told}");
    let other = json!({ "command": "create", "path": "/memories/a/note.md", "file_text": "x\n" });
    assert!(!tool.ask(&other).0.contains("sessions read"));
    assert_eq!(tool.end(), (Some(0), String::new()));
}

#[test]
fn whatever_comes_in_gets_one_answer_and_the_process_goes_on() {
    let env = TestEnv::new();
    let mut tool = Tool::start(&env);
    tool.ask(&json!({ "command": "create", "path": "/memories/a.md", "file_text": "one\ntwo\n" }));
    let deep = "[".repeat(10_000);
    let lines: Vec<Vec<u8>> = vec![
        b"".to_vec(),
        b"not JSON".to_vec(),
        b"{\"command\":\"view\",\"path\":\"/memories/a.md\"".to_vec(),
        b"\xff\xfe{}".to_vec(),
        b"null".to_vec(),
        b"[1]".to_vec(),
        deep.into_bytes(),
        json!({}).to_string().into_bytes(),
        json!({ "command": "undo" }).to_string().into_bytes(),
        json!({ "command": 1 }).to_string().into_bytes(),
        json!({ "command": "view" }).to_string().into_bytes(),
        json!({ "command": "view", "path": 5 }).to_string().into_bytes(),
        json!({ "command": "view", "path": "/memoriesX" }).to_string().into_bytes(),
        json!({ "command": "view", "path": "/memories/../../etc/passwd" }).to_string().into_bytes(),
        json!({ "command": "create", "path": "/memories/b.md" }).to_string().into_bytes(),
        json!({ "command": "str_replace", "path": "/memories/a.md", "old_str": "" }).to_string().into_bytes(),
        json!({ "command": "insert", "path": "/memories/a.md", "insert_line": 9, "insert_text": "x" })
            .to_string()
            .into_bytes(),
        json!({ "command": "insert", "path": "/memories/a.md", "insert_line": "1", "insert_text": "x" })
            .to_string()
            .into_bytes(),
        json!({ "command": "delete", "path": "/memories" }).to_string().into_bytes(),
    ];
    for line in &lines {
        let answer = tool.send(line);
        assert_eq!(answer["is_error"], true, "{:?}: {answer}", String::from_utf8_lossy(line));
        assert!(answer["content"].as_str().is_some_and(|text| !text.is_empty()), "{answer}");
    }
    let whole = tool.ask(&view("/memories/a.md"));
    assert_eq!(
        whole,
        (
            "Here's the content of /memories/a.md with line numbers:\n     1\tone\n     2\ttwo\n     3\t"
                .to_owned(),
            false
        )
    );
}

#[test]
fn a_line_of_fifty_megabytes_is_refused_and_not_held() {
    let env = TestEnv::new();
    let mut tool = Tool::start(&env);
    let mut line = br#"{"command":"create","path":"/memories/a.md","file_text":""#.to_vec();
    line.resize(50 * 1024 * 1024, b'x');
    line.extend_from_slice(b"\"}");
    let answer = tool.send(&line);
    let told = "Error: The command is longer than 16777216 bytes and was not carried out";
    assert_eq!(answer, json!({ "content": told, "is_error": true }));
    assert!(tool.ask(&view("/memories/a.md")).1, "nothing was made of it");
    let mut roomy = Tool::start_with(&env, &["memory-tool", "--config", "memory-tool.line-bytes=67108864"]);
    assert_eq!(roomy.send(&line)["is_error"], false, "who wants it gets it");
}

#[test]
fn a_last_line_without_its_newline_is_answered() {
    let env = TestEnv::new();
    let mut tool = Tool::start(&env);
    let input = tool.input.as_mut().expect("open");
    input.write_all(view("/memories/none").to_string().as_bytes()).expect("it reads");
    let (code, rest) = tool.end();
    assert_eq!(code, Some(0));
    assert_eq!(rest.lines().count(), 1);
    assert!(rest.contains("does not exist"), "{rest}");
}

#[test]
fn an_image_is_returned_as_image_content() {
    let env = TestEnv::new();
    let mut tool = Tool::start(&env);
    tool.ask(&view("/memories"));
    let image = b"\x89PNG\r\n\x1a\n\x00\xff";
    std::fs::write(env.path(".local/share/haversack/memory/map.png"), image).expect("written");
    let source = json!({ "type": "base64", "media_type": "image/png", "data": "iVBORw0KGgoA/w==" });
    let expected = json!({ "content": [{ "type": "image", "source": source }], "is_error": false });
    assert_eq!(tool.send(view("/memories/map.png").to_string().as_bytes()), expected);
}

#[test]
fn a_file_removed_or_replaced_meanwhile_is_told() {
    let env = TestEnv::new();
    let mut tool = Tool::start(&env);
    tool.ask(&json!({ "command": "create", "path": "/memories/a.md", "file_text": "one\n" }));
    let file = env.path(".local/share/haversack/memory/a.md");
    std::fs::remove_file(&file).expect("removed");
    let edit =
        json!({ "command": "str_replace", "path": "/memories/a.md", "old_str": "one", "new_str": "two" });
    let missing = "Error: The path /memories/a.md does not exist. Please provide a valid path.";
    assert_eq!(tool.ask(&edit), (missing.to_owned(), true));
    std::fs::create_dir(&file).expect("made");
    assert_eq!(tool.ask(&edit), (missing.to_owned(), true), "a directory where a file is expected");
    std::fs::remove_dir(&file).expect("removed");
    std::fs::write(&file, "one changed by an editor\n").expect("written");
    assert!(!tool.ask(&edit).1);
    assert_eq!(std::fs::read_to_string(&file).expect("read"), "two changed by an editor\n");
}

/// Starts processes that each make `edits` edits of one file, and returns its lines.
fn load(env: &TestEnv, processes: usize, edits: usize) -> Vec<String> {
    let path = "/memories/shared.md";
    let mut first = Tool::start(env);
    first.ask(&json!({ "command": "create", "path": path, "file_text": "end\n" }));
    let all_ready = Barrier::new(processes);
    std::thread::scope(|scope| {
        for number in 0..processes {
            let all_ready = &all_ready;
            scope.spawn(move || {
                let mut tool = Tool::start(env);
                tool.ask(&view(path));
                all_ready.wait();
                for edit in 0..edits {
                    let line = format!("process {number} edit {edit}\nend");
                    let command =
                        json!({ "command": "str_replace", "path": path, "old_str": "end", "new_str": line });
                    let (text, is_error) = tool.ask(&command);
                    assert!(!is_error, "{text}");
                }
                assert_eq!(tool.end().0, Some(0));
            });
        }
    });
    let text = std::fs::read_to_string(env.path(".local/share/haversack/memory/shared.md")).expect("read");
    text.lines().map(str::to_owned).collect()
}

#[test]
fn thirty_two_processes_keep_every_edit() {
    let (processes, edits) = (32, 200);
    let runs = if std::env::var_os("HAVERSACK_SOAK").is_some() { 20 } else { 1 };
    for run in 0..runs {
        let env = TestEnv::new();
        let lines = load(&env, processes, edits);
        assert_eq!(lines.len(), processes * edits + 1, "run {run}: every acknowledged edit is there, once");
        assert_eq!(lines.last().map(String::as_str), Some("end"));
        let mut first_done = lines.len();
        for process in 0..processes {
            let start = format!("process {process} edit ");
            let own: Vec<(usize, &str)> = lines
                .iter()
                .enumerate()
                .filter_map(|(at, line)| Some((at, line.strip_prefix(&start)?)))
                .collect();
            let order: Vec<String> = (0..edits).map(|edit| edit.to_string()).collect();
            assert!(own.iter().map(|(_, edit)| *edit).eq(order.iter().map(String::as_str)), "in its order");
            first_done = first_done.min(own.last().map_or(0, |(at, _)| *at));
        }
        // A process that starves the others would finish when they have hardly begun.
        assert!(first_done > processes * edits / 4, "run {run}: one was done after {first_done} edits");
    }
}
