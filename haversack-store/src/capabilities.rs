//! The guarantees of a backend, declared so that callers and the conformance suite can ask.

use std::fmt;

macro_rules! capabilities {
    ($($(#[doc = $doc:literal])+ $field:ident => $name:literal,)+) => {
        /// The guarantees of a backend. A new field is absent until it is declared.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Capabilities {
            $($(#[doc = $doc])+ pub $field: bool,)+
        }

        impl Capabilities {
            /// Returns every capability with its name and whether it is declared, in a fixed order.
            pub fn each(&self) -> impl Iterator<Item = (&'static str, bool)> {
                [$(($name, self.$field)),+].into_iter()
            }
        }
    };
}

capabilities! {
    /// Safe under more than one writing process.
    concurrent_writers => "concurrent-writers",
    /// A sync layer may leave conflict copies that the engine must take in.
    conflict_files => "conflict-files",
    /// The backend encrypts content at rest.
    encryption => "encryption",
    /// The tree is replicated by something outside, so no database may live in it.
    sync => "sync",
    /// [`Condition::Absent`](crate::Condition::Absent) is honoured by every writer.
    create_if_absent => "create-if-absent",
    /// [`Condition::Matches`](crate::Condition::Matches) is honoured on writes.
    update_if_match => "update-if-match",
    /// [`Condition::Matches`](crate::Condition::Matches) is honoured on deletes.
    conditional_delete => "conditional-delete",
    /// Appending costs the same whatever the object's size.
    flat_append => "flat-append",
    /// A directory exists by itself, with nothing in it.
    empty_directories => "empty-directories",
    /// Directories are real: an object has nothing below it, and a directory no content.
    tree => "tree",
    /// A rename is one step, for a whole directory too.
    atomic_rename => "atomic-rename",
    /// Two objects can change places in one step.
    exchange => "exchange",
    /// Acknowledged data survives the end of the process.
    durable => "durable",
    /// Two names that differ only by case are refused when the second is created.
    refuses_case_twins => "refuses-case-twins",
}

impl Capabilities {
    /// Returns the names of what `self` asks for and `offered` does not have.
    pub fn missing_from(&self, offered: &Capabilities) -> Vec<&'static str> {
        self.each()
            .zip(offered.each())
            .filter(|((_, wanted), (_, has))| *wanted && !has)
            .map(|((name, _), _)| name)
            .collect()
    }
}

/// How a backend reconciles writes that did not see each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConflictStrategy {
    /// Nothing to reconcile: the last write stands.
    #[default]
    None,
    /// The whole file is the unit of conflict.
    WholeFile,
    /// Contents are merged by their kind.
    Merge,
}

impl fmt::Display for ConflictStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            ConflictStrategy::None => "none",
            ConflictStrategy::WholeFile => "whole-file",
            ConflictStrategy::Merge => "merge",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_is_named() {
        let wanted = Capabilities { sync: true, durable: true, ..Capabilities::default() };
        let offered = Capabilities { durable: true, ..Capabilities::default() };
        assert_eq!(wanted.missing_from(&offered), ["sync"]);
        assert!(offered.missing_from(&offered).is_empty());
    }
}
