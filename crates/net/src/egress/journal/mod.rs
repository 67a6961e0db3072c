//! What is told of each connection: the gateway's log, the log of the server, and the figures.

mod mask;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::mpsc;

pub use self::mask::HostMask;
use super::dial::{Refused, Target};
use super::traffic::Traffic;
use super::{Refusals, now};
use sepal_telemetry::instruments;

/// Tells of the connections of one program.
#[derive(Debug, Clone)]
pub(super) struct Journal {
    server: Arc<str>,
    lines: mpsc::Sender<String>,
    /// Keeps secrets of the program out of all that is told.
    mask: HostMask,
}

/// A connection that stands; what passed is told when it is dropped.
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

    /// A connection begins.
    pub(super) fn reached(&self, target: Target, address: SocketAddr, traffic: Traffic) -> Record {
        Record {
            journal: self.clone(),
            target,
            address,
            traffic,
            since: Instant::now(),
        }
    }

    /// There is none. A program can try any number of times, so only the first of each host goes to the
    /// gateway's log; all are counted.
    pub(super) fn refused(&self, target: &Target, why: &Refused, refusals: &Refusals) {
        let (target, is_masked) = self.mask.shown(target);
        let Target { host, port } = &target;
        let is_rule = match why {
            Refused::Unlisted
            | Refused::Unshown
            | Refused::NotTls
            | Refused::Nameless
            | Refused::OtherName(_)
            | Refused::Address
            | Refused::Name
            | Refused::Private => true,
            Refused::Unknown(_) | Refused::Unreachable(_) | Refused::TooSlow => false,
        };
        let outcome = if is_rule { "refused" } else { "failed" };
        instruments().egress_ended(outcome, (0, 0));
        // A name with a secret in it is nothing to allow, and what was allowed is nothing to tell people.
        let entry = why.entry(&target).filter(|_| !is_masked);
        let is_news = is_rule && !matches!(why, Refused::Unshown);
        let is_first = is_news && refusals.note((&target, entry), why, now());
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

    /// The program has more connections than it may.
    pub(super) fn crowded(&self) {
        instruments().egress_ended("refused", (0, 0));
        self.say("sepal: refused a connection: there are too many at once".to_owned());
    }

    /// A full log loses lines, and holds up nobody.
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
        instruments().egress_ended("reached", (sent, received));
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
