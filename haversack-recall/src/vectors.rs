//! Vectors: the direction of a vector says what a text is about, so that texts about the same lie near each other. Pure.
//!
//! A vector is kept as whole numbers of one byte and a scale, which measured as good as numbers of four bytes. All vectors of a query's scope are
//! compared one by one: 10,000 comparisons take less than a millisecond, so that no other index is needed.

use std::fmt::Debug;
use std::io;

use haversack::ids::ContentHash;

/// The name of the file of weights in the model's directory.
pub const WEIGHTS_FILE: &str = "model.safetensors";
/// The name of the vocabulary.
pub const VOCABULARY_FILE: &str = "vocab.txt";

/// Names the model and its revision. Vectors of another one cannot be compared with its own.
pub const MODEL: &str = "all-MiniLM-L6-v2-1110a243";

/// The number of dimensions of a vector.
pub(crate) const DIMENSIONS: usize = 384;

/// The size of a vector's bytes.
const VECTOR_BYTES: usize = DIMENSIONS + 4;

/// The size of a passage's entry: a mark that tells its text from others, and its vector.
const MARK_BYTES: usize = 8;
pub(crate) const ENTRY_BYTES: usize = MARK_BYTES + VECTOR_BYTES;

/// Turns texts into vectors.
pub trait Embedder: Debug + Send + Sync {
    /// Returns the vectors of some texts, in their order.
    fn embed(&self, texts: &[&str]) -> io::Result<Vec<Vector>>;
}

/// A vector of length 1, nearly.
#[derive(Clone, Debug, PartialEq)]
pub struct Vector {
    values: Vec<i8>,
    scale: f32,
}

impl Vector {
    /// Rounds a vector of length 1.
    pub fn of(exact: &[f32]) -> Vector {
        let most = exact.iter().fold(0.0f32, |most, value| most.max(value.abs())).max(f32::MIN_POSITIVE);
        let scale = most / 127.0;
        // The scale keeps every value within 127.
        let rounded = exact.iter().map(|value| (value / scale).round() as i8);
        Vector { values: rounded.collect(), scale }
    }

    /// Returns the cosine between two vectors.
    pub fn cosine(&self, other: &Vector) -> f32 {
        let products = self.values.iter().zip(&other.values);
        let sum: i32 = products.map(|(one, other)| i32::from(*one) * i32::from(*other)).sum();
        let sum = sum as f32;
        sum * self.scale * other.scale
    }

    /// Returns the cosine between this vector and the one of an entry.
    pub(crate) fn nearness(&self, entry: &[u8; ENTRY_BYTES]) -> f32 {
        let (head, values) = entry.split_at(MARK_BYTES + 4);
        let scale = f32::from_le_bytes([head[8], head[9], head[10], head[11]]);
        let products = self
            .values
            .iter()
            .zip(values)
            .map(|(one, other)| i32::from(*one) * i32::from(i8::from_le_bytes([*other])));
        let sum = products.sum::<i32>() as f32;
        sum * self.scale * scale
    }

    /// Appends a passage's entry to the bytes of a file.
    pub(crate) fn write(&self, mark: [u8; MARK_BYTES], bytes: &mut Vec<u8>) {
        bytes.extend(mark);
        bytes.extend(self.scale.to_le_bytes());
        bytes.extend(self.values.iter().flat_map(|value| value.to_le_bytes()));
    }
}

/// Returns the mark of a text.
pub(crate) fn mark_of(text: &str) -> [u8; MARK_BYTES] {
    let hash = ContentHash::of(text.as_bytes()).to_bytes();
    mark(&hash)
}

/// Returns the mark of an entry.
pub(crate) fn mark_in(entry: &[u8; ENTRY_BYTES]) -> [u8; MARK_BYTES] {
    mark(entry)
}

fn mark(bytes: &[u8]) -> [u8; MARK_BYTES] {
    let mut mark = [0; MARK_BYTES];
    mark.copy_from_slice(&bytes[..MARK_BYTES]);
    mark
}

/// Returns the entries of a file's passages; `None` if their bytes are damaged.
pub(crate) fn entries(bytes: &[u8]) -> Option<&[[u8; ENTRY_BYTES]]> {
    let (entries, rest) = bytes.as_chunks::<ENTRY_BYTES>();
    rest.is_empty().then_some(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn along(axis: usize, share: f32) -> Vec<f32> {
        let mut exact = vec![0.0; DIMENSIONS];
        exact[axis] = share;
        exact[axis + 1] = (1.0 - share * share).sqrt();
        exact
    }

    #[test]
    fn nearness_is_the_cosine() {
        let mut bytes = Vec::new();
        Vector::of(&along(0, 1.0)).write(mark_of("a"), &mut bytes);
        Vector::of(&along(0, 0.5)).write(mark_of("b"), &mut bytes);
        Vector::of(&along(7, 1.0)).write(mark_of("c"), &mut bytes);
        let asked = Vector::of(&along(0, 1.0));
        let read = entries(&bytes).expect("whole");
        let near: Vec<f32> = read.iter().map(|entry| asked.nearness(entry)).collect();
        assert!(
            (near[0] - 1.0).abs() < 0.01 && (near[1] - 0.5).abs() < 0.01 && near[2].abs() < 0.01,
            "{near:?}"
        );
        assert_eq!(read[1][..8], mark_of("b"));
        assert_eq!(entries(&bytes[1..]), None);
    }
}
