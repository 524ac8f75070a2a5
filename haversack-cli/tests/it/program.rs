//! Hooks run the home's own copy of the program: it survives upgrades, and dead hooks are mended.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::agents::Agents;

const BINARY: &str = env!("CARGO_BIN_EXE_haversack");

/// Settings made by hand.
const SETTINGS: &str = "{\n  // mine\n  \"model\": \"opus\"\n}\n";

fn with_claude() -> Agents {
    let agents = Agents::new();
    fs::create_dir_all(agents.claude("laptop")).expect("made");
    fs::write(agents.claude("laptop").join("settings.json"), SETTINGS).expect("written");
    agents
}

/// Returns what a command prints, the name of the target made the same everywhere.
fn shown(agents: &Agents, arguments: &[&str]) -> String {
    let target = format!("/bin/{}-{}/", std::env::consts::ARCH, std::env::consts::OS);
    agents.shown("laptop", arguments).replace(&target, "/bin/TARGET/")
}

/// Returns what a command prints on stderr.
fn complaints(agents: &Agents, arguments: &[&str]) -> String {
    let shown = shown(agents, arguments);
    shown.split_once("--- stderr\n").expect("a report").1.to_owned()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).expect("there")
}

/// Writes a program that is not ours.
fn write_script(path: &Path, mode: u32) {
    fs::create_dir_all(path.parent().expect("below")).expect("made");
    fs::write(path, "#!/bin/sh\nexit 7\n").expect("written");
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("changed");
}

