//! Reads Rust sources as far as the checks of modules and crates need it: which paths does a module name, and in which line?
//!
//! 1. [`tokens`] cuts a text into words and marks. Comments, documentation, strings and numbers carry no path and are dropped.
//! 2. [`without_tests`] drops items under `#[cfg(test)]`.
//! 3. [`paths`] finds the paths. `use crate::{a, b::c};` names `crate::a` and `crate::b::c`; `crate::a::run()` in a function names `crate::a::run`.
//! 4. [`modules`] does this for every file of a crate and says which module the file is.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A word or a mark, with its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    line: usize,
    text: String,
}

impl Token {
    fn is(&self, text: &str) -> bool {
        self.text == text
    }

    fn is_word(&self) -> bool {
        self.text.starts_with(|c: char| c.is_alphabetic() || c == '_')
    }
}

/// A path that a source names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) line: usize,
    /// The parts between `::`. A glob ends with `*`.
    pub(crate) parts: Vec<String>,
    /// The inline modules (`mod x { … }`) around it, from the file's own module inwards.
    pub(crate) inside: Vec<String>,
}

/// A file of a crate.
#[derive(Clone, Debug)]
pub(crate) struct Module {
    /// The modules from the crate's root to this one; empty for the root.
    pub(crate) path: Vec<String>,
    /// The file, seen from the project's directory.
    pub(crate) file: PathBuf,
    /// The paths that it names outside of tests.
    pub(crate) names: Vec<Named>,
}

/// Reads the modules of a crate, in order of their paths; those that exist only for tests are left out.
pub(crate) fn modules(project: &Path, name: &str) -> io::Result<Vec<Module>> {
    let root = project.join(name).join("src");
    let mut files = Vec::new();
    rust_files(&root, &mut files)?;
    let mut modules = Vec::new();
    let mut only_for_tests: Vec<Vec<String>> = Vec::new();
    for file in files {
        let path = module_path(file.strip_prefix(&root).expect("below the root"));
        let all = tokens(&fs::read_to_string(&file)?);
        let kept = without_tests(&all);
        let children = |tokens: &[Token]| -> Vec<String> {
            let declares = |w: &&[Token]| w[0].is("mod") && w[2].is(";");
            tokens.windows(3).filter(declares).map(|w| w[1].text.clone()).collect()
        };
        let of_the_product = children(&kept);
        for child in children(&all).into_iter().filter(|child| !of_the_product.contains(child)) {
            only_for_tests.push(path.iter().cloned().chain([child]).collect());
        }
        let file = file.strip_prefix(project).expect("below the project").to_owned();
        modules.push(Module { path, file, names: paths(&kept) });
    }
    modules.retain(|module| !only_for_tests.iter().any(|tests| module.path.starts_with(tests)));
    modules.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(modules)
}

