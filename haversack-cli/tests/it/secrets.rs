//! Files with possible secrets stay on the machine, as a user sees it.

use std::path::Path;

use insta::assert_snapshot;

use crate::machines::Machines;

/// Returns something that looks like a token; no text of ours holds one.
fn token(number: u64) -> String {
    let alphabet: Vec<char> = ('a'..='z').chain('A'..='Z').chain('0'..='9').collect();
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        alphabet[usize::try_from((state >> 16) % 62).expect("small")]
    };
    format!("gh{}_{}", "p", (0..36).map(|_| next()).collect::<String>())
}

/// Returns the files below a directory that hold a text anywhere in their bytes or their names.
fn holding(root: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
            let path = entry.path();
            let is_named = entry.file_name().to_string_lossy().contains(text);
            let has = |bytes: Vec<u8>| bytes.windows(text.len()).any(|window| window == text.as_bytes());
            if is_named || !path.is_dir() && std::fs::read(&path).is_ok_and(has) {
                found.push(path.strip_prefix(root).expect("below").display().to_string());
            }
            if path.is_dir() {
                directories.push(path);
            }
        }
    }
    found.sort();
    found
}

#[test]
fn a_secret_stays_and_the_rest_travels() {
    let machines = Machines::new();
    let secret = token(1);
    machines.write("laptop", "ports.md", "staging listens on 5433\n");
    machines.write("laptop", "deploy.md", &format!("# Deploys\n\nthe token is {secret}\n"));
    machines.done("laptop", &["remote", "add", &machines.url(), "--device", "laptop"]);
    let outputs = [
        machines.shown("laptop", &["status"]),
        machines.shown("laptop", &["sync"]),
        machines.shown("laptop", &["status"]),
        machines.shown("laptop", &["status", "--json"]),
        machines.shown("laptop", &["status", "--line"]),
        machines.shown("laptop", &["sync", "--full"]),
        machines.shown("laptop", &["push", "deploy.md"]),
        machines.shown("laptop", &["sync", "--json"]),
        machines.shown("laptop", &["log"]),
    ];
    assert_snapshot!(outputs[0], @r#"
    exit 1
    --- stdout
    1 thing needs you. All you wrote is safe on this machine; 1 change waits to be sent.

      1  deploy.md is held back: line 3 holds a GitHub token (github-token)
         → edit the line, or, if it may be sent: haversack allow deploy.md:3

      files      2
    --- stderr
    "#);
    assert_snapshot!(outputs[1], @r#"
    exit 0
    --- stdout
    Sent 1 file.
      deploy.md stays on this machine: line 3 holds a GitHub token (github-token)
      → edit the line, or, if it may be sent: haversack allow deploy.md:3
    --- stderr
    "#);
    assert_snapshot!(outputs[2], @r#"
    exit 1
    --- stdout
    1 thing needs you. All you wrote is safe on this machine.

      1  deploy.md is held back: line 3 holds a GitHub token (github-token)
         → edit the line, or, if it may be sent: haversack allow deploy.md:3

      files      2
      machines   laptop (this one)
    --- stderr
    "#);
    assert_snapshot!(outputs[4], @r#"
    exit 1
    --- stdout
    haversack: a file held back
    --- stderr
    "#);
    assert_snapshot!(outputs[6], @r#"
    exit 0
    --- stdout
    Nothing new.
      deploy.md stays on this machine: line 3 holds a GitHub token (github-token)
      → edit the line, or, if it may be sent: haversack allow deploy.md:3
    --- stderr
    "#);
    for output in &outputs {
        assert!(!output.contains(&secret[4..]), "{output}");
    }
    machines.done("desktop", &["join", &machines.url(), "--device", "desktop", "--yes"]);
    assert_eq!(machines.files("desktop").into_keys().collect::<Vec<_>>(), ["ports.md"]);
    assert_eq!(holding(&machines.env.path("remote"), &secret), Vec::<String>::new());
    assert_eq!(holding(&machines.env.path("laptop"), &secret), ["memory/deploy.md"]);

    assert_snapshot!(machines.shown("laptop", &["allow", "deploy.md:3"]), @r#"
    exit 0
    --- stdout
    --- stderr
    deploy.md:3 may be sent: a GitHub token (github-token)
    The next sync sends it: haversack sync
    "#);
    assert_snapshot!(machines.shown("laptop", &["sync"]), @r#"
    exit 0
    --- stdout
    Sent 1 file.
    --- stderr
    "#);
    assert_snapshot!(machines.shown("laptop", &["status"]), @r#"
    exit 0
    --- stdout
    In sync. Last contact just now with file://BASE/user/remote

      files      2
      machines   laptop (this one)
    --- stderr
    "#);
    machines.done("desktop", &["sync"]);
    assert_eq!(machines.files("desktop"), machines.files("laptop"));
    let record = std::fs::read_to_string(machines.env.path("laptop").join("allowed.toml")).expect("written");
    assert!(!record.contains(&secret[4..]), "{record}");

    // The other machine has not allowed it, but the remote has it: an edit beside it is sent.
    machines.write(
        "desktop",
        "deploy.md",
        &format!("# Deploys\n\n- the token is {secret}\n- and the lamp is white\n"),
    );
    assert_snapshot!(machines.shown("desktop", &["sync"]), @r#"
    exit 0
    --- stdout
    Sent 1 file.
    --- stderr
    "#);
}

#[test]
fn a_secret_added_to_a_file_that_was_sent_stays() {
    let machines =
        Machines::laptop_and_desktop(&[("lamp.md", "white\n"), ("notes/a.md", "one\ntwo\nthree\n")]);
    let secret = token(2);
    // Growth travels as an append: it is looked at all the same.
    machines.write("laptop", "lamp.md", &format!("white\nkey {secret}\n"));
    // A renamed file with a new secret stays here, and its old name stays on the other machine.
    machines.done("laptop", &["rename", "notes/a.md", "notes/b.md"]);
    machines.write("laptop", "notes/b.md", &format!("one\ntwo {secret}\nthree\n"));
    machines.write("laptop", "other.md", "fine\n");
    assert_snapshot!(machines.shown("laptop", &["sync"]), @r#"
    exit 0
    --- stdout
    Sent 1 file.
      2 files stay on this machine
        lamp.md: line 2 holds a GitHub token (github-token)
        notes/b.md: line 2 holds a GitHub token (github-token). Other machines keep it as notes/a.md until then
      → edit the lines, or, if they may be sent: haversack allow lamp.md:2 notes/b.md:2
    --- stderr
    "#);
    machines.done("desktop", &["sync"]);
    assert_eq!(machines.read("desktop", "lamp.md").as_deref(), Some("white\n"));
    assert_eq!(machines.read("desktop", "other.md").as_deref(), Some("fine\n"));
    assert!(machines.read("desktop", "notes/a.md").is_some());
    // Changes of other machines are merged into it here, and it stays held.
    machines.write("desktop", "lamp.md", "white\nred\n");
    machines.done("desktop", &["sync"]);
    machines.settle(&["laptop", "desktop"]);
    let lamp = machines.read("laptop", "lamp.md").expect("there");
    assert!(lamp.contains("red\n") && lamp.contains(&secret), "{lamp}");
    assert_eq!(machines.read("desktop", "lamp.md").as_deref(), Some("white\nred\n"));
    assert_eq!(holding(&machines.env.path("remote"), &secret), Vec::<String>::new());
    assert_eq!(holding(&machines.env.path("desktop"), &secret), Vec::<String>::new());
    // Without the line, the rest follows.
    machines.write("laptop", "lamp.md", "white\nred\nblue\n");
    machines.write("laptop", "notes/b.md", "one\ntwo\nthree\n");
    machines.settle(&["laptop", "desktop"]);
    assert_eq!(machines.files("desktop"), machines.files("laptop"));
}

#[test]
fn what_is_allowed_is_allowed_by_what_it_is() {
    let machines = Machines::new();
    let (first, second) = (token(3), token(4));
    machines.write("laptop", "a.md", &format!("x\n{first}\n"));
    machines.done("laptop", &["remote", "add", &machines.url(), "--device", "laptop"]);
    for arguments in
        [&["allow", "a.md:1"][..], &["allow", "a.md"], &["allow", "a.md:0"], &["allow", "none.md:1"]]
    {
        let shown = machines.shown("laptop", arguments);
        assert!(shown.starts_with("exit 1\n"), "{shown}");
    }
    assert_snapshot!(machines.shown("laptop", &["allow", "a.md:1"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: nothing in line 1 of a.md looks like a secret
    Hint: These lines look like secrets. If they may be sent: haversack allow a.md:2
    "#);
    assert_snapshot!(machines.shown("laptop", &["allow", "a.md"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: "a.md" is not a file and a line
    Hint: These lines look like secrets. If they may be sent: haversack allow a.md:2
    "#);
    assert_snapshot!(machines.shown("laptop", &["allow", "--list"]), @r#"
    exit 0
    --- stdout
    --- stderr
    Nothing that looks like a secret is allowed. Allow a line: haversack allow PATH:LINE
    "#);
    machines.done("laptop", &["allow", "a.md:2"]);
    // Moved, it stays allowed; another one is not.
    machines.write("laptop", "a.md", &format!("x\ny\nz {first}\n"));
    machines.write("laptop", "b.md", &format!("{first}\n{second}\n"));
    assert_snapshot!(machines.shown("laptop", &["sync"]), @r#"
    exit 0
    --- stdout
    Sent 1 file.
      b.md stays on this machine: line 2 holds a GitHub token (github-token)
      → edit the line, or, if it may be sent: haversack allow b.md:2
    --- stderr
    "#);
    let listed = machines.done("laptop", &["allow", "--list"]);
    let fingerprint =
        listed.lines().find_map(|line| line.strip_suffix("  github-token  a.md")).expect("listed");
    machines.done("laptop", &["allow", "--remove", fingerprint]);
    assert!(machines.shown("laptop", &["allow", "--remove", fingerprint]).starts_with("exit 1\n"));
    machines.write("laptop", "c.md", &format!("{first}\n"));
    let shown = machines.done("laptop", &["sync"]);
    assert!(
        shown.contains("2 files stay on this machine\n")
            && shown.contains("c.md: line 1 holds a GitHub token (github-token)\n"),
        "{shown}"
    );
}

#[test]
fn a_secret_is_no_message_and_no_name() {
    let machines = Machines::new();
    let secret = token(5);
    machines.write("laptop", &format!("{secret}.md"), "x\n");
    machines.write("laptop", "a.md", "x\n");
    machines.done("laptop", &["remote", "add", &machines.url(), "--device", "laptop"]);
    assert_snapshot!(machines.shown("laptop", &["sync", "--message", &format!("with {secret}")]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: the message holds a GitHub token (github-token), so nothing was sent
    Hint: Say it without the secret: haversack sync --message TEXT
    "#);
    let outputs = [
        machines.shown("laptop", &["sync"]),
        machines.shown("laptop", &["status"]),
        machines.shown("laptop", &["sync", "--json"]),
    ];
    assert_snapshot!(outputs[0], @r#"
    exit 0
    --- stdout
    Sent 1 file.
      ghp_… stays on this machine: its name holds a GitHub token (github-token)
      → change it, or give it another name: haversack rename ghp_… NAME
    --- stderr
    "#);
    for output in &outputs {
        assert!(!output.contains(&secret[4..]), "{output}");
    }
    assert_eq!(holding(&machines.env.path("remote"), &secret), Vec::<String>::new());
}

#[test]
fn a_damaged_record_is_said_and_nothing_is_sent() {
    let machines = Machines::new();
    machines.write("laptop", "a.md", &format!("{}\n", token(6)));
    machines.done("laptop", &["remote", "add", &machines.url(), "--device", "laptop"]);
    std::fs::write(machines.env.path("laptop").join("allowed.toml"), "allowed = 7\n").expect("written");
    assert_snapshot!(machines.shown("laptop", &["sync"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: laptop/allowed.toml was not written by Haversack, or was changed since
    Caused by: invalid type: integer `7`, expected a sequence
    Hint: Repair it, or remove it and allow the lines again: haversack allow PATH:LINE
    "#);
}

#[test]
fn device_name_with_a_secret_is_refused() {
    let machines = Machines::new();
    machines.write("laptop", "ports.md", "staging listens on 5433\n");
    let name = format!("laptop {}", token(3));
    let shown = machines.shown("laptop", &["remote", "add", &machines.url(), "--device", &name]);
    assert!(!shown.contains(&token(3)), "{shown}");
    assert_snapshot!(shown, @r"
    exit 1
    --- stdout
    --- stderr
    Error: this machine cannot have that name: it holds a GitHub token (github-token)
    Hint: Every commit contains the name. Choose a short one, as in: --device laptop
    ");
    let long = "l".repeat(61);
    let shown = machines.shown("laptop", &["remote", "add", &machines.url(), "--device", &long]);
    assert_snapshot!(shown, @r"
    exit 1
    --- stdout
    --- stderr
    Error: this machine cannot have that name: it has more than 60 characters
    Hint: Every commit contains the name. Choose a short one, as in: --device laptop
    ");
    let shown = machines.shown("laptop", &["remote", "add", &machines.url(), "--device", "lap\ntop"]);
    assert_snapshot!(shown, @r"
    exit 1
    --- stdout
    --- stderr
    Error: this machine cannot have that name: it has a control character
    Hint: Every commit contains the name. Choose a short one, as in: --device laptop
    ");
}

#[test]
fn status_names_every_held_file_if_all_are_asked_for() {
    let machines = Machines::new();
    machines.done("laptop", &["remote", "add", &machines.url(), "--device", "laptop"]);
    for number in 1..=7 {
        machines.write("laptop", &format!("deploy-{number}.md"), &format!("{}\n", token(number)));
    }
    let named = |arguments: &[&str]| {
        let shown = machines.shown("laptop", arguments);
        (1..=7).filter(|number| shown.contains(&format!("deploy-{number}.md: line 1"))).count()
    };
    assert_eq!((named(&["status"]), named(&["status", "--all"])), (5, 7));
    let shown = machines.shown("laptop", &["status"]);
    assert!(shown.contains("… and 2 more that are held back: haversack status --all"), "{shown}");
}
