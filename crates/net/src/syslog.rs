//! Sends messages to a syslog receiver: RFC 5424 over TCP (RFC 6587) or TLS (RFC 5425).

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use url::Url;

use crate::client::authorities;

/// The time that one batch may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Facility 13 (log audit), severity 6 (informational).
const PRIORITY: u8 = 13 * 8 + 6;

/// A message for the receiver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyslogMessage {
    /// The time of the event (RFC 3339).
    pub at: String,
    /// The message's type, without spaces (`MSGID`).
    pub kind: String,
    /// One line.
    pub text: String,
}

/// The reason messages were not sent.
#[derive(Debug, thiserror::Error)]
pub enum SyslogError {
    /// The address is invalid.
    #[error("the address of a syslog receiver is `tls://host:6514` or `tcp://host:601`")]
    Address,
    /// The receiver cannot be reached, or broke off.
    #[error("the syslog receiver `{0}` cannot be reached")]
    Away(String, #[source] std::io::Error),
    /// The receiver did not take the messages in time.
    #[error("the syslog receiver `{0}` did not answer in time")]
    Slow(String),
}

/// A syslog receiver. Cheap to clone.
#[derive(Clone)]
pub struct Syslog {
    host: String,
    port: u16,
    tls: Option<TlsConnector>,
}

impl Syslog {
    /// Reads the address of a receiver: `tls://host` (port 6514) or `tcp://host` (port 601).
    pub fn parse(address: &str) -> Result<Self, SyslogError> {
        let url = Url::parse(address).map_err(|_| SyslogError::Address)?;
        let host = url.host_str().filter(|host| !host.is_empty());
        let host = host.ok_or(SyslogError::Address)?.to_owned();
        let (usual, tls) = match url.scheme() {
            "tls" => {
                let config = ClientConfig::builder()
                    .with_root_certificates(authorities())
                    .with_no_client_auth();
                (6514, Some(TlsConnector::from(Arc::new(config))))
            }
            "tcp" => (601, None),
            _ => return Err(SyslogError::Address),
        };
        Ok(Self {
            host,
            port: url.port().unwrap_or(usual),
            tls,
        })
    }

    /// Sends messages over a connection of their own. A receiver acknowledges nothing: an error means that
    /// some may have arrived.
    pub async fn send(&self, messages: &[SyslogMessage]) -> Result<(), SyslogError> {
        let frames = messages.iter().fold(String::new(), |mut frames, message| {
            let text = line(message);
            // Writing into a `String` never fails.
            let _ = write!(frames, "{} {text}", text.len());
            frames
        });
        let name = format!("{}:{}", self.host, self.port);
        match tokio::time::timeout(TIMEOUT, self.write(frames.as_bytes())).await {
            Ok(written) => written.map_err(|error| SyslogError::Away(name, error)),
            Err(_) => Err(SyslogError::Slow(name)),
        }
    }

    async fn write(&self, frames: &[u8]) -> std::io::Result<()> {
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await?;
        match &self.tls {
            Some(tls) => {
                let name = ServerName::try_from(self.host.clone());
                let name = name.map_err(std::io::Error::other)?;
                write_all(tls.connect(name, stream).await?, frames).await
            }
            None => write_all(stream, frames).await,
        }
    }
}

async fn write_all(mut stream: impl AsyncWrite + Unpin, frames: &[u8]) -> std::io::Result<()> {
    stream.write_all(frames).await?;
    stream.flush().await?;
    stream.shutdown().await
}

/// A message in the form of RFC 5424, without a host name and structured data.
fn line(message: &SyslogMessage) -> String {
    let SyslogMessage { at, kind, text } = message;
    let text = text.replace(['\n', '\r'], " ");
    let pid = std::process::id();
    format!("<{PRIORITY}>1 {at} - sepal {pid} {kind} - {text}")
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;
    use tokio::net::TcpListener;

    use super::{Syslog, SyslogError, SyslogMessage};

    #[tokio::test]
    async fn messages_arrive_framed_and_in_one_line_each() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let syslog = Syslog::parse(&format!("tcp://127.0.0.1:{port}")).unwrap();
        let messages = ["one", "tw\no"].map(|text| SyslogMessage {
            at: "2026-11-29T07:00:00Z".to_owned(),
            kind: "user.added".to_owned(),
            text: text.to_owned(),
        });
        let (sent, read) = tokio::join!(syslog.send(&messages), async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut text = String::new();
            stream.read_to_string(&mut text).await.unwrap();
            text
        });
        sent.unwrap();
        let pid = std::process::id();
        let head = format!("<110>1 2026-11-29T07:00:00Z - sepal {pid} user.added - ");
        let expected = format!("{} {head}one{} {head}tw o", head.len() + 3, head.len() + 4);
        assert_eq!(read, expected);
    }

    #[tokio::test]
    async fn an_address_is_checked_and_an_absent_receiver_is_an_error() {
        for wrong in ["", "host", "udp://host", "tcp://", "https://host"] {
            let parsed = Syslog::parse(wrong);
            assert!(matches!(parsed, Err(SyslogError::Address)), "{wrong}");
        }
        let gone = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = gone.local_addr().unwrap().port();
        drop(gone);
        let syslog = Syslog::parse(&format!("tcp://127.0.0.1:{port}")).unwrap();
        assert!(matches!(syslog.send(&[]).await, Err(SyslogError::Away(..))));
    }
}
