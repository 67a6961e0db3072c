//! Exports a session as a file.

use axum::extract::State;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse as _, Response};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use utoipa::IntoParams;

use super::attachments::POLICY;
use super::key_of;
use crate::domain::{Caller, Code, Timestamp};
use crate::gateway::GatewayState;
use crate::gateway::error::{ApiError, Problem};
use crate::gateway::export::{Document, Form, Format};
use crate::gateway::extract::{Query, SessionPath};

/// The policy of an export that a browser shows: nothing in it runs, and only embedded data loads. It keeps
/// our origin, so that our page may ask the browser to print it.
const SHOWN_POLICY: &str = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; \
    frame-ancestors 'none'; base-uri 'none'; form-action 'none'";
/// The most characters of the title in the file's name.
const NAME_CHARS: usize = 60;

/// The form of an export.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::gateway::http) struct ExportQuery {
    /// `md` (Markdown with attachments by name), `html` (one page that contains everything) or `json` (the
    /// events with the contents of attachments); `md` if absent.
    #[param(pattern = "^(md|html|json)?$")]
    format: Option<String>,
    /// True to make browsers show the file instead of saving it; only for `html`.
    show: Option<bool>,
}

impl ExportQuery {
    /// The format, and whether browsers show it.
    pub(super) fn checked(self) -> Result<(Format, bool), ApiError> {
        let format = self.format.filter(|format| !format.is_empty());
        let format = Format::parse(format.as_deref().unwrap_or("md")).ok_or_else(|| {
            let text = "`format` is `md`, `html` or `json`";
            ApiError::of_field(Code::InvalidArguments, "format", text)
        })?;
        let is_shown = self.show.unwrap_or_default();
        if is_shown && format != Format::Html {
            let text = "only `html` can be shown";
            return Err(ApiError::of_field(Code::InvalidArguments, "show", text));
        }
        Ok((format, is_shown))
    }
}

/// Exports a session as a file: its transcript and its attachments.
#[utoipa::path(get, path = "/api/sessions/{id}/export", tag = "sessions",
    params(("id" = String, Path), ExportQuery),
    responses((status = 200, description = "The file.", content(
        (String = "text/markdown"), (String = "text/html"), (serde_json::Value = "application/json"),
    )), (status = 400, body = Problem), (status = 404, body = Problem), (status = 413, body = Problem),
        (status = 429, body = Problem)),
)]
pub(in crate::gateway::http) async fn export_session(
    State(state): State<GatewayState>,
    caller: Caller,
    SessionPath(session): SessionPath,
    Query(query): Query<ExportQuery>,
) -> Result<Response, ApiError> {
    let (format, is_shown) = query.checked()?;
    let now = Timestamp(jiff::Timestamp::now().as_millisecond());
    let document = Document::new(session.clone(), now);
    let key = key_of(&caller, session);
    // Checked before the limit of exports: to anybody else the session does not exist, even if we are busy.
    state.sessions.admit(&key, &caller).await?;
    let reader = state.documents.begin_export(&caller)?;
    let fetch = |after, limit| state.sessions.transcript_part(&key, &caller, after, limit);
    let form = Form::Export(format);
    let written = state.documents.write(document, form, fetch).await?;
    let headers = headers(&written.title, format, is_shown);
    let sessions = state.sessions.clone();
    let content = move |id| {
        let (sessions, key, caller) = (sessions.clone(), key.clone(), caller.clone());
        async move {
            let found = sessions.attachment(&key, &caller, &id).await?;
            Ok(found.map(|(_, content)| content))
        }
    };
    let body = state.documents.send(written, reader, content);
    Ok((headers, body).into_response())
}

pub(super) fn headers(title: &str, format: Format, is_shown: bool) -> HeaderMap {
    let title: String = title.chars().take(NAME_CHARS).collect();
    let name = utf8_percent_encode(&title, NON_ALPHANUMERIC);
    let extension = format.extension();
    let way = if is_shown { "inline" } else { "attachment" };
    let disposition = format!("{way}; filename*=UTF-8''{name}.{extension}");
    let fixed = [
        (CONTENT_TYPE, format.media_type()),
        (
            CONTENT_SECURITY_POLICY,
            if is_shown { SHOWN_POLICY } else { POLICY },
        ),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (CACHE_CONTROL, "no-store"),
    ];
    let mut headers: HeaderMap = fixed
        .into_iter()
        .map(|(name, value)| (name, HeaderValue::from_static(value)))
        .collect();
    if let Ok(value) = HeaderValue::from_str(&disposition) {
        headers.insert(CONTENT_DISPOSITION, value);
    }
    headers
}
