//! A machine on which lines are typed, and a second one that it shares its memory with.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::agents::Agents;

/// A character that no output holds. It begins the output of each line.
const MARK: char = '\u{1e}';

/// What a line's output is shown on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Width {
    /// A terminal of 60 columns without colours.
    Narrow,
    /// A terminal of 100 columns with colours. They are taken out of the snapshot.
    Wide,
    /// A pipe.
    Piped,
}

impl Width {
    pub(super) const ALL: [Width; 3] = [Width::Narrow, Width::Wide, Width::Piped];

    pub(super) fn name(self) -> &'static str {
        match self {
            Width::Narrow => "60 columns",
            Width::Wide => "100 columns",
            Width::Piped => "piped",
        }
    }

    pub(super) fn columns(self) -> Option<usize> {
        match self {
            Width::Narrow => Some(60),
            Width::Wide => Some(100),
            Width::Piped => None,
        }
    }
}

/// A laptop and a desktop that meet in one Dropbox folder.
pub(super) struct Scene {
    agents: Agents,
}

impl Scene {
    /// Returns machines that Haversack was never used on.
    pub(super) fn empty() -> Scene {
        Scene { agents: Agents::new() }
    }

    /// Returns a laptop that carries a project: both machines wrote one sentence, and one file holds a token.
    pub(super) fn carried() -> Scene {
        let scene = Scene::empty();
        let agents = &scene.agents;
        let env = &agents.machines.env;
        let url = "git@github.com:me/lighthouse.git";
        let here = agents.repository("laptop", "lighthouse", url);
        let there = agents.repository("desktop", "lighthouse", url);
        let token = concat!("AKIA", "Z7QK3XN5PLVT2RWD");
        for (name, text) in [
            ("MEMORY.md", "- [Ports](ports.md) — staging\n".to_owned()),
            ("ports.md", memory("ports", "reference", "staging 8443")),
            ("tide.md", memory("tide", "project", "wait for the tide before a deploy")),
            ("keys.md", memory("keys", "reference", token)),
        ] {
            agents.remember("laptop", &here, name, &text);
        }
        let transcript = agents.memory("laptop", &here).with_file_name("1.jsonl");
        fs::write(transcript, format!("{{\"cwd\":\"{}\",\"type\":\"user\"}}\n", here.display()))
            .expect("written");
        fs::create_dir_all(env.path("Dropbox")).expect("made");
        fs::create_dir_all(env.path(".dropbox")).expect("made");
        let client = format!("{{\"personal\":{{\"path\":\"{}\"}}}}", env.path("Dropbox").display());
        fs::write(env.path(".dropbox/info.json"), client).expect("written");
        for machine in ["laptop", "desktop"] {
            fs::create_dir_all(agents.claude(machine)).expect("made");
            agents.link_program(machine);
            for directory in agents.program(machine).ancestors().skip(1).take(3) {
                fs::set_permissions(directory, fs::Permissions::from_mode(0o700)).expect("ours");
            }
            agents.done(machine, &["init", "~/Dropbox/haversack", "--device", machine, "--yes"]);
        }
        agents.start("desktop", &there);
        // Its sync in the background ends first, so that the history has the same changes each time.
        agents.rest();
        for (machine, root, port) in [("desktop", &there, "8555"), ("laptop", &here, "8111")] {
            agents.remember(
                machine,
                root,
                "ports.md",
                &memory("ports", "reference", &format!("staging {port}")),
            );
            agents.done(machine, &["sync"]);
        }
        agents.done("laptop", &["create", "ideas.md", "a red lamp\n"]);
        agents.rest();
        scene
    }