/// Returns a command of the laptop that another program runs than the one that is tested.
fn command_of(agents: &Agents, program: &Path, arguments: &[&str]) -> Command {
    let usual = agents.command("laptop", arguments);
    let mut command = Command::new(program);
    command.env_clear().args(usual.get_args()).current_dir(agents.machines.env.path(""));
    command.envs(usual.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command
}

/// Returns the commands of all hooks in the laptop's settings, each with its event.
fn hook_commands(agents: &Agents) -> Vec<(String, String)> {
    let text = read(&agents.claude("laptop").join("settings.json")).replace("// mine", "");
    let settings: Value = serde_json::from_str(&text).expect("JSON");
    let events = settings["hooks"].as_object().expect("hooks").iter();
    let command = |entries: &Value| entries[0]["hooks"][0]["command"].as_str().expect("a command").to_owned();
    events.map(|(event, entries)| (event.clone(), command(entries))).collect()
}

#[test]
fn hooks_run_after_the_binary_that_ran_setup_is_gone() {
    let agents = with_claude();
    let cache = agents.machines.env.path("cache/npx/7f/haversack");
    fs::create_dir_all(cache.parent().expect("below")).expect("made");
    if fs::hard_link(BINARY, &cache).is_err() {
        fs::copy(BINARY, &cache).expect("copied");
    }
    let setup = || {
        let mut command = command_of(&agents, &cache, &["setup", "claude-code"]);
        command.stderr(Stdio::null()).spawn().expect("started")
    };
    // Two at once are fine.
    for mut child in [setup(), setup()] {
        assert!(child.wait().expect("ended").success());
    }
    fs::remove_dir_all(agents.machines.env.path("cache")).expect("removed");
    let program = agents.program("laptop");
    let directory = program.parent().expect("below");
    assert_eq!(fs::metadata(&program).expect("there").permissions().mode() & 0o777, 0o700);
    assert_eq!(read(&directory.join("version")), concat!(env!("CARGO_PKG_VERSION"), "\n"));
    assert_eq!(fs::read_dir(directory).expect("listed").count(), 2, "nothing else is left");
    let commands = hook_commands(&agents);
    assert_eq!(commands.len(), 6);
    for (event, command) in commands {
        assert!(command.starts_with(&format!("{} --home ", program.display())), "{command}");
        let mut shell = agents.machines.env.program("/bin/sh");
        let input = json!({ "session_id": format!("s-{event}"), "cwd": "/" }).to_string();
        agents.fire(shell.args(["-c", &command]), input.as_bytes());
        assert!(agents.journal("laptop").contains(&format!("s-{event}")), "{command}");
    }
    let servers: Value =
        serde_json::from_str(&read(&agents.claude("laptop").join(".claude.json"))).expect("JSON");
    assert_eq!(servers["mcpServers"]["haversack"]["command"], json!(program));
    assert!(shown(&agents, &["doctor"]).contains("OK    hooks     Claude Code: 6 hooks fire"));
    // The copy runs every command, and replaces itself by nothing.
    let before = fs::metadata(&program).expect("there").modified().expect("a time");
    let mut itself = command_of(&agents, &program, &["setup", "claude-code"]);
    assert!(itself.output().expect("ran").status.success());
    assert_eq!(fs::metadata(&program).expect("there").modified().expect("a time"), before);
}

#[test]
fn higher_release_replaces_the_copy_and_setup_replaces_any() {
    let agents = with_claude();
    let program = agents.program("laptop");
    let version = program.with_file_name("version");
    let is_replaced =
        || fs::metadata(&program).expect("there").len() == fs::metadata(BINARY).expect("there").len();
    let put = |recorded: &str| {
        write_script(&program, 0o700);
        fs::write(&version, recorded).expect("written");
    };
    // The same release and a lower one leave it; a hook has no time for it.
    for recorded in [concat!(env!("CARGO_PKG_VERSION"), "\n"), "99.0.0\n"] {
        put(recorded);
        agents.done("laptop", &["ls"]);
        assert!(!is_replaced(), "{recorded}");
    }
    put("0.0.9\n");
    agents.hook("laptop", "SessionEnd", Path::new("/"), json!({}));
    agents.rest();
    assert!(!is_replaced());
    assert_eq!(complaints(&agents, &["kinds"]), "");
    assert!(is_replaced());
    assert_eq!(read(&version), concat!(env!("CARGO_PKG_VERSION"), "\n"));
    // A setup that was killed left the copy and no version.
    put("");
    fs::remove_file(&version).expect("removed");
    agents.done("laptop", &["ls"]);
    assert!(is_replaced());
    put("99.0.0\n");
    agents.done("laptop", &["setup", "claude-code"]);
    assert!(is_replaced());
    assert_eq!(read(&version), concat!(env!("CARGO_PKG_VERSION"), "\n"));
}

#[test]
fn server_sends_after_its_program_was_replaced() {
    let agents = Agents::laptop_and_desktop();
    let program = agents.program("laptop");
    agents.link_program("laptop");
    let mut server = command_of(&agents, &program, &["mcp"]);
    let mut server = server.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("started");
    let mut output = BufReader::new(server.stdout.take().expect("piped"));
    let mut input = server.stdin.take().expect("piped");
    let mut ask = |id: u32, method: &str, params: Value| {
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        input.write_all(format!("{request}\n").as_bytes()).expect("it reads");
        let mut line = String::new();
        output.read_line(&mut line).expect("it answers");
        line
    };
    let client = json!({ "name": "tester", "version": "1" });
    ask(
        1,
        "initialize",
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client }),
    );
    let new = program.with_file_name("haversack.new");
    write_script(&new, 0o700);
    fs::write(&new, format!("#!/bin/sh\nexec {BINARY} \"$@\"\n")).expect("written");
    fs::rename(&new, &program).expect("replaced");
    let note = json!({ "path": "/memories/lamp.md", "file_text": "white\n" });
    let told = ask(2, "tools/call", json!({ "name": "create", "arguments": note }));
    assert!(!told.contains("\"isError\":true"), "{told}");
    agents.wait_until("the note is sent", || {
        agents.done("desktop", &["sync"]);
        agents.machines.read("desktop", "lamp.md").is_some()
    });
    drop(input);
    assert!(server.wait().expect("ended").success());
}

