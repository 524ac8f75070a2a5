//! Parses the providers' lists of objects.
//!
//! Parsed here, since a library that turns every key into a path fails the whole page for one key that is none.

use std::borrow::Cow;
use std::time::SystemTime;

use percent_encoding::percent_decode_str;
use serde::Deserialize;

use super::address::Provider;

/// One page of objects, as they are called there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeyPage {
    pub(crate) objects: Vec<Listed>,
    /// Common prefixes, each with the delimiter at its end.
    pub(crate) prefixes: Vec<String>,
    /// The token for the next page.
    pub(crate) next: Option<String>,
}

/// One object of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) key: String,
    pub(crate) size_bytes: u64,
    pub(crate) modified: Option<SystemTime>,
    /// The provider's version of it, if the list has it.
    pub(crate) version: Option<String>,
}

/// Parses a page; `None` if it is not one.
pub(crate) fn parse(provider: Provider, body: &[u8]) -> Option<KeyPage> {
    let text = std::str::from_utf8(body).ok()?;
    let root = match provider {
        Provider::Azure => "<EnumerationResults",
        Provider::S3 | Provider::Gcs => "<ListBucketResult",
    };
    // Everything in a page may be absent: any other document would be an empty one.
    if !text.contains(root) {
        return None;
    }
    match provider {
        Provider::Azure => quick_xml::de::from_str::<AzurePage>(text).ok().map(AzurePage::into_page),
        Provider::S3 | Provider::Gcs => {
            let page: BucketPage = quick_xml::de::from_str(text).ok()?;
            page.into_page(provider)
        }
    }
}

/// Returns a version without the quotes that only some of the answers put around it.
pub(crate) fn unquoted(version: &str) -> &str {
    version.trim().trim_start_matches("W/").trim_matches('"')
}

