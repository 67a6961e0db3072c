//! What the addresses of the agent share over HTTP: who calls, and whose each connection is.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::FromRequestParts as _;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use rmcp::transport::streamable_http_server::session::SessionManager as _;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;

use super::notices::Threshold;
use super::server::AgentServer;
use super::{Exposure, Life};
use crate::domain::{Caller, UserId};
use crate::gateway::GatewayState;
use crate::gateway::error::ApiError;

/// What the routes share.
#[derive(Clone)]
pub(super) struct Doors {
    pub(super) gateway: GatewayState,
    pub(super) exposure: Arc<Exposure>,
    pub(super) life: Life,
    pub(super) manager: Arc<LocalSessionManager>,
    /// Whose connection each is. Never held across an await.
    pub(super) owners: Arc<Mutex<HashMap<String, UserId>>>,
}

impl Doors {
    /// The server for one client.
    pub(super) fn server(&self) -> AgentServer {
        AgentServer {
            sessions: self.gateway.sessions.clone(),
            exposure: Arc::clone(&self.exposure),
            life: self.life.clone(),
            local: None,
            threshold: Threshold::default(),
        }
    }

    /// Who calls: as everywhere, or the user of this machine where the operator said so.
    pub(super) async fn enter(&self, parts: &mut Parts) -> Result<Caller, ApiError> {
        let peer = self.gateway.access.peer(parts);
        let shows_nothing = !parts.headers.contains_key(AUTHORIZATION);
        if self.exposure.admits_local && peer.is_local && shows_nothing {
            let entered = self.gateway.tenancy.anonymous_caller().await?;
            return Ok(entered.caller);
        }
        Caller::from_request_parts(parts, &self.gateway).await
    }

    pub(super) fn owner(&self, session: &str) -> Option<UserId> {
        let owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        owners.get(session).cloned()
    }

    /// Remembers whose a new connection is, and forgets those that ended.
    pub(super) async fn own(&self, session: String, user: UserId) {
        let known: Vec<String> = {
            let mut owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
            owners.insert(session, user);
            owners.keys().cloned().collect()
        };
        let mut ended = Vec::new();
        for session in known {
            let is_open = self.manager.has_session(&session.as_str().into()).await;
            if !is_open.unwrap_or(true) {
                ended.push(session);
            }
        }
        let mut owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        for session in ended {
            owners.remove(&session);
        }
    }
}
