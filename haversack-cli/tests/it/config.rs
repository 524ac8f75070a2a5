use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use insta::assert_snapshot;

use crate::environment::TestEnv;

const USER_FILE: &str = ".local/share/haversack/config.toml";

fn with_user_file(text: impl AsRef<[u8]>) -> TestEnv {
    let env = TestEnv::new();
    fs::create_dir_all(env.path(".local/share/haversack")).expect("made");
    fs::write(env.path(USER_FILE), text).expect("written");
    env
}

/// Makes every gap between columns the same: its width depends on the length of a temporary name.
fn squeezed(shown: &str) -> String {
    let cells = |line: &str| {
        line.split("  ").filter(|cell| !cell.is_empty()).map(str::trim).collect::<Vec<_>>().join("  ")
    };
    shown.lines().map(cells).collect::<Vec<_>>().join("\n")
}

#[test]
fn without_any_file_the_defaults_hold_and_nothing_is_made() {
    let env = TestEnv::new();
    assert_snapshot!(squeezed(&env.run(&["config", "list"])), @r#"
    exit 0
    --- stdout
    setting  value  layer  from
    home  BASE/user/.local/share/haversack  default
    lock-wait-seconds  60  default
    memory-tool.view-characters  16000  default
    memory-tool.line-bytes  16777216  default
    keep-memory-local  false  default
    blob-endpoint  default
    blob-container  default
    cloud-wait-seconds  30  default
    projects.exclude  default
    receive.files  200000  default
    receive.megabytes  2000  default
    time.zone  default
    context.tokens  2000  default
    digest.auto  false  default
    recall.hook-milliseconds  20  default
    tidy.auto  false  default
    tidy.command  default
    --- stderr
    User file: BASE/user/.local/share/haversack/config.toml (not there)
    Project file: BASE/user/.haversack.toml (not there, nor in a directory above)
    "#);
    assert_eq!(fs::read_dir(env.path("")).expect("listed").count(), 0);
}

/// A session deep inside of lighthouse, with a value from each layer.
fn in_lighthouse(env: &TestEnv, arguments: &[&str]) -> Command {
    fs::create_dir_all(env.path("lighthouse/lamp/lens")).expect("made");
    fs::write(env.path(".haversack.toml"), "lock-wait-seconds = 9999999 # too far up to count")
        .expect("written");
    let project = "# lighthouse\n[memory-tool]\nview-characters = 32_000\n";
    fs::write(env.path("lighthouse/.haversack.toml"), project).expect("written");
    let mut command = env.command(arguments);
    command.current_dir(env.path("lighthouse/lamp/lens"));
    command
}

#[test]
fn each_value_with_its_layer() {
    let env = with_user_file("lock-wait-seconds = 5\nmemory-tool.view-characters = 40000\n");
    let mut command = in_lighthouse(&env, &["config", "list"]);
    command.env("HAVERSACK_MEMORY_TOOL_LINE_BYTES", "1048576").env("HAVERSACK_SOAK", "1");
    assert_snapshot!(squeezed(&env.shown(&mut command)), @r#"
    exit 0
    --- stdout
    setting  value  layer  from
    home  BASE/user/.local/share/haversack  default
    lock-wait-seconds  5  user  BASE/user/.local/share/haversack/config.toml:1
    memory-tool.view-characters  32000  project  BASE/user/lighthouse/.haversack.toml:3
    memory-tool.line-bytes  1048576  environment  HAVERSACK_MEMORY_TOOL_LINE_BYTES
    keep-memory-local  false  default
    blob-endpoint  default
    blob-container  default
    cloud-wait-seconds  30  default
    projects.exclude  default
    receive.files  200000  default
    receive.megabytes  2000  default
    time.zone  default
    context.tokens  2000  default
    digest.auto  false  default
    recall.hook-milliseconds  20  default
    tidy.auto  false  default
    tidy.command  default
    --- stderr
    User file: BASE/user/.local/share/haversack/config.toml
    Project file: BASE/user/lighthouse/.haversack.toml
    "#);
    let by_flag =
        ["--config", "lock-wait-seconds=1", "config", "--config=lock-wait-seconds=2", "list", "--home"];
    let mut command = in_lighthouse(&env, &by_flag);
    command.args(["/nowhere/by-flag", "--config", "memory-tool.view-characters = 1_000"]);
    assert_snapshot!(env.shown(&mut command), @r#"
    exit 0
    --- stdout
    setting                      value             layer    from
    home                         /nowhere/by-flag  flag     --home
    lock-wait-seconds            2                 flag     --config
    memory-tool.view-characters  1000              flag     --config
    memory-tool.line-bytes       16777216          default
    keep-memory-local            false             default
    blob-endpoint                                  default
    blob-container                                 default
    cloud-wait-seconds           30                default
    projects.exclude                               default
    receive.files                200000            default
    receive.megabytes            2000              default
    time.zone                                      default
    context.tokens               2000              default
    digest.auto                  false             default
    recall.hook-milliseconds     20                default
    tidy.auto                    false             default
    tidy.command                                   default
    --- stderr
    User file: /nowhere/by-flag/config.toml (not there)
    Project file: BASE/user/lighthouse/.haversack.toml
    "#);
}

#[test]
fn json_for_scripts() {
    let env = with_user_file("lock-wait-seconds = 5\n");
    assert_snapshot!(env.run(&["config", "list", "--json"]), @r#"
    exit 0
    --- stdout
    {
      "project_file": {
        "found": false,
        "path": "BASE/user/.haversack.toml"
      },
      "settings": [
        {
          "from": null,
          "key": "home",
          "layer": "default",
          "value": "BASE/user/.local/share/haversack"
        },
        {
          "from": "BASE/user/.local/share/haversack/config.toml:1",
          "key": "lock-wait-seconds",
          "layer": "user",
          "value": 5
        },
        {
          "from": null,
          "key": "memory-tool.view-characters",
          "layer": "default",
          "value": 16000
        },
        {
          "from": null,
          "key": "memory-tool.line-bytes",
          "layer": "default",
          "value": 16777216
        },
        {
          "from": null,
          "key": "keep-memory-local",
          "layer": "default",
          "value": false
        },
        {
          "from": null,
          "key": "blob-endpoint",
          "layer": "default",
          "value": ""
        },
        {
          "from": null,
          "key": "blob-container",
          "layer": "default",
          "value": ""
        },
        {
          "from": null,
          "key": "cloud-wait-seconds",
          "layer": "default",
          "value": 30
        },
        {
          "from": null,
          "key": "projects.exclude",
          "layer": "default",
          "value": ""
        },
        {
          "from": null,
          "key": "receive.files",
          "layer": "default",
          "value": 200000
        },
        {
          "from": null,
          "key": "receive.megabytes",
          "layer": "default",
          "value": 2000
        },
        {
          "from": null,
          "key": "time.zone",
          "layer": "default",
          "value": ""
        },
        {
          "from": null,
          "key": "context.tokens",
          "layer": "default",
          "value": 2000
        },
        {
          "from": null,
          "key": "digest.auto",
          "layer": "default",
          "value": false
        },
        {
          "from": null,
          "key": "recall.hook-milliseconds",
          "layer": "default",
          "value": 20
        },
        {
          "from": null,
          "key": "tidy.auto",
          "layer": "default",
          "value": false
        },
        {
          "from": null,
          "key": "tidy.command",
          "layer": "default",
          "value": ""
        }
      ],
      "user_file": {
        "found": true,
        "path": "BASE/user/.local/share/haversack/config.toml"
      }
    }
    --- stderr
    "#);
}

#[test]
fn a_setting_that_is_none_names_the_nearest() {
    let env = with_user_file("[memory-tool]\nview-charcters = 20000\n");
    assert_snapshot!(env.run(&["backends"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: BASE/user/.local/share/haversack/config.toml:2 sets memory-tool.view-charcters, which is not a setting
    Hint: Write memory-tool.view-characters instead
    "#);
    let env = TestEnv::new();
    fs::write(env.path(".haversack.toml"), "lock-wait = 5\n").expect("written");
    assert_snapshot!(env.run(&["backends"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: BASE/user/.haversack.toml:1 sets lock-wait, which is not a setting
    Hint: Write lock-wait-seconds instead
    "#);
    let env = TestEnv::new();
    assert_snapshot!(env.run(&["backends", "--config", "wait=5"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: --config sets wait, which is not a setting
    Hint: Remove it; the nearest setting is lock-wait-seconds
    "#);
    let mut mistyped = env.command(&["ls"]);
    mistyped.env("HAVERSACK_HOEM", "/x");
    assert_snapshot!(env.shown(&mut mistyped), @r#"
    exit 0
    --- stdout
    --- stderr
    Warning: the variable HAVERSACK_HOEM is not one of Haversack's and does nothing
    Hint: Set HAVERSACK_HOME instead, and unset HAVERSACK_HOEM
    There is no memory yet. Begin with the memory of your agents: haversack init
    "#);
    let mut examined = env.command(&["doctor"]);
    examined.env("HAVERSACK_HOEM", "/x");
    assert_snapshot!(env.shown(&mut examined), @r#"
    exit 0
    --- stdout
    WARN  settings  the variable HAVERSACK_HOEM is not one of Haversack's and does nothing
                    → Set HAVERSACK_HOME instead, and unset HAVERSACK_HOEM
    OK    backend   device-local
    OK    home      BASE/user/.local/share/haversack (default): no memory yet; the first write makes it
    --- stderr
    "#);
    assert_snapshot!(env.run(&["backends", "--config", "lock-wait-seconds"]), @r#"
    exit 2
    --- stdout
    --- stderr
    error: invalid value 'lock-wait-seconds' for '--config <KEY=VALUE>': it is not of the form KEY=VALUE

    For more information, try '--help'.
    "#);
}

#[test]
fn a_value_out_of_range_names_value_range_and_place() {
    let env = with_user_file("# mine\nlock-wait-seconds = 4000\n");
    assert_snapshot!(env.run(&["config", "list"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: BASE/user/.local/share/haversack/config.toml:2 sets lock-wait-seconds to 4000, but it must be a whole number from 0 to 3600
    Hint: Write such a number, or leave it out for the default
    "#);
    let env = TestEnv::new();
    let mut command = env.command(&["backends"]);
    command.env("HAVERSACK_MEMORY_TOOL_VIEW_CHARACTERS", "many");
    assert_snapshot!(env.shown(&mut command), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: HAVERSACK_MEMORY_TOOL_VIEW_CHARACTERS sets memory-tool.view-characters to "many", but it must be a whole number from 1000 to 1000000
    Hint: Write such a number, or leave it out for the default
    "#);
    assert_snapshot!(env.run(&["backends", "--config", "memory-tool.line-bytes=1"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: --config sets memory-tool.line-bytes to 1, but it must be a whole number from 65536 to 1073741824
    Hint: Write such a number, or leave it out for the default
    "#);
}

#[test]
fn the_home_is_not_set_in_a_file() {
    let env = with_user_file("home = '/elsewhere'\n");
    assert_snapshot!(env.run(&["backends"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: BASE/user/.local/share/haversack/config.toml:1 sets home, which no file can set: the user file is inside the home
    Hint: Remove it there, and choose the home with --home or HAVERSACK_HOME
    "#);
}

#[test]
fn a_file_that_cannot_be_used_is_not_skipped() {
    let env = with_user_file("lock-wait-seconds = 5\nmemory-tool.line-bytes = lots\n");
    assert_snapshot!(env.run(&["backends"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: BASE/user/.local/share/haversack/config.toml:2 is not TOML
    Caused by: string values must be quoted, expected literal string
    Hint: Correct the file, or move it away
    "#);
    let env = with_user_file(b"# caf\xe9\n");
    assert_snapshot!(env.run(&["backends"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: BASE/user/.local/share/haversack/config.toml:1 is not UTF-8
    Caused by: invalid utf-8 sequence of 1 bytes from index 5
    Hint: Save the file as UTF-8, or move it away
    "#);
    let env = with_user_file("#".repeat(1024 * 1024 + 1));
    assert_snapshot!(env.run(&["backends"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: BASE/user/.local/share/haversack/config.toml is longer than 1048576 bytes, which no file of settings is
    Hint: Move it away
    "#);
    let env = TestEnv::new();
    fs::create_dir(env.path(".haversack.toml")).expect("made");
    assert_snapshot!(env.run(&["backends"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: BASE/user/.haversack.toml is not a file
    Hint: Move it away
    "#);
    let env = TestEnv::new();
    symlink("gone.toml", env.path(".haversack.toml")).expect("linked");
    assert_snapshot!(env.run(&["backends"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: BASE/user/.haversack.toml is a link to a file that is not there
    Hint: Make that file, or remove the link
    "#);
    let env = TestEnv::new();
    symlink(".haversack.toml", env.path(".haversack.toml")).expect("linked");
    let shown = env.run(&["backends"]);
    assert!(shown.contains("Error: BASE/user/.haversack.toml could not be read\nCaused by: "), "{shown}");
}

#[test]
fn a_current_directory_that_is_gone_is_an_error() {
    let env = TestEnv::new();
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg("mkdir gone && cd gone && rmdir ../gone && exec \"$0\" backends");
    shell.arg(env!("CARGO_BIN_EXE_haversack")).env_clear().env("HOME", env.path(""));
    shell.env("PATH", "/usr/bin:/bin").current_dir(env.path(""));
    assert_snapshot!(env.shown(&mut shell), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: the current directory, where a project's settings may be, cannot be found
    Caused by: No such file or directory (os error 2)
    Hint: Change to a directory that exists: cd
    "#);
}

#[test]
fn with_wrong_settings_nothing_is_done_and_the_doctor_says_why() {
    let env = with_user_file("lock-wait-seconds = \n");
    let everything = || walk(env.path("..").as_path());
    let before = everything();
    for command in [&["demo"][..], &["backends"], &["config", "list"], &["config", "reference"]] {
        let shown = env.run(command);
        assert!(shown.starts_with("exit 1\n--- stdout\n--- stderr\nError: BASE/user/"), "{shown}");
    }
    assert_snapshot!(env.run(&["doctor"]), @r#"
    exit 1
    --- stdout
    FAIL  settings  BASE/user/.local/share/haversack/config.toml:1 is not TOML: string values must be quoted, expected literal string
                    → Correct the file, or move it away
    --- stderr
    "#);
    assert_snapshot!(env.run(&["doctor", "--json"]), @r#"
    exit 1
    --- stdout
    {
      "checks": [
        {
          "check": "settings",
          "cure": "Correct the file, or move it away",
          "detail": "BASE/user/.local/share/haversack/config.toml:1 is not TOML: string values must be quoted, expected literal string",
          "verdict": "FAIL"
        }
      ],
      "verdict": "FAIL"
    }
    --- stderr
    "#);
    assert_eq!(everything(), before);
}

fn walk(directory: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).expect("listed") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(walk(&path));
        }
        found.push(path);
    }
    found.sort();
    found
}

#[test]
fn the_demo_does_not_depend_on_another_home_s_settings() {
    let env = with_user_file("lock-wait-seconds = \n");
    let shown = env.run(&["--home", "other", "demo"]);
    assert!(shown.starts_with("exit 0\n"), "{shown}");
    assert!(!env.path("other").exists());
}

#[test]
fn the_reference_is_the_page_in_the_documentation() {
    let output = TestEnv::new().command(&["config", "reference"]).output().expect("it ran");
    let page = fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/settings.md")).expect("there");
    assert!(output.status.success() && output.stdout == page);
}

#[test]
fn the_help_of_the_group() {
    assert_snapshot!(TestEnv::new().run(&["config", "--help"]), @r"
    exit 0
    --- stdout
    Manage settings

    Usage: haversack config [OPTIONS] <COMMAND>

    Commands:
      list       Show every setting, its value and where it comes from
      set        Change a setting in the user file; comments and everything else in it stay
      unset      Take a setting out of the user file, so that its default holds again
      reference  Print all settings as Markdown

    Options:
          --home <DIRECTORY>    The directory that Haversack keeps everything in
          --config <KEY=VALUE>  Change a setting for this run; can be given more than once
      -h, --help                Print help
    --- stderr
    ");
}
