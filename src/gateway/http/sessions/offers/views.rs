//! Serves the views of tools (MCP Apps): their documents, and the frame in which a browser shows one.
//!
//! The frame is an empty page of ours. It has no origin, and its policy allows the hosts that the view
//! declares and the person agreed to; the page that embeds the frame hands it the document, once.

use axum::Json;
use axum::extract::State;
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, X_FRAME_OPTIONS};
use axum::http::{HeaderName, HeaderValue};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::super::{CONNECTION_ALLOWLIST, DNS_PREFETCH, key_of};
use super::body::ReadResourceRequest;
use crate::agent::{ServerView, SessionOffers, ViewBody, ViewContent};
use crate::domain::{CallId, Caller, Code, ResourceRef, ViewHost, ViewHosts, ViewReach};
use crate::gateway::GatewayState;
use crate::gateway::error::{ApiError, Problem};
use crate::gateway::extract::{Body, Query, SessionPath};

/// Waits for one document from the embedding page, and replaces itself by that document. The written document
/// keeps this response's policy and this window. Not every browser's policy can block peer-to-peer
/// connections, so the script first removes WebRTC's constructors from the window.
const FRAME: &str = "<!doctype html><meta charset=\"utf-8\"><title>View</title><script>\
(() => {
  const host = window.parent
  if (host === window) return
  for (const name of Object.getOwnPropertyNames(window)) {
    if (/^(moz|webkit)?RTC/.test(name)) Object.defineProperty(window, name, { value: undefined })
  }
  const take = ({ source, data }) => {
    if (source !== host || data?.method !== 'ui/notifications/sandbox-resource-ready') return
    removeEventListener('message', take)
    document.open()
    document.write(String(data.params?.html ?? ''))
    document.close()
  }
  addEventListener('message', take)
  host.postMessage({ jsonrpc: '2.0', method: 'ui/notifications/sandbox-proxy-ready', params: {} }, '*')
})()
</script>";

/// The `permissions-policy` of a view: it gets none of these features, whatever frame it is in.
const PERMISSIONS: &str = "camera=(), microphone=(), geolocation=(), clipboard-read=(), \
    clipboard-write=(), display-capture=(), payment=(), usb=(), serial=(), hid=(), midi=(), \
    publickey-credentials-get=(), screen-wake-lock=(), fullscreen=()";

/// The document of a view, and the frame in which it may be shown.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway::http) struct ViewDocument {
    /// The document. It is hostile: show it only in its frame.
    html: String,
    /// The address of the document's frame, with the view's policy in its query; relative to the page's own
    /// address.
    frame: String,
    /// The hosts that the view may send to and read from. The person should agree to them before the view is
    /// loaded.
    connect: Vec<String>,
    /// The hosts from which the view may load scripts, styles, images, fonts and media.
    load: Vec<String>,
    /// The hosts whose pages the view may show.
    frames: Vec<String>,
    /// The hosts at which the view's relative addresses may begin.
    base: Vec<String>,
    /// The declared values that are not hosts or exceed the limit, and are not allowed.
    left_out: Vec<String>,
    /// The browser permissions that the view requests and does not get: `camera`, `microphone`,
    /// `geolocation`, `clipboardWrite`.
    permissions: Vec<&'static str>,
}

impl From<ServerView> for ViewDocument {
    fn from(view: ServerView) -> Self {
        let of = |reach: ViewReach| -> Vec<String> {
            let hosts = view.hosts.of(reach).iter();
            hosts.map(|host| host.as_str().to_owned()).collect()
        };
        Self {
            frame: frame_address(&view.hosts),
            connect: of(ViewReach::Connect),
            load: of(ViewReach::Load),
            frames: of(ViewReach::Frame),
            base: of(ViewReach::Base),
            html: view.html,
            left_out: view.left_out,
            permissions: view.permissions,
        }
    }
}

fn frame_address(hosts: &ViewHosts) -> String {
    let mut query = url::form_urlencoded::Serializer::new("api/view-frame?".to_owned());
    for reach in ViewReach::ALL {
        let listed: Vec<&str> = hosts.of(reach).iter().map(ViewHost::as_str).collect();
        if !listed.is_empty() {
            query.append_pair(name_of(reach), &listed.join(" "));
        }
    }
    query.finish()
}

fn name_of(reach: ViewReach) -> &'static str {
    match reach {
        ViewReach::Connect => "connect",
        ViewReach::Load => "load",
        ViewReach::Frame => "frames",
        ViewReach::Base => "base",
    }
}

/// Reads the document of a tool's view (MCP Apps) over the session's own connection. Only for the session's
/// owner. Nothing is stored.
#[utoipa::path(post, path = "/api/sessions/{id}/views", tag = "sessions",
    params(("id" = String, Path)), request_body = ReadResourceRequest,
    responses((status = 200, body = ViewDocument), (status = 400, body = Problem),
        (status = 403, body = Problem), (status = 404, body = Problem),
        (status = 502, body = Problem)),
)]
pub(in crate::gateway::http) async fn read_view(
    State(state): State<GatewayState>,
    caller: Caller,
    SessionPath(session): SessionPath,
    Body(request): Body<ReadResourceRequest>,
) -> Result<Json<ViewDocument>, ApiError> {
    let key = key_of(&caller, session);
    let which: ResourceRef = request.into();
    let offers = SessionOffers::of(&state.sessions);
    Ok(Json(offers.view(&key, &caller, &which).await?.into()))
}

