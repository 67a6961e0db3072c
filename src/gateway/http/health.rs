//! Answers health probes (`/healthz`, `/readyz`). The answers name no person, path or key.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use super::system::SANDBOX_CHECK;
use crate::domain::SandboxKind;
use crate::gateway::GatewayState;

/// The answer of a running process.
#[derive(Serialize, ToSchema)]
pub(super) struct Health {
    /// Always `ok`.
    status: &'static str,
}

/// The readiness of the gateway to accept commands.
#[derive(Serialize, ToSchema)]
pub(super) struct Readiness {
    /// `ready` or `not_ready`.
    status: &'static str,
    /// `ok`, or an error that names the unreachable part: the database or Redis.
    store: String,
    /// `ok`, or `unavailable`: then sessions work, but without sandboxed tools.
    sandbox: &'static str,
    /// The remedy for an unavailable sandbox; absent if the sandbox is available or there is no remedy.
    #[serde(rename = "sandboxRemedy", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    sandbox_remedy: Option<String>,
}

/// Reports that the process is running.
#[utoipa::path(get, path = "/healthz", tag = "operation", responses((status = 200, body = Health)))]
pub(super) async fn read_health() -> Json<Health> {
    Json(Health { status: "ok" })
}

/// Reports whether the gateway would accept commands. The body says what is unavailable.
#[utoipa::path(get, path = "/readyz", tag = "operation", responses(
    (status = 200, body = Readiness), (status = 503, body = Readiness),
))]
pub(super) async fn read_readiness(
    State(state): State<GatewayState>,
) -> (StatusCode, Json<Readiness>) {
    let ping = state.store.ping().await;
    let (status, word) = match &ping {
        Ok(()) => (StatusCode::OK, "ready"),
        Err(error) => {
            tracing::warn!(?error, "The store does not answer the readiness probe");
            (StatusCode::SERVICE_UNAVAILABLE, "not_ready")
        }
    };
    let system = state.system.now();
    let sandbox = &system.sandbox;
    let is_sandboxed = sandbox.ok && sandbox.kind != SandboxKind::None;
    let mut checks = system.checks.iter();
    let lack = checks.find(|check| check.name == SANDBOX_CHECK && !is_sandboxed);
    let readiness = Readiness {
        status: word,
        store: ping
            .err()
            .map_or_else(|| "ok".to_owned(), |error| error.to_string()),
        sandbox: if is_sandboxed { "ok" } else { "unavailable" },
        sandbox_remedy: lack.and_then(|check| check.remedy.clone()),
    };
    (status, Json(readiness))
}
