//! Maps faults to status codes and problem documents (RFC 9457), in this one place.
//!
//! A handler returns an [`ApiError`]; [`render`] turns it into a response when the request id is known.

mod conversions;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use crate::domain::{Code, Fault, RequestId};
use crate::session::Refusal;

/// The error of a refused or failed request.
#[derive(Debug, Clone)]
pub struct ApiError(Box<Inner>);

#[derive(Debug, Clone)]
struct Inner {
    code: Code,
    status: StatusCode,
    detail: Cow<'static, str>,
    fields: Vec<FieldError>,
    retry_after: Option<Duration>,
    /// Additional members of the problem document.
    more: Map<String, Value>,
    /// The cause, for the log only.
    cause: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

/// A problem with one field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct FieldError {
    /// The path of the field.
    pub field: String,
    /// The problem, in words.
    pub message: String,
}

/// A refused request, as clients read it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Problem {
    /// Names the kind: `urn:sepal:problem:<code>`.
    #[schema(example = "urn:sepal:problem:not_found")]
    r#type: String,
    /// The meaning of the kind.
    title: &'static str,
    /// The status code.
    status: u16,
    /// The problem of this request, in words.
    detail: String,
    /// Stable; see docs/errors.md.
    code: &'static str,
    /// `validation`, `transient`, `external` or `internal`.
    category: &'static str,
    /// The fields that are wrong.
    errors: Vec<FieldError>,
    /// Names the request in the log.
    request_id: String,
    /// The same as `detail`, for simple clients.
    error: String,
    #[serde(flatten)]
    #[schema(ignore)]
    more: Map<String, Value>,
}

impl ApiError {
    /// Creates an error whose text a client may read; `render` replaces the text of internal errors.
    pub fn new(code: Code, detail: impl Into<Cow<'static, str>>) -> Self {
        Self(Box::new(Inner {
            code,
            status: status_of(code),
            detail: detail.into(),
            fields: Vec::new(),
            retry_after: None,
            more: Map::new(),
            cause: None,
        }))
    }

    /// Creates an error in one field.
    pub fn of_field(code: Code, field: impl Into<String>, message: impl Into<String>) -> Self {
        let message = message.into();
        let mut error = Self::new(code, message.clone());
        error.0.fields.push(FieldError {
            field: field.into(),
            message,
        });
        error
    }

    /// Creates an error that names each of several invalid fields.
    pub(in crate::gateway) fn of_fields(
        fields: impl IntoIterator<Item = (String, String)>,
    ) -> Self {
        let fields = fields
            .into_iter()
            .map(|(field, message)| FieldError { field, message });
        let fields: Vec<FieldError> = fields.collect();
        let texts = fields
            .iter()
            .map(|wrong| format!("`{}`: {}", wrong.field, wrong.message));
        let texts: Vec<String> = texts.collect();
        let mut error = Self::new(Code::InvalidArguments, texts.join("; "));
        error.0.fields = fields;
        error
    }

    /// Creates an error about a name that is already taken.
    pub(super) fn taken(field: &str, message: String) -> Self {
        Self::of_field(Code::InvalidArguments, field, message).with_status(StatusCode::CONFLICT)
    }

    /// Replaces the status code.
    #[must_use]
    pub(super) fn with_status(mut self, status: StatusCode) -> Self {
        self.0.status = status;
        self
    }

    /// Says how long to wait before the next attempt.
    #[must_use]
    pub(super) fn retry_after(mut self, wait: Duration) -> Self {
        self.0.retry_after = Some(wait);
        self
    }

    /// Adds a member to the problem document.
    #[must_use]
    pub(in crate::gateway) fn with(mut self, name: &str, value: Value) -> Self {
        self.0.more.insert(name.to_owned(), value);
        self
    }

    pub(super) fn with_cause(
        mut self,
        cause: impl std::error::Error + Send + Sync + 'static,
    ) -> Self {
        self.0.cause = Some(Arc::new(cause));
        self
    }

    /// Returns the stable code.
    pub fn code(&self) -> Code {
        self.0.code
    }

    /// Converts the error for doors without status codes. Logs it here if it is internal.
    pub(super) fn into_refusal(self) -> Refusal {
        let detail = self.detail();
        if self.0.code.fault() == Fault::Internal {
            self.log();
        }
        Refusal::new(self.0.code, detail)
    }

    /// Returns the text for clients, which hides internal errors.
    fn detail(&self) -> Cow<'static, str> {
        match self.0.code.fault() {
            Fault::Internal => Cow::Borrowed("internal error"),
            Fault::Validation | Fault::Transient | Fault::External => self.0.detail.clone(),
        }
    }

    fn log(&self) {
        let Inner {
            code,
            detail,
            cause,
            ..
        } = &*self.0;
        let causes = cause
            .as_ref()
            .map(|cause| chain(&**cause))
            .unwrap_or_default();
        match code.fault() {
            Fault::Internal => tracing::error!(code = code.as_str(), causes, "{detail}"),
            Fault::Transient | Fault::External => {
                tracing::warn!(code = code.as_str(), causes, "{detail}");
            }
            Fault::Validation => tracing::debug!(code = code.as_str(), causes, "{detail}"),
        }
    }
}

