//! Manages the packages of servers: previews, progress, retries, cancellation and newer versions.

use axum::Json;
use axum::extract::{Path, State};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::domain::{Caller, InstallPhase, InstallProblem, InstalledPackage, PackageSpec, Tool};
use crate::gateway::GatewayState;
use crate::gateway::error::{ApiError, Problem};
use crate::gateway::extract::{Body, required};
use crate::gateway::word_list;
use crate::servers::{InstallationReport, PackageAdministration, PackagePreview, ToolChanges};

/// A package that is asked for.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Package {
    /// Where it comes from.
    #[schema(value_type = word_list::PackageRegistryName)]
    registry: &'static str,
    name: String,
    /// As the entry asks for it; without, the newest.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    /// More packages beside it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    with: Vec<String>,
    /// Whether install scripts may run.
    allow_scripts: bool,
}

impl From<PackageSpec> for Package {
    fn from(spec: PackageSpec) -> Self {
        Self {
            registry: spec.registry.as_str(),
            name: spec.name,
            version: spec.version,
            with: spec.with,
            allow_scripts: spec.allow_scripts,
        }
    }
}

/// Why something is not installed.
#[derive(Serialize, ToSchema)]
struct Failure {
    /// The likely reason.
    #[schema(value_type = word_list::InstallProblemName)]
    reason: InstallProblem,
    /// What went wrong.
    text: String,
    /// What helps.
    remedy: &'static str,
}

/// An entry whose package a person wants to know about.
#[derive(Deserialize, ToSchema)]
pub(in crate::gateway) struct PackageRequest {
    /// The entry; see docs/mcp-servers.md.
    #[schema(value_type = Object)]
    config: Option<Value>,
}

/// What an entry would install.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway) struct PackageResponse {
    /// Null if it starts no package.
    package: Option<Package>,
    /// The version that would be taken, where the registry tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    /// What its author says that it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<String>,
    /// Why it could not be installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<Failure>,
}

impl From<Option<PackagePreview>> for PackageResponse {
    fn from(preview: Option<PackagePreview>) -> Self {
        let Some(preview) = preview else {
            return Self {
                package: None,
                version: None,
                summary: None,
                failure: None,
            };
        };
        Self {
            package: Some(preview.spec.into()),
            version: preview.version,
            summary: preview.summary,
            failure: preview.refused.map(|(reason, text)| Failure {
                reason,
                text,
                remedy: reason.remedy(),
            }),
        }
    }
}

/// What is installed.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Installed {
    /// Exactly.
    version: String,
    /// The hash of all that was installed.
    content: String,
    /// How many packages that are.
    packages: u32,
    /// Packages whose install scripts did not run.
    skipped_scripts: Vec<String>,
}

impl From<InstalledPackage> for Installed {
    fn from(package: InstalledPackage) -> Self {
        Self {
            version: package.version,
            content: package.content.as_str().to_owned(),
            packages: package.packages,
            skipped_scripts: package.skipped_scripts,
        }
    }
}

/// A step of an installation.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Phase {
    #[schema(value_type = word_list::InstallStateName)]
    name: &'static str,
    began_at: String,
    /// Milliseconds; null while it goes on.
    ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl From<InstallPhase> for Phase {
    fn from(phase: InstallPhase) -> Self {
        Self {
            name: phase.name.as_str(),
            began_at: phase.began_at.to_rfc3339(),
            ms: phase.ms,
            error: phase.error,
        }
    }
}

/// A tool as a version defines it.
#[derive(Serialize, ToSchema)]
struct DefinedTool {
    name: String,
    description: String,
    /// JSON Schema of its arguments.
    schema: Value,
}

impl From<Tool> for DefinedTool {
    fn from(tool: Tool) -> Self {
        Self {
            name: tool.name,
            description: tool.description,
            schema: tool.input_schema,
        }
    }
}

/// A tool that a newer version defines otherwise.
#[derive(Serialize, ToSchema)]
struct ChangedTool {
    before: DefinedTool,
    after: DefinedTool,
}

/// A newer version beside the one that is used.
#[derive(Serialize, ToSchema)]
struct Newer {
    #[serde(flatten)]
    package: Installed,
    /// Tools that only the newer version has.
    added: Vec<DefinedTool>,
    /// Tools that only the used version has.
    removed: Vec<DefinedTool>,
    /// Tools that both have, with other definitions.
    changed: Vec<ChangedTool>,
}

impl Newer {
    fn new(package: InstalledPackage, changes: ToolChanges) -> Self {
        let defined = |tools: Vec<Tool>| tools.into_iter().map(DefinedTool::from).collect();
        let both = changes.changed.into_iter();
        Self {
            package: package.into(),
            added: defined(changes.added),
            removed: defined(changes.removed),
            changed: both
                .map(|(before, after)| ChangedTool {
                    before: before.into(),
                    after: after.into(),
                })
                .collect(),
        }
    }
}

/// How far a server's package is.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway) struct InstallationResponse {
    #[schema(value_type = word_list::InstallStateName)]
    state: &'static str,
    package: Package,
    /// What sessions use.
    #[serde(skip_serializing_if = "Option::is_none")]
    installed: Option<Installed>,
    /// A newer version that nobody uses yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    newer: Option<Newer>,
    phases: Vec<Phase>,
    /// The last lines of the installer, for admins.
    log: Vec<String>,
    /// Why the last installation failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<Failure>,
}

