//! Changes that the page makes: edits with compare-and-swap, deletions, undo, conflicts.

use super::Opened;
use super::sample::Sample;
use crate::environment::TestEnv;

fn memory(env: &TestEnv, name: &str) -> String {
    std::fs::read_to_string(env.path(".local/share/haversack/memory").join(name)).unwrap_or_default()
}

#[test]
fn edit_is_saved_and_undone() {
    let env = TestEnv::new();
    env.run(&["create", "lamp.md", "oil\nwick\n"]);
    let opened = Opened::start(&env, &[]);
    let cookie = opened.enter();
    let form = opened.get(&cookie, "edit?path=lamp.md");
    let (seen, token) = (form.field("seen"), form.field("token"));
    let fields: [(&str, &str); 4] =
        [("path", "lamp.md"), ("seen", &seen), ("token", &token), ("text", "gas\r\nwick\r\n")];
    let saved = opened.post(&cookie, "edit", &fields);
    assert_eq!(
        (saved.status, saved.header("location")),
        (303, Some("memory?path=lamp.md&saved=1")),
        "{}",
        saved.body
    );
    assert_eq!(memory(&env, "lamp.md"), "gas\nwick\n");
    let plan = opened.get(&cookie, "undo?path=lamp.md");
    assert_eq!(plan.status, 200, "{}", plan.body);
    let undo: [(&str, &str); 4] =
        [("path", "lamp.md"), ("number", ""), ("token", token.as_str()), ("plan", &plan.field("plan"))];
    let undone = opened.post(&cookie, "undo", &undo);
    assert_eq!(undone.status, 303, "{}", undone.body);
    assert_eq!(memory(&env, "lamp.md"), "oil\nwick\n");
    // The form of the same page again: the plan is another one now, so nothing happens.
    let again = opened.post(&cookie, "undo", &undo);
    assert_eq!(again.status, 409, "{}", again.body);
    assert_eq!(memory(&env, "lamp.md"), "oil\nwick\n");
}

#[test]
fn lost_edit_is_shown_and_nothing_is_overwritten() {
    let env = TestEnv::new();
    env.run(&["create", "lamp.md", "oil\n"]);
    let opened = Opened::start(&env, &[]);
    let cookie = opened.enter();
    let form = opened.get(&cookie, "edit?path=lamp.md");
    let (seen, token) = (form.field("seen"), form.field("token"));
    env.run(&["str-replace", "lamp.md", "oil", "gas <b>"]);
    let fields: [(&str, &str); 4] =
        [("path", "lamp.md"), ("seen", &seen), ("token", &token), ("text", "my long text\r\n")];
    let lost = opened.post(&cookie, "edit", &fields);
    assert_eq!(lost.status, 409);
    assert!(lost.body.contains("Your edit was not saved."), "{}", lost.body);
    assert!(lost.body.contains("my long text") && lost.body.contains("gas &lt;b&gt;"), "{}", lost.body);
    assert_eq!(memory(&env, "lamp.md"), "gas <b>\n");
    // A second, informed save is made against the text that was shown.
    let seen = lost.field("seen");
    let fields: [(&str, &str); 4] =
        [("path", "lamp.md"), ("seen", &seen), ("token", &token), ("text", "gas and my long text\r\n")];
    assert_eq!(opened.post(&cookie, "edit", &fields).status, 303);
    assert_eq!(memory(&env, "lamp.md"), "gas and my long text\n");
    // The file is deleted while it is edited: the text can be saved as a new file.
    let form = opened.get(&cookie, "edit?path=lamp.md");
    env.run(&["delete", "lamp.md"]);
    let fields: [(&str, &str); 4] =
        [("path", "lamp.md"), ("seen", &form.field("seen")), ("token", &token), ("text", "kept\r\n")];
    let lost = opened.post(&cookie, "edit", &fields);
    assert_eq!((lost.status, lost.field("seen")), (409, "nothing".to_owned()));
    assert!(lost.body.contains("deleted this memory after you opened it"), "{}", lost.body);
    let fields: [(&str, &str); 4] =
        [("path", "lamp.md"), ("seen", "nothing"), ("token", &token), ("text", "kept\r\n")];
    assert_eq!(opened.post(&cookie, "edit", &fields).status, 303);
    assert_eq!(memory(&env, "lamp.md"), "kept\n");
}

