//! The SCIM door (RFC 7643, 7644): a company's directory makes, changes and disables people and groups of its
//! tenant (`/scim/v2`).
//!
//! Only a token of a directory opens this door, and it opens no other. `schema` says which attributes there are,
//! `filter` and `patch` read what clients ask for, `users` and `groups` answer. What a change means is decided
//! by [`tenancy::Directory`].

mod filter;
#[cfg(test)]
mod fuzz;
mod groups;
mod patch;
mod resource;
mod schema;
mod users;

use std::borrow::Cow;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, FromRequest, FromRequestParts, Path, Request};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, ETAG, IF_MATCH, IF_NONE_MATCH, LOCATION};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{any, get};
use secrecy::SecretString;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::GatewayState;
use super::error::ApiError;
use crate::config::AuthMode;
use crate::domain::{Code, Timestamp, UserId};
use crate::store::audit::acting;
use crate::tenancy::{self, DirectoryCaller, DirectoryError};
use filter::Filter;
use groups::Groups;
use schema::{GROUP, Schema, USER};
use users::Users;

/// The beginning of all paths of this door.
pub(super) const PATH: &str = "/scim/";

/// The type of every body.
const SCIM_JSON: &str = "application/scim+json";

/// The largest body, in bytes.
const MAX_BODY: usize = 1024 * 1024;

/// The most resources of one page.
const MOST_RESULTS: usize = 200;

/// The resources of a page whose client names no number.
const USUAL_RESULTS: usize = 100;

/// The kind of an error (RFC 7644, section 3.12).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScimType {
    InvalidFilter,
    TooMany,
    Uniqueness,
    Mutability,
    InvalidSyntax,
    InvalidPath,
    NoTarget,
    InvalidValue,
}

impl ScimType {
    fn as_str(self) -> &'static str {
        match self {
            Self::InvalidFilter => "invalidFilter",
            Self::TooMany => "tooMany",
            Self::Uniqueness => "uniqueness",
            Self::Mutability => "mutability",
            Self::InvalidSyntax => "invalidSyntax",
            Self::InvalidPath => "invalidPath",
            Self::NoTarget => "noTarget",
            Self::InvalidValue => "invalidValue",
        }
    }
}

/// An error of a request that is not valid.
fn invalid(kind: ScimType, text: impl Into<Cow<'static, str>>) -> ApiError {
    ApiError::new(Code::InvalidArguments, text).with("scimType", json!(kind.as_str()))
}

/// The routes, without the layers of REST: no keys of repeated requests, no versions of records.
pub(super) fn routes() -> Router<GatewayState> {
    let scim = Router::new()
        .route("/ServiceProviderConfig", get(read_config))
        .route("/ResourceTypes", get(list_resource_types))
        .route("/ResourceTypes/{id}", get(read_resource_type))
        .route("/Schemas", get(list_schemas))
        .route("/Schemas/{id}", get(read_schema))
        .route("/Users", get(users::list).post(resource::add::<Users>))
        .route("/Users/{id}", resource::one::<Users>())
        .route("/Groups", get(groups::list).post(resource::add::<Groups>))
        .route("/Groups/{id}", resource::one::<Groups>())
        .route("/.search", any(unsupported))
        .route("/Bulk", any(unsupported))
        .route("/Me", any(unsupported))
        .layer(DefaultBodyLimit::max(MAX_BODY));
    Router::new()
        .nest("/scim/v2", scim)
        .route("/scim/{*rest}", any(nothing))
}

async fn nothing() -> ApiError {
    ApiError::new(Code::NotFound, "there is nothing at this address")
}

async fn unsupported(_: Scim) -> ApiError {
    let text = "this part of SCIM is not supported here: ask for `/Users` and `/Groups`";
    ApiError::new(Code::InvalidArguments, text).with_status(StatusCode::NOT_IMPLEMENTED)
}

/// A directory that showed a valid token.
struct Scim {
    caller: DirectoryCaller,
    /// The address of this door, without a slash at its end.
    base: String,
}

impl FromRequestParts<GatewayState> for Scim {
    type Rejection = ApiError;

    async fn from_request_parts(
        parts: &mut Parts,
        state: &GatewayState,
    ) -> Result<Self, Self::Rejection> {
        if state.auth_mode == AuthMode::None {
            let text = "nobody signs in here, so no directory manages people: set `auth.mode` (SPL_AUTH) to \
                        `password` first";
            return Err(ApiError::new(Code::NotAllowed, text));
        }
        let secret = token(&parts.headers).ok_or_else(not_valid)?;
        let opened = state.tenancy.open_directory(&secret).await;
        let caller = match opened {
            Err(tenancy::Error::NotValid) => return Err(not_valid()),
            opened => opened?,
        };
        acting::identify_directory(&caller.tenant.id, &caller.token.id);
        // A token has as many requests as a person.
        let id = caller.token.id.rsplit('_').next().unwrap_or_default();
        let counted = UserId::from_bits(u128::from_str_radix(id, 16).unwrap_or(0));
        state.limits.pace.count(&counted, parts.extensions.get())?;
        let address = state.access.address(parts);
        let address = address.as_ref().map_or("/", |url| url.as_str());
        let base = format!("{}/scim/v2", address.trim_end_matches('/'));
        Ok(Self { caller, base })
    }
}

