//! Keeps secrets away from the program: it holds only a stand-in, which the proxy replaces by the secret in
//! requests to the hosts that the secret is for.
//!
//! For that the proxy intercepts the TLS of those hosts with a certificate authority of the sandbox. The
//! authority is created at each start of a program and kept only in memory.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, HeaderName, HeaderValue};
use hyper::http::uri::PathAndQuery;
use hyper::{Request, StatusCode, Uri};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use secrecy::{ExposeSecret as _, SecretString};

use super::dial::Target;
use super::message::Refusal;
use sepal_core::domain::AllowedHosts;

/// The environment variable that gives the authority as PEM to a program's tunnel. The program itself does
/// not see it.
pub const AUTHORITY_VARIABLE: &str = "SEPAL_TUNNEL_AUTHORITY";
/// The port of plain HTTP, into which no secret is inserted.
const HTTP: u16 = 80;
/// The most hosts whose certificate is cached: a wildcard matches any number of hosts.
const MAX_IDENTITIES: usize = 64;

/// A secret and its stand-in.
#[derive(Debug, Clone)]
pub struct EdgeSecret {
    /// The text that the program has instead: letters, digits and `-`, long enough to occur nowhere else.
    pub stand_in: String,
    pub value: SecretString,
    /// The hosts that receive the secret, over `https`.
    pub hosts: AllowedHosts,
}

/// The secrets of one start of a program.
pub struct Secrets {
    all: Vec<EdgeSecret>,
    authority: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
    pem: String,
    /// The TLS settings for the hosts, with the trusted roots.
    client: Arc<ClientConfig>,
    /// The certificates that were issued so far, by host. Never locked across an await.
    identities: Mutex<HashMap<String, Arc<ServerConfig>>>,
}

/// The reason why no authority could be created; does not occur on a working system.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    #[error("an authority for a sandbox cannot be made")]
    Certificate(#[from] rcgen::Error),
    #[error("TLS with hosts cannot be set up")]
    Tls(#[from] rustls::Error),
}

impl fmt::Debug for Secrets {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Secrets").finish_non_exhaustive()
    }
}

impl Secrets {
    /// Creates the authority. Hosts are verified against `roots`.
    pub fn new(
        secrets: Vec<EdgeSecret>,
        roots: impl Into<Arc<RootCertStore>>,
    ) -> Result<Self, AuthorityError> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params.distinguished_name = name("Sepal, for one sandbox");
        let key = KeyPair::generate()?;
        let made = params.self_signed(&key)?;
        let client = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self {
            all: secrets,
            certificate: made.der().clone(),
            pem: made.pem(),
            authority: Issuer::new(params, key),
            client: Arc::new(client),
            identities: Mutex::default(),
        })
    }

    /// The authority's certificate as PEM, which the program has to trust.
    pub fn authority(&self) -> &str {
        &self.pem
    }

    /// Returns true if a secret is inserted into connections to the target.
    pub(super) fn is_for(&self, target: &Target) -> bool {
        self.of(target).next().is_some()
    }

    pub(super) fn client(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.client)
    }

    /// The TLS settings for acting as the host; `None` if no certificate can name it.
    pub(super) fn acting_as(&self, host: &str) -> Option<Arc<ServerConfig>> {
        let mut known = self
            .identities
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(identity) = known.get(host) {
            return Some(Arc::clone(identity));
        }
        let identity = match self.identity(host) {
            Ok(identity) => Arc::new(identity),
            Err(error) => {
                tracing::warn!(egress.host = host, %error, "No certificate for a host");
                return None;
            }
        };
        if known.len() >= MAX_IDENTITIES {
            known.clear();
        }
        known.insert(host.to_owned(), Arc::clone(&identity));
        Some(identity)
    }

    fn identity(&self, host: &str) -> Result<ServerConfig, AuthorityError> {
        let mut params = CertificateParams::new(vec![host.to_owned()])?;
        params.distinguished_name = name(host);
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let own = params.signed_by(&key, &self.authority)?;
        let chain = vec![own.der().clone(), self.certificate.clone()];
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, key)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(config)
    }

    /// Inserts the host's secrets into the headers and the URL of a request.
    pub(super) fn put_in(
        &self,
        request: &mut Request<Incoming>,
        target: &Target,
    ) -> Result<(), Refusal> {
        let (headers, uri) = {
            let (headers, uri) = (request.headers(), request.uri());
            let mut changed = Vec::new();
            for (name, value) in headers {
                changed.push((name.clone(), self.filled(name, value, target)?));
            }
            (changed, self.filled_address(uri, target)?)
        };
        *request.headers_mut() = headers.into_iter().collect();
        *request.uri_mut() = uri;
        Ok(())
    }

    fn filled(
        &self,
        name: &HeaderName,
        value: &HeaderValue,
        target: &Target,
    ) -> Result<HeaderValue, Refusal> {
        let Ok(text) = value.to_str() else {
            return Ok(value.clone());
        };
        let basic = Some(text).filter(|_| *name == AUTHORIZATION);
        let basic = basic.and_then(|text| text.strip_prefix("Basic "));
        let pair = basic.and_then(|pair| String::from_utf8(BASE64.decode(pair).ok()?).ok());
        let filled = match pair {
            Some(pair) => format!("Basic {}", BASE64.encode(self.fill(&pair, target))),
            None => self.fill(text, target),
        };
        let mut filled = HeaderValue::from_str(&filled).map_err(|_| unfit("header"))?;
        filled.set_sensitive(true);
        Ok(filled)
    }

    fn filled_address(&self, uri: &Uri, target: &Target) -> Result<Uri, Refusal> {
        let mut text = uri.to_string();
        for secret in self.of(target) {
            let value = secret.value.expose_secret().as_bytes();
            let escaped: String = url::form_urlencoded::byte_serialize(value).collect();
            text = text.replace(&secret.stand_in, &escaped.replace('+', "%20"));
        }
        let path = PathAndQuery::try_from(text).map_err(|_| unfit("address"))?;
        Ok(Uri::from(path))
    }

    fn fill(&self, text: &str, target: &Target) -> String {
        self.of(target).fold(text.to_owned(), |text, secret| {
            text.replace(&secret.stand_in, secret.value.expose_secret())
        })
    }

    fn of<'a>(&'a self, target: &'a Target) -> impl Iterator<Item = &'a EdgeSecret> {
        let Target { host, port } = target;
        let all = self.all.iter().filter(|_| *port != HTTP);
        all.filter(move |secret| secret.hosts.find(host, *port).is_some())
    }
}

fn name(common: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common);
    name
}

fn unfit(what: &str) -> Refusal {
    Refusal {
        status: StatusCode::BAD_GATEWAY,
        said: format!(
            "a secret of this server has characters that no {what} may have, such as the end of a \
             line; give it again without them."
        ),
    }
}
