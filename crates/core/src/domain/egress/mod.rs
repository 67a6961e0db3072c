//! What a sandboxed program may reach: hosts by name and port, and nothing else.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use super::Timestamp;

/// The ports of a host that is named without one.
const USUAL_PORTS: [u16; 2] = [443, 80];
/// The longest name that DNS has.
const MAX_NAME_BYTES: usize = 253;
/// Entries of one list.
pub const MAX_ALLOWED_HOSTS: usize = 64;

/// One entry of a list: `host`, `host:port`, `*.host` or `*.host:port`. Without a port it stands for
/// 443 and 80. Connections carry TLS for that host, or plain HTTP; `tcp://host:port` lets anything pass.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AllowedHost {
    /// Lower case, without the `*.` and without a dot at the end.
    name: String,
    is_wildcard: bool,
    /// `None` = the usual ones.
    port: Option<u16>,
    /// Whether a connection may carry any protocol, so that nobody sees which host at that address it is
    /// for.
    is_raw: bool,
}

/// The beginning of an entry that lets any protocol pass.
const RAW: &str = "tcp://";

/// Why an entry cannot be taken. The text names the entry and says what to write.
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

/// How a host was found in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listed {
    /// By its own name.
    Exactly,
    /// Below a `*.`: whoever owns the domain chose the name.
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
        // Rather a word that means something else than a host: `internet`, `all`, `bridge`.
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

/// A host's name as it is compared: lower case, without the dot of the root. What some resolver takes
/// for an address is no name: `127.1`, `0x7f.1` and `2130706433` all lead to the machine itself.
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
    /// The port that it names; `None` = 443 and 80.
    pub fn port(&self) -> Option<u16> {
        self.port
    }

    /// Whether a connection may carry any protocol.
    pub fn is_raw(&self) -> bool {
        self.is_raw
    }

    /// Whether everything that the other stands for is meant here too, and how: an exact name is covered
    /// exactly by its own, and below by a `*.`.
    fn covers(&self, other: &Self) -> Option<Listed> {
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
            return Some(Listed::Exactly);
        }
        let above = other.name.strip_suffix(&self.name);
        let is_below = above.is_some_and(|above| above.ends_with('.') && above.len() > 1);
        (is_same || (self.is_wildcard && is_below)).then_some(Listed::Below)
    }

    /// Whether a host with that canonical name is meant, at that port.
    pub fn finds(&self, name: &str, port: u16) -> Option<Listed> {
        let is_port = match self.port {
            Some(own) => own == port,
            None => USUAL_PORTS.contains(&port),
        };
        if !is_port {
            return None;
        }
        if self.is_wildcard {
            let above = name.strip_suffix(&self.name)?.strip_suffix('.')?;
            return (!above.is_empty()).then_some(Listed::Below);
        }
        (name == self.name).then_some(Listed::Exactly)
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

/// The hosts that one program may reach; everything else is refused.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowedHosts(Vec<AllowedHost>);

impl AllowedHosts {
    /// Reads a list; the first entry that cannot be taken is returned with the reason.
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

    /// Whether nothing may be reached.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The entries, in the order in which they were written.
    pub fn iter(&self) -> impl Iterator<Item = &AllowedHost> {
        self.0.iter()
    }

    /// Whether one entry stands for all that this one does, and how; an exact one goes first.
    pub fn cover(&self, host: &AllowedHost) -> Option<Listed> {
        let found = |wanted| self.iter().any(|it| it.covers(host) == Some(wanted));
        [Listed::Exactly, Listed::Below]
            .into_iter()
            .find(|it| found(*it))
    }

    /// How a host with that canonical name is listed at that port; an exact entry goes first. `None` =
    /// it may not be reached.
    pub fn find(&self, name: &str, port: u16) -> Option<Listed> {
        let found = |wanted| {
            let mut all = self.0.iter();
            all.any(|host| host.finds(name, port) == Some(wanted))
        };
        [Listed::Exactly, Listed::Below]
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

/// A host that a command of a session wanted to reach and was refused, as the session keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostRefusal {
    pub host: String,
    pub port: u16,
    /// What a rule has to name for it to be reached; `None` where no rule would help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
    /// Whether the settings let people open it for their own sessions; else it takes an administrator.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub on_request: bool,
    /// Why, for people.
    pub reason: String,
}

/// A host that a program wanted to reach and was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedHost {
    pub host: String,
    pub port: u16,
    /// What a list has to name for it to be reached; `None` where no entry would help, as for a
    /// private address.
    pub entry: Option<String>,
    /// Why, for people.
    pub reason: String,
    /// When it was refused last.
    pub at: Timestamp,
    /// How often.
    pub count: u64,
}

#[cfg(test)]
mod tests;
