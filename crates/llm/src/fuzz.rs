//! Fuzzes the provider responses that are not streams: errors of any status, and lists of models.

use std::time::Duration;

use reqwest::StatusCode;
use serde_json::{Value, json};

use super::stream::cutting::{KEY, owner};
use super::transport::Refused;
use super::{Error, ModelListing, anthropic, gemini, openai};

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
        for models in [
            openai::fuzz::models,
            anthropic::fuzz::models,
            gemini::fuzz::models,
        ] {
            let _ = models(body);
            if let Ok(odd) = serde_json::from_slice(body) {
                check_neighbours(models, &odd);
            }
        }
    });
}

/// One odd entry of a list of models changes only itself, and is named if it cannot be read.
fn check_neighbours(models: fn(&[u8]) -> Option<ModelListing>, odd: &Value) {
    let fine = |name: &str| json!({"id": name, "name": name});
    let list = json!({"data": [fine("a"), odd, fine("b")]});
    let read = models(list.to_string().as_bytes()).unwrap();
    let ids: Vec<&str> = read.models.iter().map(|model| model.id.as_str()).collect();
    assert_eq!(ids.first(), Some(&"a"), "{odd}");
    assert_eq!(ids.last(), Some(&"b"), "{odd}");
    assert!(ids.len() - 2 + read.left_out.len() <= 1, "{odd}: {read:?}");
}

/// Checks that the provider's error message is truncated and does not contain the key.
fn check(error: &Error) {
    let words = error.to_string();
    assert!(!words.contains(KEY), "{words}");
    assert!(words.chars().count() < 700, "{words}");
}
