//! The pictures of the page for the documentation: light, dark, and on a phone.
//!
//! `cargo xtask screenshots` names the directory that they are written into. Without it, the test only checks that every picture can be made.

use super::Opened;
use super::browser::Window;
use super::sample::Sample;

/// The variable with the directory.
const DIRECTORY: &str = "HAVERSACK_SCREENSHOTS";

/// Name, view, width, height, scheme.
const PICTURES: [(&str, &str, u32, u32, &str); 15] = [
    ("page-now", "now", 1280, 900, "light"),
    ("page-now-dark", "now", 1280, 900, "dark"),
    ("page-now-phone", "now", 390, 844, "light"),
    ("page-memories", "memories?q=port", 1280, 900, "light"),
    ("page-memory", "memory?path=claude_memory%2Flighthouse%2Freference_lamp.md", 1280, 900, "light"),
    (
        "page-authors",
        "memory?path=claude_memory%2Flighthouse%2Freference_lamp.md&show=authors",
        1280,
        900,
        "dark",
    ),
    ("page-conflicts", "conflicts", 1280, 900, "light"),
    ("page-conflicts-phone", "conflicts", 390, 844, "dark"),
    ("page-inbox", "inbox", 1280, 900, "light"),
    ("page-inbox-phone", "inbox", 390, 844, "light"),
    ("page-tidy", "tidy", 1280, 900, "light"),
    ("page-graph-light", "graph", 1280, 900, "light"),
    ("page-memory-phone", "memory?path=claude_memory%2Flighthouse%2Freference_lens.md", 390, 844, "dark"),
    ("page-time", "time", 1280, 900, "light"),
    ("page-graph", "graph", 1280, 900, "dark"),
];

#[test]
fn every_picture_can_be_made() {
    let sample = Sample::new();
    let opened = Opened::start(&sample.env, &["--home", "desktop"]);
    let Some(mut window) = Window::open() else { return };
    window.look(1280, 900, "light");
    window.enter(&opened.entrance());
    let directory = std::env::var_os(DIRECTORY).map(std::path::PathBuf::from);
    for (name, view, width, height, scheme) in PICTURES {
        window.look(width, height, scheme);
        window.go(&format!("http://{}/{}/{view}", opened.address, opened.prefix));
        let picture = window.picture();
        assert!(picture.starts_with(b"\x89PNG") && picture.len() > 8_000, "{name}: {} bytes", picture.len());
        if let Some(directory) = &directory {
            std::fs::write(directory.join(format!("{name}.png")), picture).expect("written");
        }
    }
}
