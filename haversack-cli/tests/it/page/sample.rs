//! A sample memory of two machines and a project called lighthouse, as tests and pictures use it.

use crate::environment::TestEnv;

/// Two machines that share a directory; the first one is looked at.
pub(super) struct Sample {
    pub(super) env: TestEnv,
}

const FILES: [(&str, &str); 13] = [
    (
        "lighthouse/MEMORY.md",
        "# Lighthouse\n\n- [Ports of the services](project_ports.md) — which service listens where\n- [Release steps](project_release.md) — what to do before a tag\n- [The lamp driver](reference_lamp.md) — timing and its traps\n- [Style of answers](feedback_answers.md) — short, with the command first\n- [Incident in March](project_incident.md) — what went wrong with the fog sensor\n",
    ),
    (
        "lighthouse/project_ports.md",
        "---\nname: Ports of the services\ndescription: which service listens where, in staging and production\ntype: project\n---\n# Ports\n\n- the API listens on `8080`, behind the proxy\n- staging listens on 5433\n- metrics are on **9100**, see [[reference_lamp]]\n\nThe proxy strips the prefix, so routes have none. The [release steps](project_release.md) check it.\n",
    ),
    (
        "lighthouse/project_release.md",
        "---\nname: Release steps\ndescription: what to do before a tag\ntype: project\n---\n# Before a tag\n\n1. run the long tests\n2. look at the change log\n3. ask the teammate on call\n\nThe port of staging is in [[project_ports]].\n",
    ),
    (
        "lighthouse/reference_lamp.md",
        "---\nname: The lamp driver\ndescription: timing of the lamp and its traps\ntype: reference\n---\n# Lamp\n\nThe driver needs 40 ms between two pulses. Below that it drops every second one.\n\n```\nlamp --pulse 40 --count 3\n```\n\nSee the [incident](project_incident.md).\n",
    ),
    (
        "lighthouse/reference_lens.md",
        "---\nname: Cleaning the lens\ndescription: how the lens was cleaned until the spring\ntype: reference\nsuperseded_by: reference_lamp.md\n---\nWith alcohol, every second week. See [[reference_lamp]].\n",
    ),
    (
        "lighthouse/feedback_answers.md",
        "---\nname: Style of answers\ndescription: short, with the command first\ntype: feedback\n---\nThe user wants the command first and the reason after it.\n",
    ),
    (
        "lighthouse/project_incident.md",
        "---\nname: Incident in March\ndescription: the fog sensor reported a clear night\ntype: project\n---\nThe sensor was read before it was warm. Since then the start waits for it, see [[reference_lamp]] and [[project_release]].\n",
    ),
    (
        "lighthouse/carry_forward.md",
        "# Carry forward\n\n- [ ] ask about the second lamp\n- [ ] try the new fog sensor on staging\n- [x] rotate the keys of the harbour API\n",
    ),
    (
        "harbour/MEMORY.md",
        "# Harbour\n\n- [Tides](reference_tides.md) — where the table comes from\n- [Deploys](project_deploys.md) — who may, and when\n",
    ),
    (
        "harbour/reference_tides.md",
        "---\nname: Tides\ndescription: where the table comes from\ntype: reference\n---\nThe table is rebuilt every night. [[project_deploys]] must not run meanwhile.\n",
    ),
    (
        "harbour/project_deploys.md",
        "---\nname: Deploys\ndescription: who may deploy, and when\ntype: project\n---\nDeploys are allowed until 16:00. Afterwards ask a teammate.\n",
    ),
    (
        "behavioral/working_style.md",
        "---\nname: Working style\ndescription: how the user likes to work\ntype: user\n---\nSmall commits. Tests first. No surprises on a Friday.\n",
    ),
    (
        "behavioral/languages.md",
        "---\nname: Languages\ndescription: what the user writes\ntype: user\n---\nRust at work, a little Python for plots.\n",
    ),
];

