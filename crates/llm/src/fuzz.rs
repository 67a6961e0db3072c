//! Fuzzes the provider responses that are not streams: errors of any status, and lists of models.

use std::time::Duration;

use reqwest::StatusCode;

use super::stream::cutting::{KEY, owner};
use super::transport::Refused;
use super::{Error, anthropic, gemini, openai};

#[test]
fn provider_answers() {
    sepal_fuzz::check("provider_answers", |input| {
        let (choice, body) = sepal_fuzz::choice(input);
        let statuses = [400, 401, 403, 404, 413, 418, 429, 500, 529];
        let status = statuses[usize::from(choice) % statuses.len()];
        let refused = Refused {
            status: StatusCode::from_u16(status).unwrap(),
            retry_after: Some(Duration::from_secs(1)),
            body: String::from_utf8_lossy(body).into_owned(),
        };
        let owner = owner();
        let origin = owner.origin();
        for errors in [
            openai::fuzz::errors,
            anthropic::fuzz::errors,
            gemini::fuzz::errors,
        ] {
            for error in errors(origin, &refused) {
                check(&error);
            }
        }
        openai::fuzz::models(body);
        anthropic::fuzz::models(body);
        gemini::fuzz::models(body);
    });
}

/// Checks that the provider's error message is truncated and does not contain the key.
fn check(error: &Error) {
    let words = error.to_string();
    assert!(!words.contains(KEY), "{words}");
    assert!(words.chars().count() < 700, "{words}");
}
