//! `tidy`, `prune`, `export`, `import` and `schedule`, as a user runs them. The rules of ageing are the engine's tests.

use std::fs;
use std::io::Write;
use std::path::Path;

use insta::assert_snapshot;

use crate::agents::Agents;
use crate::environment::TestEnv;
use crate::machines::Machines;

const LOG: &str = "interactions/2026-03-02.jsonl";

const EVENTS: &str = concat!(
    "{\"id\":\"7c9e6679-7425-40de-944b-e07fc1f90ae7\",\"ts\":\"2026-03-02T09:05:00Z\",\"channel\":\"chat\",\"direction\":\"inbound\",",
    "\"sender\":\"the user\",\"summary\":\"Always use the staging port 5433.\"}\n",
    "{\"id\":\"9a4de0c7-55aa-4b0e-9a1c-3de5f6a7b8c9\",\"ts\":\"2026-03-02T09:07:00Z\",\"direction\":\"inbound\",\"sender\":\"the user\",\"summary\":\"ok, thanks!\"}\n",
);

const LATER: &[&str] = &["--day", "2026-03-10"];

fn tidy(arguments: &[&'static str]) -> Vec<&'static str> {
    [&["tidy"], arguments, LATER].concat()
}

#[test]
fn tidy_shows_then_rolls_up_then_explains_and_can_be_undone() {
    let machines = Machines::new();
    machines.write("laptop", LOG, EVENTS);
    assert_snapshot!(machines.shown("laptop", &tidy(&["--dry-run"])), @r"
    exit 0
    --- stdout
    rolled interactions/2026-03-02.jsonl up into compacted/2026-W10.md, without 1 line (older than 7 days)
    --- stderr
    1 action to do. Nothing was changed. To do it: haversack tidy
    ");
    assert_eq!(machines.read("laptop", LOG).as_deref(), Some(EVENTS));
    assert_snapshot!(machines.shown("laptop", &tidy(&[])), @r"
    exit 0
    --- stdout
    rolled interactions/2026-03-02.jsonl up into compacted/2026-W10.md, without 1 line (older than 7 days)
    --- stderr
    Tidied in 1 action. To see why: haversack tidy --log. To take it back: haversack undo
    1 proposal waits for your answer: haversack tidy --review
    ");
    assert_eq!(machines.read("laptop", LOG), None);
    assert!(
        machines.read("laptop", "compacted/2026-W10.md").is_some_and(|week| week.contains("^7c9e6679-7425"))
    );
    assert_snapshot!(machines.shown("laptop", &["tidy", "--log"]), @r"
    exit 0
    --- stdout
    2026-03-10  rolled interactions/2026-03-02.jsonl up into compacted/2026-W10.md, without 1 line (older than 7 days)
                without 9a4de0c7-55aa: acknowledgement
    --- stderr
    ");
    machines.done("laptop", &tidy(&[]));
    machines.done("laptop", &["undo", "--yes"]);
    assert_eq!(machines.read("laptop", LOG).as_deref(), Some(EVENTS));
}

#[test]
fn tidy_syncs_first_and_does_nothing_if_that_fails() {
    let machines = Machines::laptop_and_desktop(&[(LOG, EVENTS)]);
    fs::rename(machines.env.path("remote"), machines.env.path("elsewhere")).expect("moved");
    let shown = machines.shown("laptop", &tidy(&[]));
    assert!(
        shown.starts_with("exit 1\n")
            && shown.contains("nothing was tidied, because the sync before it failed"),
        "{shown}"
    );
    assert_eq!(machines.read("laptop", LOG).as_deref(), Some(EVENTS));
    fs::rename(machines.env.path("elsewhere"), machines.env.path("remote")).expect("moved");
    machines.done("laptop", &tidy(&[]));
    machines.done("desktop", &tidy(&[]));
    machines.settle(&["laptop", "desktop"]);
    assert_eq!(machines.files("desktop"), machines.files("laptop"));
    assert_eq!(machines.read("desktop", LOG), None);
}

#[test]
fn proposal_is_reviewed_and_accepted() {
    let machines = Machines::new();
    machines.write("laptop", LOG, EVENTS);
    machines.done("laptop", &tidy(&[]));
    let listed = machines.shown("laptop", &["tidy", "--review"]);
    assert!(
        listed.contains("+Always use the staging port 5433.") && listed.contains("Said by the user"),
        "{listed}"
    );
    let id: String =
        listed.lines().find_map(|line| line.split_once("  behavioral/")).expect("an id").0.to_owned();
    let status = machines.shown("laptop", &["status"]);
    assert!(
        status.contains("tidy       1 proposal waits for your answer: haversack tidy --review"),
        "{status}"
    );
    machines.done("laptop", &["tidy", "--accept", &id, "--text", "Use port 5433 for staging."]);
    let files = machines.files("laptop");
    let memory = files.iter().find(|(name, _)| name.starts_with("behavioral/feedback_")).expect("a memory").1;
    assert!(memory.contains("Use port 5433 for staging."), "{memory}");
    assert!(machines.shown("laptop", &["tidy", "--reject", &id]).starts_with("exit 1\n"));
    let log = machines.shown("laptop", &["tidy", "--log"]);
    for part in [
        "added a proposal to behavioral/feedback_",
        "(it says that it should be remembered)",
        "interactions/2026-03-02.jsonl#7c9e6679-7425",
    ] {
        assert!(log.contains(part), "{part}: {log}");
    }
}

#[cfg(unix)]
#[test]
fn command_of_the_user_proposes_and_falls_back() {
    let machines = Machines::new();
    machines.write("laptop", LOG, EVENTS);
    let line = r#"{"kind":"reference","text":"Staging listens on port 5433","sources":["interactions/2026-03-02.jsonl#7c9e6679-7425"]}"#;
    let command = format!("tidy.command=cat >/dev/null; echo '{line}'");
    let run = |command: &str| machines.shown("laptop", &["--config", command, "tidy", "--day", "2026-03-05"]);
    let _ = run(&command);
    let review = machines.shown("laptop", &["tidy", "--review", "--json"]);
    assert!(
        review.contains("Staging listens on port 5433") && review.contains("the command of tidy.command"),
        "{review}"
    );
    let shown = run("tidy.command=exit 7");
    assert!(
        shown.contains("tidy.command failed") && shown.contains("the built-in extractor was used"),
        "{shown}"
    );
}

#[test]
fn prune_says_which_files_and_deletes_them_with_yes() {
    let machines = Machines::new();
    let digest = "---\nname: a\ndescription: b\ntype: session_digest\n---\nx\n";
    for day in ["2026-01-02", "2026-03-09"] {
        machines.write("laptop", &format!("behavioral/session_digest_{day}.md"), digest);
    }
    let prune = ["prune", "--older-than", "30d", "--kind", "session_digest", "--day", "2026-03-10"];
    assert_snapshot!(machines.shown("laptop", &prune), @r"
    exit 0
    --- stdout
    dropped behavioral/session_digest_2026-01-02.md (pruned: older than 30 days)
    --- stderr
    1 file would be deleted. Nothing was changed. To delete: the same command with --yes
    ");
    let pinned = "behavioral/session_digest_2026-01-03.md";
    machines.write("laptop", pinned, &digest.replace("type:", "pinned: true\ntype:"));
    machines.done("laptop", &[&prune[..], &["--yes"]].concat());
    assert!(machines.read("laptop", pinned).is_some());
    assert_eq!(machines.read("laptop", "behavioral/session_digest_2026-01-02.md"), None);
    assert!(machines.read("laptop", "behavioral/session_digest_2026-03-09.md").is_some());
}

#[test]
fn export_and_import_are_the_same_memory() {
    let machines = Machines::new();
    let long = format!("notes/{}.md", "long".repeat(40));
    for (name, text) in
        [("notes/x.md", "one\n"), (long.as_str(), "two\n"), ("notes/ü.md", "three\n"), ("bin.dat", "\0a")]
    {
        machines.write("laptop", name, text);
    }
    machines.done("laptop", &["export", "memory.tar.zst"]);
    assert!(machines.shown("laptop", &["export", "memory.tar.zst"]).contains("was not overwritten"));
    machines.done("desktop", &["import", "memory.tar.zst"]);
    assert_eq!(machines.files("desktop"), machines.files("laptop"));
    // What is newer here stays, and importing twice is the same as once.
    machines.write("desktop", "notes/x.md", "newer\n");
    machines.write("desktop", "bin.dat", "\0b");
    machines.done("desktop", &["import", "memory.tar.zst"]);
    let once = machines.files("desktop");
    assert!(once["notes/x.md"].contains("newer") && once["notes/x.md"].contains("one"), "{once:?}");
    assert_eq!(once["bin.dat"], "\0b");
    machines.done("desktop", &["import", "memory.tar.zst"]);
    assert_eq!(machines.files("desktop"), once);
}

/// An entry of a tar archive: its name, its type, its content.
type TarEntry<'a> = (&'a str, u8, &'a [u8]);

/// Writes a tar archive byte by byte: a library would refuse the names.
fn tar(entries: &[TarEntry<'_>]) -> Vec<u8> {
    let mut tar = Vec::new();
    for (name, kind, content) in entries {
        let mut header = [0_u8; 512];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[100..108].copy_from_slice(b"0000600\0");
        header[108..116].copy_from_slice(b"0000000\0");
        header[116..124].copy_from_slice(b"0000000\0");
        header[124..136].copy_from_slice(format!("{:011o}\0", content.len()).as_bytes());
        header[136..148].copy_from_slice(b"00000000000\0");
        header[148..156].copy_from_slice(b"        ");
        header[156] = *kind;
        header[157..165].copy_from_slice(b"/etc/pas");
        header[257..265].copy_from_slice(b"ustar\x0000");
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        tar.extend_from_slice(&header);
        tar.extend_from_slice(content);
        tar.resize(tar.len().next_multiple_of(512), 0);
    }
    tar.resize(tar.len() + 1024, 0);
    tar
}

fn compressed(place: &Path, bytes: &[u8]) {
    let frames = ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest);
    fs::File::create(place).and_then(|mut file| file.write_all(&frames)).expect("written");
}

fn manifest(files: &[(&str, &[u8])]) -> Vec<u8> {
    let listed = files.iter().map(|(path, content)| {
        serde_json::json!({ "path": path, "size": content.len(), "hash": haversack::ids::ContentHash::of(content).to_string(), "entry": "e" })
    });
    serde_json::to_vec(&serde_json::json!({ "format": 1, "files": listed.collect::<Vec<_>>() }))
        .expect("prints")
}

#[test]
fn hostile_archives_are_refused_and_change_nothing() {
    let machines = Machines::new();
    machines.write("laptop", "notes/x.md", "mine\n");
    let before = machines.files("laptop");
    let place = machines.env.path("trap.tar.zst");
    let one = |path: &str| manifest(&[(path, b"x")]);
    let archives: Vec<(&str, Vec<u8>, &str)> = vec![
        ("dots", tar(&[("manifest.json", b'0', &one("../../x.md")), ("e", b'0', b"x")]), "none of a memory"),
        (
            "absolute",
            tar(&[("manifest.json", b'0', &one("/etc/x.md")), ("e", b'0', b"x")]),
            "which no memory has",
        ),
        (
            "ours",
            tar(&[("manifest.json", b'0', &one(".haversack/x")), ("e", b'0', b"x")]),
            "none of a memory",
        ),
        ("link", tar(&[("manifest.json", b'0', &one("a.md")), ("e", b'2', b"")]), "not a plain file"),
        ("hard link", tar(&[("manifest.json", b'0', &one("a.md")), ("e", b'1', b"")]), "not a plain file"),
        ("device", tar(&[("manifest.json", b'0', &one("a.md")), ("e", b'3', b"")]), "not a plain file"),
        (
            "long name",
            tar(&[("manifest.json", b'0', &one("a.md")), ("e", b'L', &[b'x'; 4096])]),
            "not a plain file",
        ),
        ("another name", tar(&[("manifest.json", b'0', &one("a.md")), ("../e", b'0', b"x")]), "is expected"),
        ("damaged", tar(&[("manifest.json", b'0', &one("a.md")), ("e", b'0', b"y")]), "is damaged"),
        (
            "longer",
            tar(&[("manifest.json", b'0', &one("a.md")), ("e", b'0', b"xyz")]),
            "longer than its manifest",
        ),
        ("missing", tar(&[("manifest.json", b'0', &one("a.md"))]), "is missing"),
        ("more", tar(&[("manifest.json", b'0', &manifest(&[])), ("e", b'0', b"x")]), "does not list"),
        ("twice", tar(&[("manifest.json", b'0', &manifest(&[("a.md", b"x"), ("a.md", b"x")]))]), "twice"),
        ("no manifest", tar(&[("e", b'0', b"x")]), "is expected"),
        ("empty", Vec::new(), "it is empty"),
        ("format", tar(&[("manifest.json", b'0', b"{\"format\":2,\"files\":[]}")]), "format 2"),
        (
            "bomb",
            tar(&[("manifest.json", b'0', &one("a.md")), ("e", b'0', &vec![0; 50_000_000])]),
            "longer than its manifest",
        ),
    ];
    for (name, bytes, why) in archives {
        compressed(&place, &bytes);
        let shown = machines.shown("laptop", &["import", "trap.tar.zst"]);
        assert!(shown.starts_with("exit 1\n") && shown.contains(why), "{name}: {shown}");
        assert_eq!(machines.files("laptop"), before, "{name}");
    }
    // A good file before a bad one is not written either.
    let files: &[(&str, &[u8])] = &[("good.md", b"x"), ("bad.md", b"x")];
    compressed(
        &place,
        &tar(&[("manifest.json", b'0', &manifest(files)), ("e", b'0', b"x"), ("e", b'0', b"y")]),
    );
    assert!(machines.shown("laptop", &["import", "trap.tar.zst"]).contains("is damaged"));
    assert_eq!(machines.files("laptop"), before);
    fs::write(&place, b"no archive at all").expect("written");
    assert!(machines.shown("laptop", &["import", "trap.tar.zst"]).contains("was not imported"));
    fs::write(&place, &fs::read(&place).expect("read")[..5]).expect("written");
    assert!(machines.shown("laptop", &["import", "trap.tar.zst"]).contains("was not imported"));
}

#[test]
fn schedule_prints_and_writes_entries() {
    let machines = Machines::new();
    let printed = machines.done("laptop", &["schedule", "systemd"]);
    assert!(
        printed.contains("haversack-tidy.timer") && printed.contains("\"sync\" \"--when-due\""),
        "{printed}"
    );
    machines.done("laptop", &["schedule", "systemd", "--install"]);
    let unit = machines.env.path(".config/systemd/user/haversack-tidy.service");
    assert!(fs::read_to_string(&unit).is_ok_and(|unit| unit.contains("ExecStart=")));
    machines.done("laptop", &["schedule", "systemd", "--remove"]);
    assert!(!unit.exists());
}

#[test]
fn schedule_writes_and_removes_the_files_of_launchd() {
    let machines = Machines::new();
    machines.done("laptop", &["schedule", "launchd", "--install"]);
    let agent = machines.env.path("Library/LaunchAgents/dev.haversack.tidy.plist");
    let text = fs::read_to_string(&agent).expect("written");
    assert!(text.contains("<string>tidy</string>") && text.contains("<integer>86400</integer>"), "{text}");
    let told = machines.shown("laptop", &["schedule", "launchd", "--remove"]);
    assert!(told.contains("launchctl unload") && !agent.exists(), "{told}");
}

#[cfg(unix)]
#[test]
fn schedule_changes_only_its_own_lines_of_the_crontab() {
    use std::os::unix::fs::PermissionsExt;
    let machines = Machines::new();
    // A crontab that keeps its lines in a file.
    let (programs, kept) = (machines.env.path("programs"), machines.env.path("kept"));
    fs::create_dir_all(&programs).expect("made");
    let script =
        format!("#!/bin/sh\nif [ \"$1\" = -l ]; then cat '{0}'; else cat > '{0}'; fi\n", kept.display());
    fs::write(programs.join("crontab"), script).expect("written");
    fs::set_permissions(programs.join("crontab"), fs::Permissions::from_mode(0o755)).expect("set");
    let users = "MAILTO=me\n0 1 * * * backup\n";
    fs::write(&kept, users).expect("written");
    let run = |arguments: &[&str]| {
        let path = format!("{}:/usr/bin:/bin", programs.display());
        machines.env.shown(machines.command("laptop", arguments).env("PATH", path))
    };
    for _ in 0..2 {
        let told = run(&["schedule", "cron", "--install"]);
        assert!(told.contains("Wrote the crontab"), "{told}");
    }
    let lines = fs::read_to_string(&kept).expect("read");
    assert!(lines.starts_with(users) && lines.matches("'sync' '--when-due'").count() == 1, "{lines}");
    run(&["schedule", "cron", "--remove"]);
    assert_eq!(fs::read_to_string(&kept).expect("read"), users);
}

#[test]
fn status_tells_of_a_tidy_that_never_ran() {
    let machines = Machines::new();
    machines.done("laptop", &["append", "notes.md", "x"]);
    let on = |day: &str, arguments: &[&str]| {
        let now = format!("{day}T12:00:00Z");
        machines.shown("laptop", &[arguments, &["--now", &now, "--time-zone", "UTC"]].concat())
    };
    on("2026-03-01", &["tidy", "--dry-run"]);
    assert!(!on("2026-03-09", &["status"]).contains("has not run"), "it was not switched on");
    machines.done("laptop", &["config", "set", "tidy.auto", "true"]);
    let late = on("2026-03-09", &["status"]);
    assert!(late.contains("tidy       has not run for 8 days: haversack tidy"), "{late}");
    machines.done("laptop", &["config", "unset", "tidy.auto"]);
    on("2026-03-04", &["schedule", "systemd", "--install"]);
    assert!(!on("2026-03-06", &["status"]).contains("has not run"));
    let late = on("2026-03-09", &["status"]);
    assert!(late.contains("tidy       has not run for 5 days: haversack tidy"), "{late}");
    on("2026-03-09", &["schedule", "systemd", "--remove"]);
    assert!(!on("2026-03-20", &["status"]).contains("has not run"));
}

#[test]
fn store_is_tidied_once_a_day_by_one_machine() {
    let machines = Machines::laptop_and_desktop(&[("behavioral/a.md", "a\n")]);
    let on = |machine: &str, arguments: &[&str]| {
        machines
            .shown(machine, &[arguments, &["--now", "2026-03-10T12:00:00Z", "--time-zone", "UTC"]].concat())
    };
    for machine in ["laptop", "desktop"] {
        machines.done(machine, &["config", "set", "tidy.auto", "true"]);
        on(machine, &["tidy", "--dry-run"]);
    }
    machines.write("laptop", LOG, EVENTS);
    on("laptop", &["tidy"]);
    assert_eq!(machines.read("laptop", LOG), None);
    machines.settle(&["laptop", "desktop"]);
    let later = "interactions/2026-03-01.jsonl";
    machines.write("desktop", later, EVENTS);
    on("desktop", &["background"]);
    assert!(machines.read("desktop", later).is_some(), "the laptop tidied the store today");
    on("desktop", &["tidy"]);
    assert_eq!(machines.read("desktop", later), None, "the user can tidy at any time");
}

#[cfg(unix)]
#[test]
fn proposals_are_accepted_edited_and_rejected_on_a_terminal() {
    let env = TestEnv::new();
    let event = |number: usize, text: &str| {
        format!(
            "{{\"id\":\"{number:08x}-0000-4000-8000-000000000000\",\"direction\":\"inbound\",\"sender\":\"the user\",\"summary\":\"{text}\"}}\n"
        )
    };
    let texts =
        ["Always paint the door green.", "Always paint the pier white.", "Always wind the clock at noon."];
    let events: String = texts.iter().enumerate().map(|(number, text)| event(number, text)).collect();
    env.run(&["create", LOG, &events]);
    env.run(&["tidy", "--day", "2026-03-05"]);
    let shown = env.on_terminal(&["tidy", "--review"], "a\ne\nOnly in these words.\nr\n");
    assert!(shown.contains("Accept, edit, reject, or later?"), "{shown}");
    assert_eq!(shown.matches("Added to behavioral/feedback_").count(), 2, "{shown}");
    assert!(shown.contains("Rejected. It will not be proposed again."), "{shown}");
    let told = env.run(&["recall", "Only in these words"]);
    assert!(told.contains("Only in these words."), "{told}");
    let log = env.run(&["tidy", "--log"]);
    assert_eq!(log.matches("added a proposal to behavioral/feedback_").count(), 2, "{log}");
    assert_eq!(log.matches("rejected a proposal for behavioral/feedback_").count(), 1, "{log}");
    assert!(env.on_terminal(&["tidy", "--review"], "").contains("No proposal waits."));
}

#[test]
fn stale_memories_are_named() {
    let machines = Machines::new();
    for (name, text) in [
        ("notes/MEMORY.md", "# Memory\n\n- [a](a.md) — a\n- [gone](gone.md) — gone\n"),
        ("notes/a.md", "See [[b]] and [[nowhere]].\n"),
        ("notes/b.md", "---\nname: b\nsuperseded_by: a.md\n---\nOld.\n"),
        ("notes/c.md", "---\nname: c\nstale_after: 2020-01-01\n---\nOld.\n"),
    ] {
        machines.write("laptop", name, text);
    }
    assert_snapshot!(machines.shown("laptop", &["check", "--stale"]), @r"
    exit 1
    --- stdout
    notes/MEMORY.md: its line links to notes/gone.md, which does not exist
    notes/a.md: it links to notes/nowhere.md, which does not exist
    notes/b.md: it is superseded by a.md
    notes/b.md: no line of the index beside it links to it
    notes/c.md: it was to be looked at after 2020-01-01
    notes/c.md: no line of the index beside it links to it
    --- stderr
    6 things are stale.
    ");
}

#[test]
fn project_is_archived_and_stays() {
    let machines = Machines::new();
    machines.write("laptop", "project_lamp.md", "---\nname: lamp\ntype: project\n---\n\nNew lamp.\n");
    machines.done("laptop", &["tidy", "--archive", "project_lamp.md"]);
    let expected = "---\nname: lamp\ntype: project\nstatus: archived\n---\n\nNew lamp.\n";
    assert_eq!(machines.read("laptop", "project_lamp.md").as_deref(), Some(expected));
}

#[test]
fn archived_project_is_out_of_the_context() {
    let agents = Agents::new();
    let root = agents.repository("laptop", "lighthouse", "git@github.com:me/lighthouse.git");
    agents.start("laptop", &root);
    let memory =
        |kind: &str, text: &str| format!("---\nname: x\ndescription: d\ntype: {kind}\n---\n\n{text}\n");
    agents.remember("laptop", &root, "project_lamp.md", &memory("project", "New lamp."));
    agents.remember("laptop", &root, "user_role.md", &memory("user", "Keeper."));
    let run = |arguments: &[&str]| {
        let mut command = agents.command("laptop", arguments);
        agents.machines.env.shown(command.current_dir(&root))
    };
    assert!(run(&["context"]).contains("New lamp."), "{}", run(&["context"]));
    let told = run(&["tidy", "--archive", "project_lamp.md"]);
    assert!(told.starts_with("exit 0\n"), "{told}");
    let after = run(&["context"]);
    assert!(!after.contains("New lamp.") && after.contains("Keeper."), "{after}");
}

#[test]
fn only_memory_of_a_project_is_archived() {
    let machines = Machines::new();
    machines.write("laptop", "user_role.md", "---\nname: role\ntype: user\n---\n\nKeeper.\n");
    assert_snapshot!(machines.shown("laptop", &["tidy", "--archive", "user_role.md"]), @r"
    exit 1
    --- stdout
    --- stderr
    Error: user_role.md was not archived: its kind is user, and only a memory of a project can be archived
    Hint: To say that it is out of date, write `status: deprecated` in its frontmatter
    ");
}

#[test]
fn citations_of_changed_lines_are_named() {
    let agents = Agents::new();
    let root = agents.repository("laptop", "lighthouse", "git@github.com:me/lighthouse.git");
    agents.start("laptop", &root);
    let source = |name: &str, text: &str| {
        let place = root.join(name);
        fs::create_dir_all(place.parent().expect("a directory")).expect("made");
        fs::write(place, text).expect("written");
    };
    source("src/port.rs", "one\ntwo\nthree\n");
    source("Cargo.toml", "[package]\nname = \"lighthouse\"\n");
    let memory = "---\nname: ports\ntype: reference\n---\n\nSee src/port.rs:2, `Cargo.toml:2`, example.org:80 and src/gone.rs:1.\n";
    let _ = agents.remember("laptop", &root, "reference_ports.md", memory);
    let check = || {
        let told = agents.command("laptop", &["check", "--stale"]).current_dir(&root).output().expect("run");
        let told = String::from_utf8(told.stdout).expect("text");
        let cited = |line: &str| Some(line.split_once("it cites ")?.1.to_owned());
        told.lines().filter_map(cited).collect::<Vec<_>>()
    };
    let gone = "src/gone.rs:1, and the file does not exist";
    assert_eq!(check(), [gone], "the first check writes the lines down");
    source("src/port.rs", "zero\none\n  two\n");
    source("Cargo.toml", "[package]\nname = \"lighthouse\"\nversion = \"1\"\n");
    let changed = check();
    assert_eq!(changed.len(), 2, "{changed:?}");
    assert!(
        changed.iter().any(|line| line.starts_with("src/port.rs:2, and those lines have changed since ")),
        "{changed:?}"
    );
    source("src/port.rs", "zero\ntwo\n");
    fs::remove_file(root.join("Cargo.toml")).expect("removed");
    assert_eq!(check(), ["Cargo.toml:2, and the file does not exist", gone]);
    // A memory that was looked at and renewed cites the lines of today.
    source("src/port.rs", "zero\nnew\n");
    let _ = agents.remember(
        "laptop",
        &root,
        "reference_ports.md",
        "---\nname: ports\ntype: reference\nverified: 2026-11-18\n---\n\nSee src/port.rs:2.\n",
    );
    assert_eq!(check(), Vec::<String>::new());
}

#[test]
fn background_tidies_only_after_a_look_and_once_a_day() {
    let machines = Machines::new();
    machines.done("laptop", &["append", "notes.md", "x"]);
    machines.write("laptop", LOG, EVENTS);
    machines.done("laptop", &["config", "set", "tidy.auto", "true"]);
    machines.done("laptop", &["background"]);
    assert!(machines.read("laptop", LOG).is_some(), "the user has not seen what it would do");
    let status = machines.shown("laptop", &["status"]);
    assert!(status.contains("tidy       is switched on, and waits"), "{status}");
    machines.done("laptop", &["tidy", "--dry-run"]);
    machines.done("laptop", &["background"]);
    assert_eq!(machines.read("laptop", LOG), None);
    machines.write("laptop", LOG, EVENTS);
    machines.done("laptop", &["background"]);
    assert!(machines.read("laptop", LOG).is_some(), "once a day");
}

#[cfg(unix)]
#[test]
fn killed_tidy_and_two_at_once_lose_no_line() {
    let machines = Machines::new();
    let mut ids = Vec::new();
    // All of them are in weeks that are not old enough for their month.
    for day in 8..=28 {
        let mut log = String::new();
        for number in 0..40 {
            let id = format!("{day:04x}{number:04x}-0000");
            log.push_str(&format!(
                "{{\"id\":\"{id}-4000-8000-000000000000\",\"sender\":\"s\",\"summary\":\"message {number} of day {day}\"}}\n"
            ));
            ids.push(id);
        }
        machines.write("laptop", &format!("interactions/2026-02-{day:02}.jsonl"), &log);
    }
    let all = || machines.files("laptop").into_values().collect::<String>();
    for wait in [10, 30, 60, 100] {
        let [mut killed, mut other] = [(); 2].map(|()| {
            let mut command = machines.command("laptop", &["tidy", "--day", "2026-03-10"]);
            command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
            command.spawn().expect("started")
        });
        std::thread::sleep(std::time::Duration::from_millis(wait));
        killed.kill().expect("killed");
        let _ = killed.wait().expect("ended");
        let _ = other.wait().expect("ended");
        let text = all();
        for id in &ids {
            assert!(text.contains(id.as_str()), "{id} is lost after {wait} ms");
        }
    }
    machines.done("laptop", &["tidy", "--day", "2026-03-10"]);
    let files = machines.files("laptop");
    assert!(!files.keys().any(|name| name.starts_with("interactions/")), "{:?}", files.keys());
    let weeks: String = files
        .iter()
        .filter(|(name, _)| name.starts_with("compacted/2026-W"))
        .map(|(_, text)| text.as_str())
        .collect();
    for id in &ids {
        assert_eq!(weeks.matches(&format!("^{id}")).count(), 1, "{id}");
    }
}

#[test]
fn files_of_the_remote_are_listed_with_their_sizes() {
    let digest = "---\nname: a\ndescription: b\ntype: session_digest\n---\nx\n";
    let machines =
        Machines::laptop_and_desktop(&[("session_digest_2026-03-02.md", digest), ("notes/x.md", "one\n")]);
    machines.write("laptop", "notes/new.md", "not sent\n");
    assert_snapshot!(machines.shown("laptop", &["ls", "--remote"]), @r"
    exit 0
    --- stdout
     4  notes/x.md
    54  session_digest_2026-03-02.md
    --- stderr
    2 files, 58 bytes
    ");
    let listed = machines.shown("laptop", &["ls", "--remote", "--kind", "session_digest"]);
    assert!(listed.contains("1 file, 54 bytes"), "{listed}");
}

#[test]
fn init_offers_to_tidy_and_shows_the_first_run() {
    let machines = Machines::new();
    machines.write("laptop", LOG, EVENTS);
    let now = ["--now", "2026-03-10T12:00:00Z", "--time-zone", "UTC"];
    let run = |arguments: &[&str]| machines.shown("laptop", &[arguments, &now[..]].concat());
    let shown = run(&["init", "--yes"]);
    assert!(!shown.contains("tidy"), "nothing is switched on unasked: {shown}");
    let is_on =
        || run(&["config", "list"]).lines().any(|line| line.contains("tidy.auto") && line.contains("true"));
    assert!(!is_on());
    let shown = run(&["init", "--yes", "--tidy", "--dry-run"]);
    assert!(shown.contains("tidy.auto would be switched on"), "{shown}");
    let shown = run(&["init", "--yes", "--tidy"]);
    assert!(
        shown.contains("The first tidy would do 1 thing:")
            && shown.contains("  rolled interactions/2026-03-02.jsonl up into compacted/2026-W10.md"),
        "{shown}"
    );
    assert_eq!(machines.read("laptop", LOG).as_deref(), Some(EVENTS), "it was a dry run");
    assert!(is_on());
    // The user has seen it, so the background process does it.
    run(&["background"]);
    assert_eq!(machines.read("laptop", LOG), None);
    assert!(!run(&["status"]).contains("has not run"));
    let later = machines.shown("laptop", &["status", "--now", "2026-03-15T12:00:00Z", "--time-zone", "UTC"]);
    assert!(later.contains("tidy       has not run for 5 days: haversack tidy"), "{later}");
    assert!(!run(&["init", "--yes", "--tidy"]).contains("The first tidy"), "it is asked once");
}

#[test]
fn status_tells_of_runs_without_proposals() {
    let machines = Machines::new();
    machines.done("laptop", &["append", "notes.md", "x"]);
    for day in 10..24 {
        let now = format!("2026-03-{day}T12:00:00Z");
        machines.done("laptop", &["tidy", "--now", &now, "--time-zone", "UTC"]);
    }
    let status = machines.shown("laptop", &["status"]);
    assert!(status.contains("tidy       proposed no memory in 14 runs"), "{status}");
}

#[test]
fn clock_that_went_back_a_year_is_no_reason_to_tidy_or_to_stop() {
    let machines = Machines::new();
    machines.done("laptop", &["config", "set", "tidy.auto", "true"]);
    machines.write("laptop", LOG, EVENTS);
    let run = |arguments: &[&str], now: &str| {
        machines.shown("laptop", &[arguments, &["--now", now, "--time-zone", "UTC"]].concat())
    };
    run(&["tidy"], "2026-03-04T12:00:00Z");
    let before = machines.files("laptop");
    // A year back: nothing is old.
    run(&["background"], "2025-03-04T12:00:00Z");
    assert_eq!(machines.files("laptop"), before);
    assert!(!run(&["status"], "2025-03-04T12:00:00Z").contains("has not run"));
    // The clock is right again.
    run(&["background"], "2026-03-10T12:00:00Z");
    assert_eq!(machines.read("laptop", LOG), None);
}

#[cfg(unix)]
#[test]
fn command_that_lies_or_prints_too_much_changes_nothing() {
    let machines = Machines::new();
    machines.write("laptop", LOG, EVENTS);
    let run = |command: &str| {
        let command = format!("tidy.command={command}");
        machines.shown("laptop", &["--config", &command, "tidy", "--day", "2026-03-05"])
    };
    let waiting = || machines.shown("laptop", &["tidy", "--review", "--json"]);
    let lies = [
        // A source that does not exist, a line that nobody said, a place outside of the memory, a kind that is not, no JSON, control characters.
        r#"{"kind":"reference","text":"Staging listens on 1","sources":["interactions/2026-03-02.jsonl#ffffffff-0000"]}"#,
        r#"{"kind":"reference","text":"Staging listens on 2","sources":["../../etc/passwd#7c9e6679-7425"]}"#,
        r#"{"kind":"reference","text":"Staging listens on 3","sources":[]}"#,
        r#"{"kind":"../escape","text":"Staging listens on 4","sources":["interactions/2026-03-02.jsonl#7c9e6679-7425"]}"#,
        "not JSON",
        "[[[[[[[[",
    ];
    let file = machines.env.path("lies.jsonl");
    fs::write(&file, lies.join("\n")).expect("written");
    let shown = run(&format!("cat {}", file.display()));
    assert!(shown.contains("of the lines that tidy.command printed are no proposals"), "{shown}");
    assert!(!waiting().contains("Staging listens on"), "{}", waiting());
    let shown = run("head -c 100000000 /dev/zero");
    assert!(
        shown.contains("printed more than") && shown.contains("the built-in extractor was used"),
        "{shown}"
    );
    assert!(!machines.files("laptop").keys().any(|name| name.contains("escape") || name.contains("passwd")));
}

#[test]
fn proposal_for_a_file_that_is_gone_is_proposed_again() {
    let machines = Machines::new();
    machines.write("laptop", LOG, EVENTS);
    machines.write(
        "laptop",
        "behavioral/feedback_ports.md",
        "---\nname: ports\ntype: feedback\n---\n\nOld.\n",
    );
    machines.done("laptop", &tidy(&[]));
    let listed = machines.shown("laptop", &["tidy", "--review", "--json"]);
    let all: serde_json::Value = serde_json::from_str(
        listed
            .split_once("--- stdout\n")
            .and_then(|(_, rest)| rest.split_once("--- stderr"))
            .expect("output")
            .0,
    )
    .expect("JSON");
    let proposal = &all[0]["proposal"];
    let (id, target) =
        (proposal["id"].as_str().expect("an id"), proposal["target"].as_str().expect("a target"));
    // Another program makes the target, and deletes it again: whatever is there, nothing is lost and the answer is clear.
    machines.write("laptop", target, "---\nname: other\ntype: feedback\n---\n\nAnother rule.\n");
    let shown = machines.shown("laptop", &["tidy", "--accept", id]);
    assert!(shown.contains("changed since this was proposed. Nothing was added"), "{shown}");
    assert!(machines.read("laptop", target).is_some_and(|text| text.contains("Another rule.")));
    fs::remove_file(machines.path("laptop", target)).expect("removed");
    let listed = machines.shown("laptop", &["tidy", "--review"]);
    assert!(listed.contains(target), "{listed}");
}

#[test]
fn check_finds_stale_memories_duplicates_and_contradictions_at_once() {
    let machines = Machines::new();
    let memory = |name: &str, text: &str| {
        format!("---\nname: {name}\ndescription: d\ntype: reference\n---\n\n{text}\n")
    };
    let lamp =
        "The lamp of the lighthouse turns every ten seconds and its glass is cleaned each Monday morning.";
    for (path, text) in [
        ("notes/lamp.md", memory("Lamp", lamp)),
        ("notes/lamp2.md", memory("lamp", &format!("{lamp} So it was."))),
        ("notes/old.md", memory("old", "Old.").replace("type:", "status: deprecated\ntype:")),
        ("other/lamp.md", memory("lamp", "Another lamp.")),
        ("notes/deep/lamp.md", memory("LAMP", "A deep lamp.")),
        (
            "inbox/0123456789ab.json",
            serde_json::json!({ "text": lamp, "target": "notes/lamp.md" }).to_string(),
        ),
    ] {
        machines.write("laptop", path, &text);
    }
    assert_snapshot!(machines.shown("laptop", &["check", "--stale", "--duplicates"]), @r#"
    exit 1
    --- stdout
    notes/lamp.md:7-7  notes/lamp2.md:7-7  89 % of the words are the same
    notes/lamp.md: it is named "Lamp" like notes/deep/lamp.md, and says something else
    notes/lamp2.md: it is named "lamp" like notes/deep/lamp.md, and says something else
    notes/old.md: its status is deprecated
    --- stderr
    1 pair of passages says nearly the same
    3 things are stale.
    "#);
    let json = machines.shown("laptop", &["check", "--stale", "--duplicates", "--json"]);
    assert!(json.contains("\"duplicates\"") && json.contains("\"stale\""), "{json}");
}

#[test]
fn files_of_no_remote_cannot_be_listed() {
    let machines = Machines::new();
    machines.write("laptop", "notes.md", "x\n");
    let shown = machines.shown("laptop", &["ls", "--remote"]);
    assert!(
        shown.starts_with("exit 1\n") && shown.contains("there is no remote, so there is nothing to list"),
        "{shown}"
    );
}
