//! The names of things that are not places: stores, replicas, commits, contents, positions, moments.
//!
//! Each has one spelling, and nothing else is read as it.

use std::error::Error as StdError;
use std::fmt;

use serde::de::{Deserializer, Visitor};
use serde::{Deserialize, Serialize};

/// The source of new ids. It is handed in, so that a simulation can repeat them.
pub trait Ids: Send + Sync {
    /// Returns 16 bytes that were never returned before.
    fn next(&self) -> [u8; 16];
}

/// Spells a type that has `from_bytes` and `to_bytes` in lower-case hexadecimal digits, as text and in JSON.
macro_rules! spelled_in_hex {
    ($name:ident, $bytes:expr) => {
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(&$crate::ids::hex(&self.to_bytes()))
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{}({self})", stringify!($name))
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::ids::InvalidId;

            fn from_str(text: &str) -> Result<$name, $crate::ids::InvalidId> {
                $crate::ids::from_hex(text).map($name::from_bytes)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&$crate::ids::hex(&self.to_bytes()))
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<$name, D::Error> {
                $crate::ids::hex_from_json::<D, { $bytes }>(deserializer).map($name::from_bytes)
            }
        }
    };
}
pub(crate) use spelled_in_hex;

macro_rules! bytes_type {
    ($(#[$doc:meta])* $name:ident, $bytes:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name([u8; $bytes]);

        impl $name {
            /// The number of bytes.
            pub const BYTES: usize = $bytes;

            /// Returns the one with these bytes.
            pub const fn from_bytes(bytes: [u8; $bytes]) -> $name {
                $name(bytes)
            }

            /// Returns its bytes.
            pub const fn to_bytes(self) -> [u8; $bytes] {
                self.0
            }
        }

        spelled_in_hex!($name, $bytes);
    };
}

bytes_type! {
    /// The id of a store: 32 hexadecimal digits, the same on all its devices.
    StoreId, 16
}

bytes_type! {
    /// The id of a replica: 32 hexadecimal digits.
    ReplicaId, 16
}

bytes_type! {
    /// The id of a commit: 32 hexadecimal digits, by which a replica knows its own.
    CommitId, 16
}

bytes_type! {
    /// The name of a content: its BLAKE3 hash, 64 hexadecimal digits.
    ContentHash, 32
}

impl ContentHash {
    /// Returns the name of `content`.
    pub fn of(content: &[u8]) -> ContentHash {
        ContentHash(*blake3::hash(content).as_bytes())
    }
}

/// A place in the log's order; the first is 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub struct Position(u64);

impl Position {
    /// The first position.
    pub const FIRST: Position = Position(1);

    /// The last position whose key has [`Position::KEY_DIGITS`] digits.
    pub const LAST: Position = Position(9_999_999_999_999_999);

    /// The digits of a key: leading zeros make keys sort like numbers.
    pub const KEY_DIGITS: usize = 16;

    /// Returns the position with this number, if there is one.
    pub const fn new(number: u64) -> Option<Position> {
        if number < Position::FIRST.0 || number > Position::LAST.0 { None } else { Some(Position(number)) }
    }

    /// Returns the number.
    pub const fn number(self) -> u64 {
        self.0
    }

    /// Returns the position after this one; `None` after the last, which only a forged log can reach.
    pub const fn next(self) -> Option<Position> {
        Position::new(self.0 + 1)
    }

    /// Returns the name of this position in a listing.
    pub fn key(self) -> String {
        format!("{:0digits$}", self.0, digits = Position::KEY_DIGITS)
    }

    /// Parses what [`Position::key`] returns, and nothing else.
    pub fn from_key(key: &str) -> Result<Position, InvalidId> {
        let invalid = InvalidId { expected: "16 digits, and not all zero" };
        if key.len() != Position::KEY_DIGITS || !key.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(invalid);
        }
        key.parse().ok().and_then(Position::new).ok_or(invalid)
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl TryFrom<u64> for Position {
    type Error = InvalidId;

    fn try_from(number: u64) -> Result<Position, InvalidId> {
        Position::new(number).ok_or(InvalidId { expected: "a position" })
    }
}

impl From<Position> for u64 {
    fn from(position: Position) -> u64 {
        position.0
    }
}

/// A moment as milliseconds since the start of 1970 in UTC: to be shown, never to decide by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(time) => time.fmt(f),
            // No clock goes that far.
            Err(_) => write!(f, "{} ms", self.0),
        }
    }
}

/// A text or number that is not the spelling of an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidId {
    expected: &'static str,
}

impl fmt::Display for InvalidId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it is not {}", self.expected)
    }
}

impl StdError for InvalidId {}

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Returns the bytes in lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble)]);
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        text.push(digit(byte >> 4));
        text.push(digit(byte & 15));
    }
    text
}

