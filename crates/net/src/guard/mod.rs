//! Blocks requests from tenant-supplied addresses into our own networks (SSRF).
//!
//! A tenant may set the address of a provider or server. Without a guard, such an address could reach the
//! machine itself, its neighbors, and a cloud's metadata service. The check happens where the connection is
//! made: a name is resolved once, every address is checked, and only these addresses are connected to, so DNS
//! rebinding between check and use gains nothing.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;

use ipnet::IpNet;
use reqwest::Proxy;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::{Host, Url};

/// The suffix of names that stand for refused literal addresses; they never leave our resolver.
const REFUSED: &str = ".refused.invalid";

/// The guard blocked a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{host}` is at a private or reserved address, which only the installation may allow \
     (`runtime.outgoing.allow`, SPL_OUTGOING_ALLOW)"
)]
pub struct BlockedHost {
    /// The host as the request named it.
    pub host: String,
}

/// The rules for reachable addresses. Clones share the exceptions.
#[derive(Debug, Clone, Default)]
pub struct Guard(Arc<[IpNet]>);

impl Guard {
    /// Creates a guard with the operator's exceptions.
    pub fn new(allow: Vec<IpNet>) -> Self {
        Self(allow.into())
    }

    /// Checks a URL when it is entered, after resolving its name, to give a clear answer at once. The binding
    /// check is that of [`super::guarded_client`].
    pub async fn check(&self, url: &Url) -> Result<(), BlockedHost> {
        match url.host() {
            None => Ok(()),
            Some(Host::Ipv4(address)) => self.judge(&address.to_string(), address.into()),
            Some(Host::Ipv6(address)) => self.judge(&address.to_string(), address.into()),
            Some(Host::Domain(name)) => match look_up(name.to_owned()).await {
                Ok(found) => self.judge_all(name, &found),
                // A name without an address reaches nothing.
                Err(_) => Ok(()),
            },
        }
    }

    /// Checks that every address of the host may be reached.
    pub(crate) fn judge_all(&self, host: &str, found: &[SocketAddr]) -> Result<(), BlockedHost> {
        found
            .iter()
            .try_for_each(|address| self.judge(host, address.ip()))
    }

    fn judge(&self, host: &str, address: IpAddr) -> Result<(), BlockedHost> {
        let canonical = address.to_canonical();
        if self.0.iter().any(|net| net.contains(&canonical)) || is_public(address) {
            return Ok(());
        }
        Err(BlockedHost {
            host: host.to_owned(),
        })
    }

    /// The resolver of a guarded client.
    pub(super) fn resolver(&self) -> impl Resolve + 'static {
        Resolver {
            guard: self.clone(),
            look_up: Box::new(|name| Box::pin(look_up(name))),
        }
    }

    /// Sends refused literal addresses to our resolver, in the form of a proxy. Literal addresses never reach
    /// a resolver otherwise.
    pub(super) fn detour(&self) -> Proxy {
        let guard = self.clone();
        Proxy::custom(move |url| {
            let address: IpAddr = match url.host()? {
                Host::Ipv4(address) => address.into(),
                Host::Ipv6(address) => address.into(),
                Host::Domain(_) => return None,
            };
            guard.judge("", address).err()?;
            let name = address.to_string().replace(':', "-");
            Some(format!("http://{name}{REFUSED}"))
        })
    }
}

/// Finds the guard's refusal among the causes of an error.
pub fn blocked<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a BlockedHost> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(blocked) = error.downcast_ref() {
            return Some(blocked);
        }
        next = error.source();
    }
    None
}

type LookUp = Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send>>;

/// Resolves a name, checks every address, and returns exactly the checked addresses.
struct Resolver {
    guard: Guard,
    look_up: Box<dyn Fn(String) -> LookUp + Send + Sync>,
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let host = name.as_str().to_owned();
        if let Some(address) = host.strip_suffix(REFUSED) {
            let host = address.replace('-', ":");
            return Box::pin(async { Err(BlockedHost { host }.into()) });
        }
        let (guard, found) = (self.guard.clone(), (self.look_up)(host.clone()));
        Box::pin(async move {
            let found = found.await?;
            guard.judge_all(&host, &found)?;
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

async fn look_up(name: String) -> io::Result<Vec<SocketAddr>> {
    Ok(tokio::net::lookup_host((name, 0)).await?.collect())
}

fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// False for addresses in IANA's special-purpose registry, and for Azure's metadata address.
fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let is_special = match (a, b, c) {
        (0 | 10 | 127 | 224.., ..)
        | (169, 254, _)
        | (192, 168, _)
        | (192, 0, 0 | 2)
        | (192, 88, 99)
        | (198, 18 | 19, _)
        | (198, 51, 100)
        | (203, 0, 113)
        | (100, 64..=127, _)
        | (172, 16..=31, _) => true,
        _ => address == Ipv4Addr::new(168, 63, 129, 16),
    };
    !is_special
}

/// True for global unicast addresses only; an embedded IPv4 address is checked as such.
fn is_public_v6(address: Ipv6Addr) -> bool {
    let inner = |high: u16, low: u16| {
        let bits = (u32::from(high) << 16) | u32::from(low);
        is_public_v4(Ipv4Addr::from_bits(bits))
    };
    match address.segments() {
        // Addresses translated by NAT64 or carried by 6to4.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => inner(high, low),
        // Special protocols such as Teredo, documentation, and segment routing.
        [0x2001, 0..=0x1ff | 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => false,
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests;
