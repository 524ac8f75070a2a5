//! Stores that lie about preconditions: what a careful client has to refuse.

use crate::front::{Act, Front, Seen};

/// The headers by which a write says that nothing must be there.
const ABSENT: &str = "if-none-match";

/// The header by which a write says what must be there.
const MATCHES: &str = "if-match";

/// Google's header for both; its value 0 says that nothing must be there.
const GENERATION: &str = "x-goog-if-generation-match";

/// A way to lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Liar {
    /// Every write is carried out, whatever its condition.
    IgnoresAll,
    /// A late writer is refused, and overwrites all the same.
    RefusesButWrites,
    /// Creates only what is absent, but takes no notice of what must be there.
    IgnoresMatch,
    /// Heeds what must be there, but creates over what is present.
    IgnoresAbsent,
}

impl Liar {
    /// Every way to lie.
    pub const ALL: [Liar; 4] =
        [Liar::IgnoresAll, Liar::RefusesButWrites, Liar::IgnoresMatch, Liar::IgnoresAbsent];

    /// Returns what becomes of a request.
    pub fn act(self, seen: &Seen) -> Act {
        let generation = seen.header(GENERATION);
        let on_absent = seen.header(ABSENT).is_some() || generation == Some("0");
        let on_match = seen.header(MATCHES).is_some() || generation.is_some_and(|value| value != "0");
        let conditions = || vec![ABSENT, MATCHES, GENERATION];
        match self {
            _ if !seen.is_write() || !(on_absent || on_match) => Act::Pass,
            Liar::IgnoresAll => Act::WithoutHeaders(conditions()),
            Liar::RefusesButWrites => Act::RefuseButWrite(conditions()),
            Liar::IgnoresMatch if on_match => Act::WithoutHeaders(conditions()),
            Liar::IgnoresAbsent if on_absent => Act::WithoutHeaders(conditions()),
            Liar::IgnoresMatch | Liar::IgnoresAbsent => Act::Pass,
        }
    }
}

impl Front {
    /// Makes the store behind it look like one that lies.
    ///
    /// Before a store that verifies Azure signatures [`Front::sign_as`] is needed too.
    pub fn lie(&self, liar: Liar) {
        self.script(move |seen| liar.act(seen));
    }
}
