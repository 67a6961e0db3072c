//! Wraps every request, including those of the socket: strips the public path, assigns the request id, adds
//! security headers, checks host and origin, and answers panics.

use std::any::Any;
use std::future::ready;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_MATCH,
    REFERRER_POLICY, RETRY_AFTER, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, Uri};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use tower::util::MapRequestLayer;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::cors::CorsLayer;
use tracing::Instrument as _;

use super::access::{AccessRules, Addresses, Crowd, RequestOrigin};
use super::body_time::in_time;
use super::error::{self, ApiError};
use super::idempotency;
use super::pace::{self, PaceTold};
use super::scim;
use super::socket::{PATH as SOCKET_PATH, stream};
use super::unread_body::read_to_the_end;
use super::visit::{STREAMS, is_of_agent, told, visit};
use super::{DoorLimits, GatewayState};
use crate::domain::{Code, RequestId};
use crate::telemetry::instruments;

/// The header with the request's id.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The Content-Security-Policy of the page. It allows no inline script or style; `base-uri` is `'self'`,
/// because with `'none'` browsers ignore the `<base>` tag, which names the path below which the page lives.
const PAGE_POLICY: &str = "default-src 'self'; img-src 'self' blob:; connect-src 'self'; \
     frame-ancestors 'none'; object-src 'none'; base-uri 'self'; form-action 'self'";

/// The Content-Security-Policy of the API, whose responses are data and never documents.
const DATA_POLICY: &str = "default-src 'none'; frame-ancestors 'none'";

pub(super) const RESOURCE_POLICY: HeaderName =
    HeaderName::from_static("cross-origin-resource-policy");
const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");

/// Marks a response that pages of another site may show in a frame. Its own Content-Security-Policy says which.
#[derive(Debug, Clone, Copy)]
pub(super) struct MayBeFramed;

/// Wraps the routes and the socket layer. Every request passes through this guard.
pub fn guard(state: &GatewayState, inner: Router) -> Router {
    let inner = inner.layer(from_fn_with_state(state.clone(), visit));
    surround(&state.access, &state.limits, inner)
}

/// Returns the router that answers a connection beyond a connection limit.
pub fn turn_away(crowd: Crowd) -> Router {
    let refuse = move || ready(crowded(crowd, crowd.refusal_of_connection()));
    Router::new().fallback(refuse).layer(from_fn(finish))
}

fn crowded(crowd: Crowd, text: String) -> Response {
    let error = ApiError::new(Code::TooManyRequests, text);
    let error = match crowd {
        Crowd::Address(_) => error,
        Crowd::All(_) => error.with_status(StatusCode::SERVICE_UNAVAILABLE),
    };
    error.into_response()
}

fn surround(access: &Arc<AccessRules>, limits: &DoorLimits, inner: Router) -> Router {
    let behind = (Arc::clone(access), Arc::clone(&limits.requests));
    let base: Arc<str> = access.base_path().into();
    let rewrite = move |request| strip_base(request, &base);
    Router::new()
        .fallback_service(inner)
        .layer(CatchPanicLayer::custom(panicked))
        .layer(cors(access))
        .layer(from_fn_with_state(Arc::clone(access), admit))
        .layer(from_fn_with_state(limits.readers.clone(), read_to_the_end))
        .layer(from_fn_with_state(limits.body_time, in_time))
        .layer(from_fn_with_state(behind, count))
        .layer(from_fn(finish))
        .layer(MapRequestLayer::new(rewrite))
}

/// Checks a request against the access rules.
async fn admit(State(rules): State<Arc<AccessRules>>, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    // Health probes may use any host name; their responses contain no private data.
    let is_probe = matches!(parts.uri.path(), "/healthz" | "/readyz");
    let path = parts.uri.path();
    // A stream is opened by GET, which foreign pages are denied for streams too.
    let is_stream =
        path.starts_with(SOCKET_PATH) || STREAMS.contains(&path) || is_event_stream(path);
    match rules.check(RequestOrigin::of(&parts, is_stream)) {
        Err(refused) if !is_probe => ApiError::from(refused).into_response(),
        _ => next.run(Request::from_parts(parts, body)).await,
    }
}

/// True for the event streams of the REST door.
fn is_event_stream(path: &str) -> bool {
    let of_session = path.strip_prefix("/api/sessions/");
    let of_session = of_session.and_then(|rest| rest.strip_suffix("/stream"));
    path == "/api/stream" || of_session.is_some_and(|session| !session.contains('/'))
}