impl Sample {
    /// Makes the memory: files, a teammate's machine, a conflict, changes of two agents.
    pub(super) fn new() -> Sample {
        let env = TestEnv::new();
        let remote = env.path("shared").display().to_string();
        let ok = |told: String| assert!(told.starts_with("exit 0\n"), "{told}");
        std::fs::create_dir(env.path("shared")).expect("made");
        ok(env.run(&[
            "--home",
            "desktop",
            "remote",
            "add",
            &format!("file://{remote}"),
            "--device",
            "desktop",
        ]));
        for (name, text) in FILES {
            let name = match name.split_once('/') {
                Some((project @ ("lighthouse" | "harbour"), file)) => {
                    format!("claude_memory/{project}/{file}")
                }
                _ => name.to_owned(),
            };
            ok(env.run(&["--home", "desktop", "create", &name, text]));
        }
        ok(env.run(&["--home", "desktop", "sync"]));
        ok(env.run(&[
            "--home",
            "laptop",
            "join",
            &format!("file://{remote}"),
            "--device",
            "laptop",
            "--yes",
        ]));
        let edit = |home: &str, agent: &str, session: &str, file: &str, old: &str, new: &str| {
            let mut command = env.command(&["--home", home, "str-replace", file, old, new]);
            command.env("HAVERSACK_AGENT", agent).env("HAVERSACK_SESSION", session);
            ok(env.shown(&mut command));
        };
        let ports = "claude_memory/lighthouse/project_ports.md";
        edit(
            "laptop",
            "claude-code",
            "7f3a91c2",
            "claude_memory/lighthouse/reference_lamp.md",
            "40 ms between",
            "45 ms between",
        );
        ok(env.run(&["--home", "laptop", "sync"]));
        ok(env.run(&["--home", "desktop", "sync"]));
        // Both machines change one line before they meet again.
        edit(
            "laptop",
            "claude-code",
            "7f3a91c2",
            ports,
            "listens on 5433",
            "listens on 5434, since the move",
        );
        edit("desktop", "codex", "91c2b7aa", ports, "listens on 5433", "listens on 5440 until Friday");
        ok(env.run(&["--home", "laptop", "sync"]));
        ok(env.run(&["--home", "desktop", "sync"]));
        edit(
            "laptop",
            "claude-code",
            "8b1d0e44",
            "claude_memory/harbour/project_deploys.md",
            "until 16:00",
            "until 15:00",
        );
        ok(env.run(&["--home", "laptop", "sync"]));
        ok(env.run(&["--home", "desktop", "sync"]));
        converse(&env);
        ok(env.run(&["--home", "desktop", "tidy"]));
        // A log that the next tidy would roll up.
        said(&env, 12, 1, "inbound", "The harbour asked for the tide table of next week.");
        given(&env);
        Sample { env }
    }
}

/// Writes a line of the interaction log of some days ago.
fn said(env: &TestEnv, days_ago: i64, number: u32, direction: &str, words: &str) {
    use std::io::Write;
    let day = jiff::Zoned::now().with_time_zone(jiff::tz::TimeZone::UTC).date();
    let day = day.saturating_sub(jiff::ToSpan::days(days_ago));
    let directory = env.path("desktop/memory/interactions");
    std::fs::create_dir_all(&directory).expect("made");
    let file = directory.join(format!("{day}.jsonl"));
    let line = format!(
        "{{\"id\":\"7c9e6679-7425-40de-944b-e07fc1{days_ago:02}{number:04}\",\"ts\":\"{day}T09:{number:02}:00Z\",\"channel\":\"chat\",\"direction\":\"{direction}\",\"sender\":\"the user\",\"summary\":\"{words}\"}}\n"
    );
    let file = std::fs::OpenOptions::new().append(true).create(true).open(file);
    file.expect("opened").write_all(line.as_bytes()).expect("written");
}

/// Writes conversations of the last days. Some of them should be remembered.
fn converse(env: &TestEnv) {
    said(env, 3, 1, "inbound", "How long does the lamp need to warm up?");
    said(env, 3, 2, "inbound", "From now on write the release notes in the past tense.");
    said(env, 1, 1, "inbound", "We decided to keep two spare lamps in the harbour.");
    said(env, 0, 1, "inbound", "Always run the tide tests before a deploy.");
}

/// Notes what two sessions were given, as the hook of a session's start does.
fn given(env: &TestEnv) {
    let directory = env.path("desktop/state/hooks");
    std::fs::create_dir_all(&directory).expect("made");
    let now = jiff::Timestamp::now().as_millisecond();
    let record = serde_json::json!({
        "time": now - 11 * 60 * 1000, "session": "91c2b7aa", "source": "startup", "project": "lighthouse", "tokens": 412,
        "portions": [
            { "file": "carry_forward.md", "from": "this machine, 2 days ago", "tokens": 96, "left_out": 0 },
            { "file": "project_ports.md", "from": "laptop, 3 h ago", "tokens": 141, "left_out": 0 },
            { "file": "feedback_answers.md", "from": "this machine, 5 days ago", "tokens": 58, "left_out": 0 },
            { "file": "what changed", "from": "laptop", "tokens": 117, "left_out": 0 },
        ],
        "message": "haversack: 3 memories from laptop (2 h ago)",
    });
    std::fs::write(directory.join("given.jsonl"), format!("{record}\n")).expect("written");
}
