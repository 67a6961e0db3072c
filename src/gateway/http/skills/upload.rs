//! Reads the body of a request with a skill, and turns errors about skills into responses.

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, FromRequest as _, Request};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use serde_json::json;

use super::body::WrittenSkill;
use crate::domain::{Caller, Code};
use crate::gateway::GatewayState;
use crate::gateway::error::ApiError;
use crate::gateway::extract::Body;
use crate::skills::{self, SkillFile};

/// Reads the uploaded file, or makes a `SKILL.md` from a skill that was written in the page.
pub(super) async fn read(
    state: &GatewayState,
    caller: &Caller,
    request: Request,
) -> Result<SkillFile, ApiError> {
    let counted = state.skills.begin(caller)?;
    let content = content(state, request).await?;
    Ok(SkillFile { content, counted })
}

async fn content(state: &GatewayState, mut request: Request) -> Result<Vec<u8>, ApiError> {
    let bytes = state.skills.settings().limits.bytes;
    let most = usize::try_from(bytes).unwrap_or(usize::MAX);
    DefaultBodyLimit::max(most).apply(&mut request);
    let kind = request.headers().get(CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if kind.split(';').next().unwrap_or_default().trim() == "application/json" {
        let Body(written) = Body::<WrittenSkill>::from_request(request, state).await?;
        return written.document();
    }
    let bytes = Bytes::from_request(request, state).await;
    let bytes = bytes.map_err(|rejection| match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => {
            let text = format!(
                "a skill may have {} KiB; leave out what it does not need, or have the operator raise \
                 `agent.skills.max_kb`",
                most / 1024
            );
            ApiError::of_field(Code::TooLarge, "file", text)
        }
        _ => ApiError::new(Code::InvalidArguments, "the body did not arrive whole"),
    })?;
    Ok(bytes.into())
}

/// Returns the response to an error; for an invalid upload, with all of its problems.
pub(in crate::gateway::http) fn refused(error: skills::Error) -> ApiError {
    match error {
        skills::Error::Refused(refusal) => refusal.into(),
        skills::Error::Store(error) => error.into(),
        skills::Error::Invalid(problems) => {
            let fields = problems.iter().filter(|problem| !problem.is_warning);
            let fields = fields.map(|it| (it.at.clone(), it.message.clone()));
            let refused = ApiError::of_fields(fields);
            let told = problems.iter().map(|problem| {
                json!({
                    "at": problem.at, "message": problem.message, "remedy": problem.remedy,
                    "isWarning": problem.is_warning,
                })
            });
            refused.with("problems", told.collect())
        }
    }
}
