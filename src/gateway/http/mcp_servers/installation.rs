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

/// The package that an entry requests.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Package {
    /// The registry of the package.
    #[schema(value_type = word_list::PackageRegistryName)]
    registry: &'static str,
    /// The package's name.
    name: String,
    /// The requested version, range or tag; absent if the newest version is requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    /// The additional packages; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    with: Vec<String>,
    /// True if install scripts may run.
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

/// The reason a package is not installed.
#[derive(Serialize, ToSchema)]
struct Failure {
    /// The kind of problem.
    #[schema(value_type = word_list::InstallProblemName)]
    reason: InstallProblem,
    /// The error, for people.
    text: String,
    /// The remedy, for people.
    remedy: &'static str,
}

/// An entry whose package is previewed.
#[derive(Deserialize, ToSchema)]
pub(in crate::gateway) struct PackageRequest {
    /// The entry; see docs/mcp-servers.md.
    #[schema(value_type = Object)]
    config: Option<Value>,
}

/// The package that an entry would install.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway) struct PackageResponse {
    /// The requested package; `null` if the entry starts no package.
    package: Option<Package>,
    /// The version that would be installed; absent if the registry does not name it.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    /// The author's description of the package; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<String>,
    /// The reason the package could not be installed; absent if it could.
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

/// An installed package.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Installed)]
struct PackageReport {
    /// The exact version.
    version: String,
    /// The digest of everything that was installed.
    content: String,
    /// The number of installed packages.
    packages: u32,
    /// The packages whose install scripts did not run.
    skipped_scripts: Vec<String>,
}

impl From<InstalledPackage> for PackageReport {
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
    /// The step.
    #[schema(value_type = word_list::InstallStateName)]
    name: &'static str,
    /// When the step began (RFC 3339).
    began_at: String,
    /// The duration of the step in milliseconds; `null` while it runs.
    ms: Option<u64>,
    /// The error; absent if the step did not fail.
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

/// A tool as a version of a package defines it.
#[derive(Serialize, ToSchema)]
struct DefinedTool {
    /// The tool's name.
    name: String,
    /// The tool's description.
    description: String,
    /// The JSON Schema of the tool's arguments.
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

/// A tool whose definition differs in a newer version.
#[derive(Serialize, ToSchema)]
struct ChangedTool {
    /// The definition in the version in use.
    before: DefinedTool,
    /// The definition in the newer version.
    after: DefinedTool,
}

/// A newer version, installed beside the version in use.
#[derive(Serialize, ToSchema)]
struct Newer {
    #[serde(flatten)]
    package: PackageReport,
    /// The tools that only the newer version has.
    added: Vec<DefinedTool>,
    /// The tools that only the version in use has.
    removed: Vec<DefinedTool>,
    /// The tools that both versions have, with different definitions.
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

/// The installation of a server's package.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway) struct InstallationResponse {
    /// The state of the installation.
    #[schema(value_type = word_list::InstallStateName)]
    state: &'static str,
    /// The package that the server's entry requests.
    package: Package,
    /// The installation that sessions use; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    installed: Option<PackageReport>,
    /// A newer version that waits for an admin's decision; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    newer: Option<Newer>,
    /// The steps of the installation.
    phases: Vec<Phase>,
    /// The last lines of the installer's output, for callers who manage the server; empty for others.
    log: Vec<String>,
    /// The reason the last installation failed; absent if it did not fail.
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

/// The newer version that an admin reviewed.
#[derive(Deserialize, ToSchema)]
pub(in crate::gateway) struct AcceptRequest {
    /// The `content` of `newer`, as it was shown.
    #[schema(value_type = String, required)]
    content: Option<String>,
}

/// Previews the package that an entry would install, from the current data of the registry. The entry is not
/// stored.
///
/// Only for callers who may add servers; a bundle is previewed only for admins.
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

/// Returns the state of the installation of a server's package.
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

/// Repeats a failed installation. If a version is installed, looks for a newer one instead.
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

/// Cancels a running installation.
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

/// Looks for a newer version of a server's package.
///
/// A newer version is installed beside the version in use, and its tools are listed. Sessions use it only
/// after it is accepted.
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

/// Puts the newer version that was shown into use. Its tools count as accepted as they were shown.
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
