//! Connects people to remote servers with their own accounts (OAuth): begins, finishes and ends connections.

use axum::Json;
use axum::extract::{Path, RawQuery, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use url::Url;
use utoipa::ToSchema;

use crate::domain::{Caller, Code, Timestamp};
use crate::gateway::GatewayState;
use crate::gateway::error::{ApiError, Problem};
use crate::gateway::extract::{Body, Query, required};
use crate::gateway::foreign_answer;
use crate::gateway::paging::PageQuery;
use crate::gateway::word_list;
use crate::mcp::authorization::client_metadata;
use crate::servers::{ConnectionAnswer, ConnectionReport, RedirectAddress};

/// The path of the OAuth callback, below the address of this installation.
const CALLBACK: &str = "api/mcp/oauth/callback";
const CLIENT: &str = "api/mcp/oauth/client";
/// The page that receives the authorisation server's answer.
const PAGE: &str = "connected";

/// The caller's connection to a server.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway) struct ServerConnection {
    /// The server's name.
    name: String,
    /// The state of the connection; `needed` if a call of the caller found that the server requires the
    /// caller to connect, or to allow more.
    #[schema(value_type = word_list::ConnectionState)]
    state: &'static str,
    /// When the caller connected (RFC 3339); absent if the caller is not connected.
    #[serde(skip_serializing_if = "Option::is_none")]
    connected_at: Option<String>,
    /// When the server began to require the caller (RFC 3339); absent if it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    needed_since: Option<String>,
    /// The scopes that the caller allowed.
    scopes: Vec<String>,
    /// The further scopes that the server requires, if it names them.
    wants: Vec<String>,
}

impl From<ConnectionReport> for ServerConnection {
    fn from(report: ConnectionReport) -> Self {
        Self {
            name: report.server,
            state: report.state.as_str(),
            connected_at: report.connected_at.map(Timestamp::to_rfc3339),
            needed_since: report.needed_since.map(Timestamp::to_rfc3339),
            scopes: report.scopes,
            wants: report.wants,
        }
    }
}

/// The caller's connections to servers.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway) struct ServerConnections {
    /// The connections.
    items: Vec<ServerConnection>,
    /// The cursor of the next page; `null` if there is none.
    next_cursor: Option<String>,
}

/// The page to which the caller returns.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway) struct ConnectServerRequest {
    /// A path of Sepal's page, such as that of the session; `/` if absent.
    #[schema(max_length = 512, pattern = "^/")]
    return_to: Option<String>,
}

/// The page on which the caller allows the connection.
#[derive(Serialize, ToSchema)]
pub(in crate::gateway) struct ConnectServerResponse {
    /// The address to open, at the authorisation server.
    url: String,
}

/// The answer of the authorisation server, as its parameters stand in the address to which the caller was
/// sent back.
#[derive(Deserialize, ToSchema)]
pub(in crate::gateway) struct FinishConnectionRequest {
    /// The OAuth `state`, which identifies the connection that the caller began.
    #[schema(value_type = String, required, nullable = false, max_length = 128)]
    state: Option<SecretString>,
    /// The last segment of the callback's address, after `callback/`; absent or empty if there is none.
    #[schema(max_length = 64)]
    at: Option<String>,
    /// The authorisation code; absent if the authorisation server reports an error.
    #[schema(value_type = Option<String>)]
    code: Option<SecretString>,
    /// The issuer that answers (RFC 9207); absent if the answer does not name it.
    iss: Option<String>,
    /// The error code of the authorisation server; absent if it allowed the connection.
    error: Option<String>,
    /// The authorisation server's description of the error.
    error_description: Option<String>,
}

/// The new connection.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway) struct FinishConnectionResponse {
    /// The server's name.
    name: String,
    /// The path of Sepal's page from which the caller began.
    return_to: String,
}

