//! The differences between the providers: URLs, conditions, versions.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::header::{HeaderName, HeaderValue, IF_MATCH, IF_NONE_MATCH};
use reqwest::{StatusCode, Url};

use super::address::{Address, Provider};
use super::listing::unquoted;
use super::wire::Answer;
use crate::backend::Condition;
use crate::version::Version;

/// Characters that signature and server both encode: all but letters, digits and these four.
const STRICT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The same, with the slashes that part a key.
const KEY: &AsciiSet = &STRICT.remove(b'/');

/// A container of a provider.
#[derive(Clone, Debug)]
pub(crate) struct Service {
    pub(crate) address: Address,
    /// The container's own URL, without a slash at its end.
    pub(crate) base: String,
}

/// How a list is asked for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Query<'a> {
    pub(crate) prefix: &'a str,
    /// True if deeper levels are summed up.
    pub(crate) shallow: bool,
    /// Only keys after this one.
    pub(crate) after: Option<&'a str>,
    /// How the page before said to go on.
    pub(crate) token: Option<&'a str>,
    /// At most so many keys.
    pub(crate) most: Option<u32>,
}

impl Service {
    /// Returns where an object is.
    pub(crate) fn object(&self, key: &str) -> Url {
        self.url(&format!("/{}", utf8_percent_encode(key, KEY)))
    }

    /// Returns where a list is.
    pub(crate) fn list(&self, query: Query<'_>) -> Url {
        let most = query.most.map(|most| most.to_string());
        let mut pairs: Vec<(&str, &str)> = match self.address.provider {
            Provider::Azure => vec![("restype", "container"), ("comp", "list")],
            Provider::S3 | Provider::Gcs => vec![("list-type", "2"), ("encoding-type", "url")],
        };
        pairs.push(("prefix", query.prefix));
        if query.shallow {
            pairs.push(("delimiter", "/"));
        }
        let (token, after, count) = match self.address.provider {
            Provider::Azure => ("marker", "startFrom", "maxresults"),
            Provider::S3 | Provider::Gcs => ("continuation-token", "start-after", "max-keys"),
        };
        match (query.token, query.after) {
            (Some(next), _) => pairs.push((token, next)),
            (None, Some(key)) => pairs.push((after, key)),
            (None, None) => {}
        }
        if let Some(most) = &most {
            pairs.push((count, most));
        }
        let encoded = |text| utf8_percent_encode(text, STRICT);
        let pairs: Vec<String> =
            pairs.into_iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
        self.url(&format!("?{}", pairs.join("&")))
    }

    fn url(&self, rest: &str) -> Url {
        Url::parse(&format!("{}{rest}", self.base)).expect("the base was parsed, and the rest is encoded")
    }

    /// Returns the headers that make a request hold only under a condition.
    pub(crate) fn condition(&self, condition: &Condition) -> Option<(HeaderName, HeaderValue)> {
        const GENERATION: HeaderName = HeaderName::from_static("x-goog-if-generation-match");
        let value = |text: &str| {
            // A version that no header can hold is none of this storage's, so it matches nothing.
            HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static("\"none\""))
        };
        match (self.address.provider, condition) {
            (_, Condition::Any) => None,
            (Provider::Gcs, Condition::Absent) => Some((GENERATION, HeaderValue::from_static("0"))),
            (Provider::Gcs, Condition::Matches(version)) => Some((GENERATION, value(version.as_str()))),
            (Provider::Azure | Provider::S3, Condition::Absent) => {
                Some((IF_NONE_MATCH, HeaderValue::from_static("*")))
            }
            (Provider::Azure | Provider::S3, Condition::Matches(version)) => {
                Some((IF_MATCH, value(&format!("\"{version}\""))))
            }
        }
    }

    /// Returns the headers that every write of an object has besides.
    pub(crate) fn writing(&self) -> Option<(HeaderName, HeaderValue)> {
        match self.address.provider {
            Provider::Azure => {
                Some((HeaderName::from_static("x-ms-blob-type"), HeaderValue::from_static("BlockBlob")))
            }
            Provider::S3 | Provider::Gcs => None,
        }
    }

    /// Returns the header that marks an object with the write that made it.
    pub(crate) fn mark(&self) -> HeaderName {
        HeaderName::from_static(match self.address.provider {
            Provider::Azure => "x-ms-meta-haversackwrite",
            Provider::S3 => "x-amz-meta-haversackwrite",
            Provider::Gcs => "x-goog-meta-haversackwrite",
        })
    }

    /// Returns the version that an answer tells.
    pub(crate) fn version(&self, answer: &Answer) -> Option<Version> {
        let told = match self.address.provider {
            Provider::Azure | Provider::S3 => answer.header("etag").map(unquoted),
            Provider::Gcs => answer.header("x-goog-generation"),
        };
        told.filter(|told| !told.is_empty()).map(Version::new)
    }

    /// Returns true if an answer says that there is no such object, in a storage that is there.
    ///
    /// A page of some proxy that was not found either must not pass for it.
    pub(crate) fn is_nothing_there(&self, answer: &Answer) -> bool {
        answer.status == StatusCode::NOT_FOUND
            && match answer.code().as_deref() {
                Some(code) => matches!(code, "NoSuchKey" | "BlobNotFound" | "NoSuchVersion"),
                // The answer to a question without a body has none either.
                None => answer.body.is_empty(),
            }
    }

    /// Returns true if an answer says that a condition did not hold.
    pub(crate) fn is_condition_failed(&self, answer: &Answer) -> bool {
        answer.status == StatusCode::PRECONDITION_FAILED
            || answer.status == StatusCode::NOT_MODIFIED
            || (answer.status == StatusCode::CONFLICT
                && answer.code().as_deref() == Some("BlobAlreadyExists"))
    }

    /// Returns true if an answer says that another request was in the way, and that nothing was done.
    pub(crate) fn is_collision(&self, answer: &Answer) -> bool {
        answer.status == StatusCode::CONFLICT
            && matches!(answer.code().as_deref(), Some("ConditionalRequestConflict" | "OperationAborted"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(address: &str, base: &str) -> Service {
        Service { address: Address::parse(address).expect("valid"), base: base.to_owned() }
    }

    #[test]
    fn every_name_survives_its_url() {
        let s3 = service("s3://memory", "http://127.0.0.1:1/memory");
        for key in
            ["a/b.md", "a b&c+d", "%2e%2e%2f", "..%2f", "caf\u{e9}", "'q' ;#!", "[x]{y}(z)", "...x", "~/x"]
        {
            let url = s3.object(key);
            let path = percent_encoding::percent_decode_str(url.path()).decode_utf8().expect("UTF-8");
            assert_eq!(path, format!("/memory/{key}"));
        }
    }

    #[test]
    fn lists_are_asked_in_each_dialect() {
        let query = Query { prefix: "log/", shallow: true, after: Some("log/5"), token: None, most: Some(1) };
        let azure = service("az://memory", "https://x.blob.core.windows.net/memory").list(query);
        assert_eq!(
            azure.query(),
            Some("restype=container&comp=list&prefix=log%2F&delimiter=%2F&startFrom=log%2F5&maxresults=1")
        );
        let gcs = service("gs://memory", "https://storage.googleapis.com/memory");
        let next = gcs.list(Query { token: Some("a=b"), ..query });
        assert_eq!(
            next.query(),
            Some(
                "list-type=2&encoding-type=url&prefix=log%2F&delimiter=%2F&continuation-token=a%3Db&max-keys=1"
            )
        );
    }
}
