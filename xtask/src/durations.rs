//! Usual durations of the steps of `./try` and `./test`.
//!
//! Each step prints its usual duration when it begins. `docs/development.md` shows the same table; a test compares the two.

/// Usual durations on two free cores, by the name of the step.
const USUAL: [(&str, &str); 33] = [
    ("format", "2 s"),
    ("lints", "3 min in a fresh clone, then 30 s"),
    ("asking Debian for its packages", "2 s"),
    ("fetching syncthing from Debian", "2 s"),
    ("fetching Chromium from Debian", "5 s"),
    ("making a Python environment, once", "3 s"),
    ("installing claude, once", "20 s, 350 MB"),
    ("installing moto_server, once", "20 s"),
    ("installing azurite, once", "20 s"),
    ("installing axe_core, once", "2 s"),
    ("installing mcp_python, once", "3 s"),
    ("installing mcp_typescript, once", "2 s"),
    ("installing mcp_typescript_1, once", "2 s"),
    ("installing Node, once", "2 s"),
    ("installing mcp_inspector, once", "10 s"),
    ("installing mcp_conformance, once", "5 s"),
    ("downloading the model for search by meaning (84 MB), once", "5 s"),
    ("unpacking the model", "1 s"),
    ("installing the Anthropic SDK, once", "2 s"),
    ("installing mypy, once", "3 s"),
    ("installing the Anthropic SDK for TypeScript, once", "5 s"),
    ("tests", "10 min in a fresh clone, then 7 min"),
    ("haversack alone", "30 s"),
    ("Python package: types", "10 s"),
    ("Python package: tests", "20 s"),
    ("TypeScript package: build", "3 s"),
    ("TypeScript package: types of tests and examples", "3 s"),
    ("TypeScript package: tests", "20 s"),
    ("simulation", "3 min in a fresh clone, then 30 s"),
    ("documentation", "1 min"),
    ("building cargo-deny, once", "4 min"),
    ("fetching", "5 s"),
    ("dependencies", "2 s"),
];

/// Returns the usual duration of a step, if it is known.
pub(crate) fn usual(step: &str) -> Option<&'static str> {
    USUAL.iter().find(|(name, _)| *name == step).map(|(_, duration)| *duration)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::project;

    #[test]
    fn development_guide_shows_every_duration() {
        let guide = std::fs::read_to_string(project().join("docs/development.md")).expect("it is there");
        for (step, duration) in USUAL {
            let row = format!("| {step} | {duration} |");
            assert!(guide.contains(&row), "docs/development.md lacks the row: {row}");
        }
    }

    #[test]
    fn unknown_step_has_no_usual_duration() {
        assert_eq!(usual("format"), Some("2 s"));
        assert_eq!(usual("soak of the store"), None);
    }
}
