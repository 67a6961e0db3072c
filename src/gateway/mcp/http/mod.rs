//! Serves the agent over HTTP: `/mcp` for current clients, and the access check of all routes. The guard
//! around every door has already checked host and origin.

pub(super) mod context;
pub(super) mod legacy;
mod messages;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderName, Method};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use hyper::body::{Frame, SizeHint};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};

use self::context::{ClientId, McpContext};
use self::messages::{Managers, McpDoor};
use super::{Exposure, Life};
use crate::domain::{Code, Share};
use crate::gateway::GatewayState;
use crate::gateway::error::ApiError;
use crate::gateway::mcp::logged::LoggedServer;
use crate::gateway::mcp::tasks::Tasks;

/// The header with the id of a client's connection to `/mcp`.
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// Builds the routes `/mcp`, `/sse` and `/message`.
pub fn routes(gateway: &GatewayState, exposure: Arc<Exposure>, life: Life) -> Router {
    let context = McpContext {
        gateway: gateway.clone(),
        exposure,
        managers: Managers::new(),
        owners: Arc::default(),
        tasks: Tasks::default(),
        life,
    };
    // The guard has already checked the host and the origin.
    let config = StreamableHttpServerConfig::default()
        .disable_allowed_hosts()
        .disable_allowed_origins()
        .with_max_request_body_bytes(gateway.body_limit)
        .with_cancellation_token(context.life.stop.child_token());
    let service = |manager: &Arc<LocalSessionManager>, config| {
        let served = context.clone();
        let make = move || Ok(LoggedServer::at("/mcp", served.server()));
        StreamableHttpService::new(make, Arc::clone(manager), config)
    };
    let door = McpDoor {
        older: service(&context.managers.older, config.clone().with_sse_retry(None)),
        current: service(&context.managers.current, config),
        managers: context.managers.clone(),
        body_limit: gateway.body_limit,
    };
    Router::new()
        .route("/mcp", any(messages::serve))
        .with_state(Arc::new(door))
        .merge(legacy::routes(&context))
        .layer(from_fn_with_state(context, admit))
}

/// Authenticates the caller, restricts callers to their own connections, and counts new connections and
/// streams.
async fn admit(State(context): State<McpContext>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let caller = match context.enter(&mut parts).await {
        Ok(caller) => caller,
        Err(error) => return error.into_response(),
    };
    if !caller.user.role.may_act() {
        let text = "your role may not ask the agent: it has no sessions";
        return ApiError::new(Code::NotAllowed, text).into_response();
    }
    let session = parts.headers.get(&SESSION);
    let session = session.and_then(|session| session.to_str().ok());
    if let Some(owner) = session.and_then(|session| context.owner(session))
        && owner != ClientId::of(&caller)
    {
        // The response is the same as for a connection that does not exist, so that its existence is not
        // revealed.
        return ApiError::new(Code::SessionNotFound, "there is no such connection").into_response();
    }
    let is_get = parts.method == Method::GET;
    let begins = session.is_none() && parts.method == Method::POST && parts.uri.path() == "/mcp";
    let share = match (is_get || begins).then(|| context.stream(&caller)) {
        Some(taking) => match taking.await {
            Ok(share) => Some(share),
            Err(error) => return error.into_response(),
        },
        None => None,
    };
    let by = ClientId::of(&caller);
    parts.extensions.insert(caller);
    let response = next.run(Request::from_parts(parts, body)).await;
    let Some(share) = share else { return response };
    if is_get {
        return response.map(|body| {
            Body::new(CountedBody {
                body,
                _share: share,
            })
        });
    }
    let opened = response.headers().get(&SESSION);
    if let Some(opened) = opened.and_then(|opened| opened.to_str().ok()) {
        context.own(opened.to_owned(), by, share).await;
    }
    response
}

/// An event stream that counts until it ends.
struct CountedBody {
    body: Body,
    _share: Share,
}

impl hyper::body::Body for CountedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
