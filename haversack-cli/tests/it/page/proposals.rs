//! The inbox, the plans of a tidy, pins, and labels of memories that are out of date.

use std::fs;

use haversack::ids::ContentHash;

use super::{Answer, Opened};
use crate::environment::TestEnv;

fn memory(env: &TestEnv, name: &str) -> String {
    fs::read_to_string(env.path(".local/share/haversack/memory").join(name)).unwrap_or_default()
}

fn write(env: &TestEnv, name: &str, text: &str) {
    let file = env.path(".local/share/haversack/memory").join(name);
    fs::create_dir_all(file.parent().expect("in a directory")).expect("made");
    fs::write(file, text).expect("written");
}

/// A line of the interaction log.
fn said(id: u32, words: &str) -> String {
    format!(
        "{{\"id\":\"7c9e6679-7425-40de-944b-e07fc1f90{id:03}\",\"ts\":\"2026-03-02T09:05:00Z\",\"direction\":\"inbound\",\"sender\":\"the user\",\"summary\":\"{words}\"}}\n"
    )
}

/// A home with proposals that wait.
fn proposed(words: &[&str]) -> TestEnv {
    let env = TestEnv::new();
    env.run(&["create", "lamp.md", "oil\n"]);
    let lines = words.iter().zip(100..).map(|(words, id)| said(id, words));
    write(&env, "interactions/2026-03-02.jsonl", &lines.collect::<String>());
    let told = env.run(&["tidy", "--day", "2026-03-03"]);
    assert!(told.starts_with("exit 0\n") && told.contains("for your answer"), "{told}");
    env
}

/// Returns the file that the first proposal would change or make.
fn target(env: &TestEnv) -> String {
    let told = env.run(&["tidy", "--review", "--json"]);
    let json = told.split("--- stdout\n").nth(1).and_then(|rest| rest.split("--- stderr").next());
    let all: serde_json::Value = serde_json::from_str(json.unwrap_or_default()).expect("JSON");
    all[0]["proposal"]["target"].as_str().expect("a target").to_owned()
}

fn answer(opened: &Opened, cookie: &str, shown: &Answer, verdict: &str, words: &str) -> Answer {
    let (id, seen, token) = (shown.field("id"), shown.field("seen"), shown.field("token"));
    let fields =
        [("id", id.as_str()), ("seen", &seen), ("token", &token), ("verdict", verdict), ("words", words)];
    opened.post(cookie, "answer", &fields)
}

#[test]
fn proposal_is_shown_as_a_difference_and_accepted_once() {
    let env = proposed(&["Always use the staging port 5433."]);
    let target = target(&env);
    let opened = Opened::start(&env, &[]);
    let cookie = opened.enter();
    assert!(opened.get(&cookie, "now").body.contains("1 proposal waits for your answer"));
    let shown = opened.get(&cookie, "inbox");
    assert!(shown.body.contains("class=\"add\">+ Always use the staging port 5433."), "{}", shown.body);
    assert!(shown.body.contains("Said by the user, in "), "{}", shown.body);
    let accepted = answer(&opened, &cookie, &shown, "accept", "");
    assert_eq!(accepted.status, 303, "{}", accepted.body);
    assert!(memory(&env, &target).contains("Always use the staging port 5433."));
    assert!(opened.get(&cookie, "inbox").body.contains("No proposal waits"));
    // The form of another tab.
    let again = answer(&opened, &cookie, &shown, "accept", "");
    assert_eq!(again.status, 409, "{}", again.body);
    assert!(again.body.contains("does not wait any more"), "{}", again.body);
    // It is a change like any other.
    let undo = opened.get(&cookie, &format!("undo?path={target}"));
    let plan = undo.field("plan");
    let fields =
        [("path", target.as_str()), ("number", ""), ("token", &shown.field("token")), ("plan", &plan)];
    assert_eq!(opened.post(&cookie, "undo", &fields).status, 303);
    assert_eq!(memory(&env, &target), "");
}

#[test]
fn proposal_is_accepted_in_other_words_and_another_rejected() {
    let env = proposed(&["Always use the staging port 5433.", "Never deploy on a Friday evening."]);
    let opened = Opened::start(&env, &[]);
    let cookie = opened.enter();
    let shown = opened.get(&cookie, "inbox");
    assert!(shown.body.contains("2 memories are proposed"), "{}", shown.body);
    let accepted = answer(&opened, &cookie, &shown, "edit", "Use 5433 on staging.\r\nNever 5432.");
    assert_eq!(accepted.status, 303, "{}", accepted.body);
    let place = accepted.header("location").expect("a place").to_owned();
    let memory = opened.get(&cookie, &place);
    assert!(
        memory.body.contains("Use 5433 on staging.") && memory.body.contains("Never 5432."),
        "{}",
        memory.body
    );
    let shown = opened.get(&cookie, "inbox");
    let rejected = answer(&opened, &cookie, &shown, "reject", "");
    assert_eq!(rejected.header("location"), Some("inbox?done=rejected"), "{}", rejected.body);
    let empty = answer(&opened, &cookie, &shown, "edit", "  ");
    assert_eq!(empty.status, 422, "{}", empty.body);
    env.run(&["tidy", "--day", "2026-03-03"]);
    assert!(opened.get(&cookie, "inbox").body.contains("No proposal waits"));
}

