//! Gives out everything that a person made as one file (`/api/people/{id}/archive`).

use std::collections::VecDeque;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS,
};
use axum::response::{IntoResponse as _, Response};
use futures::FutureExt as _;
use serde_json::{Value, json};

use super::super::rules::RuleItem;
use super::super::{assistants, skills};
use super::person_id;
use crate::agent::{RuleAccess, require_scope};
use crate::domain::{Caller, KeyScope, Timestamp};
use crate::gateway::GatewayState;
use crate::gateway::api_router::{ApiRouter, routes};
use crate::gateway::archive::{self, File};
use crate::gateway::error::{ApiError, Problem};
use sepal_policy::Scope;

pub(super) fn routes() -> ApiRouter {
    ApiRouter::new().routes(routes!(archive_person))
}

/// Returns a zip file with who a person is (`person.json`), their rules (`rules.json`), assistants
/// (`assistants/<id>.json`), skills (`skills/<name>.zip`), and sessions with attachments (`sessions/<id>.json`, each as
/// the export of one session). All but the first two can be imported again. Everybody may have their own. That of somebody whose access has ended needs `people.manage` and `sessions.read_content`.
#[utoipa::path(get, path = "/api/people/{id}/archive", tag = "people",
    params(("id" = String, Path)),
    responses((status = 200, description = "The file.", body = Vec<u8>, content_type = "application/zip"),
        (status = 403, body = Problem), (status = 404, body = Problem), (status = 429, body = Problem)))]
async fn archive_person(
    State(state): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let id = person_id(&id)?;
    if id != caller.user.id {
        require_scope(&caller, KeyScope::Administer)?;
    }
    let owner = state.tenancy.people(&caller).find_archived(&id).await?;
    let reader = state.documents.begin_export(&caller)?;
    state.audit.note_archive(&owner).await?;
    let now = state.tenancy.now();
    let keys = state.tenancy.people(&owner).keys(false).await?.into_iter();
    let keys = keys.map(|key| {
        json!({
            "name": key.name,
            "createdAt": key.created_at.to_rfc3339(),
            "expiresAt": key.expires_at.map(Timestamp::to_rfc3339),
        })
    });
    let person = json!({
        "sepal": { "export": "person", "version": 1 },
        "id": owner.user.id,
        "name": owner.user.name,
        "role": owner.user.role.as_str(),
        "tenant": owner.tenant.name,
        "exportedAt": now.to_rfc3339(),
        "keys": keys.collect::<Vec<_>>(),
    });
    let mut files = VecDeque::from([
        whole("person.json", &person),
        whole("rules.json", &own_rules(&state, &owner).await?),
    ]);
    files.extend(own_assistants(&state, &owner).await?);
    files.extend(own_skills(&state, &owner).await?);
    let headers = [
        (CONTENT_TYPE, "application/zip"),
        (
            CONTENT_DISPOSITION,
            "attachment; filename=\"sepal-archive.zip\"",
        ),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (CACHE_CONTROL, "no-store"),
    ];
    let body = archive::send(state, owner, reader, files);
    Ok((headers, body).into_response())
}

fn whole(name: &str, content: &Value) -> File {
    let content = Bytes::from(format!("{content:#}\n"));
    File {
        name: name.to_owned(),
        content: async { Ok(content) }.boxed(),
    }
}

/// The rules that a person gave for all their sessions.
async fn own_rules(state: &GatewayState, owner: &Caller) -> Result<Value, ApiError> {
    let rules = RuleAccess::of(&state.sessions).list(owner, None).await?;
    let own = rules
        .into_iter()
        .filter(|view| view.rule.scope == Scope::Person)
        .map(RuleItem::of);
    Ok(json!(own.collect::<Vec<_>>()))
}

async fn own_assistants(state: &GatewayState, owner: &Caller) -> Result<Vec<File>, ApiError> {
    let views = state.sessions.assistants().list(owner).await?;
    let own = views
        .into_iter()
        .map(|view| view.row)
        .filter(|row| row.owner.as_ref() == Some(&owner.user.id));
    let files = own.map(|row| {
        let (state, owner, id) = (state.clone(), owner.clone(), row.id);
        File {
            name: format!("assistants/{id}.json"),
            content: async move {
                let exported = assistants::export(&state, &owner, &id).await?;
                Ok(Bytes::from(format!("{:#}\n", json!(exported))))
            }
            .boxed(),
        }
    });
    Ok(files.collect())
}

async fn own_skills(state: &GatewayState, owner: &Caller) -> Result<Vec<File>, ApiError> {
    let views = state.skills.list(owner).await.map_err(skills::refused)?;
    let own = views
        .into_iter()
        .map(|view| view.row)
        .filter(|row| row.owner.as_ref() == Some(&owner.user.id));
    let files = own.map(|row| {
        let (state, owner) = (state.clone(), owner.clone());
        File {
            name: format!("skills/{}.zip", row.name),
            content: async move { Ok(skills::pack(&state, &owner, &row.id).await?.1.into()) }
                .boxed(),
        }
    });
    Ok(files.collect())
}
