//! Converts the errors of other modules to [`ApiError`]s.

use axum::http::StatusCode;

use super::ApiError;
use crate::agent::{BudgetError, NotificationError, RowError, RuleError};
use crate::domain::Code;
use crate::gateway::access::AccessError;
use crate::mcp::authorization::AuthorizationError;
use crate::servers::{ConnectError, RegistryError};
use crate::session::Refusal;
use crate::tenancy::GestureError;
use crate::{providers, store, tenancy};

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        match refusal.field {
            Some(field) => Self::of_field(refusal.code, field, refusal.message),
            None => Self::new(refusal.code, refusal.message),
        }
    }
}

impl From<AccessError> for ApiError {
    fn from(refused: AccessError) -> Self {
        let field = match refused {
            AccessError::NoHost | AccessError::Host(_) => "Host",
            AccessError::Origin(_) => "Origin",
            AccessError::OtherSite => "Sec-Fetch-Site",
        };
        Self::of_field(Code::HostRefused, field, refused.to_string())
    }
}

impl From<tenancy::Error> for ApiError {
    fn from(error: tenancy::Error) -> Self {
        match error {
            tenancy::Error::Store(error) => error.into(),
            tenancy::Error::Invalid { field, .. } => {
                Self::of_field(error.code(), field, error.to_string())
            }
            tenancy::Error::TooManyAttempts(wait) => {
                let mut refused = Self::new(error.code(), error.to_string());
                refused.0.retry_after = Some(wait);
                refused
            }
            tenancy::Error::NotLetIn(reason) => {
                Self::new(error.code(), error.to_string()).with("reason", reason.as_str().into())
            }
            tenancy::Error::WrongPassword
            | tenancy::Error::WrongPasskey
            | tenancy::Error::NotValid
            | tenancy::Error::NotFound(_)
            | tenancy::Error::Refused(_)
            | tenancy::Error::Hashing => Self::new(error.code(), error.to_string()),
        }
    }
}

impl From<providers::Error> for ApiError {
    fn from(error: providers::Error) -> Self {
        match error {
            providers::Error::Refused(refusal) => refusal.into(),
            providers::Error::Store(error) => error.into(),
        }
    }
}

impl From<RowError> for ApiError {
    fn from(error: RowError) -> Self {
        match error {
            RowError::Refused(refusal) => refusal.into(),
            RowError::Store(error) => error.into(),
        }
    }
}

impl From<RuleError> for ApiError {
    fn from(error: RuleError) -> Self {
        match error {
            RuleError::Refused(refusal) => refusal.into(),
            RuleError::Store(error) => error.into(),
        }
    }
}

impl From<BudgetError> for ApiError {
    fn from(error: BudgetError) -> Self {
        match error {
            BudgetError::Refused(refusal) => refusal.into(),
            BudgetError::Store(error) => error.into(),
        }
    }
}

impl From<NotificationError> for ApiError {
    fn from(error: NotificationError) -> Self {
        match error {
            NotificationError::Refused(refusal) => refusal.into(),
            NotificationError::Store(error) => error.into(),
        }
    }
}

impl From<store::Error> for ApiError {
    fn from(error: store::Error) -> Self {
        let text = error.to_string();
        match &error {
            store::Error::Taken(_) => {
                Self::of_field(error.code(), "name", text).with_status(StatusCode::CONFLICT)
            }
            store::Error::Changed => Self::of_field(error.code(), "If-Match", text)
                .with_status(StatusCode::PRECONDITION_FAILED),
            store::Error::Database(_)
            | store::Error::Redis { .. }
            | store::Error::NoAnswer
            | store::Error::NoWorker(_)
            | store::Error::Migration(_)
            | store::Error::TenantDeleted
            | store::Error::TooLarge { .. }
            | store::Error::Corrupt { .. }
            | store::Error::Unrecorded(_)
            | store::Error::Sealed(_)
            | store::Error::OtherSecretKey
            | store::Error::NoSecretKey
            | store::Error::Unusable { .. }
            | store::Error::Locked { .. } => Self::new(error.code(), text).with_cause(error),
        }
    }
}

impl From<GestureError> for ApiError {
    fn from(error: GestureError) -> Self {
        match error {
            GestureError::Wrong { field, .. } => {
                Self::of_field(error.code(), field, error.to_string())
            }
            GestureError::Tenancy(error) => error.into(),
        }
    }
}

impl From<RegistryError> for ApiError {
    fn from(error: RegistryError) -> Self {
        let text = error.to_string();
        match error {
            RegistryError::Off | RegistryError::NotFound(_) => Self::new(Code::NotFound, text),
            RegistryError::Away(_) => Self::new(Code::RegistryUnavailable, text),
            RegistryError::Invalid(problems) => {
                let fields = problems.into_iter();
                Self::of_fields(fields.map(|problem| (problem.field, problem.message)))
            }
            RegistryError::Servers(error) => error.into(),
        }
    }
}

impl From<ConnectError> for ApiError {
    fn from(error: ConnectError) -> Self {
        let text = error.to_string();
        match error {
            ConnectError::NotAllowed => Self::new(Code::NotAllowed, text),
            ConnectError::NotFound(_) => Self::new(Code::NotFound, text),
            ConnectError::NotForPeople(..) => Self::new(Code::InvalidArguments, text),
            ConnectError::Invalid(field, _) => Self::of_field(Code::InvalidArguments, field, text),
            ConnectError::OtherAddress => Self::of_field(Code::InvalidArguments, "at", text),
            ConnectError::Stale => Self::of_field(Code::InvalidArguments, "state", text),
            ConnectError::Authorization(AuthorizationError::Unreachable { .. }) => {
                Self::new(Code::ToolFailed, text).with_status(StatusCode::SERVICE_UNAVAILABLE)
            }
            ConnectError::Entry(_) | ConnectError::Authorization(_) => {
                Self::new(Code::ToolFailed, text).with_status(StatusCode::BAD_GATEWAY)
            }
            ConnectError::Store(error) => error.into(),
        }
    }
}
