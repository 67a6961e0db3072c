//! Parses and matches the allow-lists of hosts and ports that sandboxed programs may reach.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use super::Timestamp;

/// The ports of an entry without a port.
const USUAL_PORTS: [u16; 2] = [443, 80];
/// Maximum length of a DNS name, in bytes.
const MAX_NAME_BYTES: usize = 253;
/// Maximum number of entries in a list.
pub const MAX_ALLOWED_HOSTS: usize = 64;

/// One entry of a list: `host`, `host:port`, `*.host` or `*.host:port`. Without a port it means 443 and 80.
/// Connections carry TLS for that host, or plain HTTP; `tcp://host:port` allows any protocol.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AllowedHost {
    /// In lower case, without `*.` and without a trailing dot.
    name: String,
    is_wildcard: bool,
    /// `None` = [`USUAL_PORTS`].
    port: Option<u16>,
    /// True if a connection may carry any protocol, so that the proxy cannot see which host at that address
    /// the connection is for.
    is_raw: bool,
}

/// The prefix of an entry that allows any protocol.
const RAW: &str = "tcp://";

/// The error of an invalid entry. The text says what to write instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HostProblem {
    #[error("it is empty; name a host, such as `api.example.com`")]
    Empty,
    #[error(
        "it begins with a scheme; write only the host and, where needed, `:port` (`tcp://host:port` for \
         a protocol that is neither HTTP nor TLS)"
    )]
    Scheme,
    #[error("it needs a port, as in `tcp://db.example.com:5432`")]
    RawPort,
    #[error("it has a path; write only the host and, where needed, `:port`")]
    Path,
    #[error("it has a user name; write only the host and, where needed, `:port`")]
    UserName,
    #[error(
        "it is too wide; a `*.` stands in front of a domain with at least two parts, as in \
         `*.example.com`"
    )]
    TooWide,
    #[error("a `*` is possible only as the whole first part, as in `*.example.com`")]
    Wildcard,
    #[error(
        "it has no dot; for a host of your own network name the port too, as in `intranet:443`"
    )]
    Bare,
    #[error("it is an address; name the host instead, because its address is looked up here")]
    Address,
    #[error("its port has to be a number from 1 to 65535")]
    Port,
    #[error(
        "it is no host name: letters, digits and `-` in parts divided by dots (for a name with other \
         letters, its `xn--` form)"
    )]
    Name,
}

/// The way in which an entry matched a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostMatch {
    /// By the exact name.
    Exactly,
    /// By a `*.` entry: the owner of the domain chose the name.
    Below,
}

impl FromStr for AllowedHost {
    type Err = HostProblem;

    fn from_str(text: &str) -> Result<Self, HostProblem> {
        if text.is_empty() {
            return Err(HostProblem::Empty);
        }
        let (is_raw, text) = match text.strip_prefix(RAW) {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        if text.contains("://") {
            return Err(HostProblem::Scheme);
        }
        if text.contains(['/', '?', '#', '\\']) {
            return Err(HostProblem::Path);
        }
        if text.contains('@') {
            return Err(HostProblem::UserName);
        }
        if text.contains(['[', ']']) || text.matches(':').count() > 1 {
            return Err(HostProblem::Address);
        }
        let (host, port) = match text.split_once(':') {
            Some((host, port)) => (host, Some(parse_port(port)?)),
            None => (text, None),
        };
        let (is_wildcard, name) = match host.strip_prefix("*.") {
            Some(name) => (true, name),
            None if host == "*" => return Err(HostProblem::TooWide),
            None => (false, host),
        };
        if name.contains('*') {
            return Err(HostProblem::Wildcard);
        }
        let name = canonical_name(name)?;
        let has_dot = name.contains('.');
        if is_wildcard && !has_dot {
            return Err(HostProblem::TooWide);
        }
        if is_raw && port.is_none() {
            return Err(HostProblem::RawPort);
        }
        // Refuses words that are more likely a keyword than a host: `internet`, `all`, `bridge`.
        if !has_dot && port.is_none() {
            return Err(HostProblem::Bare);
        }
        Ok(Self {
            name,
            is_wildcard,
            port,
            is_raw,
        })
    }
}

fn parse_port(text: &str) -> Result<u16, HostProblem> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    let port = text.parse().ok().filter(|port| *port != 0 && is_number);
    port.ok_or(HostProblem::Port)
}

/// The canonical form of a host name, for comparisons: lower case, without the trailing dot. Names that
/// some resolvers read as an address are refused: `127.1`, `0x7f.1` and `2130706433` all lead to the
/// machine itself.
pub fn canonical_name(name: &str) -> Result<String, HostProblem> {
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    if name.is_empty() {
        return Err(HostProblem::Empty);
    }
    let is_part = |part: &str| {
        let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        (1..=63).contains(&part.len())
            && part.bytes().all(is_fit)
            && !part.starts_with('-')
            && !part.ends_with('-')
    };
    if name.contains(':') {
        return Err(HostProblem::Address);
    }
    if name.len() > MAX_NAME_BYTES || !name.split('.').all(is_part) {
        return Err(HostProblem::Name);
    }
    let last = name.rsplit('.').next().unwrap_or_default();
    let is_hexadecimal = last
        .strip_prefix("0x")
        .is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    if is_hexadecimal || last.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(HostProblem::Address);
    }
    Ok(name)
}

