//! The official clients, over stdin and over HTTP, in the newest revision of the protocol and in the one before.
//!
//! `clients/client.py` and `clients/client.cjs` do what a plan says and print what they got: it must be the same from all of them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use haversack_servers::tools;
use serde_json::{Value, json};

use super::NEWEST;
use super::http::Serving;
use crate::environment::TestEnv;

/// The revision before the newest, which begins with a hello.
const OLDER: &str = "2025-11-25";

/// The time limit of a client on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// The number of edits of one file by each of two sessions.
const EDITS: usize = 6;

/// Every tool at least once: what is asked for, what the answer contains, and whether it is an error.
fn calls() -> Vec<(&'static str, Value, &'static str, bool)> {
    let notes = "/memories/notes.md";
    vec![
        (
            "remember",
            json!({ "kind": "feedback", "name": "Short answers", "content": "Answer in five lines." }),
            "Remembered in /memories/behavioral/feedback_short-answers.md, and in the index.",
            false,
        ),
        (
            "recall",
            json!({ "query": "how long is an answer" }),
            "2 memories for \"how long is an answer\", best first",
            false,
        ),
        (
            "event",
            json!({ "summary": "asked for the lamp", "sender": "a teammate", "direction": "inbound" }),
            "Noted in /memories/interactions/",
            false,
        ),
        (
            "create",
            json!({ "path": notes, "file_text": "one\ntwo ü 日本\n" }),
            "File created successfully at: /memories/notes.md",
            false,
        ),
        (
            "create",
            json!({ "path": notes, "file_text": "three" }),
            "Error: File /memories/notes.md already exists",
            true,
        ),
        (
            "insert",
            json!({ "path": notes, "insert_line": 1, "insert_text": "between" }),
            "The file /memories/notes.md has been edited.",
            false,
        ),
        (
            "str_replace",
            json!({ "path": notes, "old_str": "one", "new_str": "first" }),
            "The memory file has been edited.",
            false,
        ),
        (
            "view",
            json!({ "path": notes, "view_range": [1, 3] }),
            "Here's the content of /memories/notes.md with line numbers:\n     1\tfirst\n     2\tbetween\n     3\ttwo ü 日本",
            false,
        ),
        (
            "rename",
            json!({ "old_path": notes, "new_path": "/memories/kept.md" }),
            "Successfully renamed /memories/notes.md to /memories/kept.md",
            false,
        ),
        (
            "create",
            json!({ "path": "/memories/gone.md", "file_text": "x" }),
            "File created successfully at: /memories/gone.md",
            false,
        ),
        ("delete", json!({ "path": "/memories/gone.md" }), "Successfully deleted /memories/gone.md", false),
        (
            "history",
            json!({ "path": "/memories/old.md", "limit": 3 }),
            "laptop: sync\n      appended  old.md",
            false,
        ),
        ("undo", json!({ "path": "/memories/old.md" }), "\nUndone.", false),
        ("resolve", json!({ "path": "/memories/kept.md" }), "No conflicts.", false),
        ("commitments", json!({ "add": "send the plan" }), "Promised as c-", false),
        ("carry", json!({ "add": "ask about the lamp" }), "Carried forward.", false),
        ("proposals", json!({}), "No proposal waits.", false),
        ("status", json!({}), "All well.", false),
        ("view", json!({}), "Error: The parameter `path` of `view` is missing", true),
        (
            "create",
            json!({ "path": "/memories/changed.md", "file_text": "x" }),
            "File created successfully at: /memories/changed.md",
            false,
        ),
        (
            "create",
            json!({ "path": "/memories/shared.md", "file_text": "list\n" }),
            "File created successfully at: /memories/shared.md",
            false,
        ),
    ]
}

/// How a client reaches the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Over {
    Stdio,
    Http,
}

/// Returns a home with a memory that was sent somewhere, so that there is something to undo.
fn with_history() -> TestEnv {
    let env = TestEnv::new();
    let remote = format!("file://{}", env.path("remote").display());
    for arguments in [
        &["create", "old.md", "old\n"][..],
        &["remote", "add", &remote, "--device", "laptop"],
        &["sync"],
        &["append", "old.md", "older\n"],
        &["sync"],
    ] {
        let shown = env.run(arguments);
        assert!(shown.starts_with("exit 0\n"), "{arguments:?}: {shown}");
    }
    env
}

