//! Skills (`/api/skills`): lists, adds, checks, reads, replaces, switches and removes them.

mod body;
mod upload;

use axum::Json;
use axum::extract::{Path, Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use utoipa::IntoParams;

use self::body::{SkillCheck, SkillDetails, SkillItem, SkillSwitchBody, SkillsPage, WrittenSkill};
pub(super) use self::upload::refused;
use crate::domain::{Caller, Code, SkillId};
use crate::gateway::GatewayState;
use crate::gateway::api_router::{ApiRouter, routes};
use crate::gateway::error::{ApiError, Problem};
use crate::gateway::extract::{Body, Query, required};
use crate::gateway::paging::PageQuery;
use crate::skills::SkillScope;

/// The content security policy: nothing in the file may run or load, whatever type a browser assumes.
const POLICY: &str = "default-src 'none'; sandbox; frame-ancestors 'none'";

/// The routes of skills.
pub(super) fn routes() -> ApiRouter {
    ApiRouter::new()
        .routes(routes!(list_skills, create_skill))
        .routes(routes!(check_skill))
        .routes(routes!(
            read_skill,
            replace_skill,
            switch_skill,
            delete_skill
        ))
        .routes(routes!(download_skill))
        .routes(routes!(read_skill_file))
}

/// The sessions that a new skill is for.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct ScopeQuery {
    /// `person` (the caller's sessions) or `tenant` (everybody's sessions; only for admins).
    #[param(pattern = "^(person|tenant)$", required, nullable = false)]
    scope: Option<String>,
}

impl ScopeQuery {
    fn scope(self) -> Result<SkillScope, ApiError> {
        let scope = required("scope", self.scope)?;
        SkillScope::parse(&scope).ok_or_else(|| {
            let text = "`scope` is `person` or `tenant`";
            ApiError::of_field(Code::InvalidArguments, "scope", text)
        })
    }
}

fn skill_id(id: &str) -> Result<SkillId, ApiError> {
    SkillId::parse(id).ok_or_else(|| ApiError::new(Code::NotFound, "there is no such skill"))
}

/// Lists the skills that the caller's sessions may have, the tenant's and the caller's own, by name.
#[utoipa::path(get, path = "/api/skills", tag = "skills", params(PageQuery),
    responses((status = 200, body = SkillsPage), (status = 403, body = Problem)),
)]
async fn list_skills(
    State(state): State<GatewayState>,
    caller: Caller,
    Query(query): Query<PageQuery>,
) -> Result<Json<SkillsPage>, ApiError> {
    let views = state.skills.list(&caller).await.map_err(refused)?;
    let page = query.page(views, |view| view.row.id.to_string())?;
    Ok(Json(SkillsPage::of(page, &caller, state.skills.settings())))
}

/// Adds an enabled skill for the caller's sessions or, as an admin, for everybody's.
///
/// The body is a ZIP or tar.gz archive of the skill's folder, its `SKILL.md` alone, or JSON with a skill that
/// was written in the page.
#[utoipa::path(post, path = "/api/skills", tag = "skills", params(ScopeQuery),
    request_body(content(
        (Vec<u8> = "application/octet-stream"), (WrittenSkill = "application/json"),
    ), description = "The skill."),
    responses((status = 201, body = SkillItem), (status = 400, body = Problem),
        (status = 403, body = Problem), (status = 413, body = Problem)),
)]
async fn create_skill(
    State(state): State<GatewayState>,
    caller: Caller,
    Query(query): Query<ScopeQuery>,
    request: Request,
) -> Result<(StatusCode, Json<SkillItem>), ApiError> {
    let scope = query.scope()?;
    let file = upload::read(&state, &caller, request).await?;
    let view = state
        .skills
        .add(&caller, scope, file)
        .await
        .map_err(refused)?;
    Ok((StatusCode::CREATED, Json(SkillItem::of(view))))
}

/// Checks an upload, and returns the skill that it would make, or all its problems. Nothing is stored.
#[utoipa::path(post, path = "/api/skills/check", tag = "skills", params(ScopeQuery),
    request_body(content(
        (Vec<u8> = "application/octet-stream"), (WrittenSkill = "application/json"),
    ), description = "The skill."),
    responses((status = 200, body = SkillCheck), (status = 400, body = Problem),
        (status = 403, body = Problem), (status = 413, body = Problem)),
)]
async fn check_skill(
    State(state): State<GatewayState>,
    caller: Caller,
    Query(query): Query<ScopeQuery>,
    request: Request,
) -> Result<Json<SkillCheck>, ApiError> {
    let scope = query.scope()?;
    let file = upload::read(&state, &caller, request).await?;
    let (document, files) = state
        .skills
        .check(&caller, scope, file)
        .await
        .map_err(refused)?;
    Ok(Json(SkillCheck::of(document, files)))
}