/// Counts the running requests of one client behind a trusted proxy: the connections belong to the proxy,
/// which opens as many as its clients need.
async fn count(
    State((rules, requests)): State<(Arc<AccessRules>, Arc<Addresses>)>,
    request: Request,
    next: Next,
) -> Response {
    let (parts, body) = request.into_parts();
    let address = rules.client_behind_proxy(&parts);
    // The share is held until the head of the response; streams and sockets are then counted for their
    // users.
    let _share = match address.map(|address| requests.take(Some(address))) {
        Some(Err(crowd)) => {
            instruments().limit_reached("requests", crowd.as_str());
            return crowded(crowd, crowd.refusal_of_request());
        }
        Some(Ok(share)) => Some(share),
        None => None,
    };
    next.run(Request::from_parts(parts, body)).await
}

/// Assigns the request id, renders refusals as problem documents, and adds the headers of all responses.
async fn finish(mut request: Request, next: Next) -> Response {
    let id = RequestId::from_bits(rand::random());
    let is_data = is_data(request.uri().path());
    let is_scim = request.uri().path().starts_with(scim::PATH);
    let span = tracing::info_span!(
        "request", request.id = %id, method = %request.method(), path = told(request.uri().path()),
    );
    request.extensions_mut().insert(id.clone());
    let pace = PaceTold::default();
    request.extensions_mut().insert(pace.clone());
    let answer = async {
        let mut response = next.run(request).await;
        match response.extensions_mut().remove::<ApiError>() {
            Some(refused) if is_scim => with_headers_of(&response, error::render_scim(refused)),
            Some(refused) => with_headers_of(&response, error::render(refused, &id)),
            None => response,
        }
    };
    let mut response = answer.instrument(span).await;
    if let Ok(id) = HeaderValue::try_from(id.as_str()) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    add_headers(&mut response, is_data);
    pace.add_to(&mut response);
    response
}

fn is_data(path: &str) -> bool {
    let is_exposed = is_of_agent(path);
    let data = [
        "/api/",
        SOCKET_PATH,
        scim::PATH,
        "/healthz",
        "/readyz",
        "/metrics",
    ];
    data.iter().any(|start| path.starts_with(start)) || is_exposed
}

/// Copies the headers that a handler or layer added to a refusal: `Allow`, `Vary`, a cookie, CORS.
fn with_headers_of(from: &Response, mut to: Response) -> Response {
    for (name, value) in from.headers() {
        if !to.headers().contains_key(name) && name != axum::http::header::CONTENT_LENGTH {
            to.headers_mut().append(name, value.clone());
        }
    }
    to
}

fn add_headers(response: &mut Response, is_data: bool) {
    let policy = if is_data { DATA_POLICY } else { PAGE_POLICY };
    let may_be_framed = response.extensions_mut().remove::<MayBeFramed>().is_some();
    let headers = response.headers_mut();
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, policy),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (X_FRAME_OPTIONS, "DENY"),
        // Other sites can neither embed our responses nor keep a handle on our page through a window that
        // they opened.
        (RESOURCE_POLICY, "same-origin"),
        (OPENER_POLICY, "same-origin"),
    ] {
        headers
            .entry(name)
            .or_insert(HeaderValue::from_static(value));
    }
    if may_be_framed {
        headers.remove(X_FRAME_OPTIONS);
        headers.insert(RESOURCE_POLICY, HeaderValue::from_static("cross-origin"));
    }
    if is_data {
        headers
            .entry(CACHE_CONTROL)
            .or_insert(HeaderValue::from_static("no-store"));
    }
}

/// Lets pages of the allowed origins read responses. These pages use an API key: our cookie is never sent to
/// another site, so credentials are not allowed.
fn cors(rules: &AccessRules) -> CorsLayer {
    let origins = rules.allowed_origins().iter();
    let origins: Vec<HeaderValue> = origins.filter_map(|origin| origin.parse().ok()).collect();
    CorsLayer::new()
        .allow_origin(origins)
        .allow_methods([
            Method::GET,
            Method::POST,
            Method::PUT,
            Method::PATCH,
            Method::DELETE,
        ])
        .allow_headers([
            AUTHORIZATION,
            CONTENT_TYPE,
            IF_MATCH,
            idempotency::KEY,
            stream::LAST_EVENT_ID,
        ])
        .expose_headers([
            REQUEST_ID,
            ETAG,
            RETRY_AFTER,
            idempotency::REPLAYED,
            pace::LIMIT,
            pace::POLICY,
        ])
}

/// Strips the public path, which a proxy may keep or remove; the inner routes do not contain it.
fn strip_base(mut request: Request, base: &str) -> Request {
    if let Some(uri) = without_base(request.uri(), base) {
        *request.uri_mut() = uri;
    }
    request
}

