//! Checks that a tunnel starts with a TLS `ClientHello` for the requested host. Many hosts share an address,
//! and the name in the `ClientHello` selects one of them.

use std::io;

use rustls::server::Acceptor;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::time::timeout;

use super::HEAD_LIMIT;
use super::dial::DialRefusal;
use sepal_core::domain::egress::canonical_name;

/// The most bytes of a `ClientHello`; one with large keys has two or three KiB.
const MAX_HELLO_BYTES: usize = 64 << 10;
/// The first byte of a TLS handshake (RFC 8446, 5.1).
const HANDSHAKE: u8 = 22;
/// The fatal alert `unrecognized_name` (RFC 6066, 3), which clients show as a message.
pub(super) const UNRECOGNIZED_NAME: [u8; 7] = [21, 3, 3, 0, 2, 2, 112];

/// Reads the program's `ClientHello` and returns its bytes, to be passed on; empty if the program
/// disconnected without sending anything.
pub(super) async fn read_hello(
    program: &mut (impl AsyncRead + Unpin),
    host: &str,
) -> Result<Vec<u8>, DialRefusal> {
    let reading = timeout(HEAD_LIMIT, read(program, host));
    reading.await.unwrap_or(Err(DialRefusal::NotTls))
}

async fn read(program: &mut (impl AsyncRead + Unpin), host: &str) -> Result<Vec<u8>, DialRefusal> {
    let mut acceptor = Acceptor::default();
    let mut hello = Vec::new();
    let mut chunk = vec![0; 4 << 10];
    loop {
        let count = program.read(&mut chunk).await.unwrap_or(0);
        let read = chunk.get(..count).unwrap_or_default();
        if read.is_empty() {
            return if hello.is_empty() {
                Ok(hello)
            } else {
                Err(DialRefusal::NotTls)
            };
        }
        hello.extend_from_slice(read);
        if hello.first() != Some(&HANDSHAKE) || hello.len() > MAX_HELLO_BYTES {
            return Err(DialRefusal::NotTls);
        }
        if feed(&mut acceptor, read).is_err() {
            return Err(DialRefusal::NotTls);
        }
        let accepted = acceptor.accept().map_err(|_| DialRefusal::NotTls)?;
        let Some(accepted) = accepted else { continue };
        let client = accepted.client_hello();
        let name = client.server_name().ok_or(DialRefusal::Nameless)?;
        if canonical_name(name).is_ok_and(|name| name == host) {
            return Ok(hello);
        }
        return Err(DialRefusal::OtherName(name.to_owned()));
    }
}

fn feed(acceptor: &mut Acceptor, mut read: &[u8]) -> io::Result<()> {
    while !read.is_empty() {
        if acceptor.read_tls(&mut read)? == 0 {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rustls::{ClientConfig, ClientConnection, RootCertStore};

    use super::{DialRefusal, read_hello};

    /// The `ClientHello` of a client that connects to the host.
    pub(in crate::egress) fn hello(name: &str) -> Vec<u8> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(RootCertStore::empty())
            .with_no_client_auth();
        let name = name.to_owned().try_into().unwrap();
        let mut client = ClientConnection::new(Arc::new(config), name).unwrap();
        let mut bytes = Vec::new();
        client.write_tls(&mut bytes).unwrap();
        bytes
    }

    async fn read(mut said: &[u8], host: &str) -> Result<Vec<u8>, String> {
        read_hello(&mut said, host)
            .await
            .map_err(|refused: DialRefusal| refused.to_string())
    }

    #[tokio::test]
    async fn only_tls_for_the_host_that_was_named_begins_a_tunnel() {
        let own = hello("api.example.com");
        assert_eq!(read(&own, "api.example.com").await, Ok(own.clone()));
        assert_eq!(read(b"", "api.example.com").await, Ok(Vec::new()));
        let other = read(&hello("evil.example.net"), "api.example.com")
            .await
            .unwrap_err();
        assert!(
            other.contains("another host, `evil.example.net`"),
            "{other}"
        );
        let nameless = read(&hello("10.0.0.1"), "api.example.com")
            .await
            .unwrap_err();
        assert!(nameless.contains("names no host"), "{nameless}");
        let cut = own.get(..40).unwrap();
        for said in [
            b"GET / HTTP/1.1\r\nHost: evil.example.net\r\n\r\n",
            b"SSH-2.0-x\r\n".as_slice(),
            cut,
        ] {
            let refused = read(said, "api.example.com").await.unwrap_err();
            assert!(refused.contains("tcp://host:port"), "{refused}");
        }
    }
}
