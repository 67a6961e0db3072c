//! Decides which requests may reach the gateway: checks the `Host` allow-list and foreign origins, and reads
//! a trusted proxy's forwarding headers about the client. Comparing an origin with the request's own `Host`
//! alone would not stop DNS rebinding, so `Host` is checked against the allow-list first.

mod addresses;

pub use addresses::{AddressShare, Addresses, Crowd};

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use axum::extract::ConnectInfo;
use axum::http::header::{FORWARDED, HOST, ORIGIN};
use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use ipnet::IpNet;
use url::{Origin, Url};

use crate::config;
use crate::tenancy::RelyingParty;

/// The names of this machine, as browsers send them in `Host`.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// The headers that only a proxy sets.
const FORWARDING: [HeaderName; 6] = [
    FORWARDED,
    FORWARDED_FOR,
    FORWARDED_PROTO,
    HeaderName::from_static("x-forwarded-host"),
    HeaderName::from_static("x-forwarded-port"),
    HeaderName::from_static("x-real-ip"),
];
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The host names that this installation answers to, the origins that may call it, and the proxies that it
/// trusts.
#[derive(Debug, Clone)]
pub struct AccessRules {
    hosts: Vec<String>,
    public_url: Option<Url>,
    allowed_origins: Vec<String>,
    trusted_proxies: Vec<IpNet>,
}

/// The parts of a request that tell its origin.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RequestOrigin<'r> {
    /// `Host`, or the authority of the request line; `None` if there is not exactly one.
    pub host: Option<&'r str>,
    /// `Origin`.
    pub origin: Option<&'r str>,
    /// `Sec-Fetch-Site`.
    pub site: Option<&'r str>,
    /// True if the request can change something or opens a stream, which requires a check of its origin.
    pub is_guarded: bool,
}

/// The reason a request is refused. The texts name the setting that would allow it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AccessError {
    /// The request has no `Host`, or more than one.
    #[error("the request names no host, or more than one")]
    NoHost,
    /// The host is not on the allow-list.
    #[error(
        "this installation does not answer to `{0}`; set `runtime.http.public_url` (SPL_PUBLIC_URL) \
         to the address that people use"
    )]
    Host(String),
    /// The request comes from a page of another origin.
    #[error(
        "a page of `{0}` may not do this; add it to `runtime.http.allowed_origins` \
         (SPL_ALLOWED_ORIGINS), or set `runtime.http.public_url` (SPL_PUBLIC_URL) if it is this page"
    )]
    Origin(String),
    /// The request comes from a page of another site that sent no origin.
    #[error(
        "a page of another site may not do this; see `runtime.http.allowed_origins` \
         (SPL_ALLOWED_ORIGINS)"
    )]
    OtherSite,
}

/// The client behind a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// The client's address; behind a trusted proxy, the address that the proxy forwarded.
    pub address: IpAddr,
    /// True if the request comes from this machine and passed no proxy.
    pub is_local: bool,
    /// True if the browser uses https, as far as the gateway can tell.
    pub is_encrypted: bool,
}

/// The way of a request through trusted proxies.
struct Chain {
    /// The last forwarded address that does not belong to a trusted proxy.
    client: IpAddr,
    /// The number of trusted proxies between the client and the gateway.
    proxies: usize,
}

