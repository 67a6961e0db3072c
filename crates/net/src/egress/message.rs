//! Helpers for requests and responses, whether they were intercepted or proxied as plain HTTP.

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Request, Response, StatusCode, Uri, Version};

use super::dial::Target;

pub(super) type Body = BoxBody<Bytes, hyper::Error>;

/// Hop-by-hop headers, which are not forwarded.
const HOP_BY_HOP: [HeaderName; 8] = [
    header::CONNECTION,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    HeaderName::from_static("keep-alive"),
];
/// A header that is in no standard, but sent by clients.
const PROXY_CONNECTION: &str = "proxy-connection";

/// A response of the proxy itself.
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    pub(super) said: String,
}

impl Refusal {
    pub(super) fn answer(self) -> Response<Body> {
        let mut answer = Response::new(text(format!("Sepal: {}\n", self.said)));
        *answer.status_mut() = self.status;
        let plain = HeaderValue::from_static("text/plain; charset=utf-8");
        answer.headers_mut().insert(header::CONTENT_TYPE, plain);
        answer
    }
}

/// Rewrites a request so that it goes directly to the host and reveals nothing of the proxy. `usual_port` is
/// the default port of the scheme.
pub(super) fn address_to(request: &mut Request<Incoming>, target: &Target, usual_port: u16) {
    let path = request.uri().path_and_query().cloned();
    // A request with an absolute address always has a path, at least `/`.
    *request.uri_mut() = path.map_or_else(Uri::default, Uri::from);
    *request.version_mut() = Version::HTTP_11;
    let headers = request.headers_mut();
    remove_hop_by_hop(headers);
    let name = match target.port {
        port if port == usual_port => target.host.clone(),
        port => format!("{}:{port}", target.host),
    };
    // Overrides the request's own host name, so that it cannot reach another host at the same address.
    if let Ok(name) = HeaderValue::from_str(&name) {
        headers.insert(header::HOST, name);
    }
}

pub(super) fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<_> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse::<HeaderName>().ok())
        .collect();
    for name in HOP_BY_HOP.iter().chain(&named) {
        headers.remove(name);
    }
    headers.remove(PROXY_CONNECTION);
}

pub(super) fn broken(target: &Target, error: &hyper::Error) -> Refusal {
    let Target { host, port } = target;
    tracing::debug!(%error, "A host broke off an answer to a sandboxed program");
    Refusal {
        status: StatusCode::BAD_GATEWAY,
        said: format!("{host}:{port} gave no answer that can be read."),
    }
}

pub(super) fn text(text: String) -> Body {
    Full::new(Bytes::from(text))
        .map_err(|never| match never {})
        .boxed()
}
