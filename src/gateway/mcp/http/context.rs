//! Holds the state that the agent's HTTP routes share: authenticates callers, and records the owner of each
//! connection.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::extract::FromRequestParts as _;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;

use super::messages::Managers;
use crate::agent::limit_reached;
use crate::domain::{Caller, CredentialId, Resource, Share, UserId};
use crate::gateway::GatewayState;
use crate::gateway::error::ApiError;
use crate::gateway::mcp::asking::Asking;
use crate::gateway::mcp::notices::Threshold;
use crate::gateway::mcp::server::AgentServer;
use crate::gateway::mcp::tasks::Tasks;
use crate::gateway::mcp::{Exposure, Life};
use crate::store::audit::acting;

/// The state that the routes share.
#[derive(Clone)]
pub(in crate::gateway::mcp) struct McpContext {
    pub(in crate::gateway::mcp) gateway: GatewayState,
    pub(in crate::gateway::mcp) exposure: Arc<Exposure>,
    pub(in crate::gateway::mcp) life: Life,
    pub(in crate::gateway::mcp) managers: Managers,
    /// The owners of the open connections, by their id. The lock is never held across an await.
    pub(in crate::gateway::mcp) owners: Arc<Mutex<HashMap<String, OwnedConnection>>>,
    pub(in crate::gateway::mcp) tasks: Tasks,
}

/// An open connection with its owner.
pub(in crate::gateway::mcp) struct OwnedConnection {
    by: ClientId,
    _share: Share,
}

/// Who opened a connection: a person, with one key or sign-in. Another key of theirs may be limited otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::gateway::mcp) struct ClientId {
    user: UserId,
    credential: Option<CredentialId>,
}

impl ClientId {
    pub(in crate::gateway::mcp) fn of(caller: &Caller) -> Self {
        Self {
            user: caller.user.id.clone(),
            credential: caller.credential.clone(),
        }
    }
}

/// The limit on connections and event streams of MCP clients.
const STREAMS: Resource = Resource {
    name: "streams",
    plural: "connections of MCP clients",
    remedy: "close some, or wait some minutes where a client left without a word",
    total: "runtime.limits.streams",
    setting: "runtime.limits.streams",
};

impl McpContext {
    /// Creates the server of one client.
    pub(in crate::gateway::mcp) fn server(&self) -> AgentServer {
        AgentServer {
            asking: Asking {
                sessions: self.gateway.sessions.clone(),
                exposure: Arc::clone(&self.exposure),
                life: self.life.clone(),
                questions: Arc::clone(&self.gateway.limits.questions),
            },
            local: None,
            threshold: Threshold::default(),
            tasks: self.tasks.clone(),
        }
    }

    /// Authenticates the caller: as at every door, or as the user of this machine if the operator allowed
    /// it.
    pub(in crate::gateway::mcp) async fn enter(
        &self,
        parts: &mut Parts,
    ) -> Result<Caller, ApiError> {
        let peer = self.gateway.access.peer(parts);
        let shows_nothing = !parts.headers.contains_key(AUTHORIZATION);
        if self.exposure.admits_local && peer.is_local && shows_nothing {
            let entered = self.gateway.tenancy.setup().anonymous_caller().await?;
            acting::identify(&entered.caller);
            return Ok(entered.caller);
        }
        Caller::from_request_parts(parts, &self.gateway).await
    }

    pub(in crate::gateway::mcp) fn owner(&self, session: &str) -> Option<ClientId> {
        self.owners().get(session).map(|owned| owned.by.clone())
    }

    fn owners(&self) -> MutexGuard<'_, HashMap<String, OwnedConnection>> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts one more connection or stream of the caller. If the limit is reached, ended connections are
    /// removed before it is refused.
    pub(in crate::gateway::mcp) async fn stream(&self, caller: &Caller) -> Result<Share, ApiError> {
        let streams = &self.gateway.limits.streams;
        if let Ok(share) = streams.take(caller.holder(), 1) {
            return Ok(share);
        }
        self.forget_ended().await;
        let share = streams.take(caller.holder(), 1);
        share.map_err(|reached| limit_reached(&STREAMS, reached).into())
    }

    /// Records the owner of a new connection, and removes connections that ended.
    pub(in crate::gateway::mcp) async fn own(&self, session: String, by: ClientId, share: Share) {
        let owned = OwnedConnection { by, _share: share };
        self.owners().insert(session, owned);
        self.forget_ended().await;
    }

    async fn forget_ended(&self) {
        let known: Vec<String> = self.owners().keys().cloned().collect();
        let mut ended = Vec::new();
        for session in known {
            if !self.managers.has_session(&session).await {
                ended.push(session);
            }
        }
        let mut owners = self.owners();
        for session in ended {
            owners.remove(&session);
        }
    }
}
