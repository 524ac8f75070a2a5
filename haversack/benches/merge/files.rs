//! Files of about 1 MB as agents and programs write them, each as it was and as two devices left it.
//!
//! A file is made of parts. On each device two in a hundred are gone, three are changed, and three are new; here and there both
//! changed the same one.

use haversack::merge::Rule;
use haversack::store::Locator;
use haversack_bench::measure::Picks;

/// The length of a file.
const BYTES: usize = 1_000_000;

/// A file on two devices.
pub(crate) struct Meeting {
    pub(crate) what: &'static str,
    pub(crate) locator: Locator,
    pub(crate) rule: Rule,
    pub(crate) base: Option<Vec<u8>>,
    pub(crate) laptop: Vec<u8>,
    pub(crate) desktop: Vec<u8>,
}

/// The author of a part.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Nobody,
    Laptop,
    Desktop,
}

impl By {
    fn name(self) -> &'static str {
        match self {
            By::Nobody => "before",
            By::Laptop => "laptop",
            By::Desktop => "desktop",
        }
    }
}

/// The parts of a file.
struct Shape {
    what: &'static str,
    name: &'static str,
    rule: Rule,
    above: fn(By) -> String,
    /// A part, by a number that rises through the file.
    part: fn(usize, By) -> String,
    between: &'static str,
    below: &'static str,
}

/// The special property of a meeting.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Apart {
    No,
    /// Each device made the file on its own.
    NoBase,
    /// Each device wrote all of it anew.
    Rewritten,
    /// One device writes `\r\n`, the other letters with their accents apart.
    Style,
    /// Each device put lines elsewhere, here and there and far.
    Moved,
}

/// Returns a file for every rule, and those that are hard.
pub(crate) fn meetings() -> Vec<Meeting> {
    let mut meetings: Vec<Meeting> = SHAPES.iter().map(|shape| meeting(shape, Apart::No)).collect();
    let hard = [
        ("prose, made on both devices", 0, Apart::NoBase),
        ("prose, written anew on both devices", 0, Apart::Rewritten),
        ("facts, other line endings and accents", 2, Apart::Style),
        ("prose, lines put elsewhere on both devices", 0, Apart::Moved),
    ];
    for (what, shape, apart) in hard {
        meetings.push(Meeting { what, ..meeting(&SHAPES[shape], apart) });
    }
    let mark = |number: u8| [vec![b'1'; BYTES - 1], vec![b'0' + number]].concat();
    meetings.push(Meeting {
        what: "a mark of a million digits",
        locator: locator("state/email_cursor.txt"),
        rule: Rule::Cursor,
        base: Some(mark(1)),
        laptop: mark(2),
        desktop: mark(3),
    });
    let picture = |number: u8| [vec![0; BYTES - 1], vec![number]].concat();
    meetings.push(Meeting {
        what: "a picture",
        locator: locator("sketch.png"),
        rule: Rule::Whole,
        base: Some(picture(1)),
        laptop: picture(2),
        desktop: picture(3),
    });
    meetings
}

fn meeting(shape: &Shape, apart: Apart) -> Meeting {
    let write = |by: By| -> Vec<u8> {
        let mut text = written(shape, if apart == Apart::Rewritten { By::Nobody } else { by });
        match apart {
            Apart::Rewritten => text = text.replace('e', by.name()),
            Apart::Style if by == By::Laptop => text = text.replace('\n', "\r\n"),
            Apart::Style if by == By::Desktop => text = text.replace('ü', "u\u{308}"),
            Apart::Moved => text = moved(&text, by),
            Apart::No | Apart::NoBase | Apart::Style => {}
        }
        text.into_bytes()
    };
    Meeting {
        what: shape.what,
        locator: locator(shape.name),
        rule: shape.rule,
        base: (apart != Apart::NoBase).then(|| write(By::Nobody)),
        laptop: write(By::Laptop),
        desktop: write(By::Desktop),
    }
}

