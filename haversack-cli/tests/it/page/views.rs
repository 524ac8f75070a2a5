//! The content of each view, over plain connections.

use super::Opened;
use super::sample::Sample;
use crate::agents::Agents;
use crate::environment::TestEnv;

/// Returns the text of a view without its elements.
fn text(opened: &Opened, cookie: &str, view: &str) -> String {
    let answer = opened.get(cookie, view);
    assert_eq!(answer.status, 200, "{view}: {}", answer.body);
    let parts = answer.body.split('<').map(|part| part.split_once('>').map_or(part, |(_, text)| text));
    parts.collect::<Vec<_>>().join(" ").split_whitespace().collect::<Vec<_>>().join(" ")
}

fn assert_all(shown: &str, parts: &[&str]) {
    for part in parts {
        assert!(shown.contains(part), "{part:?} is not in: {shown}");
    }
}

#[test]
fn search_filters_before_it_counts_its_hits() {
    let env = TestEnv::new();
    env.run(&[
        "create",
        "behavioral/user_lamp.md",
        "---\nname: Wick\ntype: user\n---\nA wick for the lamp, among other things that take some words.\n",
    ]);
    let memory = env.path(".local/share/haversack/memory");
    for (directory, count) in [("claude_memory/lighthouse", 60), ("notes", 1)] {
        std::fs::create_dir_all(memory.join(directory)).expect("made");
        for number in 0..count {
            let file = memory.join(directory).join(format!("project_{number}.md"));
            let words = if directory == "notes" {
                "The lamp of these notes is old and has many other words."
            } else {
                "Lamp lamp."
            };
            std::fs::write(file, format!("---\nname: n{number}\ntype: project\n---\n{words}\n"))
                .expect("written");
        }
    }
    std::fs::write(
        memory.join("top.md"),
        "A lamp at the top, with so many words that the others come before it.\n",
    )
    .expect("written");
    let opened = Opened::start(&env, &[]);
    let cookie = opened.enter();
    let list = |filter: &str| text(&opened, &cookie, &format!("memories?part=list&q=lamp{filter}"));
    assert!(list("").contains("40 hits"), "{}", list(""));
    assert_all(&list("&kind=user"), &["1 hit", "Wick"]);
    assert_all(&list("&group=notes"), &["1 hit", "notes/project_0.md"]);
    assert_all(&list("&group=lighthouse"), &["40 hits"]);
    assert_all(&list("&group=%2F"), &["1 hit", "top.md"]);
    assert!(list("&age=old").contains("Nothing relevant"), "{}", list("&age=old"));
    assert!(
        list("&kind=user&group=notes").contains("Try fewer or other words"),
        "{}",
        list("&kind=user&group=notes")
    );
}

#[test]
fn views_have_what_they_promise() {
    let sample = Sample::new();
    let opened = Opened::start(&sample.env, &["--home", "desktop"]);
    let cookie = opened.enter();
    let view = |name: &str| text(&opened, &cookie, name);
    assert_all(
        &view("now"),
        &[
            "What the last session was given",
            "lighthouse",
            "412 tokens",
            "carry_forward.md",
            "You saw: haversack: 3 memories from laptop",
        ],
    );
    assert_all(&view("next"), &["Next session in"]);
    assert_all(
        &view("machines"),
        &["desktop this one", "laptop last change", "not known here", "haversack status on that machine"],
    );
    assert_all(
        &view("memory?path=claude_memory%2Flighthouse%2Freference_lamp.md"),
        &["Links to", "Linked from", "project_ports.md"],
    );
    assert_all(
        &view("memory?path=claude_memory%2Flighthouse%2Freference_lamp.md&show=authors"),
        &["laptop claude-code session 7f3a91c2", "45 ms between", "desktop"],
    );
    assert_all(&view("time"), &["a diamond for a merge", "laptop", "desktop"]);
    assert!(!view("health").contains("Checked"), "nothing was checked yet");
    let token = opened.get(&cookie, "health").field("token");
    assert_eq!(opened.post(&cookie, "health", &[("token", &token)]).status, 303);
    assert_all(&view("health"), &["Checked", "Check everything again", "well"]);
}

