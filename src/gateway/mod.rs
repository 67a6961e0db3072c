//! The doors: REST, Socket.IO, SCIM, the agent as an MCP server, and the page. Only this module knows wire forms;
//! every door reaches sessions through `agent::Sessions`, and this module constructs no services.

mod access;
mod api_router;
mod archive;
mod asyncapi;
mod auth;
mod body_time;
mod bounds;
mod documents;
mod error;
mod export;
mod extract;
mod foreign_answer;
mod guard;
mod http;
mod idempotency;
mod import;
mod key_scopes;
pub mod mcp;
mod openapi;
mod pace;
mod paging;
mod proxy;
mod scim;
pub mod socket;
mod spa;
mod unread_body;
mod unreadable_head;
mod versioned;
mod visit;
pub mod wire;
mod word_list;

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::DefaultBodyLimit;
use axum::http::Method;
use axum::middleware::from_fn_with_state;
use axum::response::IntoResponse as _;
use axum::routing::get;
use tokio_util::task::TaskTracker;

pub use access::{AccessError, AccessRules, AddressShare, Addresses, Crowd, Peer, RequestOrigin};
pub use asyncapi::asyncapi_json;
pub use auth::{AuthenticatedPage, authenticate_handshake};
pub use documents::Documents;
pub use error::{ApiError, FieldError};
pub use guard::{guard, turn_away};
pub use http::{
    Check, DISK_CHECK, DiskPressure, Installation, ModelInfo, ModelList, OidcDoor, OidcDoors,
    SandboxInfo, SandboxLimits, StorageInfo, System, SystemInfo, open_metrics,
};
pub use openapi::{key_scopes_page, openapi_json};
pub use pace::Pace;
pub use proxy::ProxyDoor;
pub use spa::page_is_built;
pub use unreadable_head::explain as explain_unreadable_head;

use crate::agent::{AuditTrail, Notifications, Sessions};
use crate::config::AuthMode;
use crate::domain::{Code, Shared, Shares};
use crate::providers::Providers;
use crate::servers::Servers;
use crate::skills::Skills;
use crate::store::Probe;
use crate::store::records::IdempotencyKeys;
use crate::store::records::RecordVersions;
use crate::tenancy::Tenancy;

/// The state that every door needs. Clones share everything.
#[derive(Clone)]
pub struct GatewayState(Shared<GatewayParts>);

impl GatewayState {
    /// Shares the parts between all doors.
    pub fn new(parts: GatewayParts) -> Self {
        Self(Shared::new(parts))
    }
}

impl Deref for GatewayState {
    type Target = GatewayParts;

    fn deref(&self) -> &GatewayParts {
        &self.0
    }
}

/// The parts of [`GatewayState`].
pub struct GatewayParts {
    /// The only way to reach sessions.
    pub sessions: Sessions,
    /// The MCP servers of the installation and its tenants.
    pub servers: Servers,
    /// The skills of its tenants and their users.
    pub skills: Skills,
    pub tenancy: Tenancy,
    /// The store, for lists and the readiness probe; sessions are reached through `sessions` only.
    pub store: Probe,
    /// The versions of records, for `ETag` and `If-Match`.
    pub versions: RecordVersions,
    /// The keys of requests that may be sent again.
    pub idempotency_keys: IdempotencyKeys,
    /// The rules about the host names and origins that the gateway accepts.
    pub access: Arc<AccessRules>,
    /// The sign-in mode.
    pub auth_mode: AuthMode,
    /// The OpenID providers at which people sign in.
    pub oidc: OidcDoors,
    /// The proxy that signs people in.
    pub proxy: Option<Arc<ProxyDoor>>,
    /// The identity of this installation.
    pub installation: Arc<Installation>,
    /// The system that the gateway runs on.
    pub system: System,
    pub models: Arc<ModelList>,
    /// The model providers that sessions may use.
    pub providers: Providers,
    /// The audit of everything that people and the gateway do.
    pub audit: AuditTrail,
    /// The notification targets outside of the page for waiting calls.
    pub notifications: Notifications,
    /// The maximum size of a request body in bytes.
    pub body_limit: usize,
    /// The limits of one client at the doors.
    pub limits: DoorLimits,
    /// The open sockets and event streams.
    pub live: socket::LiveConnections,
    /// Exports and shared sessions as documents.
    pub documents: Documents,
}

/// The limits of one client at the doors. Clones share the counters.
#[derive(Clone)]
pub struct DoorLimits {
    /// The requests that run for each client behind a trusted proxy.
    pub requests: Arc<Addresses>,
    /// The time limit of a request's body, extended by one second for each received KiB.
    pub body_time: Option<Duration>,
    /// The tasks that read the rest of the bodies of refused requests.
    pub readers: TaskTracker,
    /// The questions of MCP clients that are being answered.
    pub questions: Arc<Shares>,
    /// Connections and event streams of MCP clients.
    pub streams: Arc<Shares>,
    /// The requests of each user.
    pub pace: Arc<Pace>,
}

impl DoorLimits {
    /// No limits.
    #[cfg(test)]
    fn none() -> Self {
        Self {
            requests: Addresses::new(None, None),
            body_time: None,
            readers: TaskTracker::new(),
            questions: Arc::default(),
            streams: Arc::default(),
            pace: Arc::new(Pace::new(None)),
        }
    }
}

/// Builds the routes of REST and the page. The socket's layer wraps them, and [`guard()`] wraps both.
pub fn router(state: GatewayState) -> axum::Router {
    http::routes()
        .into_routes()
        .layer(from_fn_with_state(state.clone(), versioned::versioned))
        .layer(from_fn_with_state(state.clone(), idempotency::idempotent))
        .route("/api/openapi.json", get(openapi::read_description))
        .route("/api/asyncapi.json", get(asyncapi::read_description))
        .route("/shared/{word}", get(http::show_shared))
        .merge(scim::routes())
        .method_not_allowed_fallback(wrong_method)
        .fallback(spa::fallback)
        .layer(DefaultBodyLimit::max(state.body_limit))
        .with_state(state)
}

async fn wrong_method(method: Method) -> axum::response::Response {
    let text = format!("`{method}` is not possible at this address");
    ApiError::new(Code::MethodNotAllowed, text).into_response()
}