impl From<InstallationReport> for InstallationResponse {
    fn from(report: InstallationReport) -> Self {
        let installation = report.installation;
        let text = installation.error().unwrap_or_default().to_owned();
        let newer = installation.candidate.zip(report.changes);
        Self {
            state: installation.state.as_str(),
            package: installation.spec.into(),
            installed: installation.installed.map(Into::into),
            newer: newer.map(|(package, changes)| Newer::new(package, changes)),
            phases: installation.phases.into_iter().map(Into::into).collect(),
            log: if report.has_log {
                installation.log
            } else {
                Vec::new()
            },
            failure: installation.problem.map(|reason| Failure {
                reason,
                text,
                remedy: reason.remedy(),
            }),
        }
    }
}

/// The version that an admin looked at.
#[derive(Deserialize, ToSchema)]
pub(in crate::gateway) struct AcceptRequest {
    /// The `content` of `newer` as it was shown.
    #[schema(value_type = String, required)]
    content: Option<String>,
}

/// What an entry that is not stored would install, as the registry tells it now; for admins.
#[utoipa::path(post, path = "/api/mcp/package", tag = "mcp", request_body = PackageRequest, responses(
    (status = 200, body = PackageResponse), (status = 400, body = Problem),
    (status = 401, body = Problem), (status = 403, body = Problem),
))]
pub(in crate::gateway) async fn preview_mcp_package(
    State(state): State<GatewayState>,
    caller: Caller,
    Body(request): Body<PackageRequest>,
) -> Result<Json<PackageResponse>, ApiError> {
    let config = required("config", request.config)?;
    let config = serde_json::from_value(config)
        .map_err(|error| ApiError::of_fields([("config".to_owned(), error.to_string())]))?;
    let packages = PackageAdministration::new(&state.servers, &caller);
    Ok(Json(packages.preview(&config).await?.into()))
}

/// How far the package of a server is.
#[utoipa::path(get, path = "/api/mcp/{name}/installation", tag = "mcp",
    params(("name" = String, Path)), responses(
    (status = 200, body = InstallationResponse), (status = 401, body = Problem),
    (status = 404, body = Problem), (status = 409, body = Problem),
))]
pub(in crate::gateway) async fn read_mcp_installation(
    State(state): State<GatewayState>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Json<InstallationResponse>, ApiError> {
    let packages = PackageAdministration::new(&state.servers, &caller);
    Ok(Json(packages.report(&name).await?.into()))
}

/// Installs once more what could not be installed.
#[utoipa::path(post, path = "/api/mcp/{name}/installation", tag = "mcp",
    params(("name" = String, Path)), responses(
    (status = 200, body = InstallationResponse), (status = 401, body = Problem),
    (status = 403, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem),
))]
pub(in crate::gateway) async fn retry_mcp_installation(
    State(state): State<GatewayState>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Json<InstallationResponse>, ApiError> {
    let packages = PackageAdministration::new(&state.servers, &caller);
    Ok(Json(packages.retry(&name).await?.into()))
}

/// Stops an installation.
#[utoipa::path(delete, path = "/api/mcp/{name}/installation", tag = "mcp",
    params(("name" = String, Path)), responses(
    (status = 200, body = InstallationResponse), (status = 401, body = Problem),
    (status = 403, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem),
))]
pub(in crate::gateway) async fn cancel_mcp_installation(
    State(state): State<GatewayState>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Json<InstallationResponse>, ApiError> {
    let packages = PackageAdministration::new(&state.servers, &caller);
    Ok(Json(packages.cancel(&name).await?.into()))
}

/// Looks for a newer version: it is installed beside the one that is used, and its tools are listed.
/// Nobody uses it until an admin says so.
#[utoipa::path(post, path = "/api/mcp/{name}/installation/check", tag = "mcp",
    params(("name" = String, Path)), responses(
    (status = 200, body = InstallationResponse), (status = 401, body = Problem),
    (status = 403, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem),
))]
pub(in crate::gateway) async fn check_mcp_installation(
    State(state): State<GatewayState>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Json<InstallationResponse>, ApiError> {
    let packages = PackageAdministration::new(&state.servers, &caller);
    Ok(Json(packages.check(&name).await?.into()))
}

/// Takes the newer version that was shown; its tools count as accepted as they were shown.
#[utoipa::path(post, path = "/api/mcp/{name}/installation/accept", tag = "mcp",
    params(("name" = String, Path)), request_body = AcceptRequest, responses(
    (status = 200, body = InstallationResponse), (status = 400, body = Problem),
    (status = 401, body = Problem), (status = 403, body = Problem), (status = 404, body = Problem),
    (status = 409, body = Problem),
))]
pub(in crate::gateway) async fn accept_mcp_installation(
    State(state): State<GatewayState>,
    caller: Caller,
    Path(name): Path<String>,
    Body(request): Body<AcceptRequest>,
) -> Result<Json<InstallationResponse>, ApiError> {
    let content = required("content", request.content)?;
    let packages = PackageAdministration::new(&state.servers, &caller);
    Ok(Json(packages.accept(&name, &content).await?.into()))
}
