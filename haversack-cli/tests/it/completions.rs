//! Completions in shells, and the manual pages.

use std::process::{Command, Output};

use crate::environment::TestEnv;

/// Returns a machine with a project, a diary and the directory `notes`.
fn with_memories() -> TestEnv {
    let env = TestEnv::new();
    for name in [
        "diary.md",
        "notes/lamp.md",
        "notes/lens.md",
        "claude_memory/lighthouse-d004b9e9d004b9e9d004b9e9d004b9e9/ports.md",
    ] {
        let done = env.command(&["create", name, "text"]).output().expect("it runs");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
    env
}

/// Returns the candidates for the last word of a line, as fish gets them, without their descriptions.
fn candidates(env: &TestEnv, line: &str) -> Vec<String> {
    let mut command = env.command(&["--"]);
    command.env("HAVERSACK_COMPLETE", "fish").args(line.split(' '));
    let output = command.output().expect("it runs");
    assert_eq!(text(&output.stderr), "", "{line}");
    text(&output.stdout).lines().map(|line| line.split('\t').next().unwrap_or_default().to_owned()).collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn memories_are_completed_directory_by_directory() {
    let env = with_memories();
    assert_eq!(candidates(&env, "haversack view d"), ["diary.md"]);
    assert_eq!(candidates(&env, "haversack view no"), ["notes/"]);
    assert_eq!(candidates(&env, "haversack view notes/"), ["notes/lamp.md", "notes/lens.md"]);
    assert_eq!(candidates(&env, "haversack view light"), ["lighthouse/"]);
    assert_eq!(candidates(&env, "haversack str-replace lighthouse/"), ["lighthouse/ports.md"]);
    assert_eq!(candidates(&env, "haversack rename diary.md notes/le"), ["notes/lens.md"]);
    assert!(candidates(&env, "haversack view ../").is_empty());
    assert!(candidates(&env, "haversack view missing/").is_empty());
}

#[test]
fn other_values_are_completed() {
    let env = with_memories();
    assert!(candidates(&env, "haversack st").contains(&"status".to_owned()));
    assert_eq!(candidates(&env, "haversack status --al"), ["--all"]);
    assert_eq!(candidates(&env, "haversack new --json fee"), ["feedback"]);
    assert_eq!(candidates(&env, "haversack setup co"), ["codex"]);
    assert_eq!(candidates(&env, "haversack project exclude li"), ["lighthouse"]);
    assert_eq!(candidates(&env, "haversack config set cloud"), ["cloud-wait-seconds"]);
    assert_eq!(candidates(&env, "haversack completions z"), ["zsh"]);
}

#[test]
fn machines_are_completed_without_asking_the_remote() {
    let env = TestEnv::new();
    let done = |arguments: &[&str]| {
        let output = env.command(arguments).output().expect("it runs");
        assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    };
    let remote = env.path("remote").display().to_string();
    done(&["create", "diary.md", "text"]);
    done(&["remote", "add", &format!("file://{remote}"), "--device", "laptop"]);
    done(&["sync"]);
    let desktop = env.path("desktop").display().to_string();
    done(&["--home", &desktop, "join", &format!("file://{remote}"), "--device", "desktop", "--yes"]);
    done(&["--home", &desktop, "append", "diary.md", "more"]);
    done(&["--home", &desktop, "sync"]);
    done(&["sync"]);
    std::fs::remove_dir_all(env.path("remote")).expect("removed");
    assert_eq!(candidates(&env, "haversack devices remove de"), ["desktop"]);
    assert_eq!(candidates(&env, &format!("haversack --home {desktop} devices remove l")), ["laptop"]);
}

#[test]
fn completing_in_an_empty_home_makes_nothing() {
    let env = TestEnv::new();
    for line in
        ["haversack view x", "haversack devices remove x", "haversack project exclude x", "haversack new x"]
    {
        assert!(candidates(&env, line).is_empty(), "{line}");
    }
    assert!(!env.path(".local").exists());
    // Settings that are wrong are the concern of commands, not of the tab key.
    std::fs::create_dir_all(env.path(".local/share/haversack")).expect("made");
    std::fs::write(env.path(".local/share/haversack/config.toml"), "nonsense = [").expect("written");
    assert!(candidates(&env, "haversack view x").is_empty());
}

/// Runs a script in a shell in which `haversack` is the program that was built; `None` if the shell is not on this machine.
fn in_shell(env: &TestEnv, shell: &str, arguments: &[&str], script: &str) -> Option<String> {
    let is_there = Command::new(shell).arg("--version").output().is_ok_and(|output| output.status.success());
    if !is_there {
        assert!(shell != "bash", "every machine that runs these tests has bash");
        return None;
    }
    let directory = std::path::Path::new(env!("CARGO_BIN_EXE_haversack")).parent().expect("in a directory");
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", directory.display());
    let output: Output =
        env.program(shell).args(arguments).arg(script).env("PATH", path).output().expect("it runs");
    Some(format!("{}{}", text(&output.stdout), text(&output.stderr)))
}

#[cfg(unix)]
#[test]
fn bash_completes_memories_with_the_printed_script() {
    let env = with_memories();
    let script = r#"
        source <(haversack completions bash)
        function=$(complete -p haversack | sed 's/.*-F \([^ ]*\).*/\1/')
        COMP_WORDS=(haversack view notes/l); COMP_CWORD=2; COMP_TYPE=9
        "$function" haversack notes/l view
        printf '%s\n' "${COMPREPLY[@]}"
    "#;
    let printed = in_shell(&env, "bash", &["--norc", "-c"], script).expect("bash is there");
    assert_eq!(printed, "notes/lamp.md\nnotes/lens.md\n");
}

#[cfg(unix)]
#[test]
fn fish_completes_memories_with_the_printed_script() {
    let env = with_memories();
    let script = "haversack completions fish | source; complete --do-complete 'haversack view notes/l'";
    if let Some(printed) = in_shell(&env, "fish", &["--no-config", "-c"], script) {
        assert_eq!(printed, "notes/lamp.md\nnotes/lens.md\n");
    }
}

#[test]
fn scripts_name_the_program_and_the_variable() {
    let env = TestEnv::new();
    for shell in ["bash", "zsh", "fish", "powershell"] {
        let output = env.command(&["completions", shell]).output().expect("it runs");
        let script = text(&output.stdout);
        assert!(output.status.success() && script.contains("HAVERSACK_COMPLETE"), "{shell}: {script}");
        // zsh reads the script as a function when it is first called, which must complete already.
        assert_eq!(script.contains("funcstack"), shell == "zsh", "{script}");
        assert!(!script.contains("target/"), "{shell} must find the program on the PATH: {script}");
    }
}

#[test]
fn every_command_has_a_manual_page() {
    let env = TestEnv::new();
    let directory = env.path("man");
    let output = env.command(&["help", "--man"]).arg(&directory).output().expect("it runs");
    assert!(output.status.success(), "{}", text(&output.stderr));
    for name in ["haversack.1", "haversack-sync.1", "haversack-remote-add.1"] {
        let page = std::fs::read_to_string(directory.join(name)).expect(name);
        assert!(page.contains(".TH haversack"), "{name}: {page}");
    }
    assert!(!directory.join("haversack-hook.1").exists(), "agents run it, people do not");
}