/// Lists the caller's connections to MCP servers, including those that servers require and the caller has not
/// made.
#[utoipa::path(get, path = "/api/mcp/oauth/connections", tag = "mcp", params(PageQuery), responses(
    (status = 200, body = ServerConnections), (status = 401, body = Problem),
))]
pub(in crate::gateway) async fn list_mcp_connections(
    State(state): State<GatewayState>,
    caller: Caller,
    Query(query): Query<PageQuery>,
) -> Result<Json<ServerConnections>, ApiError> {
    let items = state.servers.person_connections(&caller).list().await?;
    let items = items.into_iter().map(ServerConnection::from).collect();
    let page = query.page(items, |connection: &ServerConnection| {
        connection.name.clone()
    })?;
    Ok(Json(ServerConnections {
        items: page.items,
        next_cursor: page.next_cursor,
    }))
}

/// Begins to connect the caller to a remote server, and returns the address at which the caller allows the
/// connection.
///
/// The caller has ten minutes to allow it.
#[utoipa::path(post, path = "/api/mcp/{name}/connect", tag = "mcp", params(("name" = String, Path)),
    request_body = ConnectServerRequest, responses(
    (status = 200, body = ConnectServerResponse), (status = 400, body = Problem),
    (status = 401, body = Problem), (status = 403, body = Problem), (status = 404, body = Problem),
    (status = 502, body = Problem), (status = 503, body = Problem),
))]
pub(in crate::gateway) async fn connect_mcp_server(
    State(state): State<GatewayState>,
    caller: Caller,
    Path(name): Path<String>,
    parts: Parts,
    Body(request): Body<ConnectServerRequest>,
) -> Result<Json<ConnectServerResponse>, ApiError> {
    let own = own_address(&state, &parts)?;
    let connections = state.servers.person_connections(&caller);
    let return_to = request.return_to.as_deref();
    let begun = connections.begin(&name, &own, return_to).await?;
    Ok(Json(ConnectServerResponse {
        url: begun.url.into(),
    }))
}

/// Receives people whom an authorisation server sends back.
///
/// The operation changes nothing: it redirects to Sepal's page, which reads the parameters behind the `#` and
/// sends them by POST.
#[utoipa::path(get, path = "/api/mcp/oauth/callback", tag = "mcp", security(()), responses(
    (status = 303, description = "Our page."), (status = 400, body = Problem),
))]
pub(in crate::gateway) async fn return_from_authorization(
    State(state): State<GatewayState>,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    lead_to_page(&state, "", query)
}

/// Receives people whom the authorisation server of one issuer sends back.
///
/// The operation changes nothing: it redirects to Sepal's page, and adds the issuer's segment of the address
/// to the parameters.
#[utoipa::path(get, path = "/api/mcp/oauth/callback/{issuer}", tag = "mcp", security(()),
    params(("issuer" = String, Path)), responses(
    (status = 303, description = "Our page."), (status = 400, body = Problem),
))]
pub(in crate::gateway) async fn return_from_issuer(
    State(state): State<GatewayState>,
    Path(issuer): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let is_part = issuer.bytes().all(|byte| byte.is_ascii_hexdigit());
    let issuer = if is_part { issuer.as_str() } else { "" };
    lead_to_page(&state, issuer, query)
}

fn lead_to_page(
    state: &GatewayState,
    issuer: &str,
    query: Option<String>,
) -> Result<Response, ApiError> {
    let refused = "what the authorisation server says cannot be read";
    foreign_answer::lead_to_page(state, PAGE, issuer, query)
        .ok_or_else(|| ApiError::new(Code::InvalidArguments, refused))
}

/// Finishes a connection of the caller with the answer of the authorisation server.
///
/// The answer works once, and only for the person who began the connection.
#[utoipa::path(post, path = "/api/mcp/oauth/callback", tag = "mcp",
    request_body = FinishConnectionRequest, responses(
    (status = 200, body = FinishConnectionResponse), (status = 400, body = Problem),
    (status = 401, body = Problem), (status = 403, body = Problem), (status = 404, body = Problem),
    (status = 502, body = Problem), (status = 503, body = Problem),
))]
pub(in crate::gateway) async fn finish_mcp_connection(
    State(state): State<GatewayState>,
    caller: Caller,
    Body(request): Body<FinishConnectionRequest>,
) -> Result<Json<FinishConnectionResponse>, ApiError> {
    let answer = ConnectionAnswer {
        state: required("state", request.state)?,
        redirect_part: request.at.filter(|at| !at.is_empty()),
        code: request.code,
        issuer: request.iss,
        error: request.error,
        error_description: request.error_description,
    };
    let connections = state.servers.person_connections(&caller);
    let (name, return_to) = connections.finish(answer).await?;
    Ok(Json(FinishConnectionResponse { name, return_to }))
}

