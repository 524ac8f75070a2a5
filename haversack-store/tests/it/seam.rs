//! Public functions of the seam name places by locator; only the documented doors take or return a path.

/// Public files of the seam that have no door: nothing in them may name a path.
const WITHOUT_PATHS: &[(&str, &str)] = &[
    ("backend.rs", include_str!("../../src/backend.rs")),
    ("blocking.rs", include_str!("../../src/blocking.rs")),
    ("capabilities.rs", include_str!("../../src/capabilities.rs")),
    ("ext.rs", include_str!("../../src/ext.rs")),
    ("locator.rs", include_str!("../../src/locator.rs")),
    ("registry.rs", include_str!("../../src/registry.rs")),
    ("tier.rs", include_str!("../../src/tier.rs")),
    ("version.rs", include_str!("../../src/version.rs")),
];

/// Public files with doors, and the doors: the functions that turn a path of this machine into a backend, an address or an answer.
const WITH_DOORS: &[(&str, &str, &[&str])] = &[
    ("split.rs", include_str!("../../src/split.rs"), &[]),
    ("cached.rs", include_str!("../../src/cached.rs"), &[]),
    ("device_local.rs", include_str!("../../src/device_local.rs"), &["open", "open_real"]),
    ("memory.rs", include_str!("../../src/memory.rs"), &[]),
    ("mounted.rs", include_str!("../../src/mounted.rs"), &[]),
    ("directory_kind.rs", include_str!("../../src/directory_kind.rs"), &["recognise", "put_aside"]),
    ("prefixed.rs", include_str!("../../src/prefixed.rs"), &[]),
    (
        "shared_directory.rs",
        include_str!("../../src/shared_directory.rs"),
        &["directory_of", "file_address", "vault_address"],
    ),
    ("vault.rs", include_str!("../../src/vault.rs"), &["open"]),
];

/// Returns true if code names `Path` or `PathBuf` as a type; comments do not count.
fn names_a_path(code: &str) -> bool {
    let code = code.lines().map(|line| line.split("//").next().unwrap_or_default());
    code.flat_map(|line| line.split(|c: char| !c.is_alphanumeric() && c != '_'))
        .any(|word| matches!(word, "Path" | "PathBuf"))
}

/// Returns the names of the public functions whose signature has a path.
fn functions_with_paths(source: &str) -> Vec<&str> {
    let functions = source.match_indices("pub fn ").chain(source.match_indices("pub async fn "));
    let mut found = Vec::new();
    for (at, keyword) in functions {
        let rest = &source[at + keyword.len()..];
        let signature = &rest[..rest.find(['{', ';']).unwrap_or(rest.len())];
        if names_a_path(signature) {
            found.push(&signature[..signature.find(['(', '<']).unwrap_or(signature.len())]);
        }
    }
    found
}

#[test]
fn seam_names_no_paths() {
    for (name, source) in WITHOUT_PATHS {
        assert!(!names_a_path(source), "{name} names a path; use a Locator");
    }
}

#[test]
fn paths_enter_only_through_the_doors() {
    for (name, source, doors) in WITH_DOORS {
        assert_eq!(functions_with_paths(source), *doors, "{name}: a public function takes or returns a path");
    }
}

#[test]
fn path_in_a_signature_is_found() {
    let planted = "/// A Path.\npub fn place(&self) -> Option<std::path::PathBuf> {}\npub fn key(&self) -> &str {}\n\
                   pub async fn read<P: AsRef<Path>>(at: P);";
    assert_eq!(functions_with_paths(planted), ["place", "read"]);
    assert!(!names_a_path("// a Path\nlet locator = Locator::parse(\"Paths\");"));
}