fn token(headers: &HeaderMap) -> Option<SecretString> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, secret) = value.split_once(' ')?;
    let is_bearer = scheme.eq_ignore_ascii_case("bearer");
    is_bearer.then(|| secret.trim().to_owned().into())
}

fn not_valid() -> ApiError {
    let text = "a directory shows its token (`Authorization: Bearer scim_…`), which is not valid here, or not \
                any more";
    ApiError::new(Code::Unauthorized, text)
}

/// The body of a request.
struct ScimBody(Value);

impl<S: Send + Sync> FromRequest<S> for ScimBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, Self::Rejection> {
        let kind = request.headers().get(CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim();
        let is_json = [SCIM_JSON, "application/json"]
            .iter()
            .any(|known| kind.eq_ignore_ascii_case(known));
        if !is_json {
            let text = "the body has to be `application/scim+json` or `application/json`";
            let error = ApiError::new(Code::InvalidArguments, text);
            return Err(error.with_status(StatusCode::UNSUPPORTED_MEDIA_TYPE));
        }
        let bytes =
            Bytes::from_request(request, state)
                .await
                .map_err(|rejection| match rejection.status() {
                    StatusCode::PAYLOAD_TOO_LARGE => {
                        ApiError::new(Code::TooLarge, "the body is larger than 1 MiB")
                    }
                    _ => ApiError::new(Code::InvalidArguments, "the body did not arrive whole"),
                })?;
        let body: Value = serde_json::from_slice(&bytes)
            .map_err(|error| invalid(ScimType::InvalidSyntax, error.to_string()))?;
        if !body.is_object() {
            let text = "the body has to be a JSON object";
            return Err(invalid(ScimType::InvalidSyntax, text));
        }
        Ok(Self(body))
    }
}

/// What of the resources a client wants to see.
#[derive(Debug, Default)]
struct Shown {
    /// The attributes to return; empty = all that are not excluded.
    wanted: Vec<String>,
    excluded: Vec<String>,
}

/// The part of a list that a client asks for.
#[derive(Debug)]
struct ListQuery {
    filter: Option<Filter>,
    /// Counted from 1.
    start: usize,
    count: usize,
    shown: Shown,
}

impl<S: Send + Sync> FromRequestParts<S> for ListQuery {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        let mut query = Self {
            filter: None,
            start: 1,
            count: USUAL_RESULTS,
            shown: Shown::default(),
        };
        let raw = parts.uri.query().unwrap_or_default();
        for (name, value) in url::form_urlencoded::parse(raw.as_bytes()) {
            let names = || value.split(',').map(|name| name.trim().to_owned());
            match name.to_ascii_lowercase().as_str() {
                "filter" if !value.trim().is_empty() => {
                    let read = Filter::parse(&value).map_err(|error| {
                        let text = format!("the filter cannot be read: {error}");
                        invalid(ScimType::InvalidFilter, text)
                    })?;
                    query.filter = Some(read);
                }
                "startindex" => query.start = number(&value, "startIndex")?.max(1),
                "count" => query.count = number(&value, "count")?.min(MOST_RESULTS),
                "attributes" => query.shown.wanted.extend(names()),
                "excludedattributes" => query.shown.excluded.extend(names()),
                _ => {}
            }
        }
        query.shown.wanted.retain(|name| !name.is_empty());
        Ok(query)
    }
}

/// A number of a query; one below zero counts as zero.
fn number(text: &str, name: &str) -> Result<usize, ApiError> {
    let number: i64 = text
        .trim()
        .parse()
        .map_err(|_| invalid(ScimType::InvalidValue, format!("`{name}` is a number")))?;
    Ok(usize::try_from(number.max(0)).unwrap_or(usize::MAX))
}

impl Shown {
    /// Returns true if a client sees an attribute.
    fn has(&self, name: &str) -> bool {
        // A part of an attribute, and a schema before it.
        let is_named = |given: &String| {
            let given = given.rsplit(':').next().unwrap_or_default();
            let given = given.split('.').next().unwrap_or_default();
            given.eq_ignore_ascii_case(name)
        };
        if ["schemas", "id"].contains(&name) {
            return true;
        }
        if !self.wanted.is_empty() {
            return self.wanted.iter().any(is_named);
        }
        // A part that is excluded does not take the whole along.
        let mut whole = self.excluded.iter().filter(|given| {
            let name = given.rsplit(':').next().unwrap_or_default();
            !name.contains('.')
        });
        !whole.any(is_named)
    }

