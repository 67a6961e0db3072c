//! Reads what people paste when they add servers: files of any program, command lines, and addresses.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::domain::{Caller, Code, McpServerConfig};
use crate::gateway::GatewayState;
use crate::gateway::error::{ApiError, Problem};
use crate::gateway::extract::{Body, required};
use crate::gateway::word_list;
use crate::mcp::config::Pasted;

/// The longest text, in bytes.
const MAX_BYTES: usize = 256 * 1024;

/// A text that somebody pasted.
#[derive(Deserialize, ToSchema)]
pub(in crate::gateway) struct ReadServersRequest {
    /// The text: a configuration in JSON, of any program and with its usual flaws; a command line; or an address.
    /// At most 256 KiB.
    text: Option<String>,
}

/// The servers of a pasted text.
#[derive(Serialize, ToSchema)]
pub(in crate::gateway) struct ReadServersResponse {
    /// The kind of the text; `nothing` if no server is in it.
    #[schema(value_type = word_list::PastedWire)]
    kind: &'static str,
    /// The servers that can be added.
    servers: Vec<ReadServer>,
    /// One sentence for each entry that cannot be used; it says what to change.
    problems: Vec<String>,
}

/// A server of a pasted text. It is not added, and its entry is not checked yet.
#[derive(Serialize, ToSchema)]
pub(in crate::gateway) struct ReadServer {
    /// A valid name.
    name: String,
    /// The entry; see docs/mcp-servers.md. Secrets stand in it as they were pasted.
    #[schema(value_type = Object)]
    config: McpServerConfig,
}

impl From<Pasted> for ReadServersResponse {
    fn from(pasted: Pasted) -> Self {
        let servers = pasted.servers.into_iter().map(|server| ReadServer {
            name: server.name,
            config: server.config,
        });
        Self {
            kind: pasted.kind.as_str(),
            servers: servers.collect(),
            problems: pasted.problems,
        }
    }
}

/// Reads a pasted text, and returns the servers that could be added. Nothing is stored, started or asked.
#[utoipa::path(post, path = "/api/mcp/read", tag = "mcp", request_body = ReadServersRequest, responses(
    (status = 200, body = ReadServersResponse), (status = 400, body = Problem),
    (status = 401, body = Problem), (status = 403, body = Problem),
))]
pub(in crate::gateway) async fn read_pasted_servers(
    State(state): State<GatewayState>,
    caller: Caller,
    Body(request): Body<ReadServersRequest>,
) -> Result<Json<ReadServersResponse>, ApiError> {
    let text = required("text", request.text)?;
    if text.len() > MAX_BYTES {
        let problem = format!("`text` has at most {MAX_BYTES} bytes");
        return Err(ApiError::of_field(Code::TooLarge, "text", problem));
    }
    let pasted = state.servers.administration(&caller).read_pasted(&text)?;
    Ok(Json(pasted.into()))
}
