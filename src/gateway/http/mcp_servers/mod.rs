//! The registry of MCP servers (`/api/mcp`), one file per resource.
//!
//! The registry's own methods check permissions; all of them take the caller.

mod body;
mod connections;
mod health;
mod history;
mod installation;
mod one;
mod pasted;
mod refused;
mod registry;
mod tools;
mod trial;

use axum::http::StatusCode;

use crate::domain::Code;
use crate::gateway::api_router::{ApiRouter, routes};
use crate::gateway::error::ApiError;
use crate::mcp::config::FileError;
use crate::servers;

/// The routes of the registry.
pub(super) fn routes() -> ApiRouter {
    ApiRouter::new()
        .routes(routes!(registry::list_mcp_servers))
        .routes(routes!(registry::add_mcp_server))
        .routes(routes!(pasted::read_pasted_servers))
        .routes(routes!(health::read_mcp_health))
        .routes(routes!(health::read_mcp_server_health))
        .routes(routes!(trial::test_new_mcp_server))
        .routes(routes!(trial::restart_mcp_server))
        .routes(routes!(
            one::read_mcp_server,
            one::change_mcp_server,
            one::delete_mcp_server
        ))
        .routes(routes!(one::set_mcp_secret, one::delete_mcp_secret))
        .routes(routes!(one::read_mcp_logs))
        .routes(routes!(trial::test_mcp_server))
        .routes(routes!(tools::list_mcp_tools))
        .routes(routes!(tools::set_mcp_tool))
        .routes(routes!(tools::read_mcp_tool_history))
        .merge(connection_routes())
        .merge(installation_routes())
}

/// The routes by which people connect to servers with their own accounts.
fn connection_routes() -> ApiRouter {
    ApiRouter::new()
        .routes(routes!(connections::list_mcp_connections))
        .routes(routes!(
            connections::return_from_authorization,
            connections::finish_mcp_connection
        ))
        .routes(routes!(connections::return_from_issuer))
        .routes(routes!(connections::read_mcp_client))
        .routes(routes!(connections::read_mcp_client_of_issuer))
        .routes(routes!(
            connections::connect_mcp_server,
            connections::disconnect_mcp_server
        ))
        .routes(routes!(connections::dismiss_mcp_connection))
}

/// The routes by which packages of servers are installed.
fn installation_routes() -> ApiRouter {
    ApiRouter::new()
        .routes(routes!(installation::preview_mcp_package))
        .routes(routes!(
            installation::read_mcp_installation,
            installation::retry_mcp_installation,
            installation::cancel_mcp_installation
        ))
        .routes(routes!(installation::check_mcp_installation))
        .routes(routes!(installation::accept_mcp_installation))
}

impl From<servers::Error> for ApiError {
    fn from(error: servers::Error) -> Self {
        let text = error.to_string();
        match error {
            servers::Error::NotAllowed(_)
            | servers::Error::NoTransport(_)
            | servers::Error::NoHosts(_) => Self::new(Code::NotAllowed, text),
            servers::Error::Invalid(problems) => {
                let fields = problems.into_iter();
                Self::of_fields(fields.map(|problem| (problem.field, problem.message)))
            }
            servers::Error::Taken(_) | servers::Error::Full(_) | servers::Error::OwnFull(_) => {
                Self::taken("name", text)
            }
            servers::Error::ReadOnly(_) => Self::new(Code::ReadOnly, text),
            servers::Error::NotFound(_)
            | servers::Error::NoBundle(_)
            | servers::Error::NoTool { .. } => Self::new(Code::NotFound, text),
            servers::Error::ChangedTool(now) => {
                let hash = now.hash.as_str().to_owned();
                let tool = serde_json::json!(tools::ServerTool::from(*now));
                let refused = Self::of_field(Code::ChangedSinceShown, "hash", text);
                refused.with("hash", hash.into()).with("tool", tool)
            }
            servers::Error::ReplacedPackage(_) => {
                Self::of_field(Code::ChangedSinceShown, "content", text)
            }
            servers::Error::Package(_) | servers::Error::File(FileError::Broken(_)) => {
                Self::new(Code::InvalidArguments, text).with_status(StatusCode::CONFLICT)
            }
            servers::Error::File(cause) => Self::new(Code::Internal, text).with_cause(cause),
            servers::Error::Store(error) => error.into(),
        }
    }
}
