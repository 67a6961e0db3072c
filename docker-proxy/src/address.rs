//! Parses and connects to addresses: a Unix socket, or TCP on a network that is not public.

use std::{fmt, io, net::SocketAddr, path::PathBuf, str::FromStr, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpStream, UnixStream, lookup_host},
    time::timeout,
};

/// The time limit for opening a connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// An address, `unix:///a/socket` or `tcp://host:port`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// The absolute path of a socket.
    Unix(PathBuf),
    /// A host and a port.
    Tcp(String),
}

/// An error of an address.
#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    /// The address has neither form.
    #[error("`{0}` is no address; write `unix:///path/to.sock` or `tcp://host:port`")]
    Form(String),
    /// Anybody could reach the address, and the proxy does not authenticate clients.
    #[error(
        "`{0}` is an address that others may reach; listen on a Unix socket, on loopback, or on \
         the private address of a network that only Sepal is in (its name instead of `0.0.0.0`)"
    )]
    Public(SocketAddr),
    /// The name cannot be resolved.
    #[error("the address `{0}` cannot be looked up")]
    Lookup(String, #[source] io::Error),
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let wrong = || AddressError::Form(text.to_owned());
        if let Some(path) = text.strip_prefix("unix://") {
            let path = PathBuf::from(path);
            return path
                .is_absolute()
                .then_some(Self::Unix(path))
                .ok_or_else(wrong);
        }
        let host = text.strip_prefix("tcp://").ok_or_else(wrong)?;
        let (name, port) = host.rsplit_once(':').ok_or_else(wrong)?;
        if name.is_empty() || port.parse::<u16>().is_err() || host.contains('/') {
            return Err(wrong());
        }
        Ok(Self::Tcp(host.to_owned()))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(out, "unix://{}", path.display()),
            Self::Tcp(host) => write!(out, "tcp://{host}"),
        }
    }
}

/// Both directions of a connection.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

impl Address {
    /// Returns the `Host` header of requests to the address.
    pub(crate) fn host(&self) -> &str {
        match self {
            Self::Unix(_) => "docker-proxy",
            Self::Tcp(host) => host,
        }
    }

    /// Opens a connection to the address.
    pub(crate) async fn connect(&self) -> io::Result<Box<dyn Stream>> {
        let connecting = async {
            Ok::<Box<dyn Stream>, io::Error>(match self {
                Self::Unix(path) => Box::new(UnixStream::connect(path).await?),
                Self::Tcp(host) => Box::new(TcpStream::connect(host).await?),
            })
        };
        timeout(CONNECT_LIMIT, connecting)
            .await
            .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
    }
}

/// Returns the name of a host and port, without the port.
pub(crate) fn name(host: &str) -> &str {
    host.rsplit_once(':').map_or(host, |(name, _)| name)
}

/// Resolves a host and port to the address to listen on; fails if it is public.
pub(crate) async fn private(host: &str) -> Result<SocketAddr, AddressError> {
    let lookup = |error| AddressError::Lookup(host.to_owned(), error);
    let mut found = lookup_host(host).await.map_err(lookup)?;
    let address = found
        .next()
        .ok_or_else(|| lookup(io::ErrorKind::NotFound.into()))?;
    let is_private = match address.ip() {
        std::net::IpAddr::V4(ip) => ip.is_loopback() || ip.is_private(),
        std::net::IpAddr::V6(ip) => ip.is_loopback() || ip.is_unique_local(),
    };
    is_private
        .then_some(address)
        .ok_or(AddressError::Public(address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read_and_nothing_else() {
        let check = |text: &str| text.parse::<Address>().map(|it| it.to_string());
        for text in [
            "unix:///run/docker.sock",
            "tcp://127.0.0.1:2375",
            "tcp://[::1]:1",
        ] {
            assert_eq!(check(text).unwrap(), text);
        }
        for text in [
            "/run/x",
            "unix://run/x",
            "tcp://h",
            "tcp://:1",
            "tcp://h:x",
            "http://h:1",
            "tcp://h/p:1",
        ] {
            assert!(check(text).is_err(), "{text}");
        }
    }

    #[tokio::test]
    async fn nobody_listens_where_strangers_are() {
        for host in ["127.0.0.1:1", "10.1.2.3:1", "[::1]:1", "[fd00::1]:1"] {
            assert!(private(host).await.is_ok(), "{host}");
        }
        for host in ["0.0.0.0:1", "8.8.8.8:1", "[::]:1"] {
            assert!(
                matches!(private(host).await, Err(AddressError::Public(_))),
                "{host}"
            );
        }
    }
}
