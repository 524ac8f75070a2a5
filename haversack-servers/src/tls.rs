//! Certificates for loopback, issued by an authority that lives as long as this process.

use std::sync::{Arc, OnceLock};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};

/// The authority, and the one certificate that all servers here share.
struct Authority {
    ca_pem: String,
    certificate_pem: String,
    key_pem: String,
}

static AUTHORITY: OnceLock<Authority> = OnceLock::new();

/// Returns the authority's certificate: what a client has to trust.
pub fn ca_pem() -> &'static str {
    &authority().ca_pem
}

/// Returns a certificate for 127.0.0.1 and localhost, and its key.
pub fn server_pem() -> (&'static str, &'static str) {
    (&authority().certificate_pem, &authority().key_pem)
}

fn authority() -> &'static Authority {
    AUTHORITY.get_or_init(|| issue().expect("keys and names are sound"))
}

fn issue() -> Result<Authority, rcgen::Error> {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.distinguished_name.push(DnType::CommonName, "test servers");
    let key = KeyPair::generate()?;
    let ca_pem = params.self_signed(&key)?.pem();
    let issuer = Issuer::new(params, key);
    let mut params = CertificateParams::new(["127.0.0.1".to_owned(), "localhost".to_owned()])?;
    params.distinguished_name.push(DnType::CommonName, "test server");
    params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate()?;
    let certificate_pem = params.signed_by(&key, &issuer)?.pem();
    Ok(Authority { ca_pem, certificate_pem, key_pem: key.serialize_pem() })
}

/// Returns how a server here speaks TLS.
pub(crate) fn server() -> Arc<ServerConfig> {
    let (certificate, key) = server_pem();
    let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).expect("it was just written");
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("it was just written");
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring has them")
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key);
    Arc::new(config.expect("the key belongs to the certificate"))
}

/// Returns the TLS settings of a client here: it trusts only our authority.
pub(crate) fn client() -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    let ca = CertificateDer::from_pem_slice(ca_pem().as_bytes()).expect("it was just written");
    roots.add(ca).expect("it is an authority's");
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring has them")
        .with_root_certificates(roots)
        .with_no_client_auth();
    Arc::new(config)
}
