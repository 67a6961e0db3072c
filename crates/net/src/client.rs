//! Builds HTTP clients: one for addresses of the operator, one for addresses that a tenant set.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use reqwest::{Client, ClientBuilder, NoProxy, redirect};
use rustls::{ClientConfig, RootCertStore};

use crate::Guard;

/// The time that an idle connection is kept for the next request.
const POOL_IDLE: Duration = Duration::from_secs(90);
/// The most idle connections per host.
const POOL_IDLE_PER_HOST: usize = 64;
/// The interval of HTTP/2 keep-alive pings.
const HTTP2_PING: Duration = Duration::from_secs(20);
/// The time limit for the answer to a ping.
const HTTP2_PING_TIMEOUT: Duration = Duration::from_secs(10);

/// The settings of outgoing connections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The time limit for opening a connection.
    pub connect_timeout: Duration,
    /// The longest silence of a peer; `None` = the caller applies its own limit. A complete response has no
    /// limit, because streams may be long.
    pub read_timeout: Option<Duration>,
    /// A proxy for all requests, for example `http://proxy:3128`. Environment variables are ignored.
    pub proxy: Option<String>,
    /// Hosts that are reached without the proxy, comma-separated.
    pub no_proxy: Option<String>,
    /// The user agent that peers see.
    pub user_agent: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            read_timeout: Some(Duration::from_mins(5)),
            proxy: None,
            no_proxy: None,
            user_agent: concat!("sepal/", env!("CARGO_PKG_VERSION")).to_owned(),
        }
    }
}

/// The reason why a client could not be built.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The proxy's address is invalid.
    #[error("`{0}` is no address of a proxy")]
    Proxy(String, #[source] reqwest::Error),
    /// TLS or the user agent cannot be set up.
    #[error("an HTTP client cannot be set up")]
    Client(#[source] reqwest::Error),
}

/// Installs ring as the TLS provider of the whole process; further calls have no effect. The clients of this
/// module do so by themselves, other users of rustls have to.
pub fn install_tls() {
    // The only error is that a provider is already installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// Builds a pooled client. Share it: cloning is cheap and keeps the pool.
pub fn client(settings: &Settings) -> Result<Client, Error> {
    let mut client = builder(settings);
    if let Some(address) = &settings.proxy {
        // The address may hold a password, so the error shows only the part after it.
        let all = reqwest::Proxy::all(address).map_err(|e| Error::Proxy(shown(address), e))?;
        let except = settings.no_proxy.as_deref().and_then(NoProxy::from_string);
        client = client.proxy(all.no_proxy(except));
    }
    client.build().map_err(Error::Client)
}

/// Builds a pooled client that connects only to addresses that the guard allows; [`blocked`] extracts its
/// refusals. It uses no proxy, because a proxy would resolve the names itself and the guard could not check
/// the addresses.
pub fn guarded_client(settings: &Settings, guard: &Guard) -> Result<Client, Error> {
    builder(settings)
        .dns_resolver(Arc::new(guard.resolver()))
        .proxy(guard.detour())
        .build()
        .map_err(Error::Client)
}

/// The certificate authorities that this system trusts, read once: otherwise every client would read hundreds
/// of files. Changes take effect at the next start.
static AUTHORITIES: LazyLock<Arc<RootCertStore>> = LazyLock::new(|| {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    // An invalid certificate must not prevent the use of the others.
    roots.add_parsable_certificates(found.certs);
    // Without certificates the server still works for people; only https connections to peers fail, because
    // no peer can be verified.
    if roots.is_empty() {
        tracing::warn!(
            errors = ?found.errors,
            "The certificates of this system cannot be read, so nothing is reached over https; \
             install them: `apt-get install ca-certificates`"
        );
    }
    Arc::new(roots)
});

/// The certificate authorities that this system trusts.
pub fn authorities() -> Arc<RootCertStore> {
    AUTHORITIES.clone()
}

/// Returns the TLS settings of one client. All clients share the authorities, because the HTTP library would parse
/// each certificate again for every client. No client shares its TLS sessions with another.
fn tls() -> ClientConfig {
    install_tls();
    let builder = ClientConfig::builder().with_root_certificates(authorities());
    let mut config = builder.with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    config
}

/// The certificate authorities that this system trusts, as PEM, for programs in sandboxes, which cannot read
/// the system's files. Read again at each call; empty if the system has none.
pub fn authorities_pem() -> String {
    use base64::Engine as _;
    const LINE: usize = 64;
    let mut pem = String::new();
    for authority in rustls_native_certs::load_native_certs().certs {
        let body = base64::engine::general_purpose::STANDARD.encode(&authority);
        pem.push_str("-----BEGIN CERTIFICATE-----\n");
        let mut rest = body.as_str();
        while let Some((line, more)) = rest.split_at_checked(LINE) {
            pem.push_str(line);
            pem.push('\n');
            rest = more;
        }
        if !rest.is_empty() {
            pem.push_str(rest);
            pem.push('\n');
        }
        pem.push_str("-----END CERTIFICATE-----\n");
    }
    pem
}

fn builder(settings: &Settings) -> ClientBuilder {
    let builder = match settings.read_timeout {
        Some(silence) => Client::builder().read_timeout(silence),
        None => Client::builder(),
    };
    builder
        .tls_backend_preconfigured(tls())
        .no_proxy()
        .user_agent(&settings.user_agent)
        .connect_timeout(settings.connect_timeout)
        .redirect(redirect::Policy::none())
        .tcp_nodelay(true)
        .pool_idle_timeout(POOL_IDLE)
        .pool_max_idle_per_host(POOL_IDLE_PER_HOST)
        .http2_adaptive_window(true)
        .http2_keep_alive_interval(HTTP2_PING)
        .http2_keep_alive_timeout(HTTP2_PING_TIMEOUT)
        .http2_keep_alive_while_idle(true)
}

/// The chain of causes of an HTTP client's error, outermost first, without repetitions.
pub fn below(error: &reqwest::Error) -> String {
    let mut texts: Vec<String> = Vec::new();
    let mut next = std::error::Error::source(error);
    while let Some(error) = next {
        let said = error.to_string();
        if texts.last().is_none_or(|last| !last.contains(&said)) {
            texts.push(said);
        }
        next = error.source();
    }
    if texts.is_empty() {
        return "no connection".to_owned();
    }
    texts.join(": ")
}

/// The address without the credentials before the `@`.
fn shown(address: &str) -> String {
    address
        .rsplit_once('@')
        .map_or(address, |(_, host)| host)
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::{Error, Settings, client, install_tls};

    #[test]
    fn the_defaults_give_a_client_and_a_broken_proxy_is_named_without_its_password() {
        install_tls();
        install_tls();
        assert!(client(&Settings::default()).is_ok());
        let broken = Settings {
            proxy: Some("http://me:secret@ not a host".to_owned()),
            ..Settings::default()
        };
        let error = client(&broken).unwrap_err();
        assert!(matches!(error, Error::Proxy(..)));
        assert!(!error.to_string().contains("secret"), "{error}");
    }
}
