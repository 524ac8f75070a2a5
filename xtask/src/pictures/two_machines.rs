//! The diagram of two machines and the storage between them.

use super::svg::{MONOSPACE, Picture, SANS};

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 340.0;
const MACHINE: (f64, f64) = (270.0, 250.0);
const STORAGE: (f64, f64) = (240.0, 250.0);
const TOP: f64 = 50.0;

const INK: &str = "#1f2328";
const FAINT: &str = "#59636e";
const LINE: &str = "#8c959f";
const ACCENT: &str = "#0969da";

/// Returns the diagram.
pub(super) fn picture() -> String {
    let mut picture = Picture::new(
        WIDTH,
        HEIGHT,
        "Two machines write memory files; Haversack on each machine sends its changes to a storage you own and merges the other's changes",
    );
    picture.rectangle((0.0, 0.0), (WIDTH, HEIGHT), r##"rx="10" fill="#ffffff" stroke="#d1d9e0""##);
    let machines = [
        (30.0, "Laptop", "“port 5433” + “deploys on Fridays”"),
        (WIDTH - 30.0 - MACHINE.0, "Desktop", "“port 5434” + “staging is down”"),
    ];
    for (left, name, edits) in machines {
        machine(&mut picture, left, name, edits);
    }
    storage(&mut picture, (WIDTH - STORAGE.0) / 2.0);
    let (left, right) = (30.0 + MACHINE.0, (WIDTH - STORAGE.0) / 2.0);
    arrows(&mut picture, left, right);
    arrows(&mut picture, WIDTH - right, WIDTH - left);
    picture.finish()
}

fn machine(picture: &mut Picture, left: f64, name: &str, edits: &str) {
    let middle = left + MACHINE.0 / 2.0;
    picture.rectangle((left, TOP), MACHINE, r##"rx="8" fill="#f6f8fa" stroke="#8c959f""##);
    label(picture, (middle, TOP - 14.0), name, 16.0, INK, "bold");
    inner_box(picture, left, TOP + 20.0, "your agent", "Claude Code, Codex, any MCP client");
    inner_box(picture, left, TOP + 95.0, "memory files (Markdown)", edits);
    inner_box(picture, left, TOP + 170.0, "haversack", "merges line by line · history · undo");
    for top in [TOP + 78.0, TOP + 153.0] {
        arrow(picture, (middle, top), (middle, top + 15.0), LINE);
    }
}

fn inner_box(picture: &mut Picture, left: f64, top: f64, title: &str, text: &str) {
    picture.rectangle(
        (left + 16.0, top),
        (MACHINE.0 - 32.0, 56.0),
        r##"rx="6" fill="#ffffff" stroke="#d1d9e0""##,
    );
    let middle = left + MACHINE.0 / 2.0;
    label(picture, (middle, top + 24.0), title, 13.0, INK, "bold");
    label(picture, (middle, top + 43.0), text, 12.0, FAINT, "normal");
}

fn storage(picture: &mut Picture, left: f64) {
    let middle = left + STORAGE.0 / 2.0;
    picture.rectangle((left, TOP), STORAGE, &format!(r##"rx="8" fill="#ddf4ff" stroke="{ACCENT}""##));
    label(picture, (middle, TOP - 14.0), "Storage you own (the remote)", 16.0, INK, "bold");
    let lines = [
        "Dropbox, OneDrive, iCloud,",
        "Google Drive, Syncthing",
        "or",
        "S3, Azure Blob, Google Cloud",
        "or",
        "a disk that you carry",
    ];
    for (number, line) in (0_u8..).zip(lines) {
        label(picture, (middle, TOP + 40.0 + 22.0 * f64::from(number)), line, 14.0, INK, "normal");
    }
    let style = format!(r#"font-family="{MONOSPACE}" font-size="12" fill="{FAINT}" text-anchor="middle""#);
    picture.text((middle, TOP + 194.0), ".haversack/log/  every change", &style);
    picture.text((middle, TOP + 214.0), "lighthouse/ports.md  plain copies", &style);
}

/// Draws the two arrows between a machine and the storage.
fn arrows(picture: &mut Picture, left: f64, right: f64) {
    let (upper, lower) = (TOP + 190.0, TOP + 208.0);
    arrow(picture, (left + 4.0, upper), (right - 4.0, upper), ACCENT);
    arrow(picture, (right - 4.0, lower), (left + 4.0, lower), ACCENT);
    label(picture, (f64::midpoint(left, right), upper - 10.0), "sync", 13.0, ACCENT, "bold");
}

fn arrow(picture: &mut Picture, from: (f64, f64), to: (f64, f64), color: &str) {
    let length = (to.0 - from.0).hypot(to.1 - from.1);
    let (along, across) = (
        ((to.0 - from.0) / length, (to.1 - from.1) / length),
        ((to.1 - from.1) / length, (from.0 - to.0) / length),
    );
    let corner = |side: f64| (to.0 - 8.0 * along.0 + side * across.0, to.1 - 8.0 * along.1 + side * across.1);
    let (one, other) = (corner(4.0), corner(-4.0));
    picture.path(
        &format!("M{} {} L{} {}", from.0, from.1, to.0, to.1),
        &format!(r#"stroke="{color}" stroke-width="1.6""#),
    );
    picture.path(
        &format!("M{} {} L{} {} L{} {} Z", to.0, to.1, one.0, one.1, other.0, other.1),
        &format!(r#"fill="{color}""#),
    );
}

fn label(picture: &mut Picture, at: (f64, f64), text: &str, size: f64, color: &str, weight: &str) {
    let style = format!(
        r#"font-family="{SANS}" font-size="{size}" font-weight="{weight}" fill="{color}" text-anchor="middle""#
    );
    picture.text(at, text, &style);
}
