//! The REST door, one file per noun.

mod approvals;
mod assistants;
mod audit;
mod auth;
mod budgets;
#[cfg(test)]
mod fuzz;
mod gestures;
mod health;
mod mcp_bundles;
mod mcp_registry;
mod mcp_servers;
mod metrics;
mod models;
mod notifications;
mod oidc;
mod passkeys;
mod people;
mod providers;
mod proxy;
mod rules;
mod sessions;
mod shared;
mod skills;
mod system;
mod tenants;
mod token_price;
mod usage;

pub use auth::Installation;
pub use metrics::open_metrics;
pub use models::ModelList;
pub use oidc::{OidcDoor, OidcDoors};
pub(in crate::gateway) use shared::show_shared;
pub use system::{
    Check, DISK_CHECK, DiskPressure, ModelInfo, SandboxInfo, SandboxLimits, StorageInfo, System,
    SystemInfo,
};

use super::api_router::{ApiRouter, routes};

/// All routes.
pub(super) fn routes() -> ApiRouter {
    ApiRouter::new()
        .routes(routes!(auth::read_me))
        .routes(routes!(auth::set_up))
        .routes(routes!(auth::open_link))
        .routes(routes!(auth::sign_in))
        .routes(routes!(auth::sign_out))
        .routes(routes!(auth::issue_ticket))
        .routes(routes!(proxy::sign_in_by_proxy))
        .routes(routes!(oidc::begin_oidc))
        .routes(routes!(oidc::return_from_oidc))
        .routes(routes!(oidc::finish_oidc))
        .routes(routes!(oidc::log_out_by_oidc))
        .routes(routes!(oidc::log_out_in_frame))
        .routes(routes!(people::invitations::read_invitation))
        .routes(routes!(people::invitations::accept_invitation))
        .merge(people::routes())
        .merge(tenants::routes())
        .merge(sessions::routes())
        .routes(routes!(approvals::list_approvals))
        .routes(routes!(approvals::count_approvals))
        .merge(models::routes())
        .merge(mcp_servers::routes())
        .merge(mcp_bundles::routes())
        .merge(mcp_registry::routes())
        .merge(rules::routes())
        .merge(skills::routes())
        .merge(assistants::routes())
        .merge(gestures::routes())
        .merge(passkeys::routes())
        .routes(routes!(providers::list_providers))
        .routes(routes!(providers::find_local_model_servers))
        .routes(routes!(
            providers::read_provider,
            providers::put_provider,
            providers::delete_provider
        ))
        .routes(routes!(providers::test_provider))
        .routes(routes!(shared::read_sharing, shared::put_sharing))
        .routes(routes!(shared::read_shared))
        .routes(routes!(system::read_system))
        .routes(routes!(usage::read_usage))
        .routes(routes!(
            budgets::read_budgets,
            budgets::set_budget,
            budgets::delete_budget
        ))
        .merge(notifications::routes())
        .merge(audit::routes())
        .merge(operation())
}

/// The routes for health probes and metrics scrapers.
fn operation() -> ApiRouter {
    ApiRouter::new()
        .routes(routes!(health::read_health))
        .routes(routes!(health::read_readiness))
        .routes(routes!(metrics::read_metrics))
}