/// Returns a skill with its text.
#[utoipa::path(get, path = "/api/skills/{id}", tag = "skills", params(("id" = String, Path)),
    responses((status = 200, body = SkillDetails), (status = 403, body = Problem),
        (status = 404, body = Problem)),
)]
async fn read_skill(
    State(state): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<SkillDetails>, ApiError> {
    let (view, bundle) = state
        .skills
        .bundle(&caller, &skill_id(&id)?)
        .await
        .map_err(refused)?;
    Ok(Json(SkillDetails::of(view, &bundle)))
}

/// Replaces the files of a skill, as its next version. Its switches stay unchanged.
#[utoipa::path(put, path = "/api/skills/{id}", tag = "skills", params(("id" = String, Path)),
    request_body(content(
        (Vec<u8> = "application/octet-stream"), (WrittenSkill = "application/json"),
    ), description = "The skill."),
    responses((status = 200, body = SkillItem), (status = 400, body = Problem),
        (status = 403, body = Problem), (status = 404, body = Problem),
        (status = 409, body = Problem), (status = 413, body = Problem)),
)]
async fn replace_skill(
    State(state): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
    request: Request,
) -> Result<Json<SkillItem>, ApiError> {
    let id = skill_id(&id)?;
    // Checked before the upload, so that nobody sends megabytes only to be refused.
    state.skills.find(&caller, &id).await.map_err(refused)?;
    let file = upload::read(&state, &caller, request).await?;
    let view = state
        .skills
        .replace(&caller, &id, file)
        .await
        .map_err(refused)?;
    Ok(Json(SkillItem::of(view)))
}

/// Enables or disables a skill for the caller's sessions or, as an admin, for everybody's.
#[utoipa::path(patch, path = "/api/skills/{id}", tag = "skills", params(("id" = String, Path)),
    request_body = SkillSwitchBody,
    responses((status = 200, body = SkillItem), (status = 400, body = Problem),
        (status = 403, body = Problem), (status = 404, body = Problem)),
)]
async fn switch_skill(
    State(state): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
    Body(body): Body<SkillSwitchBody>,
) -> Result<Json<SkillItem>, ApiError> {
    let switch = body.switch();
    let id = skill_id(&id)?;
    let view = state
        .skills
        .switch(&caller, &id, switch)
        .await
        .map_err(refused)?;
    Ok(Json(SkillItem::of(view)))
}

/// Removes a skill. The parts that sessions read stay in their transcripts.
#[utoipa::path(delete, path = "/api/skills/{id}", tag = "skills", params(("id" = String, Path)),
    responses((status = 204), (status = 403, body = Problem), (status = 404, body = Problem)),
)]
async fn delete_skill(
    State(state): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    state
        .skills
        .remove(&caller, &skill_id(&id)?)
        .await
        .map_err(refused)?;
    Ok(StatusCode::NO_CONTENT)
}

/// Returns the folder of a skill as a ZIP archive.
#[utoipa::path(get, path = "/api/skills/{id}/archive", tag = "skills", params(("id" = String, Path)),
    responses((status = 200, description = "The archive.", content_type = "application/zip",
        body = Vec<u8>), (status = 403, body = Problem), (status = 404, body = Problem)),
)]
async fn download_skill(
    State(state): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let (name, packed) = pack(&state, &caller, &skill_id(&id)?).await?;
    Ok(served(packed, "application/zip", &format!("{name}.zip")))
}

/// The name of a skill, and its folder as a ZIP archive.
pub(super) async fn pack(
    state: &GatewayState,
    caller: &Caller,
    id: &SkillId,
) -> Result<(String, Vec<u8>), ApiError> {
    let found = state.skills.bundle(caller, id).await;
    let (view, bundle) = found.map_err(refused)?;
    let name = view.row.name;
    let packed = {
        let folder = name.clone();
        let pool = state.skills.pool();
        pool.run(move || bundle.to_zip(Some(&folder))).await
    };
    let packed = packed.ok().and_then(Result::ok);
    let internal = || ApiError::new(Code::Internal, "the archive cannot be made");
    Ok((name, packed.ok_or_else(internal)?))
}

/// Returns a file of a skill. The path is one segment of the address, with `%2F` for `/`.
#[utoipa::path(get, path = "/api/skills/{id}/files/{path}", tag = "skills",
    params(("id" = String, Path), ("path" = String, Path)),
    responses((status = 200, description = "The content.", content(
        (String = "text/plain"), (Vec<u8> = "application/octet-stream"),
    )), (status = 403, body = Problem), (status = 404, body = Problem)),
)]
async fn read_skill_file(
    State(state): State<GatewayState>,
    caller: Caller,
    Path((id, path)): Path<(String, String)>,
) -> Result<Response, ApiError> {
    let (_, bundle) = state
        .skills
        .bundle(&caller, &skill_id(&id)?)
        .await
        .map_err(refused)?;
    let missing = || ApiError::new(Code::NotFound, "the skill has no such file");
    let file = bundle.file(&path).ok_or_else(missing)?;
    let kind = match std::str::from_utf8(&file.content) {
        Ok(_) => "text/plain; charset=utf-8",
        Err(_) => "application/octet-stream",
    };
    let name = path.rsplit('/').next().unwrap_or(&path);
    Ok(served(file.content.clone(), kind, name))
}

/// Returns a response that a browser saves as a file, and never runs.
fn served(content: Vec<u8>, kind: &'static str, name: &str) -> Response {
    let name = utf8_percent_encode(name, NON_ALPHANUMERIC);
    let disposition = format!("attachment; filename*=UTF-8''{name}");
    let mut response = content.into_response();
    let headers = response.headers_mut();
    for (header, value) in [
        (CONTENT_TYPE, kind),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (CACHE_CONTROL, "private, no-cache"),
    ] {
        headers.insert(header, HeaderValue::from_static(value));
    }
    if let Ok(value) = HeaderValue::from_str(&disposition) {
        headers.insert(CONTENT_DISPOSITION, value);
    }
    response
}
