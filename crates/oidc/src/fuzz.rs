//! Fuzzes logout tokens, which anybody may send.

use serde_json::json;

use super::logout::UncheckedToken;
use sepal_core::domain::Timestamp;

const NOW_S: i64 = 1_800_000_000;

#[test]
fn logout_tokens() {
    sepal_fuzz::check("logout_tokens", |input| {
        let Ok(text) = std::str::from_utf8(input) else {
            return;
        };
        let Ok(token) = UncheckedToken::parse(text) else {
            return;
        };
        assert!(!token.is_signed_by(&[], &[]));
        let checked = token.check("https://op.test", "sepal", Timestamp(NOW_S * 1_000));
        let Ok(checked) = checked else { return };
        assert!(checked.subject.is_some() || checked.sid.is_some());
        assert!(!checked.jti.is_empty());
        let claims = token.claims();
        let aud = &claims["aud"];
        let all = aud.as_array();
        let is_ours = aud == "sepal" || all.is_some_and(|all| all.contains(&json!("sepal")));
        assert!(is_ours && claims["iss"] == "https://op.test");
        let age = 1_800_000_000.0 - claims["iat"].as_f64().unwrap();
        assert!((-121.0..=601.0).contains(&age), "{age}");
        assert!(!claims.contains_key("nonce"));
    });
}