    fn cut(&self, resource: &mut Map<String, Value>) {
        resource.retain(|name, _| self.has(name));
    }
}

impl ListQuery {
    /// Cuts the page that the client asks for. Returns the number of all with it.
    fn page<T>(&self, all: Vec<T>) -> (usize, Vec<T>) {
        let total = all.len();
        let page = all.into_iter().skip(self.start.saturating_sub(1));
        (total, page.take(self.count).collect())
    }

    fn answer(&self, total: usize, resources: &[Map<String, Value>]) -> Response {
        let body = json!({
            "schemas": ["urn:ietf:params:scim:api:messages:2.0:ListResponse"],
            "totalResults": total,
            "startIndex": self.start,
            "itemsPerPage": resources.len(),
            "Resources": resources,
        });
        answer(StatusCode::OK, &body)
    }
}

/// The times of a resource.
#[derive(Debug, Clone, Copy)]
struct Times {
    created: Timestamp,
    changed: Timestamp,
}

/// The address of a resource.
fn location(base: &str, schema: &Schema, id: &str) -> String {
    format!("{base}{}/{id}", schema.endpoint)
}

/// Adds what every resource has. The version is a hash of what the resource says.
fn complete(resource: &mut Map<String, Value>, schema: &Schema, base: &str, times: Times) {
    resource.insert("schemas".to_owned(), json!([schema.id]));
    let body = serde_json::to_vec(&resource).unwrap_or_default();
    let hash = hex::encode(Sha256::digest(&body));
    let hash = hash.get(..16).unwrap_or_default();
    let id = resource.get("id").and_then(Value::as_str);
    let meta = json!({
        "resourceType": schema.name,
        "created": times.created.to_rfc3339(),
        "lastModified": times.changed.max(times.created).to_rfc3339(),
        "location": location(base, schema, id.unwrap_or_default()),
        "version": format!("W/\"{hash}\""),
    });
    resource.insert("meta".to_owned(), meta);
}

fn version_of(resource: &Map<String, Value>) -> &str {
    let meta = resource.get("meta").and_then(|meta| meta.get("version"));
    meta.and_then(Value::as_str).unwrap_or_default()
}

/// Refuses a change of something that is not as the client saw it.
fn check_version(headers: &HeaderMap, resource: &Map<String, Value>) -> Result<(), ApiError> {
    let Some(wanted) = headers.get(IF_MATCH) else {
        return Ok(());
    };
    if names_version(wanted, version_of(resource)) {
        return Ok(());
    }
    let text = "it was changed since it was read: read it again";
    let error = ApiError::new(Code::ChangedSinceShown, text);
    Err(error.with_status(StatusCode::PRECONDITION_FAILED))
}

fn names_version(header: &HeaderValue, version: &str) -> bool {
    let mut named = header.to_str().unwrap_or_default().split(',');
    let plain = |text: &str| text.trim().trim_start_matches("W/").to_owned();
    named.any(|named| named.trim() == "*" || plain(named) == plain(version))
}

fn answer(status: StatusCode, body: &Value) -> Response {
    let mut response = (status, axum::Json(body)).into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(SCIM_JSON));
    response
}

/// The answer with one resource.
fn answer_one(
    status: StatusCode,
    headers: &HeaderMap,
    shown: &Shown,
    mut resource: Map<String, Value>,
) -> Response {
    let version = HeaderValue::try_from(version_of(&resource)).ok();
    let is_known = headers.get(IF_NONE_MATCH).filter(|known| {
        let is_read = status == StatusCode::OK;
        is_read && names_version(known, version_of(&resource))
    });
    let place = resource.get("meta").and_then(|meta| meta.get("location"));
    let place = place.and_then(Value::as_str);
    let place = place.and_then(|place| HeaderValue::try_from(place).ok());
    let mut response = if is_known.is_some() {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        shown.cut(&mut resource);
        answer(status, &Value::Object(resource))
    };
    let headers = response.headers_mut();
    if let Some(version) = version {
        headers.insert(ETAG, version);
    }
    if let Some(place) = place {
        headers.insert(LOCATION, place);
    }
    response
}

/// The error of a directory's request.
fn refused(error: DirectoryError) -> ApiError {
    match error {
        DirectoryError::Conflict(text) => {
            invalid(ScimType::Uniqueness, text).with_status(StatusCode::CONFLICT)
        }
        DirectoryError::Tenancy(error) => refused_here(error),
    }
}

