//! The content of one file: what programs read, and what would be found if the machine stopped.

use crate::random::Random;

/// The bytes of a file, written and durable.
#[derive(Clone, Debug, Default)]
pub(super) struct Content {
    volatile: Vec<u8>,
    durable: Vec<u8>,
    /// The number of the first durable bytes that did not change since they became durable.
    untouched: usize,
    dirty: bool,
}

impl Content {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.volatile
    }

    pub(super) fn append(&mut self, bytes: &[u8]) {
        self.volatile.extend_from_slice(bytes);
        self.dirty = true;
    }

    pub(super) fn resize(&mut self, size: usize) {
        self.volatile.resize(size, 0);
        self.untouched = self.untouched.min(size);
        self.dirty = true;
    }

    pub(super) fn sync(&mut self) {
        self.durable.clone_from(&self.volatile);
        self.untouched = self.durable.len();
        self.dirty = false;
    }

    /// Leaves what was durable, what was written, a first part of it, or that with zeros behind.
    pub(super) fn lose_power(&mut self, random: &mut Random) {
        if self.dirty {
            let reached = random.between(self.untouched, self.volatile.len());
            match random.between(0, 3) {
                0 => self.volatile.clone_from(&self.durable),
                1 => {}
                2 => self.volatile.truncate(reached),
                _ => self.volatile[reached..].fill(0),
            }
        }
        self.sync();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcomes(content: &Content) -> Vec<Vec<u8>> {
        let found = |seed| {
            let mut content = content.clone();
            content.lose_power(&mut Random::new(seed));
            content.volatile
        };
        let mut all: Vec<Vec<u8>> = (0..200).map(found).collect();
        all.sort();
        all.dedup();
        all
    }

    #[test]
    fn synced_bytes_stay_and_later_ones_may_tear() {
        let mut content = Content::default();
        content.append(b"old");
        content.sync();
        assert_eq!(outcomes(&content), [b"old".to_vec()]);
        content.append(b"xy");
        let torn: [&[u8]; 5] = [b"old", b"old\0\0", b"oldx", b"oldx\0", b"oldxy"];
        assert_eq!(outcomes(&content), torn);
    }

    #[test]
    fn what_was_cut_off_may_be_back() {
        let mut content = Content::default();
        content.append(b"old");
        content.sync();
        content.resize(1);
        assert_eq!(outcomes(&content), [b"o".to_vec(), b"old".to_vec()]);
    }
}
