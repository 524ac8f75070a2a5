//! A remote in a cloud is added once, with a secret for that one command; from then on nothing of that shell is needed.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use haversack_servers::Moto;
use insta::assert_snapshot;

use super::{Place, in_each_cloud};
use crate::machines::Machines;

const PORTS: &str = "# Ports\n\nstaging listens on 5433\n";

in_each_cloud!(two_machines_meet, a_secret_of_this_shell_alone_is_refused);

/// Checks that a secret is in no file below a directory, but in those of this name.
fn not_in(directory: &Path, except: &str, secret: &str) {
    for entry in std::fs::read_dir(directory).expect("listed").flatten() {
        let path = entry.path();
        if path.is_dir() {
            not_in(&path, except, secret);
        } else if entry.file_name() != except {
            let bytes = std::fs::read(&path).expect("read");
            let is_in = bytes.windows(secret.len()).any(|part| part == secret.as_bytes());
            assert!(!is_in, "the secret is in {}", path.display());
        }
    }
}

fn two_machines_meet(place: &Place) {
    let machines = Machines::new();
    machines.write("laptop", "ports.md", PORTS);
    let add = ["remote", "add", &place.url, "--device", "laptop", "--credential", "file"];
    let mut told = place.shown(&machines, &mut place.in_shell(&machines, "laptop", &add));
    assert!(told.contains("also without this shell. It refuses a second writer, as it must."), "{told}");
    let mut run = |machine: &str, arguments: &[&str]| {
        let shown = place.done(&machines, machine, arguments);
        told.push_str(&shown);
        shown
    };
    // From here on nothing is set.
    run("laptop", &["sync"]);
    machines.write("desktop", "lamp.md", "white\n");
    let join = ["join", &place.url, "--device", "desktop", "--credential", "file", "--yes"];
    let joined = place.shown(&machines, &mut place.in_shell(&machines, "desktop", &join));
    assert!(joined.contains("Sent 1 file, received 1 file."), "{joined}");
    run("laptop", &["sync"]);
    assert_eq!(machines.files("laptop"), machines.files("desktop"));
    machines.write("laptop", "ports.md", "# Ports\n\nstaging listens on 5434\n");
    run("laptop", &["sync"]);
    run("desktop", &["sync"]);
    assert_eq!(machines.files("laptop"), machines.files("desktop"));
    assert!(run("desktop", &["status"]).contains("In sync."));
    let tested = run("desktop", &["remote", "test"]);
    assert!(tested.contains("works.\n  reached in        SOME ms\n"), "{tested}");
    assert!(
        tested.contains("compare-and-swap  kept: a second writer and a stale one are refused"),
        "{tested}"
    );
    assert!(tested.contains("clock             the same as here"), "{tested}");
    let tested: serde_json::Value = serde_json::from_slice(
        &machines.command("desktop", &["remote", "test", "--json"]).output().expect("ran").stdout,
    )
    .expect("JSON");
    assert_eq!(tested["compare_and_swap"], true);
    run("desktop", &["remote", "list"]);
    run("desktop", &["log"]);
    run("desktop", &["doctor"]);

    let kept = machines.env.path("laptop/credential.toml");
    assert_eq!(std::fs::metadata(&kept).expect("there").permissions().mode() & 0o777, 0o600);
    let kept = std::fs::read_to_string(&kept).expect("read");
    let objects = place.objects();
    assert!(
        objects.contains_key("ports.md") && objects.contains_key("manifest.json"),
        "{:?}",
        objects.keys()
    );
    for (name, secret) in &place.secrets {
        assert!(kept.contains(name) && kept.contains(secret), "{kept}");
        not_in(&machines.env.path("laptop"), "credential.toml", secret);
        not_in(&machines.env.path("desktop"), "credential.toml", secret);
        assert!(!told.contains(secret) && !joined.contains(secret), "it was shown");
        for (key, bytes) in &objects {
            let is_in = bytes.windows(secret.len()).any(|part| part == secret.as_bytes());
            assert!(!is_in, "the secret is in the object {key}");
        }
    }
    // A file that others can read is not used.
    let file = machines.env.path("desktop/credential.toml");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).expect("changed");
    let shown = place.run(&machines, "desktop", &["sync"]);
    assert!(shown.starts_with("exit 1\n") && shown.contains("others can read the credential"), "{shown}");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).expect("changed");
    place.done(&machines, "desktop", &["sync"]);
    place.done(&machines, "laptop", &["remote", "remove"]);
    assert!(!machines.env.path("laptop/credential.toml").exists(), "it went with the remote");
    assert!(!machines.env.path("laptop/remote.toml").exists());
    assert_eq!(machines.read("laptop", "lamp.md").as_deref(), Some("white\n"));
}