#[derive(Debug, Deserialize)]
#[serde(rename = "EnumerationResults")]
struct AzurePage {
    #[serde(rename = "Blobs", default)]
    blobs: AzureBlobs,
    #[serde(rename = "NextMarker", default)]
    next: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
struct AzureBlobs {
    #[serde(rename = "Blob", default)]
    blobs: Vec<AzureBlob>,
    #[serde(rename = "BlobPrefix", default)]
    prefixes: Vec<AzurePrefix>,
}

#[derive(Debug, Deserialize)]
struct AzureBlob {
    #[serde(rename = "Name")]
    name: AzureName,
    #[serde(rename = "Properties")]
    properties: AzureProperties,
}

#[derive(Debug, Deserialize)]
struct AzurePrefix {
    #[serde(rename = "Name")]
    name: AzureName,
}

/// A name, percent-encoded where XML cannot hold it.
#[derive(Debug, Deserialize)]
struct AzureName {
    #[serde(rename = "@Encoded", default)]
    encoded: Option<bool>,
    #[serde(rename = "$text", default)]
    text: String,
}

impl AzureName {
    fn into_key(self) -> String {
        if self.encoded == Some(true) { decoded(&self.text).into_owned() } else { self.text }
    }
}

#[derive(Debug, Deserialize)]
struct AzureProperties {
    #[serde(rename = "Content-Length", default)]
    size: u64,
    #[serde(rename = "Last-Modified", default)]
    modified: Option<String>,
    #[serde(rename = "Etag", default)]
    etag: Option<String>,
    /// With a hierarchical namespace, directories are listed as well.
    #[serde(rename = "ResourceType", default)]
    resource: Option<String>,
}

impl AzurePage {
    fn into_page(self) -> KeyPage {
        let is_object = |blob: &AzureBlob| blob.properties.resource.as_deref() != Some("directory");
        let listed = |blob: AzureBlob| Listed {
            key: blob.name.into_key(),
            size_bytes: blob.properties.size,
            modified: blob.properties.modified.as_deref().and_then(moment),
            version: blob.properties.etag.as_deref().map(|etag| unquoted(etag).to_owned()),
        };
        KeyPage {
            objects: self.blobs.blobs.into_iter().filter(is_object).map(listed).collect(),
            prefixes: self.blobs.prefixes.into_iter().map(|prefix| prefix.name.into_key()).collect(),
            next: self.next.filter(|next| !next.is_empty()),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename = "ListBucketResult", rename_all = "PascalCase")]
struct BucketPage {
    #[serde(default)]
    contents: Vec<BucketObject>,
    #[serde(default)]
    common_prefixes: Vec<BucketPrefix>,
    #[serde(default)]
    next_continuation_token: Option<String>,
    #[serde(default)]
    is_truncated: bool,
    #[serde(default)]
    encoding_type: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct BucketObject {
    key: String,
    #[serde(default)]
    size: u64,
    #[serde(default)]
    last_modified: Option<String>,
    #[serde(rename = "ETag", default)]
    etag: Option<String>,
    #[serde(default)]
    generation: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct BucketPrefix {
    prefix: String,
}

impl BucketPage {
    fn into_page(self, provider: Provider) -> Option<KeyPage> {
        let is_encoded = self.encoding_type.as_deref() == Some("url");
        let key = |text: String| {
            // The encoding of forms, in which a plus is a space.
            if is_encoded { decoded(&text.replace('+', "%20")).into_owned() } else { text }
        };
        let listed = |object: BucketObject| Listed {
            version: match provider {
                Provider::Gcs => object.generation,
                Provider::Azure | Provider::S3 => object.etag.map(|etag| unquoted(&etag).to_owned()),
            },
            key: key(object.key),
            size_bytes: object.size,
            modified: object.last_modified.as_deref().and_then(moment),
        };
        // A page that is not the last and does not say how to go on would end the list too early.
        if self.is_truncated && self.next_continuation_token.is_none() {
            return None;
        }
        Some(KeyPage {
            objects: self.contents.into_iter().map(listed).collect(),
            prefixes: self.common_prefixes.into_iter().map(|prefix| key(prefix.prefix)).collect(),
            next: self.next_continuation_token.filter(|_| self.is_truncated),
        })
    }
}

fn decoded(text: &str) -> Cow<'_, str> {
    percent_decode_str(text).decode_utf8_lossy()
}

/// Returns the moment that a header or a list names, in either of the two spellings that HTTP storages use.
pub(crate) fn moment(text: &str) -> Option<SystemTime> {
    let parsed = text.parse::<jiff::Timestamp>();
    let parsed = parsed.or_else(|_| jiff::fmt::rfc2822::parse(text).map(|moment| moment.timestamp()));
    parsed.ok().map(SystemTime::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn azure_pages() {
        let body = br#"<?xml version="1.0" encoding="utf-8"?>
<EnumerationResults ServiceEndpoint="http://x/" ContainerName="memory"><Prefix>a/</Prefix><Blobs>
<Blob><Name>a/b &amp; c.md</Name><Properties><Last-Modified>Mon, 16 Nov 2026 11:20:07 GMT</Last-Modified><Etag>0x21</Etag><Content-Length>5</Content-Length><Content-Type>x</Content-Type></Properties></Blob>
<Blob><Name Encoded="true">a/%01.md</Name><Properties><Etag>"0x22"</Etag><Content-Length>0</Content-Length></Properties></Blob>
<Blob><Name>a/dir</Name><Properties><ResourceType>directory</ResourceType></Properties></Blob>
<BlobPrefix><Name>a/deep/</Name></BlobPrefix>
</Blobs><NextMarker>more</NextMarker></EnumerationResults>"#;
        let page = parse(Provider::Azure, body).expect("a page");
        assert_eq!(page.objects.len(), 2);
        assert_eq!((page.objects[0].key.as_str(), page.objects[0].size_bytes), ("a/b & c.md", 5));
        assert_eq!(page.objects[0].modified, moment("2026-11-16T11:20:07.000Z"));
        assert_eq!(
            (page.objects[1].key.as_str(), page.objects[1].version.as_deref()),
            ("a/\u{1}.md", Some("0x22"))
        );
        assert_eq!((page.prefixes, page.next.as_deref()), (vec!["a/deep/".to_owned()], Some("more")));
        let empty = br#"<EnumerationResults><Blobs /><NextMarker /></EnumerationResults>"#;
        assert_eq!(parse(Provider::Azure, empty), Some(KeyPage::default()));
    }

    #[test]
    fn bucket_pages() {
        let body = br#"<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><IsTruncated>true</IsTruncated><EncodingType>url</EncodingType>
<Contents><Key>a%01+b%2Bc</Key><LastModified>2026-11-16T11:20:07.000Z</LastModified><ETag>&quot;9a0364b9e99bb480dd25e1f0284c8555&quot;</ETag><Size>7</Size><Generation>5</Generation></Contents>
<CommonPrefixes><Prefix>x%2F</Prefix></CommonPrefixes><NextContinuationToken>t</NextContinuationToken></ListBucketResult>"#;
        let page = parse(Provider::S3, body).expect("a page");
        assert_eq!(page.objects[0].key, "a\u{1} b+c");
        assert_eq!(page.objects[0].version.as_deref(), Some("9a0364b9e99bb480dd25e1f0284c8555"));
        assert_eq!((page.prefixes, page.next.as_deref()), (vec!["x/".to_owned()], Some("t")));
        assert_eq!(parse(Provider::Gcs, body).expect("a page").objects[0].version.as_deref(), Some("5"));
        assert_eq!(parse(Provider::S3, b"<html>proxy</html>"), None);
        let cut = b"<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>";
        assert_eq!(parse(Provider::S3, cut), None, "the rest of the list would be lost");
    }

    #[test]
    fn moments_in_both_spellings() {
        let at = |seconds| SystemTime::UNIX_EPOCH.checked_add(std::time::Duration::from_secs(seconds));
        assert_eq!(moment("1970-01-01T00:00:00Z"), at(0));
        assert_eq!(moment("2024-02-29T12:00:01.000Z"), at(1_709_208_001));
        assert_eq!(moment("Sun, 06 Nov 1994 08:49:37 GMT"), at(784_111_777));
        assert_eq!((moment("yesterday"), moment("Sun, x Nov 1994 08:49:37 GMT")), (None, None));
    }
}
