//! Gives the records that are changed as a whole an `ETag`, and holds changes to `If-Match`.
//!
//! The tag counts the changes of a record. The check is made by the transaction that writes
//! ([`store::versions`](crate::store::versions)).

use axum::extract::{FromRequestParts as _, MatchedPath, Path, Request, State};
use axum::http::header::{ETAG, IF_MATCH};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use super::GatewayState;
use super::error::ApiError;
use crate::domain::{AssistantId, Caller, Code, Scope, SessionId, SessionKey, SkillId, TenantId};
use crate::store::versions::{self, RecordName};

/// The paths whose `GET` has an `ETag`, and whose changes heed `If-Match`. Files have versions of their own.
pub(super) const VERSIONED: [&str; 11] = [
    "/api/assistants/{id}",
    "/api/assistants/{id}/access",
    "/api/budgets",
    "/api/mcp/{name}",
    "/api/models/compaction",
    "/api/models/default",
    "/api/notifications/mail",
    "/api/providers/{id}",
    "/api/sessions/{id}",
    "/api/sharing",
    "/api/skills/{id}",
];

/// The path whose tools are changed one by one, each at an address of its own.
pub(super) const TOOLS: &str = "/api/mcp/{name}/tools";
pub(super) const TOOL: &str = "/api/mcp/{name}/tools/{tool}";

/// Returns the records behind an address: those that a change of it may write.
fn records(path: &str, ids: &[String], caller: &Caller) -> Option<Vec<RecordName>> {
    let (tenant, user) = (&caller.tenant.id, &caller.user.id);
    let scopes = [Scope::Installation, Scope::Tenant(tenant.clone())];
    let id = ids.first().map_or("", String::as_str);
    let records = match path {
        "/api/assistants/{id}" => vec![RecordName::assistant(tenant, &AssistantId::parse(id)?)],
        "/api/assistants/{id}/access" => {
            vec![RecordName::assistant_access(
                tenant,
                &AssistantId::parse(id)?,
            )]
        }
        "/api/budgets" => vec![RecordName::budgets(tenant)],
        "/api/mcp/{name}" => scopes
            .iter()
            .map(|scope| RecordName::server(scope, id))
            .collect(),
        TOOLS | TOOL => vec![RecordName::tools(tenant, id)],
        "/api/models/compaction" => vec![RecordName::compaction(tenant)],
        "/api/models/default" => {
            let [installation, of_tenant] = &scopes;
            vec![
                RecordName::model_default(installation, None),
                RecordName::model_default(of_tenant, None),
                RecordName::model_default(of_tenant, Some(user)),
            ]
        }
        "/api/notifications/mail" => vec![RecordName::mail(tenant, user)],
        "/api/providers/{id}" => scopes
            .iter()
            .map(|scope| RecordName::provider(scope, id))
            .collect(),
        "/api/sessions/{id}" => vec![RecordName::marks(&SessionKey {
            tenant: tenant.clone(),
            session: SessionId::parse(id)?,
        })],
        "/api/sharing" => vec![RecordName::sharing(tenant)],
        "/api/skills/{id}" => {
            let id = SkillId::parse(id)?;
            vec![
                RecordName::skill(tenant, &id),
                RecordName::skill_switch(tenant, user, &id),
            ]
        }
        _ => return None,
    };
    Some(records)
}

/// Adds the `ETag` of what a request reads, or holds its change to `If-Match`.
pub(super) async fn versioned(
    State(state): State<GatewayState>,
    request: Request,
    next: Next,
) -> Response {
    let (mut parts, body) = request.into_parts();
    let found = match find(&state, &mut parts).await {
        Ok(found) => found,
        Err(error) => return error.into_response(),
    };
    let is_read = parts.method == Method::GET;
    let next = next.run(Request::from_parts(parts, body));
    match found {
        None => next.await,
        Some(found) if is_read => tagged(next.await, &found),
        Some(found) => versions::requiring(found, next).await,
    }
}