/// Runs a client's script and checks what it got.
fn gets_everything(launcher: &str, package: &str, revision: &str, over: Over) {
    let Some(program) = tools::program_or_skip(launcher, "cargo xtask tools") else { return };
    let env = with_history();
    let serving = (over == Over::Http).then(|| Serving::start(&env, &[]));
    let asked: Vec<_> = calls().iter().map(|(tool, arguments, ..)| json!([tool, arguments])).collect();
    let mut plan = json!({
        "package": package,
        "revision": revision,
        "calls": asked,
        "read": "haversack:///memories/kept.md",
        "changed": { "path": "/memories/changed.md", "uri": "haversack:///memories/changed.md" },
        "edits": { "path": "/memories/shared.md", "times": EDITS },
    });
    match &serving {
        Some(serving) => {
            let url = format!("http://{}/mcp", serving.address);
            plan["http"] = json!({ "url": url, "token": serving.token });
        }
        None => {
            let environment = json!({ "HOME": env.path(""), "HAVERSACK_SYNC": "off" });
            plan["stdio"] = json!({ "command": env!("CARGO_BIN_EXE_haversack"), "environment": environment });
        }
    }
    let script = if package == "mcp" { "client.py" } else { "client.cjs" };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/mcp/clients").join(script);
    let mut command = env.program(&program.display().to_string());
    let printed = finished(&env, command.arg(script).arg(plan.to_string()));
    let report: Value = serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{error}: {printed}"));
    check(&report, revision);
    let text = fs::read_to_string(env.path(".local/share/haversack/memory/shared.md")).expect("there");
    for session in ["lamp-keeper", "tide-watcher"] {
        for edit in 0..EDITS {
            assert!(text.contains(&format!("{session} {edit}\n")), "{session} {edit}: {text}");
        }
    }
}

/// Checks what a client got.
fn check(report: &Value, revision: &str) {
    assert_eq!((&report["revision"], &report["server"]), (&json!(revision), &json!("haversack")));
    let instructions = report["instructions"].as_str().expect("told");
    assert!(instructions.starts_with("Haversack is the user's long-term memory"), "{instructions}");
    let calls = calls();
    let names = |value: &Value| -> BTreeSet<String> {
        let names = value.as_array().unwrap_or_else(|| panic!("{report}")).iter();
        names.map(|name| name.as_str().expect("a name").to_owned()).collect()
    };
    let called: BTreeSet<String> = calls.iter().map(|(tool, ..)| (*tool).to_owned()).collect();
    assert_eq!(names(&report["tools"]), called, "every tool is called");
    for (number, (tool, _, text, is_error)) in calls.iter().enumerate() {
        let got = &report["calls"][number];
        let told = got["text"].as_str().unwrap_or_else(|| panic!("{tool}: {got}"));
        assert!(told.contains(text) && got["isError"] == *is_error, "{number} {tool}: {got}");
    }
    assert_eq!(report["unknownTool"]["code"], -32602, "{report}");
    let unknown = &report["unknownResource"];
    // The code was another one before; the TypeScript client of today makes the new one of it.
    let codes = if revision == NEWEST { &[-32602][..] } else { &[-32602, -32002] };
    assert!(codes.iter().any(|code| unknown["code"] == *code), "{report}");
    assert_eq!(unknown["data"]["uri"], "haversack:///memories/kept.md.none", "{report}");
    assert_eq!(report["unknownPrompt"]["code"], -32602, "{report}");
    let resources = names(&report["resources"]);
    for name in ["kept.md", "shared.md", "behavioral/MEMORY.md"] {
        assert!(resources.contains(&format!("haversack:///memories/{name}")), "{resources:?}");
    }
    assert_eq!(report["templates"], json!(["haversack:///memories/{+path}"]));
    assert_eq!(report["read"], "first\nbetween\ntwo ü 日本\n");
    assert_eq!(report["updated"], "haversack:///memories/changed.md");
    assert_eq!(report["prompts"], json!(["remember", "digest-session", "refresh-persona"]));
    let prompt = report["prompt"].as_str().expect("text");
    assert!(prompt.contains("the lamp is white") && !prompt.contains("$ARGUMENTS"), "{prompt}");
}

/// Waits for a program that must succeed without a complaint; returns what it printed.
fn finished(env: &TestEnv, command: &mut Command) -> String {
    let (status, printed, complained) = run(env, command);
    assert!(status == Some(0) && complained.is_empty(), "{status:?}\n{printed}\n{complained}");
    printed
}

