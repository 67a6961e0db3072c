//! `sepal health`: the probe of container engines, so that an image needs no other HTTP client.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::process::ExitCode;
use std::time::Duration;

use crate::config::LoadedSettings;
use anyhow::{Context as _, bail};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::say;

/// The time limit for the server's response.
const PATIENCE: Duration = Duration::from_secs(5);
/// The maximum size of a response, which is far shorter normally.
const MAX_ANSWER_BYTES: u64 = 64 << 10;

/// Prints the response of `/readyz`; succeeds if the server is ready.
pub(super) async fn ask(loaded: &LoadedSettings) -> anyhow::Result<ExitCode> {
    let http = &loaded.settings.runtime.transports.http;
    let host = reachable(&http.host);
    let answer = timeout(PATIENCE, readiness(&host, http.port))
        .await
        .with_context(|| format!("`{host}:{}` does not answer in time", http.port))?
        .with_context(|| format!("no server answers at `{host}:{}`", http.port))?;
    let (code, body) = parse(&answer)?;
    say(body);
    Ok(if code == 200 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Replaces an unspecified address (all interfaces) by loopback.
fn reachable(host: &str) -> String {
    match host.trim_matches(['[', ']']).parse() {
        Ok(IpAddr::V4(address)) if address.is_unspecified() => Ipv4Addr::LOCALHOST.to_string(),
        Ok(IpAddr::V6(address)) if address.is_unspecified() => Ipv6Addr::LOCALHOST.to_string(),
        Ok(address) => address.to_string(),
        Err(_) => host.to_owned(),
    }
}

/// Requests `/readyz` with HTTP/1.0, so that the end of the connection is the end of the response. `Host` is
/// loopback's name, and probes are answered under any name.
async fn readiness(host: &str, port: u16) -> std::io::Result<String> {
    let mut stream = TcpStream::connect((host, port)).await?;
    stream
        .write_all(b"GET /readyz HTTP/1.0\r\nHost: localhost\r\n\r\n")
        .await?;
    let mut answer = String::new();
    stream
        .take(MAX_ANSWER_BYTES)
        .read_to_string(&mut answer)
        .await?;
    Ok(answer)
}

/// Returns the status and body of a response.
fn parse(answer: &str) -> anyhow::Result<(u16, &str)> {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((answer, ""));
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    match status {
        Some(code) if head.starts_with("HTTP/1.") => Ok((code, body.trim())),
        Some(_) | None => bail!("what answers there does not speak HTTP"),
    }
}

#[cfg(test)]
mod tests {
    use super::{parse, reachable};

    #[test]
    fn every_interface_is_asked_on_loopback() {
        let check = |host, expected: &str| assert_eq!(reachable(host), expected, "{host}");
        check("0.0.0.0", "127.0.0.1");
        check("::", "::1");
        check("[::]", "::1");
        check("localhost", "localhost");
        check("10.1.2.3", "10.1.2.3");
    }

    #[test]
    fn an_answer_is_its_status_and_its_body() {
        let ready = "HTTP/1.0 200 OK\r\ncontent-type: application/json\r\n\r\n{\"a\": 1}";
        assert_eq!(parse(ready).unwrap(), (200, "{\"a\": 1}"));
        assert_eq!(parse("HTTP/1.1 503 x\r\n\r\n").unwrap(), (503, ""));
        assert!(parse("+PONG 200\r\n").is_err());
        assert!(parse("").is_err());
    }
}
