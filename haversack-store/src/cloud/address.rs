//! The addresses of clouds: `az://`, `https://ACCOUNT.blob…`, `s3://`, `gs://`.

use reqwest::Url;

use crate::error::{Error, ErrorKind, Operation, Result};
use crate::locator::Locator;

/// Whose storage it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Provider {
    Azure,
    S3,
    Gcs,
}

impl Provider {
    /// Returns what the provider calls the place that holds the objects.
    pub(crate) fn container(self) -> &'static str {
        match self {
            Provider::Azure => "container",
            Provider::S3 | Provider::Gcs => "bucket",
        }
    }
}

/// The address of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) provider: Provider,
    /// The service's own address, where the address names it.
    pub(crate) endpoint: Option<Url>,
    /// The container or bucket.
    pub(crate) container: String,
    /// The prefix of every key.
    pub(crate) prefix: Locator,
}

impl Address {
    /// Parses an address.
    pub(crate) fn parse(address: &str) -> Result<Address> {
        let refused = |message: String| Err(Error::at(ErrorKind::Invalid, Operation::Open, address, message));
        let Some((scheme, rest)) = address.split_once("://") else {
            return refused("it has no scheme, as in s3://BUCKET/PREFIX".to_owned());
        };
        if rest.contains('?') {
            let message = "it carries a query, which may be a secret: name only the place, and hand the SAS in separately";
            // The address itself would be in the error.
            return Err(Error::at(ErrorKind::Invalid, Operation::Open, "the address", message));
        }
        let (provider, endpoint, path) = match scheme {
            "az" => (Provider::Azure, None, rest),
            "s3" => (Provider::S3, None, rest),
            "gs" => (Provider::Gcs, None, rest),
            "https" => {
                let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
                if host.split('.').nth(1) != Some("blob") {
                    return refused("only Azure's own addresses begin with https: https://ACCOUNT.blob.core.windows.net/CONTAINER".to_owned());
                }
                let Ok(endpoint) = Url::parse(&format!("https://{host}")) else {
                    return refused("the host is no name".to_owned());
                };
                (Provider::Azure, Some(endpoint), path)
            }
            other => return refused(format!("\"{other}\" is no cloud that is known")),
        };
        let (container, prefix) = path.split_once('/').unwrap_or((path, ""));
        if let Some(problem) = problem_with(provider, container) {
            return refused(problem);
        }
        let prefix = match Locator::parse(prefix) {
            Ok(prefix) => prefix,
            Err(reason) => return refused(format!("its prefix cannot be used: {reason}")),
        };
        Ok(Address { provider, endpoint, container: container.to_owned(), prefix })
    }

    /// Returns the key of a place.
    pub(crate) fn key(&self, locator: &Locator) -> String {
        match (self.prefix.is_root(), locator.is_root()) {
            (true, _) => locator.as_str().to_owned(),
            (false, true) => self.prefix.as_str().to_owned(),
            (false, false) => format!("{}/{locator}", self.prefix),
        }
    }

    /// Returns what follows the prefix in a key, if the key is below it.
    pub(crate) fn below<'a>(&self, key: &'a str) -> Option<&'a str> {
        if self.prefix.is_root() {
            return Some(key);
        }
        key.strip_prefix(self.prefix.as_str())?.strip_prefix('/')
    }
}

/// Returns why a container cannot have this name, by the providers' own rules.
fn problem_with(provider: Provider, name: &str) -> Option<String> {
    let what = provider.container();
    if name.is_empty() {
        return Some(format!("it names no {what}"));
    }
    let is_letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let may_have = |c: char| match provider {
        Provider::Azure => is_letter(c) || c == '-',
        Provider::S3 => is_letter(c) || c == '-' || c == '.',
        Provider::Gcs => is_letter(c) || c == '-' || c == '.' || c == '_',
    };
    let longest = if provider == Provider::Gcs { 222 } else { 63 };
    let fits = (3..=longest).contains(&name.len())
        && name.chars().all(may_have)
        && name.starts_with(is_letter)
        && name.ends_with(is_letter)
        && !(provider == Provider::Azure && name.contains("--"));
    (!fits).then(|| {
        format!(
            "a {what} cannot be called \"{}\": 3 to {longest} lower-case letters, digits and dashes",
            name.escape_debug()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_parsed() {
        let azure = Address::parse("az://memory/team/a").expect("valid");
        assert_eq!(
            (azure.provider, azure.container.as_str(), azure.prefix.as_str()),
            (Provider::Azure, "memory", "team/a")
        );
        let named = Address::parse("https://lighthouse.blob.core.windows.net/memory").expect("valid");
        assert_eq!(named.endpoint.expect("named").as_str(), "https://lighthouse.blob.core.windows.net/");
        assert!(named.prefix.is_root());
        let s3 = Address::parse("s3://my.bucket/").expect("valid");
        let notes = Locator::parse("a/b.md").expect("valid");
        assert_eq!((s3.key(&notes), s3.below("a/b.md")), ("a/b.md".to_owned(), Some("a/b.md")));
        assert_eq!(
            (azure.key(&notes), azure.below("team/a/a/b.md")),
            ("team/a/a/b.md".to_owned(), Some("a/b.md"))
        );
        assert_eq!((azure.below("team/ab"), azure.below("team/a")), (None, None));
    }

    #[test]
    fn what_cannot_be_an_address_is_refused_with_why() {
        let cases = [
            ("s3://", "it names no bucket"),
            ("az://Upper", "a container cannot be called"),
            ("az://a--b", "a container cannot be called"),
            ("az://memory/../x", "its prefix cannot be used"),
            ("https://example.com/memory", "only Azure's own addresses"),
            ("ftp://x/y", "is no cloud that is known"),
            ("https://a.blob.core.windows.net/memory?sv=1&sig=SECRET", "may be a secret"),
        ];
        for (address, why) in cases {
            let error = Address::parse(address).expect_err(address).to_string();
            assert!(error.contains(why) && !error.contains("SECRET"), "{address}: {error}");
        }
    }
}