#[test]
fn deletion_is_refused_if_the_memory_changed_and_can_be_undone() {
    let env = TestEnv::new();
    env.run(&["create", "lamp.md", "oil\n"]);
    let opened = Opened::start(&env, &[]);
    let cookie = opened.enter();
    let shown = opened.get(&cookie, "memory?path=lamp.md");
    let (seen, token) = (shown.field("seen"), shown.field("token"));
    env.run(&["append", "lamp.md", "more\n"]);
    let delete = |seen: &str| {
        opened.post(&cookie, "delete", &[("path", "lamp.md"), ("seen", seen), ("token", &token)])
    };
    assert_eq!(delete(&seen).status, 409);
    assert_eq!(memory(&env, "lamp.md"), "oil\nmore\n");
    let seen = opened.get(&cookie, "memory?path=lamp.md").field("seen");
    assert_eq!(delete(&seen).status, 303);
    assert_eq!(memory(&env, "lamp.md"), "");
    let gone = opened.get(&cookie, "memory?path=lamp.md");
    assert!(gone.body.contains("It was deleted or moved"), "{}", gone.body);
    let plan = opened.get(&cookie, "undo?path=lamp.md");
    let undo: [(&str, &str); 4] =
        [("path", "lamp.md"), ("number", ""), ("token", token.as_str()), ("plan", &plan.field("plan"))];
    assert_eq!(opened.post(&cookie, "undo", &undo).status, 303);
    assert_eq!(memory(&env, "lamp.md"), "oil\nmore\n");
}

#[test]
fn line_endings_survive_an_edit() {
    let env = TestEnv::new();
    let directory = env.path(".local/share/haversack/memory");
    env.run(&["create", "pairs.md", "x"]);
    std::fs::write(directory.join("pairs.md"), "a\r\nb\r\n").expect("written");
    std::fs::write(directory.join("mixed.md"), "a\r\nb\n").expect("written");
    let opened = Opened::start(&env, &[]);
    let cookie = opened.enter();
    let form = opened.get(&cookie, "edit?path=pairs.md");
    let fields: [(&str, &str); 4] = [
        ("path", "pairs.md"),
        ("seen", &form.field("seen")),
        ("token", &form.field("token")),
        ("text", "a\r\nc\r\n"),
    ];
    assert_eq!(opened.post(&cookie, "edit", &fields).status, 303);
    assert_eq!(memory(&env, "pairs.md"), "a\r\nc\r\n");
    let form = opened.get(&cookie, "edit?path=mixed.md");
    assert!(!form.body.contains("<textarea") && form.body.contains("different ways"), "{}", form.body);
}

#[test]
fn deletion_during_an_edit_names_its_machine_agent_and_session() {
    let sample = Sample::new();
    let env = &sample.env;
    let lamp = "claude_memory/lighthouse/reference_lamp.md";
    let opened = Opened::start(env, &["--home", "desktop"]);
    let cookie = opened.enter();
    let form = opened.get(&cookie, &format!("edit?path={lamp}"));
    let mut delete = env.command(&["--home", "laptop", "delete", lamp]);
    env.shown(delete.env("HAVERSACK_AGENT", "claude-code").env("HAVERSACK_SESSION", "8b1d0e44"));
    for home in ["laptop", "desktop"] {
        env.run(&["--home", home, "sync"]);
    }
    let (seen, token) = (form.field("seen"), form.field("token"));
    let fields: [(&str, &str); 4] =
        [("path", lamp), ("seen", &seen), ("token", &token), ("text", "mine\r\n")];
    let lost = opened.post(&cookie, "edit", &fields);
    let (before, _) = lost.body.split_once(" deleted this memory after you opened it").expect("it says so");
    let by = before.rsplit("Your edit was not saved.").next().unwrap_or_default();
    assert!(by.contains("laptop") && by.contains("claude-code") && by.contains("8b1d0e44"), "{by}");
}
