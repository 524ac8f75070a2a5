//! The places that may be a remote: an own directory with an unmistakable name.

use std::fs;

use insta::assert_snapshot;

use crate::machines::Machines;

/// Makes files below the user's home directory.
fn furnish(machines: &Machines, files: &[(&str, &str)]) {
    for (path, text) in files {
        let path = machines.env.path(path);
        fs::create_dir_all(path.parent().expect("below the base")).expect("made");
        fs::write(path, text).expect("written");
    }
}

#[test]
fn directory_with_other_files_is_no_remote() {
    let machines = Machines::new();
    machines.write("laptop", "manifest.json.md", "memory\n");
    furnish(
        &machines,
        &[("My Documents/manifest.json", "{\"name\": \"my app\"}"), ("My Documents/taxes/2025.md", "mine\n")],
    );
    for command in [&["init", "My Documents", "--yes"][..], &["remote", "add", "My Documents"]] {
        let shown = machines.shown("laptop", command);
        assert!(shown.starts_with("exit 1\n"), "{shown}");
        assert!(
            shown.contains("Error: My Documents holds other files (manifest.json, taxes) and no store of Haversack. Nothing was changed"),
            "{shown}"
        );
        let offered =
            format!("haversack {} 'My Documents/haversack'", command[..command.len() - 1].join(" "));
        let offered = offered.replace(" My Documents", "");
        assert!(shown.contains(&offered), "{offered}: {shown}");
    }
    let manifest = fs::read_to_string(machines.env.path("My Documents/manifest.json")).expect("there");
    assert_eq!(manifest, "{\"name\": \"my app\"}");
    assert!(!machines.env.path("My Documents/.haversack").exists());
    assert!(!machines.env.path("laptop/remote.toml").exists());
    machines.done("laptop", &["remote", "add", "My Documents/haversack"]);
    machines.done("laptop", &["sync", "--full"]);
    assert!(!machines.path("laptop", "taxes/2025.md").exists());
}

#[test]
fn files_of_systems_and_sync_clients_do_not_occupy_a_directory() {
    let machines = Machines::new();
    machines.write("laptop", "a.md", "memory\n");
    furnish(
        &machines,
        &[
            ("remote/.DS_Store", "x"),
            ("remote/desktop.ini", "x"),
            ("remote/Icon\r", ""),
            ("remote/.obsidian/app.json", "{}"),
        ],
    );
    machines.done("laptop", &["remote", "add", "remote"]);
    machines.done("laptop", &["sync"]);
    assert_eq!(fs::read_to_string(machines.env.path("remote/a.md")).expect("mirrored"), "memory\n");
}

