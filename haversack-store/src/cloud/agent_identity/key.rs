//! The certificate and its private key: where they are, and what is signed with them.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest;
use ring::rand::SystemRandom;
use ring::signature::{KeyPair, RSA_PKCS1_SHA256, RsaKeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::json;

use super::hops::Failure;
use crate::error::{Error, ErrorKind, Operation, Result};

/// The lifetime of an assertion.
const ASSERTION_SECONDS: u64 = 600;

/// The largest certificate or key file that is read.
const MAX_PEM_BYTES: u64 = 64 * 1024;

/// The certificate that is registered with the blueprint.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Certificate {
    /// A PEM file.
    File(PathBuf),
    /// The SHA-256 of the certificate: hexadecimal, with or without colons, or base64url.
    Thumbprint(String),
}

/// The place of a certificate's private key, never the key itself.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PrivateKey {
    /// A PEM file that only its owner can read.
    File(PathBuf),
    /// The system's keychain, which has the PEM text as a secret.
    #[cfg(feature = "keychain")]
    Keychain {
        /// The service that the secret belongs to.
        service: String,
        /// Whose it is.
        account: String,
    },
}

/// Signs for the blueprint.
pub(super) struct Signer {
    key: RsaKeyPair,
    /// `x5t#S256`: how Entra finds the certificate.
    thumbprint: String,
}

impl Signer {
    pub(super) fn open(certificate: &Certificate, private_key: &PrivateKey) -> Result<Signer> {
        let (place, pem) = match private_key {
            PrivateKey::File(path) => (path.display().to_string(), read(path, Access::OwnerOnly)?),
            #[cfg(feature = "keychain")]
            PrivateKey::Keychain { service, account } => {
                let place = format!("{service}/{account} in the keychain");
                (place, super::super::keychain::secret(service, account)?.into_bytes())
            }
        };
        let key = rsa_key(&place, &pem)?;
        let thumbprint = match certificate {
            Certificate::Thumbprint(text) => thumbprint(text)?,
            Certificate::File(path) => {
                let place = path.display().to_string();
                let certificate = CertificateDer::from_pem_slice(&read(path, Access::Anyone)?)
                    .map_err(|_| unusable(&place, "there is no certificate in it; a PEM file is expected"))?;
                // The key is in the certificate as it is: no need to take the rest of it apart.
                let public: &[u8] = key.public_key().as_ref();
                if !certificate.windows(public.len()).any(|part| part == public) {
                    return Err(unusable(&place, "the certificate is not that of the private key"));
                }
                URL_SAFE_NO_PAD.encode(digest::digest(&digest::SHA256, &certificate))
            }
        };
        Ok(Signer { key, thumbprint })
    }

    /// Returns a signed statement that the application is who it says, good for ten minutes and for one use.
    pub(super) fn assertion(&self, audience: &str, application: &str, now: u64) -> Result<String, Failure> {
        let header = json!({ "alg": "RS256", "typ": "JWT", "x5t#S256": self.thumbprint });
        let claims = json!({
            "aud": audience,
            "iss": application,
            "sub": application,
            "jti": random_id()?,
            "nbf": now,
            "iat": now,
            "exp": now + ASSERTION_SECONDS,
        });
        let part = |value: serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(header), part(claims));
        let mut signature = vec![0; self.key.public().modulus_len()];
        self.key
            .sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), signed.as_bytes(), &mut signature)
            .map_err(|_| Failure::ours("the private key did not sign"))?;
        Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }
}

/// The users that can read a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Anyone,
    OwnerOnly,
}

fn read(path: &Path, access: Access) -> Result<Vec<u8>> {
    let place = path.display().to_string();
    let io = |error| Error::from_io(Operation::Read, &place, error);
    // Asked before it is opened too: a pipe would let us wait for ever.
    if !std::fs::metadata(path).map_err(io)?.is_file() {
        return Err(unusable(&place, "it is not a file"));
    }
    let file = File::open(path).map_err(io)?;
    let metadata = file.metadata().map_err(io)?;
    #[cfg(unix)]
    if access == Access::OwnerOnly {
        use std::os::unix::fs::PermissionsExt;
        let mode = metadata.permissions().mode();
        if mode & 0o077 != 0 {
            let message = format!(
                "others than its owner have access to this private key; run: chmod 600 {}",
                quoted(&place)
            );
            return Err(Error::at(ErrorKind::Denied, Operation::Read, &place, message));
        }
    }
    #[cfg(not(unix))]
    let _ = access;
    if metadata.len() > MAX_PEM_BYTES {
        return Err(unusable(&place, "it is too large to be a certificate or a key"));
    }
    let mut bytes = Vec::new();
    let _ = file.take(MAX_PEM_BYTES).read_to_end(&mut bytes).map_err(io)?;
    Ok(bytes)
}

