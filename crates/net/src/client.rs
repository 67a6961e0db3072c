//! HTTP clients: one for addresses of the operator, one for addresses that a tenant named.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use reqwest::{Certificate, Client, ClientBuilder, NoProxy, redirect};
use rustls::RootCertStore;

use crate::Guard;

/// How long an idle connection is kept for the next request.
const POOL_IDLE: Duration = Duration::from_secs(90);
/// Idle connections per host.
const POOL_IDLE_PER_HOST: usize = 64;
/// How often an HTTP/2 connection is asked whether it still lives.
const HTTP2_PING: Duration = Duration::from_secs(20);
/// How long it may take to say so.
const HTTP2_PING_TIMEOUT: Duration = Duration::from_secs(10);

/// How the outside is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// How long a connection may take to open.
    pub connect_timeout: Duration,
    /// How long a peer may be silent; `None` = whoever asks looks after that. There is no limit on a
    /// whole answer: streams may be long.
    pub read_timeout: Option<Duration>,
    /// A proxy for everything, for example `http://proxy:3128`. The environment is not asked.
    pub proxy: Option<String>,
    /// Hosts that are reached without it, comma-separated.
    pub no_proxy: Option<String>,
    /// What peers are told who we are.
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

/// Why no client could be built.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The proxy's address cannot be read.
    #[error("`{0}` is no address of a proxy")]
    Proxy(String, #[source] reqwest::Error),
    /// TLS or the user agent cannot be set up.
    #[error("an HTTP client cannot be set up")]
    Client(#[source] reqwest::Error),
}

/// Chooses ring for TLS in the whole process. Call it first thing; calling it again does nothing.
pub fn install_tls() {
    // An error only says that a provider is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// Builds a pooled client. Share it: cloning is cheap and keeps the pool.
pub fn client(settings: &Settings) -> Result<Client, Error> {
    let mut client = builder(settings);
    if let Some(address) = &settings.proxy {
        // The address may hold a password, so the text names only what is safe to show.
        let all = reqwest::Proxy::all(address).map_err(|e| Error::Proxy(shown(address), e))?;
        let except = settings.no_proxy.as_deref().and_then(NoProxy::from_string);
        client = client.proxy(all.no_proxy(except));
    }
    client.build().map_err(Error::Client)
}

/// Builds a pooled client that connects only to what the guard allows, whatever address or name it
/// is given; [`blocked`] tells its refusals. It goes through no proxy: the proxy would resolve the
/// names, and nobody could judge them.
pub fn guarded_client(settings: &Settings, guard: &Guard) -> Result<Client, Error> {
    builder(settings)
        .dns_resolver(Arc::new(guard.resolver()))
        .proxy(guard.detour())
        .build()
        .map_err(Error::Client)
}

/// The authorities that this system trusts, read once: left to itself every client reads hundreds of
/// files. A change counts from the next start on.
static AUTHORITIES: LazyLock<Authorities> = LazyLock::new(|| {
    let found = rustls_native_certs::load_native_certs();
    // One that cannot be read must not keep the others from being used.
    let mut roots = RootCertStore::empty();
    let all = found.certs.into_iter();
    let readable = all.filter(|authority| roots.add(authority.clone()).is_ok());
    let certificates: Vec<_> = readable
        .filter_map(|authority| Certificate::from_der(&authority).ok())
        .collect();
    // A machine without them can serve people all the same: only peers over https are refused then,
    // because none of them can be believed.
    if certificates.is_empty() {
        tracing::warn!(
            errors = ?found.errors,
            "The certificates of this system cannot be read, so nothing is reached over https; \
             install them: `apt-get install ca-certificates`"
        );
    }
    Authorities {
        roots,
        certificates,
    }
});

/// The same authorities as each library wants them.
struct Authorities {
    roots: RootCertStore,
    certificates: Vec<Certificate>,
}

/// The authorities that this system trusts.
pub fn authorities() -> RootCertStore {
    AUTHORITIES.roots.clone()
}

/// The authorities that this system trusts, as PEM: for programs in sandboxes, which see no files of
/// the system's. Read anew each time; empty where the system has none.
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
        .tls_certs_only(AUTHORITIES.certificates.iter().cloned())
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

/// What lies below an error of the HTTP client, outermost first; what repeats the one above is
/// left out.
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

/// The address without what stands before the `@`.
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