#[test]
fn changed_target_is_proposed_again_and_nothing_is_added_or_lost() {
    let env = proposed(&["Always use the staging port 5433."]);
    let target = target(&env);
    let opened = Opened::start(&env, &[]);
    let cookie = opened.enter();
    let shown = opened.get(&cookie, "inbox");
    // An agent writes the same file while the user looks at the proposal.
    write(&env, &target, "An agent was here first.\n");
    let refused = answer(&opened, &cookie, &shown, "edit", "In my own words.");
    assert_eq!(refused.status, 409, "{}", refused.body);
    assert!(
        refused.body.contains("Nothing was added.") && refused.body.contains("In my own words."),
        "{}",
        refused.body
    );
    assert_eq!(memory(&env, &target), "An agent was here first.\n");
    // The user sees the new difference, but the proposal was made for the earlier text: it is proposed again first.
    assert!(refused.body.contains("changed since this was proposed"), "{}", refused.body);
    let refused = answer(&opened, &cookie, &refused, "edit", "In my own words.");
    assert_eq!(refused.status, 409, "{}", refused.body);
    assert_eq!(memory(&env, &target), "An agent was here first.\n");
    let accepted = answer(&opened, &cookie, &refused, "edit", "In my own words.");
    assert_eq!(accepted.status, 303, "{}", accepted.body);
    assert_eq!(memory(&env, &target), "An agent was here first.\n\nIn my own words.\n");
}

#[test]
fn tidy_shows_which_files_leave_when_and_pins_hold_them() {
    let env = TestEnv::new();
    env.run(&["create", "lamp.md", "oil\n"]);
    let today = jiff::Zoned::now().with_time_zone(jiff::tz::TimeZone::UTC).date();
    let ago = |days: i64| today.saturating_sub(jiff::ToSpan::days(days));
    write(&env, &format!("interactions/{}.jsonl", ago(20)), &said(100, "The lamp was lit at nine."));
    write(&env, &format!("interactions/{}.jsonl", ago(4)), &said(101, "The lamp was lit at ten."));
    write(&env, "notes/old.md", "---\npinned: true\n---\nStays.\n");
    let opened = Opened::start(&env, &[]);
    let cookie = opened.enter();
    let shown = opened.get(&cookie, "tidy").body;
    let (next, later) =
        (shown.find("At the next tidy").expect("now"), shown.find("Within 7 days").expect("later"));
    let (first, second) = (format!("interactions/{}", ago(20)), format!("interactions/{}", ago(4)));
    assert!(shown[next..later].contains(&first) && !shown[next..later].contains(&second), "{shown}");
    assert!(shown[later..].contains(&second), "{shown}");
    assert!(shown.contains("Pinned") && shown.contains("notes/old.md"), "{shown}");
    // Nothing was changed by looking.
    assert!(!memory(&env, &format!("{first}.jsonl")).is_empty());
}

#[test]
fn pin_is_a_field_of_the_memory_and_needs_the_text_that_the_user_saw() {
    let env = TestEnv::new();
    env.run(&["create", "lamp.md", "---\nname: Lamp\ntype: project\n---\nOil.\n"]);
    env.run(&["create", "plain.md", "Wick.\n"]);
    let opened = Opened::start(&env, &[]);
    let cookie = opened.enter();
    let pin = |path: &str, pin: &str, shown: &Answer| {
        let (seen, token) = (shown.field("seen"), shown.field("token"));
        opened.post(&cookie, "pin", &[("path", path), ("pin", pin), ("seen", &seen), ("token", &token)])
    };
    for (path, before, pinned) in [
        (
            "lamp.md",
            "---\nname: Lamp\ntype: project\n---\nOil.\n",
            "---\nname: Lamp\ntype: project\npinned: true\n---\nOil.\n",
        ),
        ("plain.md", "Wick.\n", "---\npinned: true\n---\nWick.\n"),
    ] {
        let shown = opened.get(&cookie, &format!("memory?path={path}"));
        assert_eq!(pin(path, "set", &shown).status, 303);
        assert_eq!(memory(&env, path), pinned);
        // The form of another tab saw the text before.
        let stale = pin(path, "set", &shown);
        assert_eq!(stale.status, 409, "{}", stale.body);
        let shown = opened.get(&cookie, &format!("memory?path={path}"));
        assert!(
            shown.body.contains("<span class=\"chip\">pinned</span>") && shown.body.contains(">Unpin<"),
            "{}",
            shown.body
        );
        assert_eq!(pin(path, "removed", &shown).status, 303);
        assert_eq!(memory(&env, path), before);
    }
    let seen = ContentHash::of(b"Wick.\n").to_string();
    let token = opened.get(&cookie, "memory?path=plain.md").field("token");
    let odd = opened.post(
        &cookie,
        "pin",
        &[("path", "plain.md"), ("pin", "x"), ("seen", &seen), ("token", &token)],
    );
    assert_eq!(odd.status, 422);
}

#[test]
fn memory_that_is_out_of_date_says_why_and_names_its_successor() {
    let env = TestEnv::new();
    env.run(&["create", "old.md", "---\nname: Old port\nsuperseded_by: new.md\n---\n5432\n"]);
    env.run(&["create", "new.md", "---\nname: New port\n---\n5433\n"]);
    env.run(&["create", "gone.md", "---\nname: Gone\nstatus: Deprecated\n---\nx\n"]);
    env.run(&["create", "stale.md", "---\nname: Stale\nstale_after: 2020-01-01\n---\nx\n"]);
    let opened = Opened::start(&env, &[]);
    let cookie = opened.enter();
    let list = opened.get(&cookie, "memories").body;
    for label in ["superseded", "deprecated", "stale"] {
        assert!(list.contains(&format!("<span class=\"chip old\">{label}</span>")), "{label}: {list}");
    }
    let old = opened.get(&cookie, "memory?path=old.md").body;
    assert!(old.contains("Superseded") && old.contains("href=\"memory?path=new.md\""), "{old}");
    assert!(opened.get(&cookie, "memory?path=gone.md").body.contains("its status is Deprecated"));
    assert!(!opened.get(&cookie, "memory?path=new.md").body.contains("Out of date"));
}
