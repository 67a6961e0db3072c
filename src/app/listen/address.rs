//! Binds the gateway's address, and explains if it is in use.

use std::io;
use std::net::SocketAddr;

use anyhow::Context as _;
use tokio::net::{TcpListener, lookup_host};

use crate::config::Settings;
use crate::jobs::Pool;

/// The number of ports above the taken one that are tried for the suggestion.
const SUGGEST_WITHIN: u16 = 100;

/// The port is taken.
#[derive(Debug, thiserror::Error)]
#[error("port {port} is taken by {holder}; {}", suggestion(*free))]
pub struct AddressInUse {
    pub port: u16,
    pub holder: String,
    /// The next free port.
    pub free: Option<u16>,
}

fn suggestion(free: Option<u16>) -> String {
    match free {
        Some(port) => {
            format!("port {port} is free: start with `--port {port}`, or set PORT={port}")
        }
        None => "choose another one with `--port`".to_owned(),
    }
}

/// Binds the address of the settings.
pub async fn bind(settings: &Settings) -> anyhow::Result<TcpListener> {
    let http = &settings.runtime.transports.http;
    let mut last = None;
    for address in lookup_host((http.host.as_str(), http.port))
        .await
        .with_context(|| format!("the name `{}` leads to no address here", http.host))?
    {
        match TcpListener::bind(address).await {
            Ok(listener) => return Ok(listener),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                return Err(in_use(address).await.into());
            }
            Err(error) => last = Some(error),
        }
    }
    let error = last.unwrap_or_else(|| io::Error::other("the name leads to no address"));
    Err(anyhow::Error::new(error)
        .context(format!("cannot listen on `{}:{}`", http.host, http.port)))
}

async fn in_use(address: SocketAddr) -> AddressInUse {
    let port = address.port();
    let holder = Pool::new("ports", 1).run(move || holder_of(port)).await;
    let holder = holder.unwrap_or_default();
    let mut free = None;
    for candidate in (port.saturating_add(1)..=port.saturating_add(SUGGEST_WITHIN)).take(100) {
        if TcpListener::bind(SocketAddr::new(address.ip(), candidate))
            .await
            .is_ok()
        {
            free = Some(candidate);
            break;
        }
    }
    AddressInUse { port, holder, free }
}

/// Names the program that listens there, as far as this user may see it.
fn holder_of(port: u16) -> String {
    match listeners::get_process_by_port(port, listeners::Protocol::TCP) {
        Ok(process) => format!("`{}` (process {})", process.name, process.pid),
        Err(_) => "a program of another user".to_owned(),
    }
}

/// Returns the address that people open.
pub fn base_url(settings: &Settings, address: SocketAddr) -> String {
    if let Some(url) = &settings.runtime.http.public_url {
        return url.as_str().trim_end_matches('/').to_owned();
    }
    let host = &settings.runtime.transports.http.host;
    let is_any = host
        .parse::<std::net::IpAddr>()
        .is_ok_and(|ip| ip.is_unspecified());
    let host = match host.as_str() {
        _ if is_any => "localhost".to_owned(),
        host if host.contains(':') => format!("[{host}]"),
        host => host.to_owned(),
    };
    format!("http://{host}:{}", address.port())
}
