//! A provider ends sign-ins by a logout token.

use reqwest::Method;
use serde_json::{Value, json};

use super::{House, Visitor};
use crate::rest::{Answer, Client};
use crate::support::TestSocket;

async fn log_out(house: &House, token: &str) -> Answer {
    let path = "/api/auth/oidc/company/back-channel-logout";
    let form = serde_urlencoded::to_string([("logout_token", token)]).unwrap();
    let request = Client::nobody(&house.app).request(Method::POST, path);
    let request = request
        .header("content-type", "application/x-www-form-urlencoded")
        .body(form);
    Answer::of(request.send().await.unwrap()).await
}

async fn socket(house: &House, visitor: &Visitor<'_>) -> TestSocket {
    let issued = visitor
        .client
        .post("/api/auth/ticket", Value::Null)
        .await
        .ok(200);
    let query = format!("&ticket={}", issued["ticket"].as_str().unwrap());
    let opened = TestSocket::try_open_at(house.app.address, json!({}), &query);
    opened.await.unwrap()
}

async fn is_in(visitor: &Visitor<'_>) -> bool {
    visitor.client.get("/api/auth/me").await.status == 200
}

#[tokio::test]
async fn a_logout_at_the_provider_ends_the_sign_ins_of_its_session_and_their_sockets() {
    let house = House::open(&[]).await;
    let account = |subject: &str, sid: &str| json!({ "sub": subject, "sid": sid });
    house.provider.is(account("1", "a"));
    let (one, two) = (house.sign_in().await, house.sign_in().await);
    house.provider.is(account("1", "b"));
    let elsewhere = house.sign_in().await;
    house.provider.is(account("2", "c"));
    let other = house.sign_in().await;
    let mut open = socket(&house, &one).await;
    let of_session = json!({ "sid": "a", "sub": "1" });
    let token = house.provider.logout_token(&of_session);
    assert_eq!(log_out(&house, &token).await.status, 200);
    open.wait_for_end().await;
    assert!(!is_in(&one).await && !is_in(&two).await);
    assert!(is_in(&elsewhere).await && is_in(&other).await);
    let ended = house.acts("sign_in.ended").await;
    assert_eq!(ended.len(), 2, "{ended:?}");
    assert_eq!(ended[0]["details"]["byProvider"], true);

    // The same token once more.
    log_out(&house, &token)
        .await
        .problem(400, "invalid_arguments");
    // An account as a whole, whatever its session.
    let token = house.provider.logout_token(&json!({ "sub": "1" }));
    assert_eq!(log_out(&house, &token).await.status, 200);
    assert!(!is_in(&elsewhere).await && is_in(&other).await);
    // A session alone.
    let token = house.provider.logout_token(&json!({ "sid": "c" }));
    assert_eq!(log_out(&house, &token).await.status, 200);
    assert!(!is_in(&other).await);
    // Nobody is left, which is no error.
    let token = house.provider.logout_token(&json!({ "sid": "c" }));
    assert_eq!(log_out(&house, &token).await.status, 200);
}

/// An ID token need not name the session that a logout token names later.
#[tokio::test]
async fn a_sign_in_whose_session_is_not_known_ends_with_any_of_its_account() {
    let house = House::open(&[]).await;
    house.provider.is(json!({ "sub": "1" }));
    let unknown = house.sign_in().await;
    house.provider.is(json!({ "sub": "2" }));
    let other = house.sign_in().await;
    let token = house.provider.logout_token(&json!({ "sid": "a" }));
    assert_eq!(log_out(&house, &token).await.status, 200);
    assert!(is_in(&unknown).await, "the token names no account");
    let token = house
        .provider
        .logout_token(&json!({ "sub": "1", "sid": "a" }));
    assert_eq!(log_out(&house, &token).await.status, 200);
    assert!(!is_in(&unknown).await && is_in(&other).await);
}