fn refused_here(error: tenancy::Error) -> ApiError {
    if matches!(error, tenancy::Error::Invalid { .. }) {
        return invalid(ScimType::InvalidValue, error.to_string());
    }
    // What no right would allow, such as to disable the last owner.
    if let tenancy::Error::Refused(text) = error {
        return ApiError::new(Code::NotAllowed, text).with_status(StatusCode::CONFLICT);
    }
    error.into()
}

async fn read_config(scim: Scim) -> Response {
    let body = json!({
        "schemas": ["urn:ietf:params:scim:schemas:core:2.0:ServiceProviderConfig"],
        "patch": { "supported": true },
        "bulk": { "supported": false, "maxOperations": 0, "maxPayloadSize": 0 },
        "filter": { "supported": true, "maxResults": MOST_RESULTS },
        "changePassword": { "supported": false },
        "sort": { "supported": false },
        "etag": { "supported": true },
        "authenticationSchemes": [{
            "type": "oauthbearertoken",
            "name": "Token of the directory",
            "description": "A SCIM token of the tenant, in the header Authorization as Bearer",
            "specUri": "https://www.rfc-editor.org/info/rfc6750",
            "primary": true,
        }],
        "meta": {
            "resourceType": "ServiceProviderConfig",
            "location": format!("{}/ServiceProviderConfig", scim.base),
        },
    });
    answer(StatusCode::OK, &body)
}

fn list_of(all: &[Value]) -> Response {
    let body = json!({
        "schemas": ["urn:ietf:params:scim:api:messages:2.0:ListResponse"],
        "totalResults": all.len(),
        "startIndex": 1,
        "itemsPerPage": all.len(),
        "Resources": all,
    });
    answer(StatusCode::OK, &body)
}

async fn list_resource_types(scim: Scim) -> Response {
    list_of(&[&USER, &GROUP].map(|it| it.resource_type(&scim.base)))
}

async fn read_resource_type(scim: Scim, Path(id): Path<String>) -> Result<Response, ApiError> {
    let found = [&USER, &GROUP].into_iter().find(|it| it.name == id);
    let found = found.ok_or_else(|| ApiError::new(Code::NotFound, "there is no such type"))?;
    Ok(answer(StatusCode::OK, &found.resource_type(&scim.base)))
}

async fn list_schemas(scim: Scim) -> Response {
    list_of(&[&USER, &GROUP].map(|it| it.to_json(&scim.base)))
}

async fn read_schema(scim: Scim, Path(id): Path<String>) -> Result<Response, ApiError> {
    let mut all = [&USER, &GROUP].into_iter();
    let found = all.find(|it| it.id.eq_ignore_ascii_case(&id));
    let found = found.ok_or_else(|| ApiError::new(Code::NotFound, "there is no such schema"))?;
    Ok(answer(StatusCode::OK, &found.to_json(&scim.base)))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use serde_json::{Value, json};

    use super::{Shown, names_version};

    #[test]
    fn a_client_sees_the_attributes_that_it_asks_for() {
        let check = |wanted: &[&str], excluded: &[&str], expected: &[&str]| {
            let names = |all: &[&str]| all.iter().map(|&it| it.to_owned()).collect();
            let shown = Shown {
                wanted: names(wanted),
                excluded: names(excluded),
            };
            let resource = json!({ "id": 1, "schemas": 1, "meta": 1, "name": 1, "members": 1 });
            let Value::Object(mut resource) = resource else {
                panic!()
            };
            shown.cut(&mut resource);
            let mut left: Vec<&str> = resource.keys().map(String::as_str).collect();
            left.sort_unstable();
            assert_eq!(left, expected);
        };
        check(&[], &[], &["id", "members", "meta", "name", "schemas"]);
        check(&[], &["Members"], &["id", "meta", "name", "schemas"]);
        check(
            &[],
            &["id", "members.display"],
            &["id", "members", "meta", "name", "schemas"],
        );
        check(
            &["name.givenName"],
            &["members"],
            &["id", "name", "schemas"],
        );
        let urn = "urn:ietf:params:scim:schemas:core:2.0:Group:members";
        check(&[urn], &[], &["id", "members", "schemas"]);
    }

    #[test]
    fn versions_are_compared_weakly() {
        for (header, is_named) in [
            ("W/\"1\"", true),
            ("\"1\"", true),
            ("*", true),
            ("W/\"2\", W/\"1\"", true),
            ("W/\"2\"", false),
            ("", false),
        ] {
            let header = HeaderValue::from_static(header);
            assert_eq!(names_version(&header, "W/\"1\""), is_named);
        }
    }
}
