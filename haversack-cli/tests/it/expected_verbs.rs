//! The verbs that people expect of a command line: help, version, config set, diff by number.

use std::fs;

use insta::assert_snapshot;

use crate::environment::TestEnv;
use crate::machines::Machines;

#[test]
fn help_explains_a_command_like_its_own_option() {
    let env = TestEnv::new();
    for command in [vec!["diff"], vec!["config", "set"], vec!["hook"]] {
        let explained = env.run(&[&["help"], &command[..]].concat());
        assert_eq!(explained, env.run(&[&command[..], &["--help"]].concat()));
        assert!(explained.starts_with("exit 0\n"), "{explained}");
    }
    for columns in ["60", "100"] {
        let shown = env.shown(env.command(&["help", "config", "set"]).env("COLUMNS", columns));
        assert!(
            shown.lines().all(|line| line.chars().count() <= columns.parse().expect("a number")),
            "{shown}"
        );
    }
    assert_snapshot!(env.run(&["help", "config", "set"]), @r"
    exit 0
    --- stdout
    Change a setting in the user file; comments and everything else in it stay

    Usage: haversack config set [OPTIONS] <KEY> <VALUE>

    Arguments:
      <KEY>    The setting, as `haversack config list` shows it
      <VALUE>  Its new value

    Options:
          --home <DIRECTORY>    The directory that Haversack keeps everything in
          --config <KEY=VALUE>  Change a setting for this run; can be given more than once
      -h, --help                Print help
    --- stderr
    ");
    assert_snapshot!(env.run(&["help", "statsu"]), @r"
    exit 1
    --- stdout
    --- stderr
    Error: there is no command statsu
    Hint: Did you mean status? See all commands: haversack help --all
    ");
    assert_snapshot!(env.run(&["help", "frobnicate"]), @r"
    exit 1
    --- stdout
    --- stderr
    Error: there is no command frobnicate
    Hint: See all commands: haversack help --all
    ");
}

#[test]
fn mistyped_command_gets_a_suggestion_only_when_close() {
    let env = TestEnv::new();
    assert_snapshot!(env.run(&["statsu"]), @r"
    exit 2
    --- stdout
    --- stderr
    error: unrecognized subcommand 'statsu'

      tip: a similar subcommand exists: 'status'

    Usage: haversack [OPTIONS] <COMMAND>

    For more information, try '--help'.
    ");
    assert_snapshot!(env.run(&["config", "sett"]), @r"
    exit 2
    --- stdout
    --- stderr
    error: unrecognized subcommand 'sett'

      tip: a similar subcommand exists: 'set'

    Usage: haversack config [OPTIONS] <COMMAND>

    For more information, try '--help'.
    ");
    for (typed, meant) in
        [("find", "recall"), ("search", "recall"), ("get", "view"), ("rm", "delete"), ("list", "ls")]
    {
        let shown = env.run(&[typed]);
        assert!(shown.contains(&format!("tip: a similar subcommand exists: '{meant}'")), "{shown}");
    }
    let shown = env.run(&["mount", "rm"]);
    assert!(shown.contains("tip: a similar subcommand exists: 'remove'"), "{shown}");
    assert!(env.run(&["help", "grep"]).contains("Did you mean recall?"));
    assert_snapshot!(env.run(&["frobnicate"]), @r"
    exit 2
    --- stdout
    --- stderr
    error: unrecognized subcommand 'frobnicate'

      tip: see all commands: haversack help --all

    Usage: haversack [OPTIONS] <COMMAND>

    For more information, try '--help'.
    ");
}

#[test]
fn version_names_the_parts_of_the_build() {
    let env = TestEnv::new();
    assert_eq!(env.run(&["version"]), env.run(&["--version"]));
    let shown = env.run(&["version", "--verbose"]);
    let names: Vec<&str> = shown.lines().filter_map(|line| Some(line.split_once(": ")?.0)).collect();
    assert_eq!(names, ["target", "features", "storages", "formats"]);
    assert!(shown.contains(std::env::consts::OS) && shown.contains("azure"), "{shown}");
    assert!(shown.contains("features: semantic"), "{shown}");
    for format in ["store", "commit", "folder-entry", "identity", "journal", "graph-registry", "index"] {
        assert!(shown.contains(&format!("{format} ")), "{format}: {shown}");
    }
    let json = env.run(&["version", "--json"]);
    assert!(json.contains("\"version\": \"") && json.contains("\"semantic\""), "{json}");
    assert!(json.contains("\"identity\": 1") && json.contains("\"index\": "), "{json}");
    assert_eq!(fs::read_dir(env.path("")).expect("listed").count(), 0);
}

#[test]
fn config_set_and_unset_keep_the_comments_of_the_file() {
    let env = TestEnv::new();
    let file = env.path(".local/share/haversack/config.toml");
    assert_snapshot!(env.run(&["config", "set", "lock-wait-seconds", "5"]), @r"
    exit 0
    --- stdout
    --- stderr
    Set lock-wait-seconds to 5 in BASE/user/.local/share/haversack/config.toml
    ");
    fs::write(&file, "# my settings\nlock-wait-seconds = 5 # short\n").expect("written");
    assert_snapshot!(env.run(&["config", "set", "memory-tool.view-characters", "9_000"]), @r"
    exit 0
    --- stdout
    --- stderr
    Set memory-tool.view-characters to 9000 in BASE/user/.local/share/haversack/config.toml
    ");
    assert_snapshot!(env.run(&["config", "set", "keep-memory-local", "yes"]), @r"
    exit 0
    --- stdout
    --- stderr
    Set keep-memory-local to true in BASE/user/.local/share/haversack/config.toml
    ");
    assert_snapshot!(env.run(&["config", "set", "projects.exclude", "-x, github.com/acme"]), @r"
    exit 0
    --- stdout
    --- stderr
    Set projects.exclude to -x, github.com/acme in BASE/user/.local/share/haversack/config.toml
    ");
    assert_snapshot!(fs::read_to_string(&file).expect("there"), @r#"
    # my settings
    lock-wait-seconds = 5 # short
    keep-memory-local = true

    [memory-tool]
    view-characters = 9000

    [projects]
    exclude = "-x, github.com/acme"
    "#);
    assert_snapshot!(env.run(&["config", "unset", "lock-wait-seconds"]), @r"
    exit 0
    --- stdout
    --- stderr
    Removed lock-wait-seconds from BASE/user/.local/share/haversack/config.toml
    ");
    assert_snapshot!(env.run(&["config", "unset", "lock-wait-seconds"]), @r"
    exit 0
    --- stdout
    --- stderr
    lock-wait-seconds is not set in BASE/user/.local/share/haversack/config.toml: nothing was changed
    ");
    assert_snapshot!(fs::read_to_string(&file).expect("there"), @r#"
    # my settings
    keep-memory-local = true

    [memory-tool]
    view-characters = 9000

    [projects]
    exclude = "-x, github.com/acme"
    "#);
    let shown = env.shown(
        env.command(&["config", "set", "cloud-wait-seconds", "9"]).env("HAVERSACK_CLOUD_WAIT_SECONDS", "7"),
    );
    assert_snapshot!(shown, @r"
    exit 0
    --- stdout
    --- stderr
    Set cloud-wait-seconds to 9 in BASE/user/.local/share/haversack/config.toml
    HAVERSACK_CLOUD_WAIT_SECONDS sets cloud-wait-seconds too, and wins here
    ");
}

#[test]
fn config_set_refuses_unfit_settings_and_changes_nothing() {
    let env = TestEnv::new();
    assert_snapshot!(env.run(&["config", "set", "lock-wait", "5"]), @r"
    exit 1
    --- stdout
    --- stderr
    Error: lock-wait is not a setting
    Hint: Write lock-wait-seconds instead
    ");
    assert_snapshot!(env.run(&["config", "set", "lock-wait-seconds", "soon"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: haversack config set sets lock-wait-seconds to "soon", but it must be a whole number from 0 to 3600
    Hint: Write such a number, or leave it out for the default
    "#);
    assert_snapshot!(env.run(&["config", "set", "home", "/elsewhere"]), @r"
    exit 1
    --- stdout
    --- stderr
    Error: home cannot be set in a file, because the user file is inside the home
    Hint: Choose the home with --home or HAVERSACK_HOME
    ");
    assert_snapshot!(env.run(&["config", "unset", "colour"]), @r"
    exit 1
    --- stdout
    --- stderr
    Error: colour is not a setting
    Hint: See the settings: haversack config list
    ");
    assert_eq!(fs::read_dir(env.path("")).expect("listed").count(), 0);
}

#[test]
fn diff_takes_the_number_of_a_change_beside_a_path() {
    let env = TestEnv::new();
    env.run(&["create", "lamp.md", "every 12 s\n"]);
    env.run(&["create", "ports.md", "staging 5433\n"]);
    env.run(&["str-replace", "lamp.md", "12", "10"]);
    assert_snapshot!(env.run(&["diff", "local-3"]), @r"
    exit 0
    --- stdout
    --- a/lamp.md
    +++ b/lamp.md
    @@ -1 +1 @@
    -every 12 s
    +every 10 s
    --- stderr
    ");
    assert_eq!(env.run(&["diff", "local-3"]), env.run(&["diff", "--at", "local-3"]));
    assert_eq!(env.run(&["diff", "local-3", "lamp.md"]), env.run(&["diff", "lamp.md", "local-3"]));
    assert_snapshot!(env.run(&["diff", "local-9"]), @r"
    exit 1
    --- stdout
    --- stderr
    Error: there is no change local-9: the newest that this machine knows is local-3
    Hint: See the changes and their numbers: haversack log. Get newer ones: haversack sync
    ");
    assert_snapshot!(env.run(&["diff", "lamp.md", "ports.md"]), @r"
    exit 1
    --- stdout
    --- stderr
    Error: diff takes one change and one place, and ports.md is one too many
    Hint: haversack diff NUMBER PATH
    ");
}

#[test]
fn diff_without_changes_names_the_last_one() {
    let env = TestEnv::new();
    env.run(&["create", "lamp.md", "every 12 s\n"]);
    env.run(&["create", "ports.md", "staging 5433\n"]);
    assert_snapshot!(env.run(&["diff"]), @r"
    exit 0
    --- stdout
    --- stderr
    Nothing waits to be sent. See the last change: haversack diff local-2
    ");
    assert_snapshot!(env.run(&["diff", "lamp.md"]), @r"
    exit 0
    --- stdout
    --- stderr
    Nothing waits to be sent. See the last change: haversack diff local-1 lamp.md
    ");
    assert_snapshot!(env.run(&["diff", "local-2", "lamp.md"]), @r"
    exit 0
    --- stdout
    --- stderr
    Change local-2 did not change lamp.md. See its files: haversack log local-2
    ");
}

#[test]
fn colors_are_for_terminals_unless_they_are_asked_for() {
    let env = TestEnv::new();
    env.run(&["create", "lamp.md", "every 12 s\n"]);
    env.run(&["str-replace", "lamp.md", "12", "10"]);
    assert!(!env.run(&["diff", "local-2"]).contains('\u{1b}'));
    let diff = env.run(&["diff", "local-2", "--color", "always"]);
    assert!(diff.contains("\u{1b}[31m-every 12 s\u{1b}[0m\n\u{1b}[32m+every 10 s\u{1b}[0m\n"), "{diff}");
    let recalled = env.run(&["--color", "always", "recall", "every"]);
    assert!(recalled.contains("\u{1b}[36mlamp.md:1 ("), "{recalled}");
    let failed = env.run(&["--color", "always", "view", "lens.md"]);
    assert!(failed.contains("\u{1b}[31mError: "), "{failed}");
    let plain = env.shown(env.command(&["log", "--color", "never"]).env("NO_COLOR", "1"));
    assert!(!plain.contains('\u{1b}'), "{plain}");
}

#[test]
fn hint_quotes_a_name_with_spaces() {
    let env = TestEnv::new();
    env.run(&["create", "my notes/lamp.md", "every 12 s\n"]);
    assert_snapshot!(env.run(&["delete", "my notes"]), @r"
    exit 1
    --- stdout
    --- stderr
    Error: could not delete my notes: the directory is not empty
    Hint: Delete it with everything in it: haversack delete --recursive 'my notes'
    ");
    assert_snapshot!(env.run(&["view", "my notes"]), @r"
    exit 1
    --- stdout
    --- stderr
    Error: my notes is a directory
    Hint: List it: haversack ls 'my notes'
    ");
}

#[test]
fn long_output_is_shown_in_the_pager() {
    let machines = Machines::new();
    let long: String = (1..=9).map(|line| format!("line {line}\n")).collect();
    machines.done("laptop", &["create", "long.md", &long]);
    for number in 1..=9 {
        machines.write("laptop", &format!("notes/{number}.md"), "x\n");
    }
    let shown = |arguments: &[&str]| machines.env.in_pager(&[&["--home", "laptop"], arguments].concat());
    for (arguments, line) in [
        (&["ls", "-R"][..], "notes/9.md"),
        (&["view", "long.md"], "paged: line 9"),
        (&["status", "--all"], "paged:   files      10"),
        (&["doctor"], "paged: OK    backend"),
    ] {
        let shown = shown(arguments);
        assert!(shown.contains("paged: ") && shown.contains(line), "{arguments:?}: {shown}");
    }
    for arguments in [&["view", "notes/1.md"][..], &["ls", "-R", "--json"], &["why"]] {
        let shown = shown(arguments);
        assert!(!shown.contains("paged: "), "{arguments:?}: {shown}");
    }
}
