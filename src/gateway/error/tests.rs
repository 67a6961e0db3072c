//! Tests that every error has its status, and that internal details stay hidden.

use std::time::Duration;

use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};

use super::{ApiError, render};
use crate::domain::{Code, RequestId};
use crate::gateway::access::AccessError;
use crate::session::Refusal;
use crate::{store, tenancy};

async fn read(response: Response) -> Value {
    let bytes = axum::body::to_bytes(response.into_body(), 1 << 20)
        .await
        .unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

#[tokio::test]
async fn a_problem_has_every_member_of_the_contract() {
    let error = ApiError::of_field(Code::InvalidArguments, "name", "`name` is missing")
        .with("setupNeeded", json!(true));
    assert_eq!(error.clone().into_response().status(), 400);
    let response = render(error, &RequestId::from_bits(7));
    assert_eq!(response.status(), 400);
    assert_eq!(
        response.headers()["content-type"],
        "application/problem+json"
    );
    assert_eq!(
        read(response).await,
        json!({
            "type": "urn:sepal:problem:invalid_arguments",
            "title": Code::InvalidArguments.cause(),
            "status": 400,
            "detail": "`name` is missing",
            "code": "invalid_arguments",
            "category": "validation",
            "errors": [{ "field": "name", "message": "`name` is missing" }],
            "requestId": "req_00000000000000000000000000000007",
            "error": "`name` is missing",
            "setupNeeded": true,
        })
    );
}

#[tokio::test]
async fn nothing_of_our_insides_is_told() {
    let errors: [ApiError; 3] = [
        store::Error::Corrupt {
            what: "tenant id",
            value: "secret".into(),
        }
        .into(),
        tenancy::Error::Hashing.into(),
        Refusal::new(Code::Internal, "the secret path /data").into(),
    ];
    for error in errors {
        assert_eq!(error.clone().into_refusal().message, "internal error");
        let response = render(error, &RequestId::from_bits(7));
        assert_eq!(response.status(), 500);
        let problem = read(response).await;
        assert_eq!(
            (&problem["detail"], &problem["error"]),
            (&json!("internal error"), &json!("internal error"))
        );
        assert!(!problem.to_string().contains("secret"));
    }
}

/// Asserts S0.46.
#[test]
fn every_situation_has_its_status() {
    fn check(error: impl Into<ApiError>, status: u16, code: &str) {
        let error = error.into();
        let (found, name) = (error.code().as_str(), error.clone());
        assert_eq!(
            (error.into_response().status().as_u16(), found),
            (status, code),
            "{name:?}"
        );
    }
    check(tenancy::Error::WrongPassword, 401, "unauthorized");
    check(tenancy::Error::NotValid, 401, "unauthorized");
    check(
        tenancy::Error::TooManyAttempts(Duration::from_secs(5)),
        429,
        "too_many_requests",
    );
    check(
        tenancy::Error::Invalid {
            field: "name",
            reason: "is missing",
        },
        400,
        "invalid_arguments",
    );
    check(tenancy::Error::NotFound("user"), 404, "not_found");
    check(tenancy::Error::Refused("no"), 403, "not_allowed");
    check(
        tenancy::Error::Store(store::Error::NoAnswer),
        503,
        "store_unavailable",
    );
    check(store::Error::Taken("ann".into()), 409, "invalid_arguments");
    check(
        store::Error::TooLarge { bytes: 2, limit: 1 },
        413,
        "too_large",
    );
    check(
        AccessError::Host("evil.example".into()),
        403,
        "host_refused",
    );
    for (code, status) in [
        (Code::SessionNotFound, 404),
        (Code::NoSuchCall, 404),
        (Code::NoSuchElicitation, 404),
        (Code::AlreadyDecided, 409),
        (Code::CallExpired, 409),
        (Code::ChangedSinceShown, 409),
        (Code::NothingToDo, 409),
        (Code::NotAllowed, 403),
        (Code::ServerStopping, 503),
        (Code::ProviderUnavailable, 503),
        (Code::ProviderRejected, 502),
        (Code::ToolTimeout, 504),
        (Code::TurnTimeout, 504),
    ] {
        check(Refusal::new(code, "x"), status, code.as_str());
    }
}

#[test]
fn who_tried_too_often_is_told_how_long_to_wait() {
    let error = tenancy::Error::TooManyAttempts(Duration::from_millis(4_500));
    let response = render(error.into(), &RequestId::from_bits(7));
    assert_eq!(response.headers()["retry-after"], "5");
    let response = render(tenancy::Error::NotValid.into(), &RequestId::from_bits(7));
    assert_eq!(response.headers()["www-authenticate"], "Bearer");
}
