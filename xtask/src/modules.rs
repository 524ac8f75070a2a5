//! No cycle between sibling modules: `cargo xtask check-modules`.
//!
//! Two modules are siblings if one directory, or the crate's root, holds both. Module `a` uses its sibling `b` if `a`, or a module below it, names a path into `b`.
//! A cycle means that none of its modules can be understood, tested or moved without the others.
//!
//! 1. Every path that a source names outside of tests becomes a use between two siblings, if it leads from one to the other: in `home/mounts.rs`,
//!    `crate::commands::sync` is a use of `commands` by `home`, and `super::contact` is a use of `home::contact` by `home::mounts`.
//! 2. The uses in [`KNOWN`] are taken out. Each closes a cycle that is to be removed; one that closes none any more has to leave the list.
//! 3. A cycle among the remaining uses is an error. The message names its files and lines.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;

use crate::crates::CRATES;
use crate::run::{project, say};
use crate::source::{self, Module, Named};

/// The list of uses that close a known cycle, seen from the project's directory.
const KNOWN: &str = "xtask/known-module-cycles.txt";

/// The most lines of sources that a message shows for one use.
const MAX_PLACES_SHOWN: usize = 5;

/// A use of one sibling by another: the crate, the user, the used.
type Use = (String, String, String);

/// By use, the lines that make it: `file:line: path`.
type Uses = BTreeMap<Use, Vec<String>>;

/// Checks all crates, and says so.
pub(crate) fn run() -> Result<(), String> {
    check_all()?;
    say("── modules: no unknown cycle\n");
    Ok(())
}

fn check_all() -> Result<(), String> {
    let mut uses = Uses::new();
    for member in CRATES {
        let modules = source::modules(project(), member.name)
            .map_err(|error| format!("modules of {}: {error}", member.name))?;
        uses.append(&mut uses_between_siblings(member.name, &modules));
    }
    let known = fs::read_to_string(project().join(KNOWN)).map_err(|error| format!("{KNOWN}: {error}"))?;
    check(&uses, &known)
}

/// Returns the uses between the siblings of one crate.
fn uses_between_siblings(name: &str, modules: &[Module]) -> Uses {
    let known: BTreeSet<&[String]> = modules.iter().map(|module| &module.path[..]).collect();
    let mut uses = Uses::new();
    for module in modules {
        for named in &module.names {
            let Some(target) = target(module, named, &known) else { continue };
            let common = module.path.iter().zip(target).take_while(|(one, other)| one == other).count();
            if common < module.path.len() && common < target.len() {
                let sibling = |path: &[String]| path[..=common].join("::");
                let key = (name.to_owned(), sibling(&module.path), sibling(target));
                let place = format!("{}:{}: {}", module.file.display(), named.line, named.parts.join("::"));
                uses.entry(key).or_default().push(place);
            }
        }
    }
    uses
}

/// Returns the module that a path leads into; `None` if it leads out of the crate.
fn target<'a>(module: &Module, named: &Named, known: &BTreeSet<&'a [String]>) -> Option<&'a [String]> {
    let mut parts = named.parts.iter().peekable();
    let mut from: Vec<String> = module.path.iter().chain(&named.inside).cloned().collect();
    match parts.peek()?.as_str() {
        "crate" => {
            parts.next();
            from.clear();
        }
        "self" => drop(parts.next()),
        "super" => {
            while parts.next_if(|part| *part == "super").is_some() {
                from.pop()?;
            }
        }
        // A path that begins with the name of a module below this one; else another crate, or an imported name.
        child => {
            let below: Vec<String> = from.iter().cloned().chain([child.to_owned()]).collect();
            known.get(&below[..])?;
        }
    }
    let whole: Vec<String> = from.into_iter().chain(parts.cloned()).collect();
    (0..=whole.len()).rev().find_map(|length| known.get(&whole[..length]).copied())
}

/// Checks the uses against the list of known ones.
fn check(uses: &Uses, known: &str) -> Result<(), String> {
    let mut graph: BTreeSet<Use> = uses.keys().cloned().collect();
    let mut listed = Vec::new();
    for (number, line) in known.lines().enumerate() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let place = format!("{KNOWN}:{}", number + 1);
        let Some(entry) = parse(line) else {
            return Err(format!("{place}: \"{line}\" is no use. Write: CRATE: MODULE -> MODULE"));
        };
        graph.remove(&entry);
        listed.push((place, entry));
    }
    let mut troubles: Vec<String> =
        cycles(&graph, uses).iter().map(|cycle| cycle_message(cycle, uses)).collect();
    for (place, entry) in listed {
        // A listed use is still needed if it closes a cycle with the uses that are allowed.
        let (name, from, to) = &entry;
        let is_used = uses.contains_key(&entry);
        if is_used && shortest_way(&graph, name, to, from).is_some() {
            continue;
        }
        troubles.push(format!(
            "{place}: {from} -> {to} closes no cycle any more. Remove the line from the list."
        ));
        if is_used {
            graph.insert(entry);
        }
    }
    if troubles.is_empty() {
        return Ok(());
    }
    Err(format!("{}\nCheck again: cargo xtask check-modules", troubles.join("\n")))
}