fn without_base(uri: &Uri, base: &str) -> Option<Uri> {
    let base = base.trim_end_matches('/');
    let rest = uri
        .path_and_query()?
        .as_str()
        .strip_prefix(base)
        .filter(|_| !base.is_empty())?;
    let rest = match rest.chars().next() {
        Some('/') => rest.to_owned(),
        None | Some('?') => format!("/{rest}"),
        Some(_) => return None,
    };
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(rest).ok()?);
    Uri::from_parts(parts).ok()
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "the layer hands the payload over"
)]
fn panicked(payload: Box<dyn Any + Send + 'static>) -> Response {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
    let text = format!("a handler panicked: {}", text.unwrap_or("without a text"));
    ApiError::new(Code::Internal, text).into_response()
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::sync::Arc;

    use axum::Router;
    use axum::body::Body;
    use axum::extract::ConnectInfo;
    use axum::http::{Request, Uri};
    use axum::response::Response;
    use axum::routing::get;
    use tower::ServiceExt as _;

    use super::{surround, without_base};
    use crate::config;
    use crate::gateway::DoorLimits;
    use crate::gateway::access::{AccessRules, Addresses};

    async fn read(response: Response) -> (u16, String) {
        let status = response.status().as_u16();
        let bytes = axum::body::to_bytes(response.into_body(), 1 << 20)
            .await
            .unwrap();
        (status, String::from_utf8(bytes.to_vec()).unwrap())
    }

    async fn ask(path: &str, host: &str) -> (u16, String) {
        let settings = config::Access {
            public_url: Some("https://sepal.example/agents".parse().unwrap()),
            allowed_origins: Vec::new(),
            trusted_proxies: Vec::new(),
        };
        let access = Arc::new(AccessRules::new(&settings, "localhost"));
        let inner = Router::new()
            .route("/api/fine", get(async || "fine"))
            .route(
                "/api/broken",
                get(async || -> &str { panic!("the secret of the house") }),
            );
        let request = Request::get(path)
            .header("host", host)
            .body(Body::empty())
            .unwrap();
        let limits = DoorLimits::none();
        let guarded = surround(&access, &limits, inner);
        read(guarded.oneshot(request).await.unwrap()).await
    }

    #[tokio::test]
    async fn a_client_behind_a_trusted_proxy_is_told_that_its_requests_are_too_many() {
        let settings = config::Access {
            public_url: None,
            allowed_origins: Vec::new(),
            trusted_proxies: vec!["10.0.0.0/8".parse().unwrap()],
        };
        let access = Arc::new(AccessRules::new(&settings, "localhost"));
        let limits = DoorLimits {
            requests: Addresses::new(None, Some(0)),
            ..DoorLimits::none()
        };
        let mut request = Request::get("/api/fine")
            .header("host", "localhost")
            .header("x-forwarded-for", "192.0.2.1")
            .body(Body::empty())
            .unwrap();
        let proxy: SocketAddr = "10.0.0.1:9".parse().unwrap();
        request.extensions_mut().insert(ConnectInfo(proxy));
        let guarded = surround(&access, &limits, Router::new());
        let (status, text) = read(guarded.oneshot(request).await.unwrap()).await;
        assert_eq!(status, 429, "{text}");
        assert!(text.contains("0 requests running"), "{text}");
        assert!(
            text.contains("runtime.limits.connections_per_address"),
            "{text}"
        );
        assert!(!text.contains("trusted_proxies"), "{text}");
    }

    /// Asserts S1.15.
    #[tokio::test]
    async fn a_panic_is_an_internal_error_that_tells_nothing() {
        let (status, text) = ask("/agents/api/broken", "localhost").await;
        assert_eq!(status, 500);
        assert!(
            text.contains("internal error") && text.contains("req_"),
            "{text}"
        );
        assert!(!text.contains("secret"), "{text}");
    }

    #[tokio::test]
    async fn a_route_is_found_with_and_without_the_public_path() {
        for path in ["/agents/api/fine", "/api/fine"] {
            assert_eq!(
                ask(path, "sepal.example").await,
                (200, "fine".into()),
                "{path}"
            );
        }
        assert_eq!(ask("/agents/api/fine", "evil.example").await.0, 403);
    }

    #[test]
    fn the_public_path_is_taken_off_once() {
        fn check(uri: &str, base: &str, expected: Option<&str>) {
            let uri: Uri = uri.parse().unwrap();
            let found = without_base(&uri, base).map(|uri| uri.to_string());
            assert_eq!(found.as_deref(), expected, "{uri} {base}");
        }
        check("/sepal/api/system", "/sepal/", Some("/api/system"));
        check("/sepal/", "/sepal/", Some("/"));
        check("/sepal", "/sepal/", Some("/"));
        check("/sepal?a=b", "/sepal/", Some("/?a=b"));
        check("/sepal/s/x?a=b", "/sepal/", Some("/s/x?a=b"));
        check("/sepalx/", "/sepal/", None);
        check("/api/system", "/sepal/", None);
        check("/api/system", "/", None);
        check("/sepal/sepal/x", "/sepal/", Some("/sepal/x"));
        check("http://h/sepal/x", "/sepal/", Some("http://h/x"));
    }
}