/// Returns a path as a shell takes it.
#[cfg(unix)]
fn quoted(path: &str) -> String {
    match path.chars().all(|c| c.is_alphanumeric() || "/._-+@".contains(c)) {
        true => path.to_owned(),
        false => format!("'{}'", path.replace('\'', r"'\''")),
    }
}

fn rsa_key(place: &str, pem: &[u8]) -> Result<RsaKeyPair> {
    let wrong = "it is not an RSA key, and this sign-in takes no other";
    let text = String::from_utf8_lossy(pem);
    if text.contains("BEGIN ENCRYPTED PRIVATE KEY") || text.contains("Proc-Type: 4,ENCRYPTED") {
        let message =
            "the private key has a password; take it off (openssl pkey) or keep the key in the keychain";
        return Err(unusable(place, message));
    }
    let parsed = match PrivateKeyDer::from_pem_slice(pem) {
        Ok(PrivateKeyDer::Pkcs8(key)) => RsaKeyPair::from_pkcs8(key.secret_pkcs8_der()),
        Ok(PrivateKeyDer::Pkcs1(key)) => RsaKeyPair::from_der(key.secret_pkcs1_der()),
        Ok(_) => return Err(unusable(place, wrong)),
        Err(_) => return Err(unusable(place, "there is no private key in it; a PEM file is expected")),
    };
    parsed.map_err(|rejected| {
        // The library says what is wrong with a key, never what is in it.
        let reason = rejected.to_string();
        match reason.as_str() {
            "WrongAlgorithm" => unusable(place, wrong),
            _ => {
                unusable(place, "the RSA key cannot be used; it needs 2048 to 4096 bits").with_source(reason)
            }
        }
    })
}

/// Returns the thumbprint as an assertion has it.
fn thumbprint(text: &str) -> Result<String> {
    let digits: String = text.chars().filter(|c| *c != ':' && !c.is_whitespace()).collect();
    if digits.chars().all(|c| c.is_ascii_hexdigit()) {
        let byte = |at: usize| digits.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok());
        match digits.len() {
            64 => {
                let bytes: Vec<u8> = (0..64).step_by(2).filter_map(byte).collect();
                return Ok(URL_SAFE_NO_PAD.encode(bytes));
            }
            40 => {
                let message =
                    "this is the SHA-1 of the certificate; name its SHA-256, or the certificate's file";
                return Err(unusable("the certificate's thumbprint", message));
            }
            _ => {}
        }
    }
    match URL_SAFE_NO_PAD.decode(&digits) {
        Ok(bytes) if bytes.len() == digest::SHA256_OUTPUT_LEN => Ok(digits),
        _ => {
            Err(unusable("the certificate's thumbprint", "it is not a SHA-256, in hexadecimal or base64url"))
        }
    }
}

/// Returns a new random id, in the form of a version 4 UUID.
fn random_id() -> Result<String, Failure> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|_| Failure::ours("the system has no randomness"))?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok([&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-"))
}

/// Returns the error for a certificate or key that can never work.
fn unusable(place: &str, message: &str) -> Error {
    Error::at(ErrorKind::Invalid, Operation::Read, place, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thumbprints_in_three_spellings() {
        let hex = "00".repeat(32);
        let colons = vec!["00"; 32].join(":");
        let base64 = "A".repeat(43);
        for text in [&hex, &colons, &base64] {
            assert_eq!(thumbprint(text).expect("a thumbprint"), base64);
        }
        let short = thumbprint(&"ab".repeat(20)).expect_err("a SHA-1");
        assert!(short.message().contains("SHA-1"), "{short}");
        assert!(thumbprint("certificate").is_err());
        assert!(thumbprint("").is_err());
    }

    #[test]
    fn an_id_is_a_version_4_uuid() {
        let id = random_id().expect("randomness");
        assert!(super::super::is_guid(&id), "{id}");
        assert_eq!(id.as_bytes()[14], b'4', "{id}");
        assert_ne!(id, random_id().expect("randomness"));
    }

    #[cfg(unix)]
    #[test]
    fn paths_for_a_shell() {
        assert_eq!(quoted("/home/me/key.pem"), "/home/me/key.pem");
        assert_eq!(quoted("/home/me/it's.pem"), r"'/home/me/it'\''s.pem'");
    }
}