fn cycle_message(cycle: &[Use], uses: &Uses) -> String {
    let (name, first, _) = &cycle[0];
    let around: String = cycle.iter().fold(first.clone(), |text, (_, _, next)| text + " → " + next);
    let mut lines = vec![format!("{name}: these modules use each other: {around}")];
    for entry in cycle {
        let places = &uses[entry];
        lines.extend(places.iter().take(MAX_PLACES_SHOWN).map(|place| format!("    {place}")));
        if places.len() > MAX_PLACES_SHOWN {
            let more = places.len() - MAX_PLACES_SHOWN;
            lines.push(format!("    and {more} more uses of {} by {}", entry.2, entry.1));
        }
    }
    let (_, from, to) = fewest_lines(cycle, uses);
    lines.push(format!(
        "  Cut it, perhaps where {from} uses {to}: move the code that both need into a third module, or hand it in as an argument."
    ));
    lines.join("\n")
}

fn fewest_lines<'a>(cycle: &'a [Use], uses: &Uses) -> &'a Use {
    cycle.iter().min_by_key(|entry| uses[*entry].len()).expect("a cycle has uses")
}

fn parse(line: &str) -> Option<Use> {
    let (name, uses) = line.split_once(": ")?;
    let (from, to) = uses.split_once(" -> ")?;
    Some((name.to_owned(), from.to_owned(), to.trim_end().to_owned()))
}

/// Returns cycles until none is left, the shortest first; each is cut at its use of fewest lines before the next is looked for.
fn cycles(graph: &BTreeSet<Use>, uses: &Uses) -> Vec<Vec<Use>> {
    let (mut graph, mut found) = (graph.clone(), Vec::new());
    loop {
        let closed = graph.iter().filter_map(|entry| {
            let mut cycle = vec![entry.clone()];
            cycle.extend(shortest_way(&graph, &entry.0, &entry.2, &entry.1)?);
            Some(cycle)
        });
        let Some(cycle) = closed.min_by_key(Vec::len) else { return found };
        graph.remove(fewest_lines(&cycle, uses));
        found.push(cycle);
    }
}

/// Returns the fewest uses that lead from one module to another.
fn shortest_way(graph: &BTreeSet<Use>, name: &str, from: &str, to: &str) -> Option<Vec<Use>> {
    let mut ways: BTreeMap<&str, Vec<Use>> = [(from, Vec::new())].into();
    let mut queue: VecDeque<&str> = [from].into();
    while let Some(module) = queue.pop_front() {
        let way = ways[module].clone();
        for entry in graph.iter().filter(|entry| entry.0 == name && entry.1 == module) {
            let next = entry.2.as_str();
            if !ways.contains_key(next) {
                ways.insert(next, way.iter().cloned().chain([entry.clone()]).collect());
                queue.push_back(next);
            }
        }
        if let Some(way) = ways.get(to) {
            return Some(way.clone());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(path: &str, source: &str) -> Module {
        let path: Vec<String> = path.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect();
        let file = format!("haversack-cli/src/{}.rs", path.join("/")).into();
        let names = source::paths(&source::without_tests(&source::tokens(source)));
        Module { path, file, names }
    }

    fn checked(modules: &[Module], known: &str) -> Result<(), String> {
        check(&uses_between_siblings("haversack-cli", modules), known)
    }

    #[test]
    fn modules_of_all_crates_have_no_unknown_cycle() {
        if let Err(troubles) = check_all() {
            panic!("{troubles}");
        }
    }

    #[test]
    fn cycle_of_two_is_found_with_its_lines() {
        let modules = [
            module("", "mod home; mod commands; use commands::run;"),
            module("home", "\nuse crate::commands::mirror;\n"),
            module("commands", "mod mirror;"),
            module("commands::mirror", "fn f() {\n\n    crate::home::open()\n}"),
        ];
        let error = checked(&modules, "").expect_err("a cycle");
        assert!(error.contains("these modules use each other: commands → home → commands"), "{error}");
        assert!(error.contains("haversack-cli/src/home.rs:2: crate::commands::mirror\n"), "{error}");
        assert!(error.contains("haversack-cli/src/commands/mirror.rs:3: crate::home::open\n"), "{error}");
        checked(&modules, "# a reason\nhaversack-cli: home -> commands\n").expect("it is listed");
    }

    #[test]
    fn cycle_of_three_below_a_module_is_found() {
        let modules = [
            module("a", "mod b; mod c; mod d; use self::b::B;"),
            module("a::b", "use super::c::C;"),
            module("a::c", "use crate::a::d::D;"),
            module("a::d", "use super::{b::B, X};"),
        ];
        let error = checked(&modules, "").expect_err("a cycle");
        assert!(error.contains("a::b → a::c → a::d → a::b"), "{error}");
    }

    #[test]
    fn parents_children_and_tests_make_no_cycle() {
        let modules = [
            module(
                "a",
                "mod b; mod c; use self::b::B; use crate::d::D; #[cfg(test)] mod tests { use crate::a::c::T; }",
            ),
            module("a::b", "use super::A; use crate::a::A2; use super::c::C;"),
            module("a::c", "#[cfg(test)]\nmod tests { use crate::a::b::B; }"),
            module("d", "//! Used by [`crate::a`].\n#[cfg(test)] use crate::a::A;"),
        ];
        checked(&modules, "").expect("no cycle");
    }

    #[test]
    fn listed_cycle_that_is_gone_fails() {
        let modules = [module("a", "use crate::b::B;"), module("b", "")];
        let error = checked(&modules, "haversack-cli: a -> b\n").expect_err("no cycle is left");
        assert!(error.contains("known-module-cycles.txt:1: a -> b closes no cycle any more"), "{error}");
        let error = checked(&modules, "haversack-cli: b -> a\n").expect_err("no such use is left");
        assert!(error.contains("b -> a closes no cycle any more"), "{error}");
    }
}