impl AllowedHost {
    /// The port of the entry; `None` = 443 and 80.
    pub fn port(&self) -> Option<u16> {
        self.port
    }

    /// Returns true if a connection may carry any protocol.
    pub fn is_raw(&self) -> bool {
        self.is_raw
    }

    /// Matches another entry: `Some` if this entry allows everything that the other allows, exactly for the
    /// same name, below for a `*.`.
    fn covers(&self, other: &Self) -> Option<HostMatch> {
        let is_port = match (self.port, other.port) {
            (None, None) => true,
            (None, Some(port)) => USUAL_PORTS.contains(&port),
            (Some(own), port) => port == Some(own),
        };
        if !is_port || (other.is_raw && !self.is_raw) {
            return None;
        }
        let is_same = self.name == other.name && self.is_wildcard == other.is_wildcard;
        if is_same && !self.is_wildcard {
            return Some(HostMatch::Exactly);
        }
        let above = other.name.strip_suffix(&self.name);
        let is_below = above.is_some_and(|above| above.ends_with('.') && above.len() > 1);
        (is_same || (self.is_wildcard && is_below)).then_some(HostMatch::Below)
    }

    /// Matches a canonical host name and a port.
    pub fn finds(&self, name: &str, port: u16) -> Option<HostMatch> {
        let is_port = match self.port {
            Some(own) => own == port,
            None => USUAL_PORTS.contains(&port),
        };
        if !is_port {
            return None;
        }
        if self.is_wildcard {
            let above = name.strip_suffix(&self.name)?.strip_suffix('.')?;
            return (!above.is_empty()).then_some(HostMatch::Below);
        }
        (name == self.name).then_some(HostMatch::Exactly)
    }
}

impl fmt::Display for AllowedHost {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_raw {
            formatter.write_str(RAW)?;
        }
        if self.is_wildcard {
            formatter.write_str("*.")?;
        }
        formatter.write_str(&self.name)?;
        match self.port {
            Some(port) => write!(formatter, ":{port}"),
            None => Ok(()),
        }
    }
}

/// An allow-list of hosts for one program; all other hosts are refused.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowedHosts(Vec<AllowedHost>);

impl AllowedHosts {
    /// Parses a list; an invalid entry fails with its text and the reason.
    pub fn parse<T: AsRef<str>>(
        entries: impl IntoIterator<Item = T>,
    ) -> Result<Self, (String, HostProblem)> {
        let mut hosts = Vec::new();
        for entry in entries {
            let entry = entry.as_ref();
            let host: AllowedHost = entry.parse().map_err(|why| (entry.to_owned(), why))?;
            if !hosts.contains(&host) {
                hosts.push(host);
            }
        }
        Ok(Self(hosts))
    }

    /// Returns true if no host is allowed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The entries, in the order of the list.
    pub fn iter(&self) -> impl Iterator<Item = &AllowedHost> {
        self.0.iter()
    }

    /// Matches an entry against the whole list: `Some` if one entry allows everything that it allows; an
    /// exact entry takes precedence.
    pub fn cover(&self, host: &AllowedHost) -> Option<HostMatch> {
        let found = |wanted| self.iter().any(|it| it.covers(host) == Some(wanted));
        [HostMatch::Exactly, HostMatch::Below]
            .into_iter()
            .find(|it| found(*it))
    }

    /// Matches a canonical host name and a port; an exact entry takes precedence. `None` = refused.
    pub fn find(&self, name: &str, port: u16) -> Option<HostMatch> {
        let found = |wanted| {
            let mut all = self.0.iter();
            all.any(|host| host.finds(name, port) == Some(wanted))
        };
        [HostMatch::Exactly, HostMatch::Below]
            .into_iter()
            .find(|it| found(*it))
    }
}

impl fmt::Display for AllowedHosts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, host) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(formatter, "{comma}{host}")?;
        }
        Ok(())
    }
}

/// A host that was refused to a command, as recorded in the session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostRefusal {
    pub host: String,
    pub port: u16,
    /// The entry that a rule needs to allow the host; `None` if no rule would help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
    /// True if the settings let people allow the host for their own sessions; otherwise only an
    /// administrator can.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub on_request: bool,
    /// The reason, for people.
    pub reason: String,
}

/// A host that was refused to a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedHost {
    pub host: String,
    pub port: u16,
    /// The entry that a list needs to allow the host; `None` if no entry would help, for example for a
    /// private address.
    pub entry: Option<String>,
    /// The reason, for people.
    pub reason: String,
    /// Time of the last refusal.
    pub at: Timestamp,
    /// Number of refusals.
    pub count: u64,
}

#[cfg(test)]
mod tests;
