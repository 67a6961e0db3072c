//! The messages that gateways on one store send each other.

use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::agent::feed::Notice;
use crate::agent::feed::list_update::ListUpdate;
use crate::agent::feed::running_answer::{Delta, RunningAnswer};
use crate::domain::{CallId, GatewayId, ResourceRef, SandboxId, SessionKey};
use crate::mcp::ToolProgress;
use crate::servers::ServerUpdate;
use crate::session::Commit;
use crate::store::live::cluster_bus::Address;

/// One piece of news of a session.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::agent) enum SessionUpdate {
    /// It was appended.
    Commit(Arc<Commit>),
    /// A commit of this version was appended that is too long to be sent along.
    Moved(u64),
    /// More of the answer that streams here.
    Delta(Delta),
    /// News of a call that runs here.
    Progress(CallId, ToolProgress),
    /// So many bytes of a workspace that is copied here.
    Copying(u64),
    /// A resource that was read here is another now.
    ResourceChanged(ResourceRef),
    /// A remark on what runs here.
    Notice(Notice),
    /// Whoever streams the answer: tell the whole of it.
    TellAnswer,
    /// The whole of it.
    Answer(RunningAnswer),
    /// The session is gone.
    Deleted,
}

/// What goes over the line.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::agent) enum ClusterMessage {
    /// To those who follow the session.
    Updates {
        /// The gateway that writes.
        from: GatewayId,
        /// In the order in which they happened.
        updates: Vec<SessionUpdate>,
    },
    /// To one gateway: a session that it runs has work.
    Look { key: SessionKey },
    /// To all: that gateway has begun.
    Came { gateway: GatewayId },
    /// To all: that gateway has ended in order.
    Left { gateway: GatewayId },
    /// To all: something happened to an MCP server.
    Server {
        /// The gateway that writes.
        from: GatewayId,
        update: ServerUpdate,
    },
    /// To all: model providers, or what new sessions begin with, were changed in the records.
    Providers {
        /// The gateway that writes.
        from: GatewayId,
    },
    /// To all: rows of lists of sessions were written.
    Rows {
        /// The gateway that writes.
        from: GatewayId,
        rows: Vec<ListUpdate>,
    },
    /// To all: a session was deleted; its workspace goes where its engine is.
    Removed {
        key: SessionKey,
        /// Its sandbox, by the journal.
        sandbox: SandboxId,
    },
}

impl ClusterMessage {
    /// The beginning of every message of updates from that gateway. Redis hands them back to their
    /// writer, which need not read them.
    pub(in crate::agent) fn prefix_of(gateway: &GatewayId) -> Bytes {
        let from = serde_json::to_string(gateway).unwrap_or_default();
        Bytes::from(format!(r#"{{"Updates":{{"from":{from},"#))
    }

    /// Says that a commit of that version was appended, to the gateways that follow the session by
    /// then. For an append that carries the message, where no other gateway is known to live: that
    /// costs no trip of its own, and a gateway that has just begun does not miss it.
    pub(in crate::agent) fn moved(gateway: &GatewayId, version: u64) -> Option<Bytes> {
        let message = Self::Updates {
            from: gateway.clone(),
            updates: vec![SessionUpdate::Moved(version)],
        };
        serde_json::to_vec(&message).map(Bytes::from).ok()
    }

    /// As it goes to all gateways, without the queue of a [`Broadcaster`](super::broadcaster::Broadcaster).
    pub(in crate::agent) fn to_everybody(&self) -> Vec<(Address, Bytes)> {
        let bytes = serde_json::to_vec(self).map(Bytes::from);
        let message = bytes.map(|bytes| (Address::Everybody, bytes));
        message.into_iter().collect()
    }
}
