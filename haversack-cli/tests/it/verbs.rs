//! The verbs as commands.

use std::io::Write;
use std::process::Stdio;

use insta::assert_snapshot;

use crate::environment::TestEnv;

/// Runs a command with something on its stdin.
fn with_stdin(env: &TestEnv, arguments: &[&str], input: &[u8]) -> String {
    let mut command = env.command(arguments);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut stdin = child.stdin.take().expect("piped");
    // A command that fails before it reads is no mistake of the test.
    drop(stdin.write_all(input));
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    format!(
        "exit {}\n--- stdout\n{}--- stderr\n{}",
        output.status.code().expect("no signal"),
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

#[test]
fn a_file_from_its_creation_to_its_end() {
    let env = TestEnv::new();
    assert_snapshot!(with_stdin(&env, &["create", "lighthouse/ports.md"], b"staging 5433\n"), @r#"
    exit 0
    --- stdout
    --- stderr
    Created lighthouse/ports.md
    "#);
    assert_snapshot!(env.run(&["str-replace", "lighthouse/ports.md", "5433", "5434"]), @r#"
    exit 0
    --- stdout
    --- stderr
    Edited lighthouse/ports.md in line 1
    "#);
    assert_snapshot!(env.run(&["insert", "lighthouse/ports.md", "0", "# Ports"]), @r#"
    exit 0
    --- stdout
    --- stderr
    Edited lighthouse/ports.md in line 1
    "#);
    assert_snapshot!(env.run(&["append", "/memories/lighthouse/ports.md", "production 443\n"]), @r#"
    exit 0
    --- stdout
    --- stderr
    Added 15 bytes to lighthouse/ports.md
    "#);
    assert_snapshot!(env.run(&["view", "lighthouse/ports.md"]), @r#"
    exit 0
    --- stdout
    # Ports
    staging 5434
    production 443
    --- stderr
    "#);
    assert_snapshot!(env.run(&["view", "lighthouse/ports.md", "--lines", "2:2"]), @r#"
    exit 0
    --- stdout
    staging 5434
    --- stderr
    "#);
    assert_snapshot!(env.run(&["ls"]), @r#"
    exit 0
    --- stdout
    -    lighthouse/
    --- stderr
    "#);
    assert_snapshot!(env.run(&["ls", "lighthouse"]), @r#"
    exit 0
    --- stdout
    36  just now  lighthouse/ports.md
    --- stderr
    "#);
    assert_snapshot!(env.run(&["rename", "lighthouse/ports.md", "lighthouse/network/ports.md"]), @r#"
    exit 0
    --- stdout
    --- stderr
    Renamed lighthouse/ports.md to lighthouse/network/ports.md
    "#);
    assert_snapshot!(env.run(&["ls", "--recursive"]), @r#"
    exit 0
    --- stdout
    36  just now  lighthouse/network/ports.md
    --- stderr
    "#);
    assert_snapshot!(env.run(&["delete", "--recursive", "lighthouse"]), @r#"
    exit 0
    --- stdout
    --- stderr
    Deleted lighthouse
    "#);
    assert_snapshot!(env.run(&["ls"]), @r#"
    exit 0
    --- stdout
    --- stderr
    There is no memory yet. Begin with the memory of your agents: haversack init
    "#);
}

#[test]
fn a_text_may_begin_with_a_dash() {
    let env = TestEnv::new();
    assert!(
        env.run(&["create", "list.md", "---\nname: x\n---\n- one\n", "--json"])
            .contains("\"path\": \"list.md\"")
    );
    env.run(&["append", "list.md", "- two\n"]);
    assert!(env.run(&["view", "list.md"]).contains("---\nname: x\n---\n- one\n- two\n"));
}

#[test]
fn for_programs() {
    let env = TestEnv::new();
    assert_snapshot!(env.run(&["create", "a.md", "one\n", "--json"]), @r#"
    exit 0
    --- stdout
    {
      "path": "a.md",
      "version": "e0e63aa4c8e1ed796cb104d8a074e553c99fff18d140e886667013ef2780ae23"
    }
    --- stderr
    "#);
    assert_snapshot!(env.run(&["str-replace", "a.md", "one", "two", "--json"]), @r#"
    exit 0
    --- stdout
    {
      "line": 1,
      "path": "a.md",
      "version": "ef40086ad8a395c7a05b5f70cf2575ad187f637ad813136292cb39610694db73"
    }
    --- stderr
    "#);
    assert_snapshot!(env.run(&["insert", "a.md", "1", "three", "--json"]), @r#"
    exit 0
    --- stdout
    {
      "line": 2,
      "path": "a.md",
      "version": "d61681cb4d3124082d24007d6541e7d4980d5a1dee95610c3959590bf3464e58"
    }
    --- stderr
    "#);
    assert_snapshot!(env.run(&["append", "a.md", "four\n", "--json"]), @r#"
    exit 0
    --- stdout
    {
      "path": "a.md",
      "size_bytes": 15
    }
    --- stderr
    "#);
    assert_snapshot!(env.run(&["view", "a.md", "--json"]), @r#"
    exit 0
    --- stdout
    {
      "path": "a.md",
      "size_bytes": 15,
      "text": "two\nthree\nfour\n",
      "version": "5356da745f21b8cd4a2ddc0601ad32701b8449792c6a9c1a31ce4c4147f626b3"
    }
    --- stderr
    "#);
    assert_snapshot!(with_stdin(&env, &["create", "b.bin", "--json"], b"\xff\x00"), @r#"
    exit 0
    --- stdout
    {
      "path": "b.bin",
      "version": "e7645220473c8ae27d6c36c8993d8409784c1aab90d22e3da4971c93ff352ce7"
    }
    --- stderr
    "#);
    assert_snapshot!(env.run(&["view", "b.bin", "--json"]), @r#"
    exit 0
    --- stdout
    {
      "base64": "/wA=",
      "path": "b.bin",
      "size_bytes": 2,
      "version": "e7645220473c8ae27d6c36c8993d8409784c1aab90d22e3da4971c93ff352ce7"
    }
    --- stderr
    "#);
    let listed = env.run(&["ls", "--json"]);
    let timeless: Vec<&str> = listed.lines().filter(|line| !line.contains("\"modified\": \"20")).collect();
    assert_snapshot!(timeless.join("\n"), @r#"
    exit 0
    --- stdout
    {
      "entries": [
        {
          "name": "a.md",
          "path": "a.md",
          "size_bytes": 15,
          "type": "file"
        },
        {
          "name": "b.bin",
          "path": "b.bin",
          "size_bytes": 2,
          "type": "file"
        }
      ],
      "odd": [],
      "path": ""
    }
    --- stderr
    "#);
    assert_snapshot!(env.run(&["rename", "a.md", "c.md", "--json"]), @r#"
    exit 0
    --- stdout
    {
      "new_path": "c.md",
      "old_path": "a.md"
    }
    --- stderr
    "#);
    assert_snapshot!(env.run(&["delete", "c.md", "--json"]), @r#"
    exit 0
    --- stdout
    {
      "path": "c.md"
    }
    --- stderr
    "#);
}

#[test]
fn refusals_say_what_to_do() {
    let env = TestEnv::new();
    env.run(&["create", "d/a.md", "one\none\n"]);
    with_stdin(&env, &["create", "b.bin"], b"\xff");
    assert_snapshot!(env.run(&["view", "none.md"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: could not view none.md: nothing is there
    Hint: List the files: haversack ls
    "#);
    assert_snapshot!(env.run(&["view", "d"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: d is a directory
    Hint: List it: haversack ls d
    "#);
    assert_snapshot!(env.run(&["create", "d/a.md", "x"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: could not create d/a.md: something is there already
    Hint: Change the existing file with str-replace, insert or append, or choose another name
    "#);
    assert_snapshot!(env.run(&["create", "../x", "x"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: ../x is not in the memory: it is in no bound directory, and not in ~/.local/share/haversack/memory
    Hint: See the files of the memory: haversack ls. See the bound directories: haversack mount list
    "#);
    assert_snapshot!(env.run(&["create", "con.md", "x"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: could not create con.md: the storage refused
    Caused by: could not write con.md: the name cannot be used
    Caused by: "con.md" is refused: a device name cannot be stored on Windows
    Hint: Take another name
    "#);
    assert_snapshot!(env.run(&["str-replace", "d/a.md", "one", "x"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: could not edit d/a.md: the text to replace is there more than once, in lines 1, 2
    Hint: Include more of the surrounding text, so that it matches one place only
    "#);
    assert_snapshot!(env.run(&["str-replace", "d/a.md", "two", "x"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: could not edit d/a.md: the text to replace is not there
    Hint: Copy the text exactly as it is in the file: haversack view d/a.md
    "#);
    assert_snapshot!(env.run(&["str-replace", "d/a.md", "", "x"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: could not edit d/a.md: the text to replace is empty
    Hint: Name the text to replace, or use insert
    "#);
    assert_snapshot!(env.run(&["str-replace", "b.bin", "a", "x"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: could not edit b.bin: it is not text: byte 1 is not UTF-8
    Hint: Only text can be edited. Keep a copy of the file before you replace it
    "#);
    assert_snapshot!(env.run(&["insert", "d/a.md", "3", "x"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: could not insert into d/a.md: there is no line 3, the file has 2
    Hint: Name a line from 0 (the top) to 2: haversack view d/a.md
    "#);
    assert_snapshot!(env.run(&["insert", "d/a.md", "-1", "x"]), @r#"
    exit 2
    --- stdout
    --- stderr
    error: unexpected argument '-1' found

      tip: to pass '-1' as a value, use '-- -1'

    Usage: haversack insert [OPTIONS] <PATH> <LINE> [TEXT]

    For more information, try '--help'.
    "#);
    assert_snapshot!(with_stdin(&env, &["insert", "d/a.md", "0"], b"\xff"), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: the input is not text
    Caused by: invalid utf-8 sequence of 1 bytes from index 0
    Hint: Give UTF-8 text
    "#);
    assert_snapshot!(env.run(&["delete", "d"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: could not delete d: the directory is not empty
    Hint: Delete it with everything in it: haversack delete --recursive d
    "#);
    assert_snapshot!(env.run(&["delete", "/"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: could not delete the memory: it is the memory itself
    Hint: Name a file or directory in the memory: haversack ls
    "#);
    assert_snapshot!(env.run(&["rename", "d", "d/e"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: could not rename d: a directory cannot be moved into itself
    Hint: Take a name outside of it
    "#);
    assert_snapshot!(env.run(&["view", "d/a.md", "--lines", "0:1"]), @r#"
    exit 2
    --- stdout
    --- stderr
    error: invalid value '0:1' for '--lines <FIRST:LAST>': "0" is not a line number, which are 1, 2, 3 and so on

    For more information, try '--help'.
    "#);
    assert_snapshot!(env.run(&["view", "d/a.md"]), @r#"
    exit 0
    --- stdout
    one
    one
    --- stderr
    "#);
}

#[test]
fn looking_makes_nothing() {
    let env = TestEnv::new();
    assert_snapshot!(env.run(&["ls"]), @r#"
    exit 0
    --- stdout
    --- stderr
    There is no memory yet. Begin with the memory of your agents: haversack init
    "#);
    assert_snapshot!(env.run(&["ls", "lighthouse"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: could not view lighthouse: nothing is there
    Hint: List the files: haversack ls
    "#);
    assert_snapshot!(env.run(&["view", "a.md"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: could not view a.md: nothing is there
    Hint: List the files: haversack ls
    "#);
    assert!(!env.path(".local").exists());
}

#[test]
fn whoever_reads_may_go_away() {
    let env = TestEnv::new();
    env.run(&["create", "large.md", &"x".repeat(100_000)]);
    let mut child = env.command(&["view", "large.md"]).stdout(Stdio::piped()).spawn().expect("it starts");
    drop(child.stdout.take());
    assert_eq!(child.wait().expect("it ends").code(), Some(3));
}
