//! Defines the messages that gateways on one store send each other.

use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::agent::feed::Notice;
use crate::agent::feed::list_update::ListUpdate;
use crate::agent::feed::running_answer::{Delta, RunningAnswer};
use crate::domain::{CallId, Digest, GatewayId, ResourceRef, SandboxId, SessionKey};
use crate::mcp::ToolProgress;
use crate::servers::ServerUpdate;
use crate::session::Commit;
use crate::store::live::cluster_bus::Address;

/// An update about one session.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::agent) enum SessionUpdate {
    /// The commit was appended.
    Commit(AppendedCommit),
    /// A commit of this version was appended; it is too large to send.
    Moved(u64),
    /// A piece of the answer that streams at the sender.
    Delta(Delta),
    /// Progress of a call that runs at the sender.
    Progress(CallId, ToolProgress),
    /// The number of bytes copied so far of a workspace that the sender copies.
    Copying(u64),
    /// A resource that the sender read has changed.
    ResourceChanged(ResourceRef),
    /// A notice about an effect that runs at the sender.
    Notice(Notice),
    /// Asks the gateway that streams the answer to send the whole of it.
    TellAnswer,
    /// The whole answer so far.
    Answer(RunningAnswer),
    /// The session was deleted.
    Deleted,
}

/// A commit that another gateway appended.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::agent) struct AppendedCommit {
    #[serde(flatten)]
    pub(in crate::agent) commit: Arc<Commit>,
    /// Its link; `None` = the gateway runs an earlier release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::agent) link: Option<Digest>,
}

/// A message on the cluster bus.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::agent) enum ClusterMessage {
    /// To the followers of the session.
    Updates {
        /// The sender.
        from: GatewayId,
        /// In the order in which they happened.
        updates: Vec<SessionUpdate>,
    },
    /// To one gateway: a session that it runs has work.
    #[serde(rename = "Look")]
    Refresh { key: SessionKey },
    /// To all: that gateway has started.
    Came { gateway: GatewayId },
    /// To all: that gateway has shut down.
    Left { gateway: GatewayId },
    /// To all: an MCP server changed.
    Server {
        /// The sender.
        from: GatewayId,
        update: ServerUpdate,
    },
    /// To all: model providers, or the defaults of new sessions, were changed in the records.
    Providers {
        /// The sender.
        from: GatewayId,
    },
    /// To all: rows of session lists were written.
    Rows {
        /// The sender.
        from: GatewayId,
        rows: Vec<ListUpdate>,
    },
    /// To all: a session was deleted; the gateway at its engine removes the workspace.
    Removed {
        key: SessionKey,
        /// Its sandbox, according to the journal.
        sandbox: SandboxId,
    },
}

impl ClusterMessage {
    /// The first bytes of every message of updates from that gateway. Redis also delivers them to their
    /// sender, which can skip them by this prefix.
    pub(in crate::agent) fn prefix_of(gateway: &GatewayId) -> Bytes {
        let from = serde_json::to_string(gateway).unwrap_or_default();
        Bytes::from(format!(r#"{{"Updates":{{"from":{from},"#))
    }

    /// Encodes the announcement of a commit of that version, for the gateways that follow the session by
    /// then. The append itself carries it when no other gateway is known to live: that costs no round trip of
    /// its own, and a gateway that has just started does not miss it.
    pub(in crate::agent) fn moved(gateway: &GatewayId, version: u64) -> Option<Bytes> {
        let message = Self::Updates {
            from: gateway.clone(),
            updates: vec![SessionUpdate::Moved(version)],
        };
        serde_json::to_vec(&message).map(Bytes::from).ok()
    }

    /// Encodes the message for all gateways, to be sent without the queue of a
    /// [`Broadcaster`](super::broadcaster::Broadcaster).
    pub(in crate::agent) fn to_everybody(&self) -> Vec<(Address, Bytes)> {
        let bytes = serde_json::to_vec(self).map(Bytes::from);
        let message = bytes.map(|bytes| (Address::Everybody, bytes));
        message.into_iter().collect()
    }
}
