//! The operations on one resource, which are the same for people and groups.

use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use axum::routing::{MethodRouter, get};
use serde_json::{Map, Value};

use super::schema::Schema;
use super::{ListQuery, Scim, ScimBody, answer_one, check_version, patch};
use crate::gateway::GatewayState;
use crate::gateway::error::ApiError;
use crate::tenancy::Directory;

/// A resource as clients read it.
pub(super) type Whole = Result<Map<String, Value>, ApiError>;

/// A kind of resource. Addresses in what clients read begin with `base`.
pub(super) trait Resource: 'static {
    const SCHEMA: &'static Schema;

    /// The attributes that a client gives a resource.
    type Draft: Send + Sync;

    /// Understands a body in the form of [`Schema::read`].
    fn draft(read: &Map<String, Value>) -> Result<Self::Draft, ApiError>;

    fn find(directory: Directory<'_>, id: &str, base: &str) -> impl Future<Output = Whole> + Send;

    fn add(
        directory: Directory<'_>,
        draft: &Self::Draft,
        base: &str,
    ) -> impl Future<Output = Whole> + Send;

    fn replace(
        directory: Directory<'_>,
        id: &str,
        draft: &Self::Draft,
        base: &str,
    ) -> impl Future<Output = Whole> + Send;

    fn remove(
        directory: Directory<'_>,
        id: &str,
    ) -> impl Future<Output = Result<(), ApiError>> + Send;
}

/// The operations at the address of one resource.
pub(super) fn one<R: Resource>() -> MethodRouter<GatewayState> {
    get(read::<R>)
        .put(replace::<R>)
        .patch(change::<R>)
        .delete(remove::<R>)
}

pub(super) async fn add<R: Resource>(
    State(state): State<GatewayState>,
    scim: Scim,
    query: ListQuery,
    ScimBody(body): ScimBody,
) -> Result<Response, ApiError> {
    let draft = R::draft(&R::SCHEMA.read(&body)?)?;
    let directory = state.tenancy.directory(&scim.caller);
    let resource = R::add(directory, &draft, &scim.base).await?;
    let (status, headers) = (StatusCode::CREATED, HeaderMap::new());
    Ok(answer_one(status, &headers, &query.shown, resource))
}

async fn read<R: Resource>(
    State(state): State<GatewayState>,
    scim: Scim,
    Path(id): Path<String>,
    query: ListQuery,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let directory = state.tenancy.directory(&scim.caller);
    let resource = R::find(directory, &id, &scim.base).await?;
    Ok(answer_one(StatusCode::OK, &headers, &query.shown, resource))
}

async fn replace<R: Resource>(
    State(state): State<GatewayState>,
    scim: Scim,
    Path(id): Path<String>,
    query: ListQuery,
    headers: HeaderMap,
    ScimBody(body): ScimBody,
) -> Result<Response, ApiError> {
    let directory = state.tenancy.directory(&scim.caller);
    let known = R::find(directory, &id, &scim.base).await?;
    check_version(&headers, &known)?;
    let draft = R::draft(&R::SCHEMA.read(&body)?)?;
    let resource = R::replace(directory, &id, &draft, &scim.base).await?;
    let headers = HeaderMap::new();
    Ok(answer_one(StatusCode::OK, &headers, &query.shown, resource))
}

async fn change<R: Resource>(
    State(state): State<GatewayState>,
    scim: Scim,
    Path(id): Path<String>,
    query: ListQuery,
    headers: HeaderMap,
    ScimBody(body): ScimBody,
) -> Result<Response, ApiError> {
    let directory = state.tenancy.directory(&scim.caller);
    let known = R::find(directory, &id, &scim.base).await?;
    check_version(&headers, &known)?;
    let mut changed = R::SCHEMA.read(&Value::Object(known))?;
    patch::apply(R::SCHEMA, &mut changed, &body)?;
    let draft = R::draft(&changed)?;
    let resource = R::replace(directory, &id, &draft, &scim.base).await?;
    let headers = HeaderMap::new();
    Ok(answer_one(StatusCode::OK, &headers, &query.shown, resource))
}

async fn remove<R: Resource>(
    State(state): State<GatewayState>,
    scim: Scim,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<StatusCode, ApiError> {
    let directory = state.tenancy.directory(&scim.caller);
    check_version(&headers, &R::find(directory, &id, &scim.base).await?)?;
    R::remove(directory, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}
