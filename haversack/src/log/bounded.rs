//! Lists in JSON that cannot grow without end.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, IgnoredAny, SeqAccess, Visitor};

/// Reads a list and keeps at most one element more than `MAX`, by which the reader sees that there are too many.
pub(super) fn list<'de, D, T, const MAX: usize>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    struct List<T, const MAX: usize>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>, const MAX: usize> Visitor<'de> for List<T, MAX> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Vec<T>, A::Error> {
            let mut kept = Vec::new();
            while kept.len() <= MAX {
                match elements.next_element()? {
                    Some(element) => kept.push(element),
                    None => return Ok(kept),
                }
            }
            while elements.next_element::<IgnoredAny>()?.is_some() {}
            Ok(kept)
        }
    }

    deserializer.deserialize_seq(List::<T, MAX>(PhantomData))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_stops_growing() {
        for (json, kept) in [("[]", 0), ("[1,2]", 2), ("[1,2,3]", 3), ("[1,2,3,4,\"x\",[[]]]", 3)] {
            let mut deserializer = serde_json::Deserializer::from_str(json);
            let list: Vec<u8> = list::<_, _, 2>(&mut deserializer).expect("a list");
            assert_eq!(list.len(), kept, "{json}");
            deserializer.end().expect("read to the end");
        }
    }
}
