//! Listings of the fake, a page at a time.

use std::ops::Bound;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::{Bucket, Object, refusal};
use crate::http::{Answer, Asked};

/// The most objects on a page.
const PAGE: usize = 1000;

/// One element of a page.
enum Entry<'a> {
    Object(&'a str, &'a Object),
    /// Everything that begins so, up to the delimiter.
    Prefix(&'a str),
}

pub(super) fn list(bucket: &Bucket, name: &str, asked: &Asked) -> Answer {
    if asked.query("list-type").as_deref() != Some("2") {
        return refusal(501, "NotImplemented", "The fake knows listings of version 2 only.");
    }
    let prefix = asked.query("prefix").unwrap_or_default();
    let delimiter = asked.query("delimiter").filter(|delimiter| !delimiter.is_empty());
    let most = asked.query("max-keys").and_then(|number| number.parse().ok()).unwrap_or(PAGE).min(PAGE);
    let after = match asked.query("continuation-token") {
        None => asked.query("start-after"),
        Some(token) => match URL_SAFE_NO_PAD.decode(token).map(String::from_utf8) {
            Ok(Ok(after)) => Some(after),
            _ => return refusal(400, "InvalidArgument", "The continuation token is not one of ours."),
        },
    };
    let (page, next) = page(bucket, &prefix, delimiter.as_deref(), after.as_deref(), most);
    let mut xml = String::from(
        "<?xml version='1.0' encoding='UTF-8'?><ListBucketResult xmlns='http://doc.s3.amazonaws.com/2006-03-01'>",
    );
    xml += &format!("<Name>{}</Name><Prefix>{}</Prefix>", escape(name), escape(&prefix));
    xml += &format!(
        "<KeyCount>{}</KeyCount><MaxKeys>{most}</MaxKeys><IsTruncated>{}</IsTruncated>",
        page.len(),
        next.is_some()
    );
    if let Some(next) = next {
        xml += &format!("<NextContinuationToken>{}</NextContinuationToken>", URL_SAFE_NO_PAD.encode(next));
    }
    for entry in &page {
        xml += &match entry {
            Entry::Object(key, object) => format!(
                "<Contents><Key>{}</Key><Generation>{}</Generation><MetaGeneration>1</MetaGeneration><LastModified>{}</LastModified><ETag>{}</ETag><Size>{}</Size></Contents>",
                escape(key),
                object.generation,
                object.modified.strftime("%Y-%m-%dT%H:%M:%S%.3fZ"),
                escape(&object.e_tag),
                object.body.len(),
            ),
            Entry::Prefix(prefix) => {
                format!("<CommonPrefixes><Prefix>{}</Prefix></CommonPrefixes>", escape(prefix))
            }
        };
    }
    xml += "</ListBucketResult>";
    Answer::new(200).with_header("content-type", "application/xml; charset=UTF-8").with_body(xml)
}

/// Returns a page, and after what the next begins if there is one.
fn page<'a>(
    bucket: &'a Bucket,
    prefix: &str,
    delimiter: Option<&str>,
    after: Option<&str>,
    most: usize,
) -> (Vec<Entry<'a>>, Option<String>) {
    let after_bound = after.map_or(Bound::Unbounded, Bound::Excluded);
    // Not before the prefix either, so that a page costs what is on it.
    let start = match after {
        Some(after) if after >= prefix => after_bound,
        _ => Bound::Included(prefix),
    };
    let mut page = Vec::new();
    let mut last = String::new();
    let mut folded: Option<&str> =
        after.filter(|after| delimiter.is_some_and(|delimiter| after.ends_with(delimiter)));
    for (key, object) in bucket.range::<str, _>((start, Bound::Unbounded)) {
        if !key.starts_with(prefix) {
            break;
        }
        if folded.is_some_and(|folded| key.starts_with(folded)) {
            continue;
        }
        if page.len() == most {
            return (page, Some(last));
        }
        let end = delimiter.and_then(|delimiter| {
            key[prefix.len()..].find(delimiter).map(|at| prefix.len() + at + delimiter.len())
        });
        match end {
            Some(end) => {
                folded = Some(&key[..end]);
                page.push(Entry::Prefix(&key[..end]));
                last = key[..end].to_owned();
            }
            None => {
                page.push(Entry::Object(key, object));
                last.clone_from(key);
            }
        }
    }
    (page, None)
}

/// Returns text as XML has it; what XML cannot have is written as a number, and the reader may stumble over it.
fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            character if character.is_control() => escaped.push_str(&format!("&#{};", u32::from(character))),
            character => escaped.push(character),
        }
    }
    escaped
}