/// A resource that a view reads.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway::http) struct ReadForViewRequest {
    /// The id of the call whose view it is. The resource is read from that call's server.
    call_id: String,
    /// The resource's address at the server.
    uri: String,
}

/// The content of a resource that a view reads.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::gateway::http) struct ViewResource {
    /// The pieces of the content.
    contents: Vec<ViewResourceContent>,
}

/// A piece of a resource's content: either `text` or `blob`.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway::http) struct ViewResourceContent {
    /// The address of the piece at the server.
    uri: String,
    /// The media type, as the server states it; absent if it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    mime_type: Option<String>,
    /// The text; absent if the piece is binary.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// The bytes in base64; absent if the piece is text.
    #[serde(skip_serializing_if = "Option::is_none")]
    blob: Option<String>,
}

impl From<ViewContent> for ViewResourceContent {
    fn from(content: ViewContent) -> Self {
        let (text, blob) = match content.body {
            ViewBody::Text(text) => (Some(text), None),
            ViewBody::Bytes(bytes) => (None, Some(STANDARD.encode(bytes))),
        };
        Self {
            uri: content.uri,
            mime_type: content.mime_type,
            text,
            blob,
        }
    }
}

/// Reads a resource for the view of a call, over the session's own connection. Only for the session's owner.
///
/// Only resources of that call's server can be read. Nothing is stored.
#[utoipa::path(post, path = "/api/sessions/{id}/views/resources", tag = "sessions",
    params(("id" = String, Path)), request_body = ReadForViewRequest,
    responses((status = 200, body = ViewResource), (status = 400, body = Problem),
        (status = 403, body = Problem), (status = 404, body = Problem),
        (status = 413, body = Problem), (status = 429, body = Problem),
        (status = 502, body = Problem)),
)]
pub(in crate::gateway::http) async fn read_for_view(
    State(state): State<GatewayState>,
    caller: Caller,
    SessionPath(session): SessionPath,
    Body(request): Body<ReadForViewRequest>,
) -> Result<Json<ViewResource>, ApiError> {
    let key = key_of(&caller, session);
    let call = CallId::from_wire(request.call_id);
    let offers = SessionOffers::of(&state.sessions);
    let read = offers.read_for_view(&key, &caller, &call, &request.uri);
    let contents = read.await?.into_iter().map(ViewResourceContent::from);
    Ok(Json(ViewResource {
        contents: contents.collect(),
    }))
}

/// The hosts of a view's policy, separated by spaces.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::gateway::http) struct FrameQuery {
    /// The hosts that the view may send to and read from.
    connect: Option<String>,
    /// The hosts from which the view may load scripts, styles, images, fonts and media.
    load: Option<String>,
    /// The hosts whose pages the view may show.
    frames: Option<String>,
    /// The hosts at which the view's relative addresses may begin.
    base: Option<String>,
}

/// Returns the empty frame in which a view is shown, sealed by a policy that allows only the given hosts.
///
/// The frame shows the document that the embedding page hands to it, once.
#[utoipa::path(get, path = "/api/view-frame", tag = "sessions", params(FrameQuery),
    responses((status = 200, description = "The frame.", content_type = "text/html", body = String),
        (status = 400, body = Problem), (status = 401, body = Problem)),
)]
pub(in crate::gateway::http) async fn read_view_frame(
    _: Caller,
    Query(query): Query<FrameQuery>,
) -> Result<Response, ApiError> {
    let mut hosts = ViewHosts::default();
    let lists = [query.connect, query.load, query.frames, query.base];
    for (reach, list) in ViewReach::ALL.into_iter().zip(lists) {
        for host in list.unwrap_or_default().split_ascii_whitespace() {
            if !hosts.add(host, reach) {
                let text = "at most 20 hosts, each `https://` and a name, as the view's own answer lists them";
                return Err(ApiError::of_field(
                    Code::InvalidArguments,
                    name_of(reach),
                    text,
                ));
            }
        }
    }
    let policy = HeaderValue::try_from(hosts.policy());
    let policy = policy.map_err(|error| ApiError::new(Code::Internal, error.to_string()))?;
    let reach = HeaderValue::try_from(hosts.connection_allowlist());
    let reach = reach.map_err(|error| ApiError::new(Code::Internal, error.to_string()))?;
    let mut response = FRAME.into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, policy);
    headers.insert(CONNECTION_ALLOWLIST, reach);
    for (header, value) in [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (X_FRAME_OPTIONS, "SAMEORIGIN"),
        (HeaderName::from_static("permissions-policy"), PERMISSIONS),
        (DNS_PREFETCH, "off"),
    ] {
        headers.insert(header, HeaderValue::from_static(value));
    }
    Ok(response)
}