/// Runs a program; returns its exit code, what it printed, and what it complained of.
pub(super) fn run(env: &TestEnv, command: &mut Command) -> (Option<i32>, String, String) {
    let chance = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    let [out, err] = ["out", "err"].map(|name| env.path(&format!("{name}-{}", chance.as_nanos())));
    let file = |path| fs::File::create(path).expect("made");
    let mut child =
        command.stdin(Stdio::null()).stdout(file(&out)).stderr(file(&err)).spawn().expect("it starts");
    let text = |path| String::from_utf8_lossy(&fs::read(path).expect("there")).into_owned();
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = child.try_wait().expect("a child of ours") {
            return (status.code(), text(&out), text(&err));
        }
        if Instant::now() > deadline {
            drop(child.kill());
            drop(child.wait());
            panic!("it goes on: {}\n{}", text(&out), text(&err));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn python_over_stdio() {
    gets_everything("mcp_python", "mcp", NEWEST, Over::Stdio);
    gets_everything("mcp_python", "mcp", OLDER, Over::Stdio);
}

#[test]
fn python_over_http() {
    gets_everything("mcp_python", "mcp", NEWEST, Over::Http);
    gets_everything("mcp_python", "mcp", OLDER, Over::Http);
}

#[test]
fn typescript_over_stdio() {
    gets_everything("mcp_typescript", "@modelcontextprotocol/client", NEWEST, Over::Stdio);
    gets_everything("mcp_typescript", "@modelcontextprotocol/client", OLDER, Over::Stdio);
}

#[test]
fn typescript_over_http() {
    gets_everything("mcp_typescript", "@modelcontextprotocol/client", NEWEST, Over::Http);
    gets_everything("mcp_typescript", "@modelcontextprotocol/client", OLDER, Over::Http);
}

/// The first line of the TypeScript client, which most programs were built with.
#[test]
fn typescript_of_the_first_line() {
    gets_everything("mcp_typescript_1", "@modelcontextprotocol/sdk", OLDER, Over::Stdio);
    gets_everything("mcp_typescript_1", "@modelcontextprotocol/sdk", OLDER, Over::Http);
}

#[test]
fn the_inspector() {
    let Some(program) = tools::program_or_skip("mcp_inspector", "cargo xtask tools") else { return };
    let env = TestEnv::new();
    let serving = Serving::start(&env, &[]);
    serving.call(
        "tester",
        "create",
        &json!({ "path": "/memories/lamp.md", "file_text": "The lamp is white." }),
    );
    let url = format!("http://{}/mcp", serving.address);
    let bearer = format!("Authorization: Bearer {}", serving.token);
    let haversack = env!("CARGO_BIN_EXE_haversack");
    let http = [url.as_str(), "--header", bearer.as_str()];
    let recall = ["tools/call", "--tool-name", "recall", "--tool-arg", "query=lamp"];
    let newest = ["tools/list", "--strict", "--protocol-era", "modern"];
    let asked: [(&[&str], &[&str], &str, &str); 7] = [
        (&[haversack, "mcp"], &["tools/list", "--strict"], "/result/tools/15/name", "status"),
        (&[haversack, "mcp"], &newest, "/result/tools/0/name", "recall"),
        (
            &[haversack, "mcp"],
            &recall,
            "/result/content/0/text",
            "1 memory for \"lamp\", best first, of 1 file:",
        ),
        (
            &[haversack, "mcp"],
            &["resources/list"],
            "/result/resources/0/uri",
            "haversack:///memories/lamp.md",
        ),
        (&[haversack, "mcp"], &["prompts/list"], "/result/prompts/0/name", "remember"),
        (&http, &["tools/list", "--strict"], "/result/tools/0/name", "recall"),
        (&http, &newest, "/result/tools/0/name", "recall"),
    ];
    std::thread::scope(|scope| {
        for (server, method, place, expected) in asked {
            let (env, program) = (&env, &program);
            scope.spawn(move || {
                let mut command = env.program(&program.display().to_string());
                command
                    .arg("--cli")
                    .args(server)
                    .args(["--format", "json", "--quiet", "--method"])
                    .args(method);
                let printed = finished(env, &mut command);
                let got: Value =
                    serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{error}: {printed}"));
                let found = got.pointer(place).and_then(Value::as_str).unwrap_or_else(|| panic!("{got}"));
                assert!(found.starts_with(expected), "{method:?} {place}: {found}");
            });
        }
    });
    let mut unknown = env.program(&program.display().to_string());
    unknown.args(["--cli", haversack, "mcp", "--method", "tools/call", "--tool-name", "format_disk"]);
    let (status, _, complained) = run(&env, &mut unknown);
    assert!(status != Some(0) && complained.contains("format_disk"), "{status:?} {complained}");
}