/// Returns the records that a request reads with their versions, or those that it requires.
async fn find(
    state: &GatewayState,
    parts: &mut Parts,
) -> Result<Option<versions::Required>, ApiError> {
    let path = parts.extensions.get::<MatchedPath>().cloned();
    let path = path.as_ref().map_or("", MatchedPath::as_str);
    let is_read = parts.method == Method::GET;
    let is_versioned = VERSIONED.contains(&path) || path == TOOLS || path == TOOL;
    if !is_versioned || !is_read && !parts.headers.contains_key(IF_MATCH) {
        return Ok(None);
    }
    let ids = Path::<Vec<(String, String)>>::from_request_parts(parts, state).await;
    let ids: Vec<String> = ids.map_or_else(
        |_| Vec::new(),
        |Path(ids)| ids.into_iter().map(|(_, id)| id).collect(),
    );
    let caller = Caller::from_request_parts(parts, state).await?;
    let Some(records) = records(path, &ids, &caller) else {
        return Ok(None);
    };
    let versions = if is_read {
        let versions = state.versions.of(&records).await?;
        catch_up(state, path, &caller.tenant.id).await?;
        Some(versions)
    } else {
        required(&parts.headers, records.len())?
    };
    Ok(versions.map(|versions| records.into_iter().zip(versions).collect()))
}

/// Reads again what this gateway keeps in memory behind an address: another gateway may have changed it, and the
/// body must not be older than its tag.
async fn catch_up(state: &GatewayState, path: &str, tenant: &TenantId) -> Result<(), ApiError> {
    if path.starts_with("/api/mcp/") {
        state.servers.expire(tenant);
    } else if path.starts_with("/api/providers/") || path.starts_with("/api/models/") {
        state.providers.reload().await?;
    } else if path == "/api/budgets" {
        state.sessions.budgets().look_up(tenant).await?;
    }
    Ok(())
}

fn tagged(mut response: Response, found: &versions::Required) -> Response {
    let versions = found.iter().map(|(_, version)| version.to_string());
    let tag = format!("\"{}\"", versions.collect::<Vec<_>>().join("."));
    if response.status() == StatusCode::OK
        && let Ok(tag) = HeaderValue::try_from(tag)
    {
        response.headers_mut().insert(ETAG, tag);
    }
    response
}

/// Returns the versions in `If-Match`, one for each record; `None` for `*`, which any version fits.
fn required(headers: &HeaderMap, records: usize) -> Result<Option<Vec<u64>>, ApiError> {
    let Some(tag) = if_match(headers)?.filter(|tag| tag != "*") else {
        return Ok(None);
    };
    let versions: Option<Vec<u64>> = tag.split('.').map(|part| part.parse().ok()).collect();
    let versions = versions.filter(|versions| versions.len() == records);
    let other = || {
        let text = "`If-Match` is not a version of this; read it again";
        let error = ApiError::of_field(Code::ChangedSinceShown, "If-Match", text);
        error.with_status(StatusCode::PRECONDITION_FAILED)
    };
    versions.map(Some).ok_or_else(other)
}

/// Returns the version in the header `If-Match`, or `*`; `None` without the header.
pub(super) fn if_match(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let Some(value) = headers.get(IF_MATCH) else {
        return Ok(None);
    };
    let text = value.to_str().unwrap_or_default().trim();
    if text == "*" {
        return Ok(Some(text.to_owned()));
    }
    let version = text
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
        .filter(|version| !version.is_empty() && !version.contains('"'));
    let wrong = || {
        let text = "`If-Match` names one version as the answers give it: `\"…\"`, or `*`";
        ApiError::of_field(Code::InvalidArguments, "If-Match", text)
    };
    version
        .map(|version| Some(version.to_owned()))
        .ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderMap, HeaderValue};

    use super::required;

    #[test]
    fn a_version_is_required_as_it_was_given() {
        let read = |text: &'static str, records| {
            let mut headers = HeaderMap::new();
            headers.insert("if-match", HeaderValue::from_static(text));
            required(&headers, records).map_err(|error| error.code().as_str())
        };
        assert_eq!(read("\"3\"", 1), Ok(Some(vec![3])));
        assert_eq!(read("\"3.0\"", 2), Ok(Some(vec![3, 0])));
        assert_eq!(read("*", 2), Ok(None));
        for (text, records) in [("\"3\"", 2), ("\"x\"", 1), ("\"1.2\"", 1), ("\"-1\"", 1)] {
            assert_eq!(read(text, records), Err("changed_since_shown"), "{text}");
        }
        for text in ["3", "W/\"3\"", "\"\"", "\"1\", \"2\""] {
            assert_eq!(read(text, 1), Err("invalid_arguments"), "{text}");
        }
        assert_eq!(required(&HeaderMap::new(), 1).ok(), Some(None));
    }
}