/// Returns the bytes that exactly these lower-case hexadecimal digits spell.
pub(crate) fn from_hex<const BYTES: usize>(text: &str) -> Result<[u8; BYTES], InvalidId> {
    let invalid = InvalidId {
        expected: match BYTES {
            16 => "32 lower-case hexadecimal digits",
            _ => "64 lower-case hexadecimal digits",
        },
    };
    if text.len() != 2 * BYTES {
        return Err(invalid);
    }
    let mut bytes = [0; BYTES];
    let mut seen = 0;
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        let (high, low) = (NIBBLES[usize::from(pair[0])], NIBBLES[usize::from(pair[1])]);
        *byte = (high << 4) | (low & 15);
        seen |= high | low;
    }
    if seen & NO_NIBBLE == 0 { Ok(bytes) } else { Err(invalid) }
}

/// Marks a character that is not a digit.
const NO_NIBBLE: u8 = 0x80;

/// The value of each character as a digit: a state has very many of them.
const NIBBLES: [u8; 256] = {
    let mut nibbles = [NO_NIBBLE; 256];
    let mut value = 0;
    while value < DIGITS.len() {
        nibbles[DIGITS[value] as usize] = value as u8;
        value += 1;
    }
    nibbles
};

/// Reads hexadecimal digits without copying them first: a checkpoint has many.
pub(crate) fn hex_from_json<'de, D: Deserializer<'de>, const BYTES: usize>(
    deserializer: D,
) -> Result<[u8; BYTES], D::Error> {
    struct Digits<const BYTES: usize>;

    impl<const BYTES: usize> Visitor<'_> for Digits<BYTES> {
        type Value = [u8; BYTES];

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "{} lower-case hexadecimal digits", 2 * BYTES)
        }

        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<[u8; BYTES], E> {
            from_hex(text).map_err(E::custom)
        }
    }

    deserializer.deserialize_str(Digits::<BYTES>)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_id_has_one_spelling() {
        let id = StoreId::from_bytes(*b"0123456789abcdef");
        let text = "30313233343536373839616263646566";
        assert_eq!(id.to_string(), text);
        assert_eq!(format!("{id:?}"), format!("StoreId({text})"));
        assert_eq!(text.parse(), Ok(id));
        for other in [
            "",
            "3",
            "3031323334353637383961626364656",
            "303132333435363738396162636465667",
            "3031323334353637383961626364656G",
            "3031323334353637383961626364656F",
            " 30313233343536373839616263646566",
            "0x313233343536373839616263646566",
            "+0313233343536373839616263646566",
            "303132333435363738396162636465é",
        ] {
            assert!(other.parse::<StoreId>().is_err(), "{other}");
            assert!(serde_json::from_value::<StoreId>(other.into()).is_err(), "{other}");
        }
        assert_eq!(
            "x".parse::<CommitId>().expect_err("no id").to_string(),
            "it is not 32 lower-case hexadecimal digits"
        );
    }

    #[test]
    fn a_content_is_named_by_its_hash() {
        let nothing = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262";
        assert_eq!(ContentHash::of(b"").to_string(), nothing);
        assert_eq!(nothing.parse(), Ok(ContentHash::of(b"")));
    }

    #[test]
    fn keys_of_positions_sort_like_their_numbers_and_have_one_spelling() {
        assert_eq!(Position::FIRST.key(), "0000000000000001");
        assert_eq!(Position::LAST.key(), "9999999999999999");
        assert_eq!(Position::LAST.next(), None);
        assert_eq!(Position::FIRST.next(), Position::new(2));
        for other in [
            "",
            "1",
            "0000000000000000",
            "00000000000000001",
            "000000000000001",
            "+000000000000001",
            "000000000000000a",
            "00000000000000٣",
        ] {
            assert!(Position::from_key(other).is_err(), "{other}");
        }
        for number in ["0", "10000000000000000", "18446744073709551615", "1.0", "-1", "\"1\""] {
            assert!(serde_json::from_str::<Position>(number).is_err(), "{number}");
        }
    }

    proptest! {
        #[test]
        fn ids_survive_storing(bytes: [u8; 16], hash: [u8; 32], number in 1..=Position::LAST.number(), moment: i64) {
            let ids = (StoreId::from_bytes(bytes), ReplicaId::from_bytes(bytes), CommitId::from_bytes(bytes));
            let rest = (ContentHash::from_bytes(hash), Position::new(number).expect("in range"), Timestamp(moment));
            let json = serde_json::to_string(&(ids, rest)).expect("prints");
            prop_assert_eq!(serde_json::from_str::<((StoreId, ReplicaId, CommitId), (ContentHash, Position, Timestamp))>(&json)
                .expect("reads"), (ids, rest));
            prop_assert_eq!(Position::from_key(&rest.1.key()), Ok(rest.1));
            prop_assert_eq!(rest.0.to_string().parse(), Ok(rest.0));
        }

        #[test]
        fn keys_sort(one in 1..=Position::LAST.number(), two in 1..=Position::LAST.number()) {
            let key = |number| Position::new(number).expect("in range").key();
            prop_assert_eq!(one.cmp(&two), key(one).cmp(&key(two)));
        }
    }
}
