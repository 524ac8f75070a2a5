//! Files that Google Drive could not upload and put aside: edits of this memory are imported, and nothing there is changed.

use std::fs;

use crate::machines::Machines;

const TEXT: &str = "# Lighthouse\n\n- the lamp is lit at dusk\n- the oil is low in november\n";

/// Lets files lie where Google Drive puts what it could not upload.
fn put_aside(machines: &Machines, files: &[(&str, String)]) {
    let aside = machines.env.path("Library/Application Support/Google/DriveFS/lost_and_found");
    for (path, text) in files {
        let path = aside.join(path);
        fs::create_dir_all(path.parent().expect("below")).expect("made");
        fs::write(path, text).expect("written");
    }
}

/// Returns what lies there now.
fn aside(machines: &Machines, path: &str) -> String {
    let aside = machines.env.path("Library/Application Support/Google/DriveFS/lost_and_found");
    fs::read_to_string(aside.join(path)).expect("it is still there")
}

/// Makes a machine with memory in a folder that a client replicates.
fn machine(mark: &str) -> Machines {
    let machines = Machines::new();
    machines.write("laptop", "notes/lighthouse.md", TEXT);
    machines.write(
        "laptop",
        "notes/index.md",
        "# Index\n- everything that the keeper has to know by heart\n",
    );
    let folder = machines.env.path("cloud/haversack");
    fs::create_dir_all(&folder).expect("made");
    fs::create_dir_all(machines.env.path("cloud").join(mark)).expect("made");
    let folder = folder.display().to_string();
    machines.done("laptop", &["remote", "add", &folder, "--device", "laptop"]);
    machines.done("laptop", &["sync"]);
    machines
}

#[test]
fn an_edit_that_google_drive_could_not_upload_comes_back() {
    let machines = machine(".tmp.driveupload");
    let edited = format!("{TEXT}- written by hand in the folder\n");
    let secret = format!("{TEXT}- token: ghp_{}\n", "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC2dF4hJ6");
    put_aside(
        &machines,
        &[
            ("1234/lighthouse.md", edited.clone()),
            ("1234/old/lighthouse.md", TEXT.to_owned()),
            ("1234/lighthouse (1).md", secret.clone()),
            ("index.md", "# Index\n- of another project altogether\n".to_owned()),
            ("strange.md", "- not of this memory\n".to_owned()),
        ],
    );
    let shown = machines.done("laptop", &["doctor"]);
    assert!(shown.contains("edits that the client could not upload wait"), "{shown}");
    assert!(shown.contains("they may be files of this memory") && shown.contains(", and 1 more"), "{shown}");
    assert!(!shown.contains("strange.md") && !shown.contains("old/lighthouse.md"), "{shown}");
    let shown = machines.done("laptop", &["sync", "--full"]);
    assert!(
        shown.contains("notes/lighthouse.md: imported an edit that the folder's client could not upload"),
        "{shown}"
    );
    let expected = format!("{TEXT}- written by hand in the folder\n");
    assert_eq!(machines.files("laptop").get("notes/lighthouse.md"), Some(&expected));
    assert_eq!(machines.files("laptop").len(), 2);
    let folder = crate::machines::files_below(&machines.env.path("cloud/haversack"));
    assert_eq!(folder, machines.files("laptop"));
    // Nothing is touched there, and nothing is taken in twice.
    assert_eq!(aside(&machines, "1234/lighthouse.md"), edited);
    assert_eq!(aside(&machines, "1234/lighthouse (1).md"), secret);
    machines.write("laptop", "notes/lighthouse.md", TEXT);
    let shown = machines.done("laptop", &["sync", "--full"]);
    assert!(shown.contains("Sent 1 file.") && !shown.contains("could not upload"), "{shown}");
    assert_eq!(machines.files("laptop").get("notes/lighthouse.md").map(String::as_str), Some(TEXT));
    let shown = machines.done("laptop", &["doctor"]);
    assert!(!shown.contains("could not upload wait"), "{shown}");
}

#[test]
fn another_clients_folder_has_nothing_to_do_with_google_drive() {
    let machines = machine(".stfolder");
    put_aside(&machines, &[("lighthouse.md", format!("{TEXT}- written by hand in the folder\n"))]);
    let shown = machines.done("laptop", &["doctor"]);
    assert!(!shown.contains("could not upload"), "{shown}");
    machines.done("laptop", &["sync", "--full"]);
    assert_eq!(machines.files("laptop").get("notes/lighthouse.md").map(String::as_str), Some(TEXT));
}
