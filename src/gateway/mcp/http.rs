//! The agent over HTTP: `/mcp` for clients of today, and who may call at all. The guard around every
//! door has checked host and origin before.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::extract::{FromRequestParts as _, Request, State};
use axum::http::HeaderName;
use axum::http::request::Parts;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use rmcp::transport::streamable_http_server::session::SessionManager as _;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};

use super::legacy;
use super::notices::Threshold;
use super::server::AgentServer;
use super::{Exposure, Life};
use crate::domain::{Caller, Code, UserId};
use crate::gateway::GatewayState;
use crate::gateway::error::ApiError;

/// Names a client's connection in `/mcp`.
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// What the routes share.
#[derive(Clone)]
pub(super) struct Doors {
    pub(super) gateway: GatewayState,
    pub(super) exposure: Arc<Exposure>,
    pub(super) life: Life,
    manager: Arc<LocalSessionManager>,
    /// Whose connection each is. Never held across an await.
    owners: Arc<Mutex<HashMap<String, UserId>>>,
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
    async fn enter(&self, parts: &mut Parts) -> Result<Caller, ApiError> {
        let peer = self.gateway.access.peer(parts);
        let shows_nothing = !parts
            .headers
            .contains_key(axum::http::header::AUTHORIZATION);
        if self.exposure.admits_local && peer.is_local && shows_nothing {
            let entered = self.gateway.tenancy.anonymous_caller().await?;
            return Ok(entered.caller);
        }
        Caller::from_request_parts(parts, &self.gateway).await
    }

    fn owner(&self, session: &str) -> Option<UserId> {
        let owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        owners.get(session).cloned()
    }

    /// Remembers whose a new connection is, and forgets those that ended.
    async fn own(&self, session: String, user: UserId) {
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

/// `/mcp`, `/sse` and `/message`.
pub fn routes(gateway: &GatewayState, exposure: Arc<Exposure>, life: Life) -> Router {
    let doors = Doors {
        gateway: gateway.clone(),
        exposure,
        manager: Arc::default(),
        owners: Arc::default(),
        life,
    };
    // The guard knows under which names we answer, and whose pages may call.
    let config = StreamableHttpServerConfig::default()
        .disable_allowed_hosts()
        .disable_allowed_origins()
        .with_max_request_body_bytes(gateway.body_limit)
        .with_cancellation_token(doors.life.stop.child_token());
    let served = doors.clone();
    let manager = Arc::clone(&doors.manager);
    let service = StreamableHttpService::new(move || Ok(served.server()), manager, config);
    Router::new()
        .route_service("/mcp", service)
        .merge(legacy::routes(&doors))
        .layer(from_fn_with_state(doors, admit))
}

/// Finds out who calls, and keeps everybody to their own connections.
async fn admit(State(doors): State<Doors>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let caller = match doors.enter(&mut parts).await {
        Ok(caller) => caller,
        Err(error) => return error.into_response(),
    };
    if !caller.user.role.may_act() {
        let text = "a viewer may read, not ask the agent";
        return ApiError::new(Code::NotAllowed, text).into_response();
    }
    let session = parts.headers.get(&SESSION);
    let session = session.and_then(|session| session.to_str().ok());
    if let Some(owner) = session.and_then(|session| doors.owner(session))
        && owner != caller.user.id
    {
        // As if it did not exist, so that nobody learns that it does.
        return ApiError::new(Code::SessionNotFound, "there is no such connection").into_response();
    }
    let is_known = session.is_some();
    let user = caller.user.id.clone();
    parts.extensions.insert(caller);
    let response = next.run(Request::from_parts(parts, body)).await;
    let opened = response.headers().get(&SESSION);
    if let Some(opened) = opened
        .and_then(|opened| opened.to_str().ok())
        .filter(|_| !is_known)
    {
        doors.own(opened.to_owned(), user).await;
    }
    response
}
