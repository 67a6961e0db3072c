//! The REST door, one file per noun.

mod auth;
#[cfg(test)]
mod fuzz;
mod health;
mod mcp_servers;
mod metrics;
mod models;
mod providers;
mod sessions;
mod system;
mod token_price;

pub use auth::Installation;
pub use metrics::open_metrics;
pub use models::ModelList;
pub use system::{
    Check, DISK_CHECK, DiskPressure, ModelInfo, SandboxInfo, SandboxLimits, StorageInfo, System,
    SystemInfo,
};

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::GatewayState;

/// All routes, with their description.
pub(super) fn routes(description: utoipa::openapi::OpenApi) -> OpenApiRouter<GatewayState> {
    OpenApiRouter::with_openapi(description)
        .routes(routes!(auth::read_me))
        .routes(routes!(auth::set_up))
        .routes(routes!(auth::open_link))
        .routes(routes!(auth::sign_in))
        .routes(routes!(auth::sign_out))
        .routes(routes!(auth::issue_ticket))
        .merge(of_sessions())
        .merge(models::routes())
        .merge(mcp_servers::routes())
        .routes(routes!(providers::list_providers))
        .routes(routes!(
            providers::read_provider,
            providers::put_provider,
            providers::delete_provider
        ))
        .routes(routes!(providers::test_provider))
        .routes(routes!(system::read_system))
        .merge(operation())
}

/// Sessions, what is done with several of them, and what is found in them.
fn of_sessions() -> OpenApiRouter<GatewayState> {
    OpenApiRouter::new()
        .routes(routes!(
            sessions::list::list_sessions,
            sessions::list::create_session
        ))
        .routes(routes!(
            sessions::one::read_session,
            sessions::one::change_session,
            sessions::one::delete_session
        ))
        .routes(routes!(sessions::bulk::change_sessions))
        .routes(routes!(sessions::search::search_sessions))
        .routes(routes!(sessions::search::search_session))
        .routes(routes!(sessions::events::list_events))
        .routes(routes!(sessions::attachments::attach_file))
        .routes(routes!(sessions::attachments::read_attachment))
        .routes(routes!(sessions::commands::send_message))
        .routes(routes!(sessions::commands::decide_call))
        .routes(routes!(sessions::commands::reset_context))
}

/// What probes and scrapers ask.
fn operation() -> OpenApiRouter<GatewayState> {
    OpenApiRouter::new()
        .routes(routes!(health::read_health))
        .routes(routes!(health::read_readiness))
        .routes(routes!(metrics::read_metrics))
}
