//! Fuzzes the parts that every request passes: the checks of host and origin, credentials, query and body.

use std::net::SocketAddr;

use axum::body::Body as Bytes;
use axum::extract::{ConnectInfo, FromRequest as _, FromRequestParts as _};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, Method, Request, Uri};
use futures::executor::block_on;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use super::auth::{SetUpRequest, SignInRequest};
use super::providers::PutProviderRequest;
use crate::config;
use crate::gateway::access::{AccessRules, RequestOrigin};
use crate::gateway::auth::{shown, ticket};
use crate::gateway::extract::{Body, OptionalBody, Query};

/// The kinds of parameters that our routes have.
#[derive(Deserialize, IntoParams)]
struct AnyQuery {
    after: Option<u64>,
    limit: Option<usize>,
    archived: Option<bool>,
    search: Option<String>,
}

#[test]
fn rest_requests() {
    sepal_fuzz::check("rest_requests", |input| {
        let Some((parts, body)) = request(input) else {
            return;
        };
        check_doors(&parts);
        if let Ok(Query(query)) = block_on(Query::<AnyQuery>::from_request_parts(
            &mut parts.clone(),
            &(),
        )) {
            let given = parts.uri.query().map_or(0, str::len);
            assert!(query.search.is_none_or(|search| search.len() <= 3 * given));
            let _ = (query.after, query.limit, query.archived);
        }
        read::<SignInRequest>(&parts, body);
        read::<SetUpRequest>(&parts, body);
        read::<PutProviderRequest>(&parts, body);
        if let Some(Value::Object(_)) | None = read::<Value>(&parts, body) {
            return;
        }
        panic!("a body is an object");
    });
}

/// Reads a request from the input: a request line without its version, headers, an empty line, a body.
fn request(input: &[u8]) -> Option<(Parts, &[u8])> {
    let end = input.windows(2).position(|pair| pair == b"\n\n");
    let (head, body) = input.split_at(end.unwrap_or(input.len()));
    let mut lines = head.split(|byte| *byte == b'\n');
    let (method, uri) = std::str::from_utf8(lines.next()?).ok()?.split_once(' ')?;
    let mut request = Request::builder()
        .method(Method::from_bytes(method.as_bytes()).ok()?)
        .uri(uri.parse::<Uri>().ok()?);
    for line in lines {
        let (name, value) = line.split_at(line.iter().position(|byte| *byte == b':')?);
        let name = HeaderName::from_bytes(name).ok()?;
        let value = HeaderValue::from_bytes(value.get(1..)?.trim_ascii()).ok()?;
        request = request.header(name, value);
    }
    let (mut parts, ()) = request.body(()).ok()?.into_parts();
    let peer: SocketAddr = "10.0.0.1:999".parse().ok()?;
    parts.extensions.insert(ConnectInfo(peer));
    Some((parts, body.trim_ascii_start()))
}

/// Asserts that an admitted request used one of our host names, and comes from no foreign page.
fn check_doors(parts: &Parts) {
    let settings = config::Access {
        public_url: "https://sepal.example/agents".parse().ok(),
        allowed_origins: vec!["https://app.example".to_owned()],
        trusted_proxies: vec!["10.0.0.0/8".parse().unwrap()],
    };
    let rules = AccessRules::new(&settings, "127.0.0.1");
    let asked = RequestOrigin::of(parts, true);
    if rules.check(asked).is_ok() {
        let ours = ["localhost", "127.0.0.1", "[::1]", "sepal.example"];
        let host = asked.host.unwrap().to_ascii_lowercase();
        assert!(ours.iter().any(|name| host.starts_with(name)), "{host}");
        if let Some(origin) = asked.origin {
            let origin = origin.to_ascii_lowercase();
            let is_known = ours
                .iter()
                .chain(&["app.example"])
                .any(|name| origin.contains(name));
            assert!(is_known, "{origin}");
        }
    }
    let peer = rules.peer(parts);
    assert!(!peer.is_local, "a proxy is never this machine");
    let _ = (shown(&parts.headers, peer), ticket(parts));
}

fn read<T: DeserializeOwned + ToSchema + 'static>(parts: &Parts, body: &[u8]) -> Option<T> {
    let request = || Request::from_parts(parts.clone(), Bytes::from(body.to_vec()));
    let optional = block_on(OptionalBody::<T>::from_request(request(), &()));
    let read = block_on(Body::<T>::from_request(request(), &()));
    assert_eq!(read.is_ok(), matches!(optional, Ok(OptionalBody(Some(_)))));
    read.ok().map(|Body(read)| read)
}