#[test]
fn dead_hooks_are_named_and_mended() {
    let agents = with_claude();
    agents.link_program("laptop");
    agents.done("laptop", &["setup", "claude-code"]);
    let program = agents.program("laptop").display().to_string();
    let files = ["settings.json", ".claude.json"].map(|name| agents.claude("laptop").join(name));
    let sound = files.each_ref().map(|file| read(file));
    let name_program = |other: &str| {
        for (file, text) in files.iter().zip(&sound) {
            fs::write(file, text.replace(&program, other)).expect("written");
        }
    };
    let about = |arguments: &[&str]| {
        let shown = shown(&agents, arguments);
        let lines: Vec<&str> = shown.lines().collect();
        let at = lines
            .iter()
            .position(|line| line.contains("hooks and the MCP"))
            .unwrap_or_else(|| panic!("{shown}"));
        [lines[0], lines[at], lines[at + 1]].map(|line| format!("{line}\n")).concat()
    };
    // A program that is gone.
    name_program("/gone/haversack");
    assert_snapshot!([about(&["status"]), about(&["doctor"])].concat(), @r#"
    exit 1
      1  6 hooks and the MCP server of Claude Code cannot run: /gone/haversack is not there
         → haversack setup claude-code
    exit 1
    FAIL  hooks     6 hooks and the MCP server of Claude Code cannot run: /gone/haversack is not there
                    → haversack setup claude-code
    "#);
    assert_snapshot!(complaints(&agents, &["kinds"]), @"Mended 6 hooks and the MCP server of Claude Code: they run ~/laptop/bin/TARGET/haversack now, because /gone/haversack is not there");
    assert_eq!(files.each_ref().map(|file| read(file)), sound);
    assert_eq!(complaints(&agents, &["kinds"]), "");
    // A program that may not be run, and one that works, outside of the home: an older release wrote that.
    let script = agents.machines.env.path("old/haversack");
    write_script(&script, 0o600);
    name_program(&script.display().to_string());
    assert_snapshot!(about(&["status"]), @r#"
    exit 1
      1  6 hooks and the MCP server of Claude Code cannot run: ~/old/haversack is not executable
         → haversack setup claude-code
    "#);
    fs::remove_file(&script).expect("removed");
    name_program(BINARY);
    let outside = [about(&["status"]), about(&["doctor"])].concat().replace(BINARY, "/BINARY/haversack");
    assert_snapshot!(outside, @r#"
    exit 1
      1  6 hooks and the MCP server of Claude Code can stop working: /BINARY/haversack is outside of the home, and may be removed at any time
         → haversack setup claude-code
    exit 0
    WARN  hooks     6 hooks and the MCP server of Claude Code can stop working: /BINARY/haversack is outside of the home, and may be removed at any time
                    → haversack setup claude-code
    "#);
    assert_snapshot!(complaints(&agents, &["recall", "lamp"]).replace(BINARY, "/BINARY/haversack"), @"Mended 6 hooks and the MCP server of Claude Code: they run ~/laptop/bin/TARGET/haversack now, because /BINARY/haversack is outside of the home, and may be removed at any time");
    assert_eq!(files.each_ref().map(|file| read(file)), sound);
    assert!(shown(&agents, &["doctor"]).contains("OK    hooks     Claude Code: 6 hooks fire"));
    // The changes of setup are still known.
    agents.done("laptop", &["uninstall"]);
    assert_eq!(read(&files[0]), SETTINGS);
    assert!(!files[1].exists());
}

#[test]
fn dead_hooks_of_codex_are_mended() {
    let agents = with_claude();
    agents.link_program("laptop");
    fs::create_dir_all(agents.machines.env.path(".codex")).expect("made");
    agents.done("laptop", &["setup", "codex"]);
    let program = agents.program("laptop").display().to_string();
    let files = [".codex/hooks.json", ".codex/config.toml"].map(|name| agents.machines.env.path(name));
    let sound = files.each_ref().map(|file| read(file));
    for (file, text) in files.iter().zip(&sound) {
        assert!(text.contains(&program), "{text}");
        fs::write(file, text.replace(&program, "/gone/haversack")).expect("written");
    }
    let told = shown(&agents, &["doctor"]);
    assert!(told.contains("FAIL  hooks     5 hooks and the MCP server of Codex cannot run"), "{told}");
    assert_snapshot!(complaints(&agents, &["kinds"]), @"Mended 5 hooks and the MCP server of Codex: they run ~/laptop/bin/TARGET/haversack now, because /gone/haversack is not there. Codex asks for your permission once: type /hooks in Codex");
    assert_eq!(files.each_ref().map(|file| read(file)), sound);
    assert_eq!(complaints(&agents, &["kinds"]), "");
}

#[test]
fn lost_copy_is_made_anew() {
    let agents = with_claude();
    agents.link_program("laptop");
    agents.done("laptop", &["setup", "claude-code"]);
    let settings = read(&agents.claude("laptop").join("settings.json"));
    fs::remove_dir_all(agents.machines.env.path("laptop/bin")).expect("removed");
    assert!(shown(&agents, &["status"]).contains("bin/TARGET/haversack is not there"));
    assert_snapshot!(complaints(&agents, &["kinds"]), @"Mended 6 hooks and the MCP server of Claude Code: made their program ~/laptop/bin/TARGET/haversack again");
    assert!(shown(&agents, &["doctor"]).contains("OK    hooks     Claude Code: 6 hooks fire"));
    assert_eq!(read(&agents.claude("laptop").join("settings.json")), settings);
}

#[test]
fn entries_of_others_are_not_mended() {
    let agents = with_claude();
    agents.link_program("laptop");
    agents.done("laptop", &["setup", "claude-code"]);
    let file = agents.claude("laptop").join("settings.json");
    let program = agents.program("laptop").display().to_string();
    let home = agents.machines.env.path("laptop").display().to_string();
    let sound = read(&file);
    let of_another_home = sound.replace(&program, "/gone/haversack").replace(&home, "/other");
    let by_hand = sound.replace(&format!("{program} --home {home}"), "haversack");
    let of_another_tool = sound.replace(&format!("{program} --home {home} hook"), "/gone/audit hook");
    for text in [of_another_home, by_hand, of_another_tool] {
        fs::write(&file, &text).expect("written");
        assert_eq!(complaints(&agents, &["kinds"]), "");
        assert_eq!(read(&file), text);
    }
    // A hook that its owner took out stays out when the others are mended.
    let sound: Vec<&str> = sound.lines().collect();
    let at = sound.iter().position(|line| line.contains("\"PreCompact\"")).expect("there");
    let fewer = [&sound[..at], &sound[at + 11..]].concat().join("\n") + "\n";
    fs::write(&file, fewer.replace(&program, "/gone/haversack")).expect("written");
    agents.done("laptop", &["ls"]);
    assert_eq!(read(&file), fewer);
    assert_eq!(hook_commands(&agents).len(), 5);
}

#[test]
fn uninstall_removes_the_copy_and_nothing_else() {
    let agents = with_claude();
    agents.link_program("laptop");
    agents.done("laptop", &["setup", "claude-code"]);
    let program = agents.program("laptop");
    fs::write(program.with_file_name("haversack.new"), "cut short").expect("written");
    let bin = agents.machines.env.path("laptop/bin");
    // A home may be a directory with programs of its owner.
    write_script(&bin.join("mine/haversack"), 0o700);
    assert!(
        complaints(&agents, &["uninstall", "--dry-run"])
            .contains("~/laptop/bin, the program that hooks run, would be removed")
    );
    assert!(program.exists());
    agents.done("laptop", &["uninstall"]);
    assert!(!program.parent().expect("below").exists() && bin.join("mine/haversack").exists());
    fs::remove_dir_all(bin.join("mine")).expect("removed");
    agents.link_program("laptop");
    agents.done("laptop", &["setup", "claude-code"]);
    agents.done("laptop", &["uninstall"]);
    assert!(!bin.exists());
}
