//! Speaks OpenID Connect: sends browsers to a company's own sign-in, and checks what comes back.
//!
//! Start at [`Provider`]. It reads the provider's metadata and keys, makes the address to which a browser is
//! sent, redeems codes, and checks ID tokens and logout tokens. It stores nothing and decides nothing about people.

mod error;
#[cfg(test)]
mod fuzz;
mod http;
mod logout;
mod provider;

pub use error::Error;
pub use logout::LogoutToken;
pub use provider::{Answer, Claims, Demand, Provider, ProviderSettings, Secrets};

/// Returns true if tokens and secrets may be sent to this address: by https, or within this machine.
pub fn is_protected(url: &url::Url) -> bool {
    let is_local = match url.host() {
        Some(url::Host::Domain(name)) => name.eq_ignore_ascii_case("localhost"),
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    match url.scheme() {
        "https" => true,
        "http" => is_local,
        _ => false,
    }
}