    /// Runs lines in the checkout on the laptop, one after another; returns what each shows, with its exit code.
    pub(super) fn run(&self, width: Width, lines: &[String]) -> Vec<String> {
        let env = &self.agents.machines.env;
        let mut script = "exec </dev/null\n".to_owned();
        if let Some(columns) = width.columns() {
            script.insert_str(0, &format!("stty -opost cols {columns} rows 500\n"));
        }
        for line in lines {
            let typed = match width {
                // As in a terminal's shell, the two streams are one.
                Width::Narrow | Width::Wide => line.clone(),
                Width::Piped => {
                    format!("{{ {line}\n}} 2>\"$HOME/errors\"; code=$?; cat \"$HOME/errors\"; (exit $code)")
                }
            };
            script.push_str(&format!("printf '{MARK}'\n{typed}\nprintf 'exit %s\\n' $?\n"));
        }
        let file = env.path(&format!("lines-{}.sh", width.columns().unwrap_or(0)));
        fs::write(&file, script).expect("written");
        let mut command = match width {
            Width::Piped => env.program("sh"),
            Width::Narrow | Width::Wide => env.program("script"),
        };
        match width {
            Width::Piped => command.arg(&file),
            Width::Narrow | Width::Wide => {
                command.args(["-qec", &format!("sh {}", file.display()), "/dev/null"])
            }
        };
        let program = Path::new(env!("CARGO_BIN_EXE_haversack")).parent().expect("in a directory");
        command
            .env_remove("COLUMNS")
            .env("HOME", env.path("").parent().expect("below").join("user"))
            .env("PATH", format!("{}:/usr/bin:/bin", program.display()))
            .env("TERM", "xterm")
            .env("EDITOR", "sed -i s/8111/9000/")
            .env("HAVERSACK_HOME", env.path("laptop"))
            .env("CLAUDE_CONFIG_DIR", self.agents.claude("laptop"))
            .stdin(std::process::Stdio::null());
        if width == Width::Narrow {
            command.env("NO_COLOR", "1");
        }
        let checkout = env.path("laptop-code/lighthouse");
        command.current_dir(if checkout.is_dir() { checkout } else { env.path("") });
        let output = command.output().expect("it ran");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let has_colors = text.replace("\u{1b}[K", "").contains("\u{1b}[");
        let expected = width == Width::Wide && text.contains("exit ");
        assert_eq!(has_colors, expected, "colours at {}: {text}", width.name());
        let shown: Vec<String> = text.split(MARK).skip(1).map(|shown| self.plain(shown)).collect();
        assert_eq!(shown.len(), lines.len(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
        self.agents.rest();
        shown
    }

    /// Takes colours, times and names of this test out of an output.
    fn plain(&self, shown: &str) -> String {
        // A bar of progress is drawn only on a slow machine, over and over in one line.
        let without_bars: Vec<&str> =
            shown.split('\n').map(|line| line.rsplit("\r\u{1b}[K").next().unwrap_or(line)).collect();
        let shown = without_bars.join("\n");
        let mut text = String::new();
        let mut rest = shown.chars();
        while let Some(c) = rest.next() {
            match c {
                '\u{1b}' => drop(rest.by_ref().find(char::is_ascii_alphabetic)),
                '\r' => {}
                c => text.push(c),
            }
        }
        let user = self.agents.machines.env.path("");
        let base = user.parent().expect("below").display().to_string();
        let slug: String = base.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let text = text.replace(&base, "BASE").replace(&slug, "-BASE");
        let text = text.replace(&format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS), "ARCH-OS");
        let text = crate::machines::without_times(&text).replace(env!("CARGO_PKG_VERSION"), "VERSION");
        without_ages(&text)
    }
}

/// Returns a memory file.
fn memory(name: &str, kind: &str, text: &str) -> String {
    format!("---\nname: {name}\ndescription: about the {name}\ntype: {kind}\n---\n\n{text}\n")
}

/// Says of everything that happened in the last hour that it was just now. Gaps in such an output become two spaces, because the age
/// decides how wide a column is.
fn without_ages(text: &str) -> String {
    let words: Vec<&str> = text.split(' ').collect();
    let mut shown = String::new();
    let mut at = 0;
    while at < words.len() {
        let is_age = |unit: &str| {
            words.get(at + 1) == Some(&unit) && words.get(at + 2).is_some_and(|word| word.starts_with("ago"))
        };
        let number = words[at].rsplit(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
        if !number.is_empty() && (is_age("min") || is_age("s")) {
            let before = &words[at][..words[at].len() - number.len()];
            shown.push_str(&format!("{before}just now{} ", &words[at + 2]["ago".len()..]));
            at += 3;
        } else {
            shown.push_str(words[at]);
            shown.push(' ');
            at += 1;
        }
    }
    shown.pop();
    if !shown.contains("just now") {
        return shown;
    }
    let mut even = String::new();
    for line in shown.split_inclusive('\n') {
        let indent = line.len() - line.trim_start_matches(' ').len();
        even.push_str(&line[..indent]);
        let mut gap = 0;
        for c in line[indent..].chars() {
            gap = if c == ' ' { gap + 1 } else { 0 };
            if gap <= 2 {
                even.push(c);
            }
        }
    }
    even
}