#[test]
fn folder_whose_store_is_still_arriving_is_waited_for() {
    let machines = Machines::new();
    machines.write("laptop", "a.md", "memory\n");
    furnish(&machines, &[("Sync/.stfolder/x", ""), ("Sync/h/.haversack/log/1f/1", "the rest comes later")]);
    for (arrived, text) in [(false, ""), (true, "{\"format\":")] {
        if arrived {
            furnish(&machines, &[("Sync/h/.haversack/store.json", text)]);
        }
        for command in ["init", "join", "remote add"] {
            let mut arguments: Vec<&str> = command.split(' ').collect();
            arguments.push("Sync/h");
            let shown = machines.shown("laptop", &arguments);
            assert!(shown.starts_with("exit 1\n"), "{shown}");
            assert!(shown.contains("Sync/h holds a part of a store"), "{shown}");
            let again = format!("run it again: haversack {command} Sync/h ");
            assert!(shown.contains(&again), "{again}: {shown}");
        }
    }
    assert!(!machines.env.path("laptop/remote.toml").exists());
    // Plain files can arrive before anything of ours: the message tells of both ways.
    furnish(&machines, &[("Sync/other/notes.md", "x")]);
    assert_snapshot!(machines.shown("laptop", &["remote", "add", "Sync/other"]), @r#"
    exit 1
    --- stdout
    --- stderr
    BASE/user/Sync/other is in a folder that Syncthing replicates (.stfolder is there): each machine writes only its own log there, and waits for files that arrive late or in parts (vault://).
    Error: Sync/other holds other files (notes.md) and no store of Haversack. Nothing was changed
    Hint: Use a separate directory for the memory: haversack remote add Sync/other/haversack. If another machine keeps a store there: wait until the sync client has brought its .haversack, then run the same command again
    "#);
}

#[test]
fn file_that_we_did_not_write_is_never_replaced() {
    let machines = Machines::laptop_and_desktop(&[("notes/a.md", "one\n")]);
    furnish(&machines, &[("remote/notes/b.md", "not ours\n"), ("remote/taxes/2025.md", "mine\n")]);
    machines.write("laptop", "notes/b.md", "ours\n");
    assert_snapshot!(machines.shown("laptop", &["sync"]), @r#"
    exit 0
    --- stdout
    Sent 1 file.
      notes/b.md in the remote is not the file that we wrote. We did not touch it
      → take it in as an edit: haversack sync --full
    --- stderr
    "#);
    assert_snapshot!(machines.shown("laptop", &["status"]), @r#"
    exit 1
    --- stdout
    1 thing needs you. All you wrote is safe on this machine.

      1  notes/b.md in the remote is not the file that we wrote. We did not touch it
         → take it in as an edit: haversack sync --full

      files      2
      machines   laptop (this one)
    --- stderr
    "#);
    assert_eq!(fs::read_to_string(machines.env.path("remote/notes/b.md")).expect("there"), "not ours\n");
    assert_snapshot!(machines.shown("laptop", &["sync", "--full"]), @r#"
    exit 0
    --- stdout
    Sent 1 file, merged 1 file, imported 1 file changed by hand in the remote.
      1 file in the remote is no part of this memory: taxes/2025.md
      → we changed and imported nothing; to keep one as memory, copy it into the memory
    --- stderr
    "#);
    let both = machines.read("laptop", "notes/b.md").expect("there");
    assert!(both.contains("ours\n") && both.contains("not ours\n"), "{both}");
    assert!(!machines.path("laptop", "taxes/2025.md").exists());
    assert_eq!(fs::read_to_string(machines.env.path("remote/taxes/2025.md")).expect("there"), "mine\n");
    machines.done("laptop", &["status"]);
}

#[test]
fn mistyped_address_is_an_error_and_makes_no_directory() {
    let machines = Machines::new();
    machines.write("laptop", "a.md", "memory\n");
    let before = fs::read_dir(machines.env.path("")).expect("listed").count();
    let texts = [
        "",
        " ",
        "s3:bucket",
        "s3:/bucket",
        "git@host:me/x.git",
        "https://example.com/x.git",
        "http://example.com/x",
        "ssh://host/x",
        "Dropbox:/x",
        "C:foo",
    ];
    for text in texts {
        for command in [
            &["init", text, "--yes"][..],
            &["remote", "add", text],
            &["join", text, "--yes"],
            &["migrate", "laptop/memory", text, "--yes"],
        ] {
            let shown = machines.shown("laptop", command);
            assert!(shown.starts_with("exit 1\n") && shown.contains("Hint: "), "{command:?}: {shown}");
            assert!(shown.contains("s3://BUCKET"), "{command:?} lists the forms: {shown}");
        }
    }
    assert_eq!(fs::read_dir(machines.env.path("")).expect("listed").count(), before);
    assert_snapshot!(machines.shown("laptop", &["init", "s3:bucket", "--yes"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: "s3:bucket" looks like an address of the kind "s3", but it is not a valid one
    Hint: Did you mean s3://bucket? Name a directory (~/Dropbox/haversack), a bucket (s3://BUCKET/PREFIX, az://CONTAINER/PREFIX, gs://BUCKET/PREFIX, https://ACCOUNT.blob.core.windows.net/CONTAINER), or say which sort of directory it is (vault:///FOLDER for one that is replicated, file:///DIRECTORY for one of this machine)
    "#);
    assert_snapshot!(machines.shown("laptop", &["remote", "add", "./s3:bucket", "--device", "laptop"]), @r#"
    exit 0
    --- stdout
    --- stderr
    BASE/user/s3:bucket is on this machine only: your other machines will not see it unless something copies it (file://).
    This machine's name is "laptop" (change it with --device NAME). Send its files: haversack sync
    "#);
}

#[test]
fn folder_with_the_name_of_a_client_is_replicated() {
    let machines = Machines::new();
    machines.write("laptop", "a.md", "memory\n");
    let shown =
        machines.done("laptop", &["remote", "add", "OneDrive - Lighthouse/haversack", "--device", "laptop"]);
    assert!(
        shown.contains("in a folder that OneDrive replicates (it is called OneDrive - Lighthouse)"),
        "{shown}"
    );
    let shown = machines.shown(
        "desktop",
        &["remote", "add", &format!("file://{}", machines.env.path("Dropbox/x").display())],
    );
    assert!(shown.starts_with("exit 1\n") && shown.contains("Dropbox replicates"), "{shown}");
}

#[test]
fn folder_that_may_be_replicated_is_asked_about() {
    let machines = Machines::new();
    machines.write("laptop", "a.md", "memory\n");
    for command in ["init", "remote add", "join"] {
        let mut arguments: Vec<&str> = command.split(' ').collect();
        arguments.push("Sync/haversack");
        let shown = machines.shown("laptop", &arguments);
        assert!(shown.starts_with("exit 1\n"), "{shown}");
        for scheme in ["vault", "file"] {
            let line = format!("haversack {command} {scheme}://BASE/user/Sync/haversack");
            assert!(shown.contains(&line), "{line}: {shown}");
        }
    }
    assert_snapshot!(machines.shown("laptop", &["init", "Sync/haversack", "--yes"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: BASE/user/Sync/haversack may be synced to other machines (a directory above it, or itself, is called Sync, as Syncthing or Sync.com calls its folder). This is not a terminal, so we cannot ask you. Nothing was changed
    Hint: If a sync client or another machine writes there: haversack init vault://BASE/user/Sync/haversack. If only this machine does: haversack init file://BASE/user/Sync/haversack
    "#);
    assert!(!machines.env.path("Sync").exists() && !machines.env.path("laptop/remote.toml").exists());
    let explicit = format!("vault://{}", machines.env.path("Sync/haversack").display());
    machines.done("laptop", &["init", &explicit, "--yes"]);
    // Once it is known, the plain path will do: on this machine, and on one that finds the logs there.
    machines.done("laptop", &["init", "Sync/haversack", "--yes"]);
    machines.done("desktop", &["init", "Sync/haversack", "--device", "desktop", "--yes"]);
    let remote = fs::read_to_string(machines.env.path("desktop/remote.toml")).expect("there");
    assert!(remote.contains("url = \"vault://"), "{remote}");
    let only_here = format!("file://{}", machines.env.path("Box/haversack").display());
    machines.write("tablet", "a.md", "memory\n");
    machines.done("tablet", &["init", &only_here, "--yes"]);
}

/// The variables of a container image or a shell profile send nothing until the user agreed once.
#[test]
fn remote_of_the_settings_needs_one_yes() {
    let machines = Machines::new();
    machines.write("laptop", "a.md", "memory\n");
    let run = |arguments: &[&str]| {
        let mut command = machines.command("laptop", arguments);
        // No server listens there: a request would fail visibly.
        command
            .env("HAVERSACK_BLOB_ENDPOINT", "http://127.0.0.1:9")
            .env("HAVERSACK_BLOB_CONTAINER", "memory");
        command
            .env("AZURE_STORAGE_ACCOUNT_NAME", "lighthouse")
            .env("AZURE_STORAGE_ACCOUNT_KEY", "bm90IGEga2V5");
        crate::machines::without_times(&machines.env.shown(&mut command))
    };
    assert_snapshot!(run(&["sync"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: the settings define the remote az://memory (HAVERSACK_BLOB_ENDPOINT, HAVERSACK_BLOB_CONTAINER), and you have not agreed yet to send this memory there. We send nothing
    Hint: Agree once: haversack init, or haversack remote add az://memory. Or unset HAVERSACK_BLOB_ENDPOINT
    "#);
    assert_snapshot!(run(&["status"]), @r#"
    exit 1
    --- stdout
    1 thing needs you. All you wrote is safe on this machine; 1 change waits to be sent.

      1  the settings define the remote az://memory (HAVERSACK_BLOB_ENDPOINT, HAVERSACK_BLOB_CONTAINER), and you have not agreed yet to send this memory there. We send nothing
         → Agree once: haversack init, or haversack remote add az://memory. Or unset HAVERSACK_BLOB_ENDPOINT

      files      1
    --- stderr
    "#);
    for command in [&["push"][..], &["pull"], &["mirror", "--at-once"], &["remote", "test"]] {
        let shown = run(command);
        assert!(
            shown.starts_with("exit 1\n") && shown.contains("you have not agreed yet"),
            "{command:?}: {shown}"
        );
    }
    let shown = run(&["sync", "--when-due"]);
    assert!(shown.starts_with("exit 0\n") && shown.contains("you have not agreed yet"), "{shown}");
    assert!(run(&["doctor"]).contains("you have not agreed yet"));
    assert!(run(&["ls"]).starts_with("exit 0\n"));
    assert!(!machines.env.path("laptop/remote.toml").exists());
    // A home that has agreed uses it as long as the settings name it.
    let agreed = "url = \"az://memory\"\ndevice = \"laptop\"\nmirror = true\nfrom_settings = true\n";
    fs::write(machines.env.path("laptop/remote.toml"), agreed).expect("written");
    assert!(!run(&["status"]).contains("you have not agreed yet"));
    assert!(machines.shown("laptop", &["sync"]).contains("this memory has no remote"));
}
