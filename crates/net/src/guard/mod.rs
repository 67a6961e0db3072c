//! Keeps requests to addresses that tenants name out of our own networks.
//!
//! A tenant may say where a provider or server is. Without a guard that reaches the machine itself,
//! its neighbours, and the metadata service of a cloud. The check stands where the connection is
//! made: a name is resolved once, every address of it is judged, and only those are connected to,
//! so that an answer that changes between check and use (DNS rebinding) gains nothing.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;

use ipnet::IpNet;
use reqwest::Proxy;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::{Host, Url};

/// Where a refused literal address is sent instead: a name that never leaves our resolver.
const REFUSED: &str = ".refused.invalid";

/// A request was kept in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{host}` is at a private or reserved address, which only the installation may allow \
     (`runtime.outgoing.allow`, SPL_OUTGOING_ALLOW)"
)]
pub struct Blocked {
    /// The host as it was named.
    pub host: String,
}

/// Which addresses may be reached. Clones share the exceptions.
#[derive(Debug, Clone, Default)]
pub struct Guard(Arc<[IpNet]>);

impl Guard {
    /// A guard with exceptions of the operator.
    pub fn new(allow: Vec<IpNet>) -> Self {
        Self(allow.into())
    }

    /// Whether the address may be named at all; a name is looked up. This is for a clear answer to
    /// whoever types it: what holds is the check of [`super::guarded_client`].
    pub async fn check(&self, url: &Url) -> Result<(), Blocked> {
        match url.host() {
            None => Ok(()),
            Some(Host::Ipv4(address)) => self.judge(&address.to_string(), address.into()),
            Some(Host::Ipv6(address)) => self.judge(&address.to_string(), address.into()),
            Some(Host::Domain(name)) => match look_up(name.to_owned()).await {
                Ok(found) => self.judge_all(name, &found),
                // A name that leads nowhere leads to nothing of ours.
                Err(_) => Ok(()),
            },
        }
    }

    /// Whether every one of the addresses of that host may be reached.
    pub(crate) fn judge_all(&self, host: &str, found: &[SocketAddr]) -> Result<(), Blocked> {
        found
            .iter()
            .try_for_each(|address| self.judge(host, address.ip()))
    }

    fn judge(&self, host: &str, address: IpAddr) -> Result<(), Blocked> {
        let canonical = address.to_canonical();
        if self.0.iter().any(|net| net.contains(&canonical)) || is_public(address) {
            return Ok(());
        }
        Err(Blocked {
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

    /// Literal addresses never reach a resolver; this leads the refused ones to ours, as the proxy
    /// that they would have to go through.
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

/// The guard's refusal below a failed request, if that is why it failed.
pub fn blocked<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a Blocked> {
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

/// Resolves, judges every address, and hands on exactly those that it judged.
struct Resolver {
    guard: Guard,
    look_up: Box<dyn Fn(String) -> LookUp + Send + Sync>,
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let host = name.as_str().to_owned();
        if let Some(address) = host.strip_suffix(REFUSED) {
            let host = address.replace('-', ":");
            return Box::pin(async { Err(Blocked { host }.into()) });
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

/// The special-purpose registry of IANA, and the metadata address of Azure.
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

/// Global unicast only; an IPv4 address inside is judged as one.
fn is_public_v6(address: Ipv6Addr) -> bool {
    let inner = |high: u16, low: u16| {
        let bits = (u32::from(high) << 16) | u32::from(low);
        is_public_v4(Ipv4Addr::from_bits(bits))
    };
    match address.segments() {
        // Translated by NAT64, or carried by 6to4.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => inner(high, low),
        // Protocols (Teredo and others), documentation, segment routing.
        [0x2001, 0..=0x1ff | 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => false,
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests;