fn a_secret_of_this_shell_alone_is_refused(place: &Place) {
    let machines = Machines::new();
    machines.write("laptop", "ports.md", PORTS);
    for arguments in [["remote", "add", &place.url].as_slice(), &["join", &place.url, "--yes"]] {
        let shown = place.shown(&machines, &mut place.in_shell(&machines, "laptop", arguments));
        assert!(shown.starts_with("exit 1\n"), "{shown}");
        assert!(shown.contains(" is set in this shell only; hooks and other shells would not have it\n"));
        assert!(
            shown.contains("Hint: Keep it in a file that only you can read, by adding: --credential file\n"),
            "{shown}"
        );
    }
    assert_eq!(place.front.count(), 0, "nothing was asked");
    assert!(!machines.env.path("laptop/remote.toml").exists());
    assert!(!machines.env.path("laptop/credential.toml").exists());
}

#[test]
fn what_was_handed_in_for_nothing_is_not_kept() {
    let Some(mut place) = Place::azure() else { return };
    place.secrets = vec![("AZURE_STORAGE_ACCOUNT_KEY", "d3Jvbmcgd3Jvbmcgd3Jvbmc=".to_owned())];
    let machines = Machines::new();
    let add = ["remote", "add", &place.url, "--credential", "file"];
    let shown = place.shown(&machines, &mut place.in_shell(&machines, "laptop", &add));
    assert!(shown.starts_with("exit 1\n"), "{shown}");
    assert!(!machines.env.path("laptop/credential.toml").exists());
    // With one that works, one that does not is not kept instead.
    let Some(good) = Place::azure() else { return };
    good.add(&machines, "laptop", &[]);
    let before = std::fs::read(machines.env.path("laptop/credential.toml")).expect("kept");
    let mut again = good.in_shell(&machines, "laptop", &["remote", "add", &good.url, "--credential", "file"]);
    let shown = good.shown(&machines, again.env("AZURE_STORAGE_ACCOUNT_KEY", "d3Jvbmcgd3Jvbmcgd3Jvbmc="));
    assert!(shown.starts_with("exit 1\n"), "{shown}");
    assert_eq!(std::fs::read(machines.env.path("laptop/credential.toml")).expect("kept"), before);
    good.done(&machines, "laptop", &["sync"]);
}

