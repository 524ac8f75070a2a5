use std::fs;
use std::path::Path;

use insta::assert_snapshot;

use crate::environment::TestEnv;
use crate::machines::Machines;

#[test]
fn a_kind_is_shown_begun_and_checked() {
    let env = TestEnv::new();
    assert_snapshot!(env.run(&["new", "user", "Likes: tea"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: could not create user_likes:_tea.md: the storage refused
    Caused by: could not write user_likes:_tea.md: the name cannot be used
    Caused by: "user_likes:_tea.md" is refused: a name with ':' cannot be stored on Windows
    Hint: Take another name
    "#);
    assert_snapshot!(env.run(&["new", "voice_calibration"]), @r#"
    exit 0
    --- stdout
    --- stderr
    Created voice_calibration.md
    "#);
    assert_snapshot!(env.run(&["new", "voice_calibration"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: could not create voice_calibration.md: something is there already
    Hint: Change the existing file with str-replace, insert or append, or choose another name
    "#);
    assert_snapshot!(env.run(&["check"]), @r#"
    exit 0
    --- stdout
    --- stderr
    1 file: 0 flaws
    "#);
}

#[test]
fn mistakes_are_named() {
    let env = TestEnv::new();
    assert_snapshot!(env.run(&["kinds", "show", "comitments"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: there is no kind comitments; did you mean commitments?
    Hint: List the kinds: haversack kinds
    "#);
    assert_snapshot!(env.run(&["new", "registry", "x"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: a memory of kind registry is not begun by hand
    Hint: See which are: haversack kinds
    "#);
    assert_snapshot!(env.run(&["new", "user"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: a memory of kind user needs a name
    Hint: haversack new user NAME
    "#);
    let home = env.path(".local/share/haversack");
    fs::create_dir_all(&home).expect("made");
    fs::write(home.join("kinds.toml"), "[kind.user]\nlode = \"start\"\n").expect("written");
    assert_snapshot!(env.run(&["check"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: in BASE/user/.local/share/haversack/kinds.toml: kind user has no `lode`; did you mean `load`?
    Hint: See the keys of a kind: haversack kinds show user
    "#);
}

#[test]
fn flaws_are_told_and_put_right() {
    let env = TestEnv::new();
    let memory = env.path(".local/share/haversack/memory");
    fs::create_dir_all(memory.join("state")).expect("made");
    fs::write(memory.join("events.jsonl"), "{\"id\":\"1\"}").expect("written");
    fs::write(memory.join("lamp.md"), "10 s\n> [also, from desktop:]\n15 s\n").expect("written");
    fs::write(memory.join("sketch.png"), b"\0\xff").expect("written");
    assert_snapshot!(env.run(&["check", "--json"]), @r#"
    exit 1
    --- stdout
    {
      "files": 3,
      "flaws": [
        {
          "fixable": true,
          "fixed": false,
          "flaw": "its last line does not end",
          "path": "events.jsonl"
        },
        {
          "fixable": false,
          "fixed": false,
          "flaw": "line 2 says that two devices wrote different things",
          "path": "lamp.md"
        }
      ]
    }
    --- stderr
    "#);
    assert_snapshot!(env.run(&["check", "--fix", "events.jsonl"]), @r#"
    exit 0
    --- stdout
    events.jsonl: its last line does not end (fixed)
    --- stderr
    1 file: 0 flaws
    "#);
    assert_eq!(fs::read_to_string(memory.join("events.jsonl")).expect("read"), "{\"id\":\"1\"}\n");
    assert_snapshot!(env.run(&["check"]), @r#"
    exit 1
    --- stdout
    lamp.md: line 2 says that two devices wrote different things
    --- stderr
    3 files: 1 flaw
    "#);
}

#[test]
fn kinds_are_there_for_programs() {
    let env = TestEnv::new();
    let output = env.command(&["kinds", "--json"]).output().expect("it ran");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("valid JSON");
    let names: Vec<&str> =
        json.as_array().expect("a list").iter().filter_map(|kind| kind["kind"].as_str()).collect();
    assert!(names.contains(&"commitments") && names.contains(&"binary"), "{names:?}");
}

/// The desktop has no table of its own, and merges by what the files say.
#[test]
fn a_kind_of_the_users_merges_by_its_rule_on_every_machine() {
    let machines = Machines::laptop_and_desktop(&[("notes.md", "hello\n")]);
    let table = "[kind.recipe]\nabout = \"how to cook\"\nnames = [\"recipes/*.md\"]\nrule = \"threads\"\ntemplate = \"---\\nname: {name}\\n---\\n\\n# {name}\\n\"\n";
    fs::write(machines.env.path("laptop").join("kinds.toml"), table).expect("written");
    machines.done("laptop", &["new", "recipe", "soup"]);
    machines.write("laptop", "recipes/by-hand.md", "# By hand\n");
    let by_hand = machines.shown("laptop", &["check"]);
    assert!(by_hand.contains("as recipe it should state `merge: threads`"), "{by_hand}");
    machines.done("laptop", &["check", "--fix"]);
    machines.settle(&["laptop", "desktop"]);
    for (path, title) in [("recipes/soup.md", "soup"), ("recipes/by-hand.md", "By hand")] {
        let begun = machines.read("desktop", path).expect("there");
        assert!(begun.contains("\nmerge: threads\n") && begun.contains(&format!("# {title}\n")), "{begun}");
        for (machine, said) in [("laptop", "Boil it."), ("desktop", "Bake it.")] {
            machines.write(machine, path, &format!("{begun}\n# Leek\n\n{said}\n"));
        }
    }
    // The desktop merges.
    for machine in ["laptop", "desktop", "laptop"] {
        machines.done(machine, &["sync"]);
    }
    for path in ["recipes/soup.md", "recipes/by-hand.md"] {
        let merged = machines.read("laptop", path).expect("there");
        assert_eq!(Some(&merged), machines.read("desktop", path).as_ref());
        // As prose the section would be there twice.
        for kept in ["# Leek", "Boil it.", "Bake it."] {
            assert_eq!(merged.matches(kept).count(), 1, "{merged}");
        }
    }
}

/// The templates of the nine kinds of a persona, as they were written by hand: `tests/fixtures/README.md` says from what.
#[test]
fn new_memory_of_each_kind_is_as_its_fixture() {
    let env = TestEnv::new();
    let kinds: [(&[&str], &str); 14] = [
        (&["user", "Taste"], "user_taste.md"),
        (&["feedback", "Short answers"], "feedback_short_answers.md"),
        (&["project", "Lamp"], "project_lamp.md"),
        (&["reference", "Tide tables"], "reference_tide_tables.md"),
        (&["index"], "MEMORY.md"),
        (&["session_digest"], "session_digest_2026-11-18.md"),
        (&["relationship", "Harbour Master"], "relationship_harbour_master.md"),
        (&["voice_calibration"], "voice_calibration.md"),
        (&["self_observations"], "self_observations.md"),
        (&["callbacks"], "running_jokes_and_callbacks.md"),
        (&["commitments"], "running_commitments.md"),
        (&["philosophical_threads"], "philosophical_threads.md"),
        (&["unsent_drafts"], "unsent_drafts.md"),
        (&["carry_forward"], "carry_forward.md"),
    ];
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/kinds");
    let now = ["--now", "2026-11-18T12:00:00Z", "--time-zone", "UTC"];
    for (arguments, file) in kinds {
        let told = env.run(&[&["new"], arguments, &now[..]].concat());
        assert!(told.contains(&format!("Created {file}\n")), "{told}");
        let made =
            fs::read_to_string(env.path(&format!(".local/share/haversack/memory/{file}"))).expect("there");
        let expected = fs::read_to_string(fixtures.join(file)).expect("a fixture");
        assert_eq!(made, expected, "{file}");
    }
    let checked = env.run(&["check"]);
    assert!(checked.contains("14 files: 0 flaws"), "{checked}");
    assert_eq!(fs::read_dir(fixtures).expect("there").count(), kinds.len(), "each fixture has its kind");
}