#[tokio::test]
async fn a_token_that_is_no_logout_token_ends_nothing() {
    let house = House::open(&[]).await;
    house.provider.is(json!({ "sub": "1", "sid": "a" }));
    let visitor = house.sign_in().await;
    let check = async |token: &str| {
        let answer = log_out(&house, token).await;
        answer.problem(400, "invalid_arguments");
        assert!(is_in(&visitor).await, "{token}");
    };
    for changes in [
        json!({ "sid": "a", "iss": "https://evil.test" }),
        json!({ "sid": "a", "aud": "another" }),
        json!({ "sid": "a", "iat": 1 }),
        json!({ "sid": "a", "exp": 1 }),
        json!({ "sid": "a", "events": {} }),
        json!({ "sid": "a", "events": { "other": {} } }),
        json!({ "sid": "a", "nonce": "n" }),
        json!({ "sid": "a", "jti": null }),
        json!({}),
    ] {
        check(&house.provider.logout_token(&changes)).await;
    }
    let good = house.provider.logout_token(&json!({ "sid": "a" }));
    let (signed, _) = good.rsplit_once('.').unwrap();
    check(&format!("{signed}.")).await;
    check(&format!("{signed}.{}", "A".repeat(86))).await;
    check("").await;
    check("nonsense").await;
    let before = house.provider.discoveries();
    check(&format!("{signed}.{}", "B".repeat(86))).await;
    assert_eq!(
        house.provider.discoveries(),
        before,
        "read once in a minute"
    );
    assert_eq!(log_out(&house, &good).await.status, 200);
    assert!(!is_in(&visitor).await);
}

/// What the provider's page has in a frame: no cookie, and the address of the provider as its origin.
async fn log_out_in_frame(house: &House, query: &[(&str, &str)]) -> Answer {
    let query = serde_urlencoded::to_string(query).unwrap();
    let path = format!("/api/auth/oidc/company/front-channel-logout?{query}");
    let frame = Client::nobody(&house.app)
        .and("sec-fetch-site", "cross-site")
        .and("sec-fetch-dest", "iframe");
    let request = frame.request(Method::GET, &path);
    Answer::of(request.send().await.unwrap()).await
}

#[tokio::test]
async fn a_frame_of_the_provider_ends_the_sign_ins_of_its_session() {
    let house = House::open(&[]).await;
    let account = |subject: &str, sid: &str| json!({ "sub": subject, "sid": sid });
    house.provider.is(account("1", "a"));
    let (one, two) = (house.sign_in().await, house.sign_in().await);
    house.provider.is(account("1", "b"));
    let other = house.sign_in().await;
    let mut open = socket(&house, &one).await;
    let iss = house.provider.issuer.as_str();
    for (query, status) in [
        (vec![("iss", iss)], 400),
        (vec![("sid", "a")], 400),
        (vec![("iss", iss), ("sid", "")], 400),
        (vec![("iss", "https://evil.test"), ("sid", "a")], 400),
        (vec![("iss", iss), ("sid", "c")], 200),
        (vec![], 400),
    ] {
        let answer = log_out_in_frame(&house, &query).await;
        assert_eq!(answer.status, status, "{query:?}: {}", answer.text);
    }
    assert!(is_in(&one).await && is_in(&two).await && is_in(&other).await);
    let answer = log_out_in_frame(&house, &[("iss", iss), ("sid", "a")]).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    open.wait_for_end().await;
    assert!(!is_in(&one).await && !is_in(&two).await && is_in(&other).await);
    let ended = house.acts("sign_in.ended").await;
    assert_eq!(ended.len(), 2, "{ended:?}");
    assert_eq!(ended[0]["details"]["byProvider"], true);
    // The provider's page alone may have it in a frame, and nothing else of ours.
    let origin = url::Url::parse(iss).unwrap().origin().ascii_serialization();
    let policy = format!("default-src 'none'; frame-ancestors {origin}");
    assert_eq!(answer.header("content-security-policy"), policy);
    assert!(!answer.headers.contains_key("x-frame-options"));
    assert_eq!(answer.header("cache-control"), "no-store");
    let page = Client::nobody(&house.app).get("/api/auth/me").await;
    assert_eq!(page.header("x-frame-options"), "DENY");
    let unknown = log_out_in_frame(&house, &[("iss", "x"), ("sid", "a")]).await;
    assert_eq!(unknown.header("x-frame-options"), "DENY");
}

#[tokio::test]
async fn guessing_at_sessions_of_the_provider_is_slowed_down() {
    let house = House::open(&[]).await;
    let iss = house.provider.issuer.clone();
    let mut last = 200;
    for guess in 0..80 {
        let sid = guess.to_string();
        let answer = log_out_in_frame(&house, &[("iss", &iss), ("sid", &sid)]).await;
        last = answer.status;
        if last != 200 {
            break;
        }
    }
    assert_eq!(last, 429);
}