/// Ends the caller's connection to a server. Its tokens are revoked if the authorisation server supports
/// that, and deleted.
#[utoipa::path(delete, path = "/api/mcp/{name}/connect", tag = "mcp",
    params(("name" = String, Path)), responses(
    (status = 204), (status = 400, body = Problem), (status = 401, body = Problem),
    (status = 403, body = Problem), (status = 404, body = Problem),
))]
pub(in crate::gateway) async fn disconnect_mcp_server(
    State(state): State<GatewayState>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<StatusCode, ApiError> {
    state
        .servers
        .person_connections(&caller)
        .disconnect(&name)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Notes that the caller does not connect now to a server that requires it: the caller's calls that wait for
/// the connection end.
#[utoipa::path(post, path = "/api/mcp/{name}/connect/dismiss", tag = "mcp",
    params(("name" = String, Path)), responses(
    (status = 204), (status = 400, body = Problem), (status = 401, body = Problem),
    (status = 403, body = Problem), (status = 404, body = Problem),
))]
pub(in crate::gateway) async fn dismiss_mcp_connection(
    State(state): State<GatewayState>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<StatusCode, ApiError> {
    state
        .servers
        .person_connections(&caller)
        .dismiss(&name)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Returns the OAuth client metadata of this installation, for authorisation servers that read it from our
/// address. It exists only if the public address is https.
#[utoipa::path(get, path = "/api/mcp/oauth/client", tag = "mcp", security(()), responses(
    (status = 200, body = Object), (status = 404, body = Problem),
))]
pub(in crate::gateway) async fn read_mcp_client(
    State(state): State<GatewayState>,
    parts: Parts,
) -> Result<Json<Value>, ApiError> {
    client_document(own_address(&state, &parts)?)
}

/// Returns the OAuth client metadata for one issuer. It exists only if the public address is https.
#[utoipa::path(get, path = "/api/mcp/oauth/client/{issuer}", tag = "mcp", security(()),
    params(("issuer" = String, Path)), responses(
    (status = 200, body = Object), (status = 404, body = Problem),
))]
pub(in crate::gateway) async fn read_mcp_client_of_issuer(
    State(state): State<GatewayState>,
    Path(issuer): Path<String>,
    parts: Parts,
) -> Result<Json<Value>, ApiError> {
    let own = own_address(&state, &parts)?.of_issuer(&issuer);
    let text = "no issuer has this address";
    client_document(own.ok_or_else(|| ApiError::new(Code::NotFound, text))?)
}

fn client_document(own: RedirectAddress) -> Result<Json<Value>, ApiError> {
    let Some(document) = own.client_document else {
        let text = "there is such a document only where `runtime.http.public_url` \
                    (SPL_PUBLIC_URL) is an https address";
        return Err(ApiError::new(Code::NotFound, text));
    };
    Ok(Json(client_metadata(&document, &own.callback)))
}

/// Returns our OAuth addresses, on the host by which the client reached this installation.
fn own_address(state: &GatewayState, parts: &Parts) -> Result<RedirectAddress, ApiError> {
    let base = state.access.address(parts);
    let join = |path: &str| base.as_ref().and_then(|base| base.join(path).ok());
    let callback = join(CALLBACK).ok_or_else(|| {
        let text = "the address of this installation is not known: set \
                    `runtime.http.public_url` (SPL_PUBLIC_URL)";
        ApiError::new(Code::InvalidArguments, text)
    })?;
    // Authorisation servers have to fetch the document. Only the operator knows whether they can: the public
    // address has to be set, with https.
    let is_public = |url: &Url| url.scheme() == "https" && state.access.is_public(url);
    Ok(RedirectAddress {
        client_document: join(CLIENT).filter(is_public),
        callback,
    })
}