/// Puts lines elsewhere: the laptop every hundredth one before the ten above it, the desktop the first tenth of all to the end.
fn moved(text: &str, by: By) -> String {
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    match by {
        By::Nobody => {}
        By::Laptop => lines.chunks_exact_mut(100).for_each(|lines| lines[..11].rotate_right(1)),
        By::Desktop => {
            let tenth = lines.len() / 10;
            lines.rotate_left(tenth);
        }
    }
    lines.concat()
}

fn locator(raw: &str) -> Locator {
    Locator::parse(raw).expect("a locator")
}

fn written(shape: &Shape, by: By) -> String {
    let mut picks = Picks::start();
    if by == By::Desktop {
        picks.below(2);
    }
    let mut text = (shape.above)(by);
    let mut base_bytes = 0;
    let mut is_first = true;
    let mut put = |part: String| {
        text.push_str(if is_first { "" } else { shape.between });
        is_first = false;
        text.push_str(&part);
    };
    // Numbers of the base are four apart, so that there is room for what is new.
    for number in (0..).step_by(4) {
        let before = (shape.part)(number, By::Nobody);
        base_bytes += before.len() + shape.between.len();
        if base_bytes > BYTES {
            break;
        }
        match (by, picks.below(100)) {
            (By::Nobody, _) | (_, 5..) => put(before),
            (_, 0..2) => {}
            (_, 2..5) => put((shape.part)(number, by)),
        }
        match by {
            By::Laptop if picks.below(100) < 3 => put((shape.part)(number + 1, by)),
            By::Desktop if picks.below(100) < 3 => put((shape.part)(number + 2, by)),
            By::Nobody | By::Laptop | By::Desktop => {}
        }
    }
    text.push_str(shape.below);
    text
}

const SENTENCES: &[&str] = &[
    "The keeper prefers short answers, and wants to be asked before anything is deployed",
    "Staging listens on 5433; the lamp is white, and the fog horn is tested on Mondays",
    "Über die Brücke geht es schneller — aber nur bei Ebbe",
    "See lamp/src/rotation.rs: the bearing is greased by hand, twice a year, before the storms",
    "`cargo test -p lamp --features tls` takes four minutes; `--quick` takes one",
    "The pilots call on channel 12 and expect an answer within a minute",
];

fn sentence(number: usize, by: By) -> String {
    let words = SENTENCES[number / 4 % SENTENCES.len()];
    match by {
        By::Nobody => format!("{words} ({number})."),
        By::Laptop | By::Desktop => format!("{words} ({number}, said on the {}).", by.name()),
    }
}

/// Returns a day, some numbers to each.
fn day(number: usize, numbers: usize) -> String {
    let days = number / numbers;
    format!("{:04}-{:02}-{:02}", 1500 + days / 336, days / 28 % 12 + 1, days % 28 + 1)
}

fn moment(number: usize) -> String {
    format!("{}T{:02}:{:02}:{:02}Z", day(number, 4_000), number / 3600 % 24, number / 60 % 60, number % 60)
}

fn nothing(_: By) -> String {
    String::new()
}

/// Returns fields that a device stamped.
fn stamped(name: &str, by: By) -> String {
    let modified = moment(40_000_000 + by.name().len());
    format!(
        "---\nname: Lamp\ndescription: what is known of the lamp\nmetadata:\n  type: {name}\n  originSessionId: of-{}\n  modified: {modified}\n---\n\n",
        by.name()
    )
}

/// Returns as many fields as are read, some of them changed.
fn many_fields(by: By) -> String {
    let mut picks = Picks::start();
    if by == By::Desktop {
        picks.below(2);
    }
    let mut text = "---\ntype: project\n".to_owned();
    for number in 0..1_000 {
        let value = if picks.below(100) < 5 { by } else { By::Nobody };
        text.push_str(&format!("field_{number}: set {number} times, {}\n", value.name()));
        text.push_str(&format!("tags_{number}: [lamp, {}]\n", value.name()));
    }
    text + "---\n\n"
}