#[test]
fn profiles_of_the_aws_tools() {
    let (Some(place), Some(moto)) = (Place::s3(), Moto::shared()) else { return };
    let machines = Machines::new();
    let aws = machines.env.path(".aws");
    std::fs::create_dir_all(&aws).expect("made");
    let endpoint = place.front.url();
    let config = format!("[profile work]\nregion = us-east-1\nendpoint_url = {endpoint}\n");
    std::fs::write(aws.join("config"), config).expect("written");
    let keys = format!(
        "[work]\naws_access_key_id = {}\naws_secret_access_key = of-the-profile-5b2e\n",
        moto.key_id()
    );
    std::fs::write(aws.join("credentials"), keys).expect("written");
    machines.write("laptop", "ports.md", PORTS);
    let add = ["remote", "add", &place.url, "--device", "laptop", "--credential", "profile:work"];
    assert_snapshot!(place.run(&machines, "laptop", &add), @r#"
    exit 0
    --- stdout
    --- stderr
    Reached in SOME ms with profile "work", also without this shell. It refuses a second writer, as it must.
    This machine's name is "laptop" (change it with --device NAME). Send its files: haversack sync
    "#);
    place.done(&machines, "laptop", &["sync"]);
    assert!(
        place.done(&machines, "laptop", &["remote", "test"]).contains("credential        profile \"work\"")
    );
    not_in(&machines.env.path("laptop"), "", "of-the-profile-5b2e");

    // A program that hands out keys; the file of the settings is named by a variable, for this one command.
    let program = machines.env.path("keys.sh");
    let script = format!(
        "#!/bin/sh\nprintf '{{\"Version\":1,\"AccessKeyId\":\"{}\",\"SecretAccessKey\":\"of-the-program-91ac\"}}'\n",
        moto.key_id()
    );
    std::fs::write(&program, script).expect("written");
    let config = machines.env.path("aws-of-work");
    let profile = format!(
        "[profile agents]\ncredential_process = /bin/sh {}\nregion = us-east-1\nendpoint_url = {endpoint}\n",
        program.display()
    );
    std::fs::write(&config, profile).expect("written");
    let join = ["join", &place.url, "--device", "desktop", "--yes"];
    let mut command = machines.command("desktop", &join);
    command.env("AWS_PROFILE", "agents").env("AWS_CONFIG_FILE", &config);
    let shown = place.shown(&machines, &mut command);
    assert!(shown.starts_with("exit 0\n") && shown.contains("with profile \"agents\""), "{shown}");
    machines.write("desktop", "lamp.md", "white\n");
    place.done(&machines, "desktop", &["sync"]);
    place.done(&machines, "laptop", &["sync"]);
    assert_eq!(machines.files("laptop"), machines.files("desktop"));
    not_in(&machines.env.path("desktop"), "", "of-the-program-91ac");

    let shown =
        place.run(&machines, "tablet", &["remote", "add", &place.url, "--credential", "profile:play"]);
    assert_snapshot!(shown, @r#"
    exit 1
    --- stdout
    --- stderr
    Error: the remote cannot be used with the recorded settings
    Caused by: could not open profile "play": there is no such profile in the files of the AWS tools
    Hint: Correct it, and add it again: haversack remote add URL
    "#);
}

#[test]
fn half_a_remote_by_variables_is_none() {
    let Some(place) = Place::azure() else { return };
    let machines = Machines::new();
    machines.write("laptop", "ports.md", PORTS);
    let halves = [("HAVERSACK_BLOB_ENDPOINT", place.front.url()), ("HAVERSACK_BLOB_CONTAINER", "memory")];
    let run = |(name, value): (&str, &str), arguments: &[&str]| {
        let mut command = place.in_shell(&machines, "laptop", arguments);
        place.shown(&machines, command.env(name, value))
    };
    for half in halves {
        for verb in
            [["ls"].as_slice(), &["view", "ports.md"], &["str-replace", "ports.md", "staging", "staging"]]
        {
            let shown = run(half, verb);
            assert!(shown.starts_with("exit 0\n"), "{verb:?}: {shown}");
            assert!(shown.contains("the remote is only half named"), "{verb:?}: {shown}");
        }
        for report in [["status"].as_slice(), &["doctor"], &["sync"], &["pull"], &["push"]] {
            let shown = run(half, report);
            assert!(shown.starts_with("exit 1\n"), "{report:?}: {shown}");
            assert!(shown.contains("the remote is only half named"), "{report:?}: {shown}");
        }
    }
    assert_snapshot!(run(halves[0], &["ls"]), @r#"
    exit 0
    --- stdout
    33  just now  ports.md
    --- stderr
    Warning: the remote is only half named: HAVERSACK_BLOB_ENDPOINT is set and HAVERSACK_BLOB_CONTAINER is not, so nothing is sent
    Hint: Set HAVERSACK_BLOB_CONTAINER too, or unset HAVERSACK_BLOB_ENDPOINT
    "#);
    assert_snapshot!(run(halves[0], &["sync"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: the remote is only half named: HAVERSACK_BLOB_ENDPOINT is set and HAVERSACK_BLOB_CONTAINER is not, so nothing is sent
    Hint: Set HAVERSACK_BLOB_CONTAINER too, or unset HAVERSACK_BLOB_ENDPOINT
    "#);
    assert_snapshot!(run(halves[1], &["status"]), @r#"
    exit 1
    --- stdout
    1 thing needs you. All you wrote is safe on this machine; 1 change waits to be sent.

      1  the remote is only half named: HAVERSACK_BLOB_CONTAINER is set and HAVERSACK_BLOB_ENDPOINT is not, so nothing is sent
         → Set HAVERSACK_BLOB_ENDPOINT too, or unset HAVERSACK_BLOB_CONTAINER

      files      1
    --- stderr
    "#);
    assert_snapshot!(run(halves[1], &["doctor"]), @r#"
    exit 1
    --- stdout
    OK    backend   device-local
    FAIL  remote    the remote is only half named: HAVERSACK_BLOB_CONTAINER is set and HAVERSACK_BLOB_ENDPOINT is not, so nothing is sent
                    → Set HAVERSACK_BLOB_ENDPOINT too, or unset HAVERSACK_BLOB_CONTAINER
    WARN  home      laptop (--home): other users of this machine can look into it (mode 755)
                    → chmod 700 laptop/memory
    OK    writes    created, replaced, compared and deleted a test object
    OK    files     1 file, 33 bytes
    OK    kept      no text of another program waits to be merged
    --- stderr
    "#);
    assert_eq!(place.front.count(), 0);
}

#[test]
fn a_remote_by_variables_alone() {
    let Some(place) = Place::azure() else { return };
    let machines = Machines::new();
    machines.write("laptop", "ports.md", PORTS);
    let run = |machine: &str, arguments: &[&str]| {
        let mut command = place.in_shell(&machines, machine, arguments);
        command.env("HAVERSACK_BLOB_ENDPOINT", place.front.url());
        place.shown(&machines, command.env("HAVERSACK_BLOB_CONTAINER", &place.container))
    };
    // Variables alone send nothing: it takes one yes.
    place.front.forget();
    assert!(run("laptop", &["sync"]).starts_with("exit 1\n"));
    assert_eq!(place.front.count(), 0);
    let shown = run("laptop", &["remote", "add", &format!("az://{}", place.container)]);
    assert!(shown.starts_with("exit 0\n"), "{shown}");
    let shown = run("laptop", &["sync"]);
    assert!(shown.contains("Sent 1 file."), "{shown}");
    assert!(run("laptop", &["status"]).starts_with("exit 0\n"));
    let shown = run("desktop", &["init", "--yes"]);
    assert!(shown.contains("eceived 1 file."), "{shown}");
    assert_eq!(machines.files("laptop"), machines.files("desktop"));
    let recorded = std::fs::read_to_string(machines.env.path("laptop/remote.toml")).expect("the yes");
    assert!(recorded.contains("from_settings = true"), "{recorded}");
    // Without the variables there is no remote.
    assert!(place.run(&machines, "laptop", &["sync"]).contains("this memory has no remote"));
    not_in(&machines.env.path("laptop"), "", &place.secrets[0].1);
}