impl AccessRules {
    /// Builds the rules of a gateway that listens on `bind_host`.
    pub fn new(settings: &config::Access, bind_host: &str) -> Self {
        let mut hosts: Vec<String> = LOOPBACK.map(str::to_owned).into();
        let bound = bind_host.trim_matches(['[', ']']);
        if !bound
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_unspecified())
        {
            let is_v6 = bound.contains(':');
            let bound = bound.to_ascii_lowercase();
            hosts.push(if is_v6 { format!("[{bound}]") } else { bound });
        }
        let public = settings.public_url.as_ref().and_then(Url::host_str);
        hosts.extend(public.map(str::to_ascii_lowercase));
        Self {
            hosts,
            public_url: settings.public_url.clone(),
            allowed_origins: settings.allowed_origins.clone(),
            trusted_proxies: settings.trusted_proxies.clone(),
        }
    }

    /// Returns the path of the public address, with a slash at both ends.
    pub fn base_path(&self) -> String {
        let path = self
            .public_url
            .as_ref()
            .map_or("/", Url::path)
            .trim_matches('/');
        if path.is_empty() {
            "/".to_owned()
        } else {
            format!("/{path}/")
        }
    }

    /// Returns the other origins whose pages may call the API.
    pub fn allowed_origins(&self) -> &[String] {
        &self.allowed_origins
    }

    /// Returns an error if the request may not proceed.
    pub fn check(&self, asked: RequestOrigin<'_>) -> Result<(), AccessError> {
        let host = asked.host.ok_or(AccessError::NoHost)?;
        let known = split(host).filter(|(name, _)| self.hosts.iter().any(|known| known == name));
        let Some(host) = known else {
            return Err(AccessError::Host(host.to_owned()));
        };
        if !asked.is_guarded {
            return Ok(());
        }
        match asked.origin {
            Some(origin) if self.is_allowed(origin) || self.is_own(origin, &host) => Ok(()),
            Some(origin) => Err(AccessError::Origin(origin.to_owned())),
            // Browsers omit the origin of some requests, but then send the site; other programs send
            // neither.
            None => match asked.site {
                None | Some("same-origin" | "none") => Ok(()),
                Some(_) => Err(AccessError::OtherSite),
            },
        }
    }

    /// Checks a read request like a write, so that a page of another site cannot make it; for reads that
    /// cost something.
    pub fn check_guarded(&self, parts: &Parts) -> Result<(), AccessError> {
        self.check(RequestOrigin {
            is_guarded: true,
            ..RequestOrigin::of(parts, false)
        })
    }

    /// Returns the WebAuthn relying party id of the request's address, and the origins whose pages may use
    /// its passkeys. `None` for an IP address, because WebAuthn allows only names.
    pub fn relying_party(&self, parts: &Parts) -> Option<RelyingParty> {
        let asked = host_of(parts)?;
        let (name, port) = split(asked)?;
        let is_name = name.parse::<IpAddr>().is_err() && !name.starts_with('[');
        let public = self.public_url.as_ref().filter(|url| {
            let host = url.host_str().map(str::to_ascii_lowercase);
            host.as_deref() == Some(name.as_str())
        });
        let origins = if let Some(public) = public {
            vec![public.origin().ascii_serialization()]
        } else {
            let port = port.map_or(String::new(), |port| format!(":{port}"));
            vec![
                format!("http://{name}{port}"),
                format!("https://{name}{port}"),
            ]
        };
        is_name.then_some(RelyingParty { id: name, origins })
    }

    /// Returns the address of this installation as the request named it, with a slash at its end: the public
    /// address if the request used its host. `None` for a request without a host.
    pub fn address(&self, parts: &Parts) -> Option<Url> {
        let (name, port) = split(host_of(parts)?)?;
        let mut address = match &self.public_url {
            Some(public)
                if public
                    .host_str()
                    .is_some_and(|it| it.eq_ignore_ascii_case(&name)) =>
            {
                public.clone()
            }
            Some(_) | None => {
                let scheme = if self.peer(parts).is_encrypted {
                    "https"
                } else {
                    "http"
                };
                let port = port.map_or(String::new(), |port| format!(":{port}"));
                Url::parse(&format!("{scheme}://{name}{port}/")).ok()?
            }
        };
        address.set_path(&self.base_path());
        Some(address)
    }

    /// True if the URL has the origin of the public address.
    pub fn is_public(&self, url: &Url) -> bool {
        let public = self.public_url.as_ref();
        public.is_some_and(|public| public.origin() == url.origin())
    }

    /// Returns the client behind a request.
    pub fn peer(&self, parts: &Parts) -> Peer {
        let info = parts.extensions.get::<ConnectInfo<SocketAddr>>();
        let unknown = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let socket = info.map_or(unknown, |ConnectInfo(peer)| peer.ip().to_canonical());
        let headers = &parts.headers;
        let is_forwarded = FORWARDING.iter().any(|name| headers.contains_key(name));
        let chain = self.chain(socket, headers);
        Peer {
            address: chain.client,
            is_local: socket.is_loopback() && !is_forwarded,
            is_encrypted: self.is_encrypted(&chain, parts),
        }
    }

    /// Returns the address of the client behind a trusted proxy, or `None` if the request did not come
    /// through one.
    pub fn client_behind_proxy(&self, parts: &Parts) -> Option<IpAddr> {
        let info = parts.extensions.get::<ConnectInfo<SocketAddr>>();
        let socket = info.map(|ConnectInfo(peer)| peer.ip().to_canonical())?;
        let chain = self.chain(socket, &parts.headers);
        (chain.proxies > 0 && !self.is_trusted(chain.client)).then_some(chain.client)
    }

    fn is_allowed(&self, origin: &str) -> bool {
        self.allowed_origins
            .iter()
            .any(|allowed| allowed.eq_ignore_ascii_case(origin))
    }

    /// True if an origin is this installation: under the public address, or under the host that the request
    /// named.
    fn is_own(&self, origin: &str, (name, port): &(String, Option<u16>)) -> bool {
        let Ok(origin) = Url::parse(origin) else {
            return false;
        };
        if !matches!(origin.scheme(), "http" | "https") {
            return false;
        }
        let is_public = |public: &Url| public.origin() == origin.origin();
        if self.public_url.as_ref().is_some_and(is_public) {
            return true;
        }
        let default = if origin.scheme() == "https" { 443 } else { 80 };
        origin.host_str() == Some(name)
            && origin.port_or_known_default() == Some(port.unwrap_or(default))
    }

    /// Follows the forwarded addresses from the connection back to the client.
    fn chain(&self, socket: IpAddr, headers: &HeaderMap) -> Chain {
        let mut named = listed(headers, FORWARDED_FOR);
        let mut chain = Chain {
            client: socket,
            proxies: 0,
        };
        while self.is_trusted(chain.client) {
            chain.proxies += 1;
            match named.pop().and_then(|text| text.parse::<IpAddr>().ok()) {
                Some(before) => chain.client = before.to_canonical(),
                None => break,
            }
        }
        chain
    }

    /// True if the connection's address identifies the client: it is neither a trusted proxy nor loopback,
    /// where proxies and tunnels of this machine come from.
    pub fn is_telling(&self, socket: IpAddr) -> bool {
        let socket = socket.to_canonical();
        !(socket.is_loopback() || self.is_trusted(socket))
    }

    fn is_trusted(&self, address: IpAddr) -> bool {
        self.trusted_proxies
            .iter()
            .any(|net| net.contains(&address))
    }

    fn is_encrypted(&self, chain: &Chain, parts: &Parts) -> bool {
        if chain.proxies > 0 {
            // Each proxy adds the scheme by which it was reached, so the entry of the trusted proxy that the
            // client reached has as many entries after it as there are trusted proxies after that one.
            // Proxies that pass the header on add none; then the first entry counts.
            let schemes = listed(&parts.headers, FORWARDED_PROTO);
            let client = schemes.len().saturating_sub(chain.proxies);
            if let Some(scheme) = schemes.get(client) {
                return scheme.eq_ignore_ascii_case("https");
            }
        }
        // Without the proxy's header, the scheme of the public address tells how clients reach that host.
        let public = self
            .public_url
            .as_ref()
            .filter(|url| url.scheme() == "https");
        let host = host_of(parts).and_then(split);
        match (public.map(Url::origin), host) {
            (Some(Origin::Tuple(_, name, _)), Some((host, _))) => name.to_string() == host,
            _ => false,
        }
    }
}