const SHAPES: &[Shape] = &[
    Shape {
        what: "prose",
        name: "notes/lamp.md",
        rule: Rule::Prose,
        above: |_| "# The lamp\n\n".to_owned(),
        part: |number, by| format!("{}\n{}\n\n", sentence(number, by), sentence(number + 4_000, By::Nobody)),
        between: "",
        below: "",
    },
    Shape {
        what: "prose of very short lines",
        name: "notes/words.txt",
        rule: Rule::Prose,
        above: nothing,
        part: |number, by| format!("word {number} {}\n", &by.name()[..2]),
        between: "",
        below: "",
    },
    Shape {
        what: "facts, fields above",
        name: "lamp.md",
        rule: Rule::Prose,
        above: |by| stamped("project", by),
        part: |number, by| format!("{}\n{}\n\n", sentence(number, by), sentence(number + 4_000, By::Nobody)),
        between: "",
        below: "",
    },
    Shape {
        what: "facts of very short lines, 2,000 fields above",
        name: "lamp.md",
        rule: Rule::Prose,
        above: many_fields,
        part: |number, by| format!("word {number} {}\n", &by.name()[..2]),
        between: "",
        below: "",
    },
    Shape {
        what: "index",
        name: "MEMORY.md",
        rule: Rule::Index,
        above: |_| "# Memory\n\n".to_owned(),
        part: |number, by| {
            let heading = if number % 400 == 0 { format!("\n## Part {number}\n") } else { String::new() };
            format!("{heading}- [Note {number}](note_{number}.md) — {}\n", sentence(number, by))
        },
        between: "",
        below: "",
    },
    Shape {
        what: "index of very short entries",
        name: "MEMORY.md",
        rule: Rule::Index,
        above: |_| "# Memory\n\n".to_owned(),
        part: |number, by| format!("- [n](n{number}.md) {}\n", &by.name()[..2]),
        between: "",
        below: "",
    },
    Shape {
        what: "log, long days",
        name: "voice_calibration.md",
        rule: Rule::Prepend,
        above: |by| stamped("voice_calibration", by),
        part: |number, by| {
            let lines: String =
                (0..12).map(|line| format!("- {}\n", sentence(number + 4 * line, by))).collect();
            format!("## {}\n\n### MISSED\n{lines}\n", day(number, 4))
        },
        between: "",
        below: "",
    },
    Shape {
        what: "log of very short days",
        name: "voice_calibration.md",
        rule: Rule::Prepend,
        above: |by| stamped("voice_calibration", by),
        part: |number, by| format!("## {}\n- ok {}\n\n", day(number, 4), &by.name()[..2]),
        between: "",
        below: "",
    },
    Shape {
        what: "threads",
        name: "philosophical_threads.md",
        rule: Rule::Threads,
        above: |by| stamped("philosophical_threads", by),
        part: |number, by| format!("## Thread {number}\n\n{}\n\n", sentence(number, by)),
        between: "",
        below: "",
    },
    Shape {
        what: "callbacks",
        name: "callbacks.md",
        rule: Rule::Callbacks,
        above: |by| stamped("callbacks", by) + "## Active\n",
        part: |number, by| format!("- **Gull {number}** ({}): {}\n", day(number, 40), sentence(number, by)),
        between: "",
        below: "\n## Retired\n",
    },
    Shape {
        what: "carried forward",
        name: "carry_forward.md",
        rule: Rule::CarryForward,
        above: |by| stamped("carry_forward", by) + "## Pending\n",
        part: |number, by| format!("- Ask about {}\n", sentence(number, by)),
        between: "",
        below: "\n## Consumed\n",
    },
    Shape {
        what: "carried forward, very short",
        name: "carry_forward.md",
        rule: Rule::CarryForward,
        above: |by| stamped("carry_forward", by) + "## Pending\n",
        part: |number, by| format!("- Ask {} {number}\n", &by.name()[..2]),
        between: "",
        below: "\n## Consumed\n",
    },
    Shape {
        what: "commitments",
        name: "running_commitments.md",
        rule: Rule::Commitments,
        above: |by| stamped("commitments", by) + "## Open\n",
        part: |number, by| format!("- [ ] c-{number}: {}\n", sentence(number, by)),
        between: "",
        below: "\n## Delivered\n",
    },
    Shape {
        what: "commitments, very short",
        name: "running_commitments.md",
        rule: Rule::Commitments,
        above: |by| stamped("commitments", by) + "## Open\n",
        part: |number, by| format!("- c-{number} {}\n", &by.name()[..2]),
        between: "",
        below: "\n## Delivered\n",
    },
    Shape {
        what: "digest of two sessions",
        name: "session_digest_2026-10-02.md",
        rule: Rule::Digest,
        above: |by| format!("---\ntype: session_digest\nsession: of-{}\n---\n\n", by.name()),
        part: |number, by| format!("## What {number} was about\n\n{}\n\n", sentence(number, by)),
        between: "",
        below: "",
    },
    Shape {
        what: "summary",
        name: "summaries/2026-10-02.md",
        rule: Rule::Summary,
        above: |_| "# 2026-10-02\n".to_owned(),
        part: |number, by| {
            let heading =
                if number % 400 == 0 { format!("\n## Part {number} (100)\n") } else { String::new() };
            format!("{heading}- Pilots: {}\n", sentence(number, by))
        },
        between: "",
        below: "",
    },
    Shape {
        what: "roll-up",
        name: "compacted/2026-10.md",
        rule: Rule::RollUp,
        above: |_| "# 2026-10\n\n".to_owned(),
        part: |number, by| format!("## {}\n\n{}\n\n", day(number, 4), sentence(number, by)),
        between: "",
        below: "",
    },
    Shape {
        what: "events",
        name: "interactions/2026-10-02.jsonl",
        rule: Rule::JsonLines,
        above: nothing,
        part: |number, by| {
            format!(
                "{{\"id\":\"e-{number}\",\"ts\":\"{}\",\"text\":\"{}\"}}\n",
                moment(number),
                sentence(number, by)
            )
        },
        between: "",
        below: "",
    },
    Shape {
        what: "very short events",
        name: "interactions/2026-10-02.jsonl",
        rule: Rule::JsonLines,
        above: nothing,
        part: |number, by| format!("{{\"id\":\"{number}\",\"by\":\"{}\"}}\n", by.name()),
        between: "",
        below: "",
    },
    Shape {
        what: "registry, by key",
        name: "_system/registry.json",
        rule: Rule::Json,
        above: |by| format!("{{\n  \"updated_at\": \"{}\",\n  \"nodes\": {{\n", moment(by.name().len())),
        part: |number, by| {
            format!(
                "    \"n-{number}\": {{\n      \"type\": \"place\",\n      \"label\": \"{}\",\n      \"weight\": {number},\n      \"near\": [\"n-{}\", \"n-{}\"]\n    }}",
                sentence(number, by),
                number + 4,
                number + 8
            )
        },
        between: ",\n",
        below: "\n  }\n}\n",
    },
    Shape {
        what: "registry, a list of small things",
        name: "_system/registry.json",
        rule: Rule::Json,
        above: |_| "[\n".to_owned(),
        part: |number, by| format!("{{\"id\": \"n-{number}\", \"by\": \"{}\"}}", by.name()),
        between: ",\n",
        below: "\n]\n",
    },
    Shape {
        what: "ontology, by key",
        name: "_system/ontology.yaml",
        rule: Rule::Yaml,
        above: |_| "node_types:\n".to_owned(),
        part: |number, by| {
            format!(
                "  place_{number}:\n    about: \"{}\"\n    weight: {number}\n    near: [place_{}, place_{}]\n",
                sentence(number, by).replace(':', ""),
                number + 4,
                number + 8
            )
        },
        between: "",
        below: "",
    },
    Shape {
        what: "ontology, a list of small things",
        name: "_system/ontology.yaml",
        rule: Rule::Yaml,
        above: |_| "connection_types:\n".to_owned(),
        part: |number, by| format!("  - name: near_{number}\n    by: {}\n", by.name()),
        between: "",
        below: "",
    },
    Shape {
        what: "set",
        name: "state/watched_chats",
        rule: Rule::Set,
        above: nothing,
        part: |number, by| format!("chat-{number}-{}\n", &by.name()[..2]),
        between: "",
        below: "",
    },
];