fn rust_files(directory: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            rust_files(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

/// Returns the module that a file below `src` is.
fn module_path(file: &Path) -> Vec<String> {
    let mut path: Vec<String> =
        file.with_extension("").iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if path.len() == 1 && (path[0] == "main" || path[0] == "lib") {
        path.clear();
    }
    path
}

/// Cuts a source into words and marks; `::` is one mark, every other mark is one character.
pub(crate) fn tokens(source: &str) -> Vec<Token> {
    let chars: Vec<char> = source.chars().collect();
    let (mut tokens, mut at, mut line) = (Vec::new(), 0, 1);
    while let Some(&c) = chars.get(at) {
        let end = match c {
            '/' if chars.get(at + 1) == Some(&'/') => end_of_line(&chars, at),
            '/' if chars.get(at + 1) == Some(&'*') => end_of_block_comment(&chars, at),
            '"' => end_of_string(&chars, at),
            '\'' => end_of_quote(&chars, at),
            c if c.is_ascii_digit() => end_of_word(&chars, at),
            c if c.is_alphabetic() || c == '_' => match end_of_prefixed_literal(&chars, at) {
                Some(end) => end,
                None => {
                    // A raw identifier is the same word as the plain one.
                    let start = if chars[at..].starts_with(&['r', '#']) { at + 2 } else { at };
                    let end = end_of_word(&chars, start);
                    tokens.push(Token { line, text: chars[start..end].iter().collect() });
                    end
                }
            },
            ':' if chars.get(at + 1) == Some(&':') => {
                tokens.push(Token { line, text: "::".to_owned() });
                at + 2
            }
            c => {
                if !c.is_whitespace() {
                    tokens.push(Token { line, text: c.to_string() });
                }
                at + 1
            }
        };
        line += chars[at..end].iter().filter(|c| **c == '\n').count();
        at = end;
    }
    tokens
}

fn end_of_line(chars: &[char], at: usize) -> usize {
    chars[at..].iter().position(|c| *c == '\n').map_or(chars.len(), |length| at + length)
}

/// Block comments nest.
fn end_of_block_comment(chars: &[char], mut at: usize) -> usize {
    let mut depth = 0;
    while at < chars.len() {
        if chars[at..].starts_with(&['/', '*']) {
            (depth, at) = (depth + 1, at + 2);
        } else if chars[at..].starts_with(&['*', '/']) {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    chars.len()
}

/// Returns the end of a string whose opening quote is at `at`.
fn end_of_string(chars: &[char], mut at: usize) -> usize {
    at += 1;
    while at < chars.len() {
        match chars[at] {
            '\\' => at += 2,
            '"' => return at + 1,
            _ => at += 1,
        }
    }
    chars.len()
}

/// Returns the end of a character, or of the quote that begins a lifetime.
fn end_of_quote(chars: &[char], at: usize) -> usize {
    match (chars.get(at + 1), chars.get(at + 2)) {
        (Some('\\'), _) => {
            let closing = chars[(at + 3).min(chars.len())..].iter().position(|c| *c == '\'');
            closing.map_or(chars.len(), |length| at + 4 + length)
        }
        (Some(_), Some('\'')) => at + 3,
        _ => at + 1,
    }
}

fn end_of_word(chars: &[char], at: usize) -> usize {
    let is_part = |c: &char| c.is_alphanumeric() || *c == '_';
    chars[at..].iter().position(|c| !is_part(c)).map_or(chars.len(), |length| at + length)
}

/// Returns the end of a literal such as `b"…"`, `b'…'`, `r#"…"#` or `br"…"`; `None` if a word begins here.
fn end_of_prefixed_literal(chars: &[char], at: usize) -> Option<usize> {
    let prefix: String = chars[at..end_of_word(chars, at)].iter().collect();
    let after = at + prefix.len();
    match (prefix.as_str(), chars.get(after)) {
        ("b" | "c", Some('"')) => Some(end_of_string(chars, after)),
        ("b", Some('\'')) => Some(end_of_quote(chars, after)),
        ("r" | "br" | "cr", Some('"' | '#')) => {
            let hashes = chars[after..].iter().take_while(|c| **c == '#').count();
            let start = after + hashes;
            if chars.get(start) != Some(&'"') {
                return None;
            }
            let closes = |from: &usize| {
                chars[*from] == '"'
                    && chars[from + 1..].len() >= hashes
                    && chars[from + 1..][..hashes].iter().all(|c| *c == '#')
            };
            Some((start + 1..chars.len()).find(closes).map_or(chars.len(), |end| end + 1 + hashes))
        }
        _ => None,
    }
}

/// Drops the items under `#[cfg(test)]` and `#[cfg(all(test, …))]`.
pub(crate) fn without_tests(tokens: &[Token]) -> Vec<Token> {
    let (mut kept, mut at) = (Vec::new(), 0);
    while at < tokens.len() {
        if is_test_attribute(&tokens[at..]) {
            at = end_of_item(tokens, at);
        } else {
            kept.push(tokens[at].clone());
            at += 1;
        }
    }
    kept
}

fn is_test_attribute(tokens: &[Token]) -> bool {
    let begins = |with: &[&str]| {
        tokens.len() >= with.len() && with.iter().zip(tokens).all(|(text, token)| token.is(text))
    };
    begins(&["#", "[", "cfg", "(", "test", ")"]) || begins(&["#", "[", "cfg", "(", "all", "(", "test"])
}

/// Returns where an item ends whose first attribute is at `at`: after its block, or after its `;`.
fn end_of_item(tokens: &[Token], mut at: usize) -> usize {
    while at < tokens.len() {
        match tokens[at].text.as_str() {
            ";" => return at + 1,
            "{" => return end_of_group(tokens, at),
            "[" | "(" => at = end_of_group(tokens, at),
            _ => at += 1,
        }
    }
    at
}

/// Returns the place after the bracket that closes the one at `at`.
fn end_of_group(tokens: &[Token], mut at: usize) -> usize {
    let mut depth = 0;
    while at < tokens.len() {
        match tokens[at].text.as_str() {
            "{" | "[" | "(" => depth += 1,
            "}" | "]" | ")" => depth -= 1,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return at;
        }
    }
    at
}

/// Returns every path of at least two parts, from `use` lines and from code alike.
pub(crate) fn paths(tokens: &[Token]) -> Vec<Named> {
    let (mut found, mut at, mut depth) = (Vec::new(), 0, 0);
    // The inline modules that are open, with the depth of their blocks.
    let mut open: Vec<(String, usize)> = Vec::new();
    while at < tokens.len() {
        match tokens[at].text.as_str() {
            "mod" if tokens.get(at + 2).is_some_and(|token| token.is("{")) => {
                depth += 1;
                open.push((tokens[at + 1].text.clone(), depth));
                at += 3;
            }
            "{" => (depth, at) = (depth + 1, at + 1),
            "}" => {
                open.retain(|(_, block)| *block < depth);
                (depth, at) = (depth.saturating_sub(1), at + 1);
            }
            // After `<T as Trait>::` follow names of the trait.
            "::" if at > 0 && tokens[at - 1].is(">") => at += 2,
            _ if tokens[at].is_word() && tokens.get(at + 1).is_some_and(|token| token.is("::")) => {
                let inside: Vec<String> = open.iter().map(|(name, _)| name.clone()).collect();
                at = tree(tokens, at, &[], &inside, &mut found);
            }
            _ => at += 1,
        }
    }
    found
}

/// Reads the paths of a tree such as `a::{b, c::*}` that begins at `at`; returns the place after it.
fn tree(
    tokens: &[Token],
    mut at: usize,
    start: &[String],
    inside: &[String],
    found: &mut Vec<Named>,
) -> usize {
    let mut parts = start.to_vec();
    let mut line = tokens[at].line;
    while let Some(token) = tokens.get(at) {
        if token.is("{") {
            at += 1;
            while let Some(token) = tokens.get(at).filter(|token| !token.is("}")) {
                let is_branch = token.is_word() || token.is("*") || token.is("{");
                at = if is_branch { tree(tokens, at, &parts, inside, found) } else { at + 1 };
            }
            return at + 1;
        }
        if !token.is_word() && !token.is("*") {
            break;
        }
        line = token.line;
        // `a::{self}` is `a`.
        if !token.is("self") || parts.is_empty() {
            parts.push(token.text.clone());
        }
        at += 1;
        // `Vec::<u8>::new` ends before its types.
        let is_part = |token: &Token| token.is_word() || token.is("{") || token.is("*");
        if tokens.get(at).is_some_and(|token| token.is("::")) && tokens.get(at + 1).is_some_and(is_part) {
            at += 1;
        } else {
            break;
        }
    }
    if !start.is_empty() && tokens.get(at).is_some_and(|token| token.is("as")) {
        at += 2;
    }
    if parts.len() > 1 {
        found.push(Named { line, parts, inside: inside.to_vec() });
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(source: &str) -> Vec<(usize, String)> {
        let names = paths(&without_tests(&tokens(source)));
        names.into_iter().map(|name| (name.line, name.parts.join("::"))).collect()
    }

    #[test]
    fn use_trees_are_flattened() {
        let source = "use crate::{a, b::{self, C as D, e::*}};\nuse super::f\n    ::G;\nuse std::fmt;\n";
        let found = named(source);
        let expected = [
            (1, "crate::a"),
            (1, "crate::b"),
            (1, "crate::b::C"),
            (1, "crate::b::e::*"),
            (3, "super::f::G"),
            (4, "std::fmt"),
        ];
        assert_eq!(found, expected.map(|(line, path)| (line, path.to_owned())));
    }

    #[test]
    fn inline_paths_are_found() {
        let source = "fn f(a: crate::a::B) -> x::Y {\n  g!(\"{}\", crate::c::d());\n  <A as crate::t::T>::r::s();\n  let v = Vec::<u8>::new();\n}";
        let found: Vec<String> = named(source).into_iter().map(|(_, path)| path).collect();
        assert_eq!(found, ["crate::a::B", "x::Y", "crate::c::d", "crate::t::T"]);
    }

    #[test]
    fn comments_strings_and_tests_are_passed_over() {
        let source = r##"
            //! [`crate::doc::A`] /// crate::b
            /* crate::c::D /* nested */ crate::e::F */
            const A: &str = "crate::g::H \" crate::i::J";
            const B: &str = r#"crate::k::L " crate::m::N"#;
            const C: (char, u8, &'static [u8]) = ('"', b'\'', b"crate::o::P");
            fn f<'a>(x: &'a crate::real::Type) {}
            #[cfg(test)]
            #[expect(dead_code)]
            mod tests { use crate::q::R; fn g() { { crate::s::t() } } }
            #[cfg(all(test, unix))]
            use crate::u::V;
            fn h() { crate::last::run() }
        "##;
        let found: Vec<String> = named(source).into_iter().map(|(_, path)| path).collect();
        assert_eq!(found, ["crate::real::Type", "crate::last::run"]);
    }

    #[test]
    fn inline_modules_are_known() {
        let names = paths(&tokens("mod a { mod b { use super::c::D; } use x::y; } use z::w;"));
        let found: Vec<(Vec<String>, String)> =
            names.into_iter().map(|name| (name.inside, name.parts.join("::"))).collect();
        let inside = |modules: &[&str]| modules.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let expected =
            [(inside(&["a", "b"]), "super::c::D"), (inside(&["a"]), "x::y"), (inside(&[]), "z::w")];
        assert_eq!(found, expected.map(|(inside, path)| (inside, path.to_owned())));
    }

    #[test]
    fn modules_of_files_have_their_paths() {
        let path = |file: &str| module_path(Path::new(file)).join("::");
        assert_eq!(path("main.rs"), "");
        assert_eq!(path("sync.rs"), "sync");
        assert_eq!(path("sync/lib.rs"), "sync::lib");
    }
}
