//! The page that says what can be set, made from the declarations.

use std::fmt::Write;

use super::declarations::{DECLARATIONS, Declaration, Kind};
use super::defaults;
use super::files::PROJECT_FILE;
use super::layers::LayerValue;
use crate::error::CommandError;
use crate::settings::variables;

/// The command that writes the page.
const REGENERATE: &str = "cargo run --quiet --package haversack-cli -- config reference > docs/settings.md";

/// The homes of the systems, the same on each of them.
const HOME_DEFAULTS: &str = "`~/.local/share/haversack`; macOS: `~/Library/Application Support/haversack`; \
                             Windows: `%LOCALAPPDATA%\\haversack`";

/// Returns the reference page in Markdown.
pub(crate) fn reference() -> Result<String, CommandError> {
    let defaults = defaults()?;
    let mut page = format!(
        "# Settings

<!-- Made by: {REGENERATE} -->

Everything works without any. `haversack config list` shows each setting, its value and where it comes from. `haversack config set KEY VALUE` changes one.

| setting | variable | default | range | meaning |
|---|---|---|---|---|
"
    );
    for declaration in DECLARATIONS {
        page.push_str(&row(declaration, &defaults));
    }
    page.push_str(&format!(
        "
## Layers

A setting has the value of the first of these that names it:

| layer | where |
|---|---|
| flag | `--config KEY=VALUE`, as often as needed (the last one for a key counts); `--home DIRECTORY` |
| environment | the setting's variable |
| project | `{PROJECT_FILE}` in the current directory, or else in the nearest directory above it |
| user | `config.toml` in the home |
| default | compiled in |

The home itself is only set by flag or variable, since the user file is inside it. Files are TOML: what is before
the dot of a setting is a table. A project called lighthouse, whose notes are long, has this `{PROJECT_FILE}`:

```toml
[memory-tool]
view-characters = 32000
```

The same for one command: `haversack --config memory-tool.view-characters=32000 …`.

An error in any layer (a setting that is not on this page, a value out of range, a file that cannot be
read) fails every command before it does anything; `haversack doctor` reports it as a failed check. A variable that
starts with `{prefix}` and is not on this page does nothing and is warned of.

## Clouds

For a remote in a cloud, the variables of the cloud's own tools name the endpoint and the credential: those that begin with `AZURE_`, `AWS_`
and `GOOGLE_`. [Clouds](guide/clouds.md) lists them.

## Other variables

| variable | meaning |
|---|---|
",
        prefix = variables::PREFIX,
    ));
    for (name, help) in variables::NOT_SETTINGS {
        // Writing to a string does not fail.
        let _ = writeln!(page, "| `{name}` | {help} |");
    }
    Ok(page)
}

fn row(declaration: &Declaration, defaults: &[LayerValue]) -> String {
    let Declaration { key, variable, kind, help, .. } = declaration;
    let (default, range) = match kind {
        Kind::Home => (HOME_DEFAULTS.to_owned(), "a directory".to_owned()),
        Kind::Number(range) => {
            let default = defaults.iter().find(|said| said.key == *key);
            let default = default.map(|said| said.value.to_string()).unwrap_or_default();
            (default, format!("{} to {}", range.start(), range.end()))
        }
        Kind::Text => (String::new(), "a text".to_owned()),
        Kind::Zone => ("the system's".to_owned(), "a time zone".to_owned()),
        Kind::Switch => ("off".to_owned(), "`true` or `false`".to_owned()),
    };
    format!("| `{key}` | `{variable}` | {default} | {range} | {help} |\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_in_the_documentation_is_up_to_date() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/settings.md");
        let page = std::fs::read_to_string(path).unwrap_or_default();
        let expected = reference().expect("made");
        assert!(page == expected, "docs/settings.md is out of date; make it again: {REGENERATE}");
    }
}
