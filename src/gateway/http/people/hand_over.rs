//! Hands the sessions of a person whose access has ended over to somebody else (`/api/people/{id}/hand-over`).

use axum::Json;
use axum::extract::{Path, State};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::person_id;
use crate::agent::TransferPart;
use crate::domain::{Caller, Code, SessionId};
use crate::gateway::GatewayState;
use crate::gateway::api_router::{ApiRouter, routes};
use crate::gateway::error::{ApiError, Problem};
use crate::gateway::extract::{Body, required};

/// Who gets the sessions of a person.
#[derive(Deserialize, ToSchema)]
struct HandOverRequest {
    /// The id of the person who gets copies of the sessions.
    #[schema(required, nullable = false)]
    to: Option<String>,
    /// `next` of the answer before; absent at first.
    after: Option<String>,
}

/// The result of a part of a hand-over.
#[derive(Serialize, ToSchema)]
struct HandOverResponse {
    /// The number of sessions that this part copied.
    copied: usize,
    /// The sessions that could not be copied. Another attempt takes them again.
    failed: Vec<HandOverFailure>,
    /// To be sent as `after` with the next request; `null` when every session was looked at.
    next: Option<String>,
}

/// A session that could not be copied.
#[derive(Serialize, ToSchema)]
struct HandOverFailure {
    /// The id of the session.
    session: String,
    /// The code of the reason.
    code: &'static str,
    /// The reason.
    message: String,
}

impl From<TransferPart> for HandOverResponse {
    fn from(part: TransferPart) -> Self {
        let failed = part.failed.into_iter();
        let failed = failed.map(|(session, refusal)| HandOverFailure {
            session: session.to_string(),
            code: refusal.code.as_str(),
            message: refusal.message,
        });
        Self {
            copied: part.copied,
            failed: failed.collect(),
            next: part.next.map(|session| session.to_string()),
        }
    }
}

pub(super) fn routes() -> ApiRouter {
    ApiRouter::new().routes(routes!(hand_over))
}

/// Copies a part of the sessions of a person whose access has ended, with their files, for somebody else in the
/// tenant. Clients repeat it with `after` until `next` is `null`. The originals stay until the person is deleted.
/// Needs `people.manage` and `sessions.read_content`.
#[utoipa::path(post, path = "/api/people/{id}/hand-over", tag = "people",
    params(("id" = String, Path)), request_body = HandOverRequest,
    responses((status = 200, body = HandOverResponse), (status = 400, body = Problem),
        (status = 403, body = Problem), (status = 404, body = Problem)))]
async fn hand_over(
    State(state): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
    Body(body): Body<HandOverRequest>,
) -> Result<Json<HandOverResponse>, ApiError> {
    let (from, to) = (person_id(&id)?, required("to", body.to)?);
    let to = person_id(&to).map_err(|_| {
        let text = "`to` is the id of a person of this tenant";
        ApiError::of_field(Code::InvalidArguments, "to", text)
    })?;
    let after = body.after.as_deref().map(|after| {
        let text = "`after` is `next` of the answer before";
        let wrong = || ApiError::of_field(Code::InvalidArguments, "after", text);
        SessionId::parse(after).ok_or_else(wrong)
    });
    let after = after.transpose()?;
    let recipient = state
        .tenancy
        .people(&caller)
        .find_recipient(&from, &to)
        .await?;
    let transfers = state.sessions.transfers();
    let part = transfers.copy_part(&from, &recipient, after.as_ref());
    Ok(Json(part.await?.into()))
}
