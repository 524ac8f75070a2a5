//! Takes one file out of a zip package, such as a wheel. Pure.
//!
//! The directory at the package's end says where each file is. Sizes are checked against what the caller expects, so that a package cannot fill the memory.

use miniz_oxide::inflate::decompress_to_vec_with_limit;

const END: &[u8] = b"PK\x05\x06";
const ENTRY: &[u8] = b"PK\x01\x02";
const FILE: &[u8] = b"PK\x03\x04";

/// The size of the end of a package's directory, without its comment.
const END_BYTES: usize = 22;

/// The longest comment at the end of a package.
const MAX_COMMENT_BYTES: usize = 65_535;

/// Returns the content of the file with a name, in whatever directory, if it has exactly so many bytes.
pub(super) fn file_in(package: &[u8], name: &str, bytes: u64) -> Option<Vec<u8>> {
    let wanted = usize::try_from(bytes).ok()?;
    let from = package.len().saturating_sub(END_BYTES + MAX_COMMENT_BYTES);
    let end = from + package[from..].windows(END.len()).rposition(|four| four == END)?;
    if package.len() < end + END_BYTES {
        return None;
    }
    let mut at = word(package, end + 16)?;
    for _ in 0..half(package, end + 10)? {
        if package.get(at..at + 4)? != ENTRY {
            return None;
        }
        let [name_bytes, extra_bytes, comment_bytes] =
            [half(package, at + 28)?, half(package, at + 30)?, half(package, at + 32)?];
        let found = package.get(at + 46..at + 46 + name_bytes)?;
        let is_wanted = found.rsplit(|byte| *byte == b'/').next() == Some(name.as_bytes());
        if is_wanted && word(package, at + 24)? == wanted {
            return content(
                package,
                word(package, at + 42)?,
                half(package, at + 10)?,
                word(package, at + 20)?,
                wanted,
            );
        }
        at += 46 + name_bytes + extra_bytes + comment_bytes;
    }
    None
}

fn content(package: &[u8], at: usize, method: usize, packed_bytes: usize, wanted: usize) -> Option<Vec<u8>> {
    if package.get(at..at + 4)? != FILE {
        return None;
    }
    let start = at + 30 + half(package, at + 26)? + half(package, at + 28)?;
    let packed = package.get(start..start.checked_add(packed_bytes)?)?;
    let content = match method {
        0 => packed.to_vec(),
        8 => decompress_to_vec_with_limit(packed, wanted).ok()?,
        _ => return None,
    };
    (content.len() == wanted).then_some(content)
}

fn half(bytes: &[u8], at: usize) -> Option<usize> {
    Some(usize::from(u16::from_le_bytes(bytes.get(at..at.checked_add(2)?)?.try_into().ok()?)))
}

fn word(bytes: &[u8], at: usize) -> Option<usize> {
    usize::try_from(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A package with one file in a directory, packed by the method that is named.
    fn package(content: &[u8], method: u16) -> Vec<u8> {
        let packed = match method {
            8 => miniz_oxide::deflate::compress_to_vec(content, 6),
            _ => content.to_vec(),
        };
        let length = |bytes: &[u8]| u32::try_from(bytes.len()).expect("small").to_le_bytes();
        let name = b"model/vocab.txt";
        let mut about = vec![20, 0, 0, 0];
        about.extend(method.to_le_bytes());
        about.extend([0; 8]);
        about.extend(length(&packed));
        about.extend(length(content));
        about.extend([15, 0, 0, 0]);
        let mut all = [FILE, &about, name, &packed].concat();
        let directory = all.len();
        all.extend([ENTRY, &[20, 0], &about, &[0; 14], name].concat());
        let size = all.len() - directory;
        all.extend([END, &[0, 0, 0, 0, 1, 0, 1, 0]].concat());
        all.extend(u32::try_from(size).expect("small").to_le_bytes());
        all.extend(u32::try_from(directory).expect("small").to_le_bytes());
        all.extend([0, 0]);
        all
    }

    #[test]
    fn files_are_taken_out_by_name_and_size() {
        for method in [0, 8] {
            let package = package(b"the lamp turns", method);
            assert_eq!(
                file_in(&package, "vocab.txt", 14).as_deref(),
                Some(&b"the lamp turns"[..]),
                "{method}"
            );
            assert_eq!(file_in(&package, "vocab.txt", 13), None, "another size");
            assert_eq!(file_in(&package, "model.safetensors", 14), None);
        }
        assert_eq!(file_in(&package(b"x", 12), "vocab.txt", 1), None, "an unknown method");
    }

    #[test]
    fn damaged_packages_have_no_file() {
        let whole = package(b"the lamp turns and turns and turns", 8);
        for end in 0..whole.len() {
            assert_eq!(file_in(&whole[..end], "vocab.txt", 34), None, "cut at {end}");
        }
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0xff;
            // Any answer will do but a crash: the checksum decides.
            drop(file_in(&damaged, "vocab.txt", 34));
        }
        assert_eq!(file_in(b"", "vocab.txt", 34), None);
    }
}
