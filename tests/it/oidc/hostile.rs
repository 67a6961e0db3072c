//! Answers that let nobody in: forged, replayed, of another browser, or of a provider that is down.

use serde_json::json;

use super::provider::Lie;
use super::{House, refused};

#[tokio::test]
async fn a_forged_answer_lets_nobody_in() {
    let house = House::open(&[("SPL_OIDC_ROLES", "ops=admin")]).await;
    for lie in [
        Lie::Nonce,
        Lie::NoNonce,
        Lie::Audience,
        Lie::SecondAudience,
        Lie::Expired,
        Lie::NoSignature,
        Lie::SharedSecret,
        Lie::OtherKey,
        Lie::UnknownKey,
        Lie::Issuer,
        Lie::AccessToken,
        Lie::AnsweringIssuer,
        Lie::NoIdToken,
    ] {
        house.provider.lies(Some(lie));
        let mut browser = house.browser();
        let answer = browser.sign_in().await;
        assert_eq!(answer.status, 502, "{lie:?}: {}", answer.text);
        refused(&answer, 502, "invalid_answer");
        browser.check_nobody().await;
    }
    // Groups of another account are no groups of this one.
    house.provider.lies(Some(Lie::TokenOfAnother));
    let mut browser = house.browser();
    let answer = browser.sign_in().await;
    assert!(answer.status >= 500, "{}", answer.text);
    browser.check_nobody().await;
    let people = house.owner().get("/api/people").await.ok(200);
    assert_eq!(people["items"].as_array().unwrap().len(), 1, "{people}");
    house.provider.lies(None);
    house.sign_in().await;
}

#[tokio::test]
async fn an_answer_works_once_and_only_in_the_browser_that_began() {
    let house = House::open(&[]).await;
    let mut browser = house.browser();
    let url = browser.begin().await;
    let returned = browser.visit(url).await;
    // Another browser: without a cookie, and with its own.
    let mut other = house.browser();
    refused(&other.finish(&returned).await, 401, "expired");
    other.begin().await;
    refused(&other.finish(&returned).await, 401, "expired");
    other.check_nobody().await;
    let mut forged = returned.clone();
    forged.insert("state".to_owned(), "A".repeat(43));
    refused(&browser.finish(&forged).await, 401, "expired");
    let cookies = browser.cookies.clone();
    browser.finish(&returned).await.ok(200);
    // The same once more, with the cookies of before.
    let mut again = house.browser();
    again.cookies = cookies;
    refused(&again.finish(&returned).await, 401, "expired");
    again.check_nobody().await;
}

#[tokio::test]
async fn two_tabs_of_a_browser_may_sign_in_at_once() {
    let house = House::open(&[]).await;
    let mut browser = house.browser();
    let (first, second) = (browser.begin().await, browser.begin().await);
    let first = browser.visit(first).await;
    let second = browser.visit(second).await;
    browser.finish(&second).await.ok(200);
    // The first tab's cookie went with the second's sign-in.
    refused(&browser.finish(&first).await, 401, "expired");
}

#[tokio::test]
async fn the_way_back_never_leads_to_another_site() {
    let house = House::open(&[]).await;
    for path in ["//evil.test", "/\\evil.test", "https://evil.test", "x"] {
        let started = house.browser().start(json!({ "returnTo": path })).await;
        let problem = started.problem(400, "invalid_arguments");
        assert_eq!(problem["errors"][0]["field"], "returnTo", "{problem}");
    }
    let mut browser = house.browser();
    let started = browser.start(json!({})).await.ok(200);
    let url = started["url"].as_str().unwrap().parse().unwrap();
    let returned = browser.visit(url).await;
    let finished = browser.finish(&returned).await.ok(200);
    assert_eq!(finished["returnTo"], "/s/new");
}

#[tokio::test]
async fn a_new_key_of_the_provider_is_read() {
    let house = House::open(&[]).await;
    house.sign_in().await;
    house.sign_in().await;
    assert_eq!(house.provider.discoveries(), 1);
    house.provider.rotate();
    house.sign_in().await;
    assert_eq!(house.provider.discoveries(), 2);
    house.sign_in().await;
    assert_eq!(house.provider.discoveries(), 2);
}

#[tokio::test]
async fn a_provider_that_is_down_is_told_and_tried_again() {
    let house = House::open(&[]).await;
    house.provider.is_down(true);
    let mut browser = house.browser();
    let answer = browser.start(json!({})).await;
    let text = refused(&answer, 503, "unavailable");
    assert!(text.contains("try again"), "{text}");
    house.provider.is_down(false);
    let url = browser.begin().await;
    let returned = browser.visit(url).await;
    house.provider.is_down(true);
    refused(&browser.finish(&returned).await, 503, "unavailable");
    browser.check_nobody().await;
    house.provider.is_down(false);
    house.sign_in().await;
}

#[tokio::test]
async fn an_error_of_the_provider_is_told_in_our_words() {
    let house = House::open(&[]).await;
    for (error, status, reason) in [
        ("access_denied", 401, "denied"),
        ("temporarily_unavailable", 503, "unavailable"),
        ("invalid_scope", 502, "misconfigured"),
        ("<script>", 502, "misconfigured"),
    ] {
        house.provider.refuses_with(error);
        let mut browser = house.browser();
        refused(&browser.sign_in().await, status, reason);
        browser.check_nobody().await;
    }
}

#[tokio::test]
async fn a_wrong_secret_is_a_fault_of_the_settings() {
    let house = House::open(&[("SPL_OIDC_CLIENT_SECRET", "another")]).await;
    let mut browser = house.browser();
    refused(&browser.sign_in().await, 502, "misconfigured");
    browser.check_nobody().await;
}