#[test]
fn keep_both_leaves_both_versions_without_a_note() {
    let sample = Sample::new();
    let opened = Opened::start(&sample.env, &["--home", "desktop"]);
    let cookie = opened.enter();
    let shown = opened.get(&cookie, "conflicts");
    let form = shown.body.split("<form").find(|form| form.contains("Keep both")).expect("a button");
    let fields: Vec<(&str, String)> = form
        .split("<input type=\"hidden\"")
        .skip(1)
        .filter_map(|input| {
            let name = input.split_once("name=\"")?.1.split('"').next()?;
            let value = input.split_once("value=\"")?.1.split('"').next()?;
            Some((name, value.replace("&amp;", "&").replace("&quot;", "\"")))
        })
        .collect();
    let fields: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let answer = opened.post(&cookie, "resolve", &fields);
    assert_eq!(answer.status, 303, "{}", answer.body);
    let ports = sample.env.path("desktop/memory/claude_memory/lighthouse/project_ports.md");
    let text = std::fs::read_to_string(ports).expect("there");
    assert!(text.contains("5434, since the move") && text.contains("5440 until Friday"), "{text}");
    assert!(!text.contains("[also, from"), "{text}");
}

#[test]
fn now_shows_the_changes_since_the_last_visit() {
    let sample = Sample::new();
    // A visit counts when its page ends.
    let mut first = Opened::start(&sample.env, &["--home", "desktop", "--idle", "1s"]);
    let cookie = first.enter();
    assert!(text(&first, &cookie, "now").contains("Newest changes"));
    assert!(first.process.wait().expect("it ends").success());
    let file = "claude_memory/harbour/project_deploys.md";
    let mut edit =
        sample.env.command(&["--home", "laptop", "str-replace", file, "until 15:00", "until 14:00"]);
    sample.env.shown(edit.env("HAVERSACK_AGENT", "codex"));
    for home in ["laptop", "desktop"] {
        sample.env.run(&["--home", home, "sync"]);
    }
    let opened = Opened::start(&sample.env, &["--home", "desktop"]);
    let cookie = opened.enter();
    let shown = text(&opened, &cookie, "now");
    assert_all(&shown, &["Changed since your last visit", "laptop · codex", "1 change"]);
    assert!(!shown.contains("7f3a91c2"), "earlier changes are not new: {shown}");
}

#[test]
fn next_session_shows_the_chosen_project() {
    let agents = Agents::new();
    for (name, keeper) in [("lighthouse", "Ada keeps the light."), ("harbour", "Bo keeps the harbour.")] {
        let root = agents.repository("laptop", name, &format!("git@github.com:me/{name}.git"));
        agents.start("laptop", &root);
        let note = format!(
            "---\nname: Carry forward\ndescription: d\ntype: carry_forward\n---\n\n## Pending\n- {keeper}\n"
        );
        agents.remember("laptop", &root, "carry_forward.md", &note);
    }
    let home = agents.machines.env.path("laptop").display().to_string();
    let claude = agents.claude("laptop").display().to_string();
    let opened =
        Opened::start_with(&agents.machines.env, &["--home", &home], &[("CLAUDE_CONFIG_DIR", &claude)]);
    let cookie = opened.enter();
    let page = opened.get(&cookie, "next").body;
    let id = |name: &str| {
        let options = page.split("<option value=\"").skip(1);
        let values = options
            .filter(|option| option.contains(&format!(">{name}<")))
            .filter_map(|option| option.split('"').next());
        values.map(str::to_owned).next().unwrap_or_else(|| panic!("{name}: {page}"))
    };
    for (name, keeper) in [("lighthouse", "Ada keeps"), ("harbour", "Bo keeps")] {
        let shown = text(&opened, &cookie, &format!("next?project={}", id(name)));
        assert_all(&shown, &[&format!("Next session in {name}"), keeper]);
    }
    assert!(!text(&opened, &cookie, "next?project=..%2Fx").contains("Ada keeps"));
}
