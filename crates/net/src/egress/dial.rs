//! Connects to a host: checks that it is allowed, resolves its name once, checks the addresses, and connects
//! to one of them.

use std::io;
use std::net::SocketAddr;

use tokio::net::TcpStream;
use tokio::time::timeout;

use super::grants::GrantLookup;
use super::{CONNECT_LIMIT, Egress, Reach};
use sepal_core::domain::egress::{HostMatch, HostProblem, canonical_name};

/// The host and port that a program wants to reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    /// The canonical form of the name, if it is a name.
    pub(super) host: String,
    pub(super) port: u16,
}

/// The reason why the host is not reached.
#[derive(Debug, thiserror::Error)]
pub(super) enum DialRefusal {
    /// No entry of the list allows the host.
    #[error("it is not among the hosts that may be reached")]
    Unlisted,
    /// The host was allowed only after the running command was shown.
    #[error("it was allowed after the running command was shown")]
    Unshown,
    #[error(
        "the connection carries neither TLS nor plain HTTP, which takes an entry `tcp://host:port`"
    )]
    NotTls,
    #[error("the TLS of the connection names no host")]
    Nameless,
    /// The TLS connection names another host, which may share the address.
    #[error("the TLS of the connection is for another host, `{0}`")]
    OtherName(String),
    #[error("it is an address, and hosts are reached by their names")]
    Address,
    #[error("it is no host name")]
    Name,
    #[error(
        "it is at a private or reserved address, which only the installation may allow \
         (`runtime.outgoing.allow`, SPL_OUTGOING_ALLOW)"
    )]
    Private,
    #[error("nobody knows an address of that name")]
    Unknown(#[source] Option<io::Error>),
    #[error("it does not answer")]
    Unreachable(#[source] io::Error),
    #[error("it did not answer within {} s", CONNECT_LIMIT.as_secs())]
    TooSlow,
}

impl Target {
    /// The target of a request's host and port.
    pub(super) fn of(host: &str, port: u16) -> Result<Self, (Self, DialRefusal)> {
        match canonical_name(host) {
            Ok(host) => Ok(Self { host, port }),
            Err(problem) => {
                let host = host.to_owned();
                Err((Self { host, port }, DialRefusal::from(problem)))
            }
        }
    }

    /// Returns true if the host is a name, which is logged in full.
    pub(super) fn is_name(&self) -> bool {
        canonical_name(&self.host).is_ok()
    }

    /// The list entry that would allow the target.
    pub(super) fn entry(&self) -> String {
        match self.port {
            443 | 80 if self.host.contains('.') => self.host.clone(),
            port => format!("{}:{port}", self.host),
        }
    }
}

impl From<HostProblem> for DialRefusal {
    fn from(problem: HostProblem) -> Self {
        match problem {
            HostProblem::Address => Self::Address,
            HostProblem::Empty
            | HostProblem::Scheme
            | HostProblem::Path
            | HostProblem::UserName
            | HostProblem::TooWide
            | HostProblem::Wildcard
            | HostProblem::Bare
            | HostProblem::Port
            | HostProblem::RawPort
            | HostProblem::Name => Self::Name,
        }
    }
}

impl DialRefusal {
    /// The list entry that would allow the connection, if one would.
    pub(super) fn entry(&self, target: &Target) -> Option<String> {
        match self {
            Self::Unlisted => Some(target.entry()),
            Self::NotTls => Some(format!("tcp://{}:{}", target.host, target.port)),
            Self::Unshown
            | Self::Nameless
            | Self::OtherName(_)
            | Self::Address
            | Self::Name
            | Self::Private
            | Self::Unknown(_)
            | Self::Unreachable(_)
            | Self::TooSlow => None,
        }
    }
}

/// Connects to the target if the program may reach it.
pub(super) async fn dial(
    target: &Target,
    egress: &Egress,
) -> Result<(TcpStream, SocketAddr), DialRefusal> {
    let (listed, reach) = find(target, egress)?;
    let dialling = async {
        let found = tokio::net::lookup_host((target.host.as_str(), target.port)).await;
        let found: Vec<_> = found
            .map_err(|error| DialRefusal::Unknown(Some(error)))?
            .collect();
        // A name below a wildcard is chosen by the domain's owner, and may point to any address.
        let is_free = reach == Reach::Private && listed == HostMatch::Exactly;
        if !is_free && egress.guard.judge_all(&target.host, &found).is_err() {
            return Err(DialRefusal::Private);
        }
        connect(&found).await
    };
    timeout(CONNECT_LIMIT, dialling)
        .await
        .unwrap_or(Err(DialRefusal::TooSlow))
}

/// The match that allows the host, and whether it may have a private address.
fn find(target: &Target, egress: &Egress) -> Result<(HostMatch, Reach), DialRefusal> {
    if let Some(listed) = egress.hosts.find(&target.host, target.port) {
        return Ok((listed, egress.reach));
    }
    let grants = egress.grants.as_ref();
    match grants.map_or(GrantLookup::No, |grants| {
        grants.find(&target.host, target.port)
    }) {
        GrantLookup::Yes(listed, reach) => Ok((listed, reach)),
        GrantLookup::Unshown => Err(DialRefusal::Unshown),
        GrantLookup::No => Err(DialRefusal::Unlisted),
    }
}

/// Connects to the first of the addresses that answers.
async fn connect(found: &[SocketAddr]) -> Result<(TcpStream, SocketAddr), DialRefusal> {
    let mut last = None;
    for address in found {
        match TcpStream::connect(address).await {
            Ok(stream) => {
                // Sends small requests without delay.
                let _ = stream.set_nodelay(true);
                return Ok((stream, *address));
            }
            Err(error) => last = Some(error),
        }
    }
    Err(last.map_or(DialRefusal::Unknown(None), DialRefusal::Unreachable))
}