impl<'r> RequestOrigin<'r> {
    /// Reads a request. `is_socket` is true if the request opens a stream, such as a Socket.IO connection.
    pub fn of(parts: &'r Parts, is_socket: bool) -> Self {
        let text = |name| {
            parts.headers.get(name).map(|value: &HeaderValue| {
                // An unreadable header value matches no origin.
                value.to_str().unwrap_or("unreadable")
            })
        };
        Self {
            host: host_of(parts),
            origin: text(ORIGIN),
            site: text(FETCH_SITE),
            is_guarded: is_socket || !matches!(parts.method.as_str(), "GET" | "HEAD"),
        }
    }
}

/// Returns the entries of a header that each proxy extends, in their order.
fn listed(headers: &HeaderMap, name: HeaderName) -> Vec<&str> {
    let values = headers.get_all(name).into_iter();
    let texts = values.filter_map(|value| value.to_str().ok());
    texts
        .flat_map(|text| text.split(','))
        .map(str::trim)
        .collect()
}

fn host_of(parts: &Parts) -> Option<&str> {
    let mut named = parts.headers.get_all(HOST).iter();
    match (named.next(), named.next()) {
        (Some(host), None) => host.to_str().ok(),
        (None, None) => parts.uri.authority().map(Authority::as_str),
        _ => None,
    }
}

/// Splits an authority into its name (lower case, no final dot) and port.
fn split(authority: &str) -> Option<(String, Option<u16>)> {
    if authority.contains('@') {
        return None;
    }
    let parsed: Authority = authority.parse().ok()?;
    let name = parsed.host().to_ascii_lowercase();
    let name = name.strip_suffix('.').unwrap_or(&name);
    (!name.is_empty()).then(|| (name.to_owned(), parsed.port_u16()))
}

#[cfg(test)]
mod tests;
