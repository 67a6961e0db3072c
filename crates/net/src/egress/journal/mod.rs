//! Reports each connection: in the gateway's log, in the server's log, and in the metrics.

mod mask;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::mpsc;

pub use self::mask::HostMask;
use super::dial::{DialRefusal, Target};
use super::traffic::Traffic;
use super::{Refusals, now};
use sepal_telemetry::instruments;

/// Reports the connections of one program.
#[derive(Debug, Clone)]
pub(super) struct Journal {
    server: Arc<str>,
    lines: mpsc::Sender<String>,
    /// Masks secrets of the program in all reports.
    mask: HostMask,
}

/// An open connection; its traffic is reported when the record is dropped.
#[derive(Debug)]
pub(super) struct Record {
    journal: Journal,
    pub(super) target: Target,
    address: SocketAddr,
    traffic: Traffic,
    since: Instant,
}

impl Journal {
    pub(super) fn new(server: &str, lines: mpsc::Sender<String>, mask: HostMask) -> Self {
        Self {
            server: server.into(),
            lines,
            mask,
        }
    }

    /// Starts the record of a connection.
    pub(super) fn reached(&self, target: Target, address: SocketAddr, traffic: Traffic) -> Record {
        Record {
            journal: self.clone(),
            target,
            address,
            traffic,
            since: Instant::now(),
        }
    }

    /// Reports a refused or failed connection. A program can try any number of times, so only the first
    /// refusal per host goes to the gateway's log at the level INFO; all are counted.
    pub(super) fn refused(&self, target: &Target, why: &DialRefusal, refusals: &Refusals) {
        let (target, is_masked) = self.mask.shown(target);
        let Target { host, port } = &target;
        let is_rule = match why {
            DialRefusal::Unlisted
            | DialRefusal::Unshown
            | DialRefusal::NotTls
            | DialRefusal::Nameless
            | DialRefusal::OtherName(_)
            | DialRefusal::Address
            | DialRefusal::Name
            | DialRefusal::Private => true,
            DialRefusal::Unknown(_) | DialRefusal::Unreachable(_) | DialRefusal::TooSlow => false,
        };
        let outcome = if is_rule { "refused" } else { "failed" };
        instruments().egress_ended(outcome, 0, 0);
        // A name with a secret in it must not be allowed, and a host that was allowed meanwhile is no news.
        let entry = why.entry(&target).filter(|_| !is_masked);
        let is_news = is_rule && !matches!(why, DialRefusal::Unshown);
        let is_first = is_news && refusals.note(&target, entry, why, now());
        if is_first {
            tracing::info!(
                mcp.server = %self.server, egress.host = %host, egress.port = port,
                "Refuse `{host}:{port}` to a sandboxed server: {why}"
            );
        } else {
            tracing::debug!(
                mcp.server = %self.server, egress.host = %host, egress.port = port,
                "No way to `{host}:{port}`: {why}"
            );
        }
        self.say(format!("sepal: {outcome} {host}:{port}: {why}"));
    }

    /// Reports that the program has too many connections.
    pub(super) fn crowded(&self) {
        instruments().egress_ended("refused", 0, 0);
        self.say("sepal: refused a connection: there are too many at once".to_owned());
    }

    /// Writes a line to the server's log. If the log is full, the line is dropped instead of blocking.
    fn say(&self, line: String) {
        let _ = self.lines.try_send(line);
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let (target, _) = self.journal.mask.shown(&self.target);
        let Target { host, port } = &target;
        let (sent, received) = self.traffic.bytes();
        let duration = self.since.elapsed().as_millis();
        instruments().egress_ended("reached", sent, received);
        tracing::info!(
            mcp.server = %self.journal.server, egress.host = %host, egress.port = port,
            egress.address = %self.address.ip(), bytes.sent = sent, bytes.received = received,
            duration_ms = duration,
            "A sandboxed server reached `{host}:{port}`"
        );
        self.journal.say(format!(
            "sepal: reached {host}:{port} at {}: {sent} bytes sent, {received} received, {duration} ms",
            self.address.ip()
        ));
    }
}