impl Problem {
    fn of(error: ApiError, request: &RequestId) -> Self {
        let detail = error.detail().into_owned();
        let code = error.0.code;
        Self {
            r#type: format!("urn:sepal:problem:{}", code.as_str()),
            title: code.cause(),
            status: error.0.status.as_u16(),
            error: detail.clone(),
            detail,
            code: code.as_str(),
            category: code.fault().as_str(),
            errors: error.0.fields,
            request_id: request.as_str().to_owned(),
            more: error.0.more,
        }
    }
}

/// Returns the body of the response to a refused request.
pub(super) fn document(error: ApiError, request: &RequestId) -> Vec<u8> {
    serde_json::to_vec(&Problem::of(error, request)).unwrap_or_default()
}

/// Renders the response to a refused request, and logs the error once.
pub(super) fn render(error: ApiError, request: &RequestId) -> Response {
    render_as(error, "application/problem+json", |error| {
        axum::Json(Problem::of(error, request)).into_response()
    })
}

/// Renders the response to a directory's refused request (RFC 7644, section 3.12).
pub(super) fn render_scim(error: ApiError) -> Response {
    render_as(error, "application/scim+json", |error| {
        let mut body = json!({
            "schemas": ["urn:ietf:params:scim:api:messages:2.0:Error"],
            "status": error.0.status.as_u16().to_string(),
            "detail": error.detail(),
        });
        if let (Some(kind), Some(body)) = (error.0.more.get("scimType"), body.as_object_mut()) {
            body.insert("scimType".to_owned(), kind.clone());
        }
        axum::Json(body).into_response()
    })
}

fn render_as(
    error: ApiError,
    kind: &'static str,
    body: impl FnOnce(ApiError) -> Response,
) -> Response {
    error.log();
    let status = error.0.status;
    // Most limits are free again as soon as something else ends.
    let may_wait = [
        StatusCode::TOO_MANY_REQUESTS,
        StatusCode::SERVICE_UNAVAILABLE,
    ];
    let usual = may_wait.contains(&status).then_some(Duration::ZERO);
    let retry_after = error.0.retry_after.or(usual);
    let mut response = body(error);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    if status == StatusCode::UNAUTHORIZED {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    if let Some(wait) = retry_after {
        headers.insert(
            RETRY_AFTER,
            HeaderValue::from(wait.as_secs().saturating_add(1)),
        );
    }
    response
}

/// The error stays in the response's extensions until [`render`] takes it.
impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = self.0.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

fn status_of(code: Code) -> StatusCode {
    match code {
        Code::Unauthorized => StatusCode::UNAUTHORIZED,
        Code::NotAllowed | Code::ScopeMissing | Code::HostRefused | Code::GestureRequired => {
            StatusCode::FORBIDDEN
        }
        Code::NotFound | Code::SessionNotFound | Code::NoSuchCall | Code::NoSuchElicitation => {
            StatusCode::NOT_FOUND
        }
        Code::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
        Code::ReadOnly
        | Code::AlreadyDecided
        | Code::FileExists
        | Code::KeyInUse
        | Code::CallExpired
        | Code::ChangedSinceShown
        | Code::NothingToDo
        | Code::AuthorizationRequired
        | Code::MissingApiKey
        | Code::MaxIterations
        | Code::RepeatedCall
        | Code::BudgetExhausted
        | Code::ContextOverflow => StatusCode::CONFLICT,
        Code::TooManyRequests => StatusCode::TOO_MANY_REQUESTS,
        Code::RequestTimeout => StatusCode::REQUEST_TIMEOUT,
        Code::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        Code::ToolTimeout | Code::TurnTimeout => StatusCode::GATEWAY_TIMEOUT,
        Code::SandboxUnavailable => StatusCode::SERVICE_UNAVAILABLE,
        // The fault is ours, so 500 and not 502: no upstream sent a bad response.
        Code::SessionUnreadable => StatusCode::INTERNAL_SERVER_ERROR,
        Code::InvalidArguments
        | Code::UnknownCommand
        | Code::ProviderRateLimited
        | Code::ProviderUnavailable
        | Code::RegistryUnavailable
        | Code::SignInUnavailable
        | Code::SignInRejected
        | Code::ProviderRejected
        | Code::ToolFailed
        | Code::ToolUnknownOutcome
        | Code::StoreUnavailable
        | Code::ServerStopping
        | Code::Internal => match code.fault() {
            Fault::Validation => StatusCode::BAD_REQUEST,
            Fault::Transient => StatusCode::SERVICE_UNAVAILABLE,
            Fault::External => StatusCode::BAD_GATEWAY,
            Fault::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        },
    }
}

/// Joins the texts of an error and its sources, outermost first.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut texts = vec![error.to_string()];
    let mut below = error.source();
    while let Some(error) = below {
        texts.push(error.to_string());
        below = error.source();
    }
    texts.join(": ")
}

#[cfg(test)]
mod tests;
