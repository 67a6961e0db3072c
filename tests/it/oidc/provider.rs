//! A stand-in for an OpenID provider on loopback: it refuses what a provider refuses, and lies where a test tells
//! it to. Dropping it fails the test if the gateway sent something that no provider takes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use axum::body::Bytes;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit as _, Mac as _};
use p256::ecdsa::signature::Signer as _;
use p256::ecdsa::{Signature, SigningKey};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::net::TcpListener;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

pub(crate) const CLIENT: &str = "sepal";
pub(crate) const SECRET: &str = "a secret & more";
const EVENT: &str = "http://schemas.openid.net/event/backchannel-logout";

/// A fault of the provider's answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lie {
    Nonce,
    NoNonce,
    Audience,
    SecondAudience,
    Expired,
    NoSignature,
    SharedSecret,
    OtherKey,
    UnknownKey,
    Issuer,
    AccessToken,
    AnsweringIssuer,
    NoIdToken,
    TokenOfAnother,
    /// The person proved who they are too long ago.
    OldCheck,
    NoCheck,
    OtherAcr,
    NoAcr,
}

struct Issued {
    /// True if the person had to prove anew who they are.
    is_anew: bool,
    acr_values: String,
    nonce: String,
    challenge: String,
    redirect: String,
}

struct Told {
    claims: Value,
    lie: Option<Lie>,
    /// True if the ID token says no more than the subject, so that the rest has to be asked for.
    is_thin: bool,
    is_down: bool,
    /// The error with which people are sent back.
    error: Option<&'static str>,
    /// The number of the key in use.
    key: u8,
    codes: BTreeMap<String, Issued>,
    access: BTreeMap<String, Value>,
    next: u64,
    discoveries: usize,
    faults: Vec<String>,
}

#[derive(Clone)]
struct Shared {
    issuer: String,
    told: Arc<Mutex<Told>>,
}

/// The running stand-in.
pub(crate) struct Provider {
    pub(crate) issuer: String,
    shared: Shared,
    _serving: AbortOnDropHandle<()>,
}

impl Provider {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let issuer = format!("http://{}/realms/acme", listener.local_addr().unwrap());
        let shared = Shared {
            issuer: issuer.clone(),
            told: Arc::new(Mutex::new(Told {
                claims: json!({ "sub": "1", "preferred_username": "ann" }),
                lie: None,
                is_thin: false,
                is_down: false,
                error: None,
                key: 1,
                codes: BTreeMap::new(),
                access: BTreeMap::new(),
                next: 0,
                discoveries: 0,
                faults: Vec::new(),
            })),
        };
        let of = |path: &str| format!("/realms/acme{path}");
        let router = Router::new()
            .route(&of("/.well-known/openid-configuration"), get(discovery))
            .route(&of("/keys"), get(keys))
            .route(&of("/authorize"), get(authorize))
            .route(&of("/token"), post(token))
            .route(&of("/userinfo"), get(userinfo))
            .with_state(shared.clone());
        let serving = async move { axum::serve(listener, router).await.unwrap() };
        Self {
            issuer,
            shared,
            _serving: AbortOnDropHandle::new(TaskTracker::new().spawn(serving)),
        }
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.shared.told.lock().unwrap()
    }

    /// The account with which people sign in from now on.
    pub(crate) fn is(&self, claims: Value) {
        self.told().claims = claims;
    }

    pub(super) fn lies(&self, lie: Option<Lie>) {
        self.told().lie = lie;
    }

    pub(super) fn is_thin(&self) {
        self.told().is_thin = true;
    }

    pub(super) fn is_down(&self, is_down: bool) {
        self.told().is_down = is_down;
    }

    pub(super) fn refuses_with(&self, error: &'static str) {
        self.told().error = Some(error);
    }

    /// Signs with a new key from now on, and forgets the old one.
    pub(super) fn rotate(&self) {
        self.told().key += 1;
    }

    /// The number of times that the metadata was read.
    pub(super) fn discoveries(&self) -> usize {
        self.told().discoveries
    }

    /// A logout token, with other claims where `changes` names some; null removes one.
    pub(super) fn logout_token(&self, changes: &Value) -> String {
        let mut claims = json!({
            "iss": self.issuer, "aud": CLIENT, "iat": now(), "exp": now() + 120,
            "jti": format!("jti {}", rand::random::<u64>()), "events": { EVENT: {} },
        });
        for (name, value) in changes.as_object().unwrap() {
            claims[name] = value.clone();
        }
        claims
            .as_object_mut()
            .unwrap()
            .retain(|_, it| !it.is_null());
        sign(self.told().key, "logout+jwt", &claims)
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let told = self.shared.told.lock().unwrap();
            assert!(told.faults.is_empty(), "{:?}", told.faults);
        }
    }
}

impl Shared {
    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap()
    }

    /// Notes something that no provider takes.
    fn refuse(&self, what: impl Into<String>) -> Response {
        let what = what.into();
        self.told().faults.push(what.clone());
        (
            StatusCode::BAD_REQUEST,
            Json(json!({ "error": "invalid_request", "error_description": what })),
        )
            .into_response()
    }
}

fn down() -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, "<h1>maintenance</h1>").into_response()
}

/// Seconds since 1970.
fn now() -> i64 {
    let now = std::time::SystemTime::now();
    let since = now.duration_since(std::time::UNIX_EPOCH).unwrap();
    i64::try_from(since.as_secs()).unwrap()
}

fn key(number: u8) -> SigningKey {
    SigningKey::from_slice(&[number; 32]).unwrap()
}

fn part(value: &Value) -> String {
    URL_SAFE_NO_PAD.encode(value.to_string())
}

fn sign(number: u8, typ: &str, claims: &Value) -> String {
    let head = json!({ "alg": "ES256", "typ": typ, "kid": format!("key {number}") });
    let signed = format!("{}.{}", part(&head), part(claims));
    let signature: Signature = key(number).sign(signed.as_bytes());
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature.to_bytes()))
}

async fn discovery(State(shared): State<Shared>) -> Response {
    let issuer = &shared.issuer;
    let mut told = shared.told();
    told.discoveries += 1;
    if told.is_down {
        return down();
    }
    Json(json!({
        "issuer": issuer,
        "authorization_endpoint": format!("{issuer}/authorize"),
        "token_endpoint": format!("{issuer}/token"),
        "userinfo_endpoint": format!("{issuer}/userinfo"),
        "jwks_uri": format!("{issuer}/keys"),
        "response_types_supported": ["code"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["ES256", "HS256", "none"],
        "authorization_response_iss_parameter_supported": true,
    }))
    .into_response()
}

async fn keys(State(shared): State<Shared>) -> Response {
    let told = shared.told();
    if told.is_down {
        return down();
    }
    let number = told.key;
    let point = key(number).verifying_key().to_encoded_point(false);
    Json(json!({ "keys": [{
        "kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": format!("key {number}"),
        "x": URL_SAFE_NO_PAD.encode(point.x().unwrap()),
        "y": URL_SAFE_NO_PAD.encode(point.y().unwrap()),
    }] }))
    .into_response()
}

/// The provider's page, on which everybody says yes.
async fn authorize(State(shared): State<Shared>, RawQuery(query): RawQuery) -> Response {
    let query = query.unwrap_or_default();
    let asked: BTreeMap<String, String> = url::form_urlencoded::parse(query.as_bytes())
        .into_owned()
        .collect();
    let of = |name: &str| asked.get(name).cloned().unwrap_or_default();
    for (name, expected) in [
        ("response_type", "code"),
        ("client_id", CLIENT),
        ("code_challenge_method", "S256"),
    ] {
        if of(name) != expected {
            return shared.refuse(format!("`{name}` is `{}`", of(name)));
        }
    }
    if !of("scope").split(' ').any(|scope| scope == "openid") {
        return shared.refuse("`openid` is not asked for");
    }
    for name in ["state", "nonce", "code_challenge"] {
        if of(name).len() != 43 {
            return shared.refuse(format!("`{name}` is `{}`", of(name)));
        }
    }
    let redirect = of("redirect_uri");
    if !redirect.ends_with("/api/auth/oidc/company/callback") {
        return shared.refuse(format!("`redirect_uri` is `{redirect}`"));
    }
    let mut told = shared.told();
    told.next += 1;
    let code = format!("code {}", told.next);
    let mut back = url::Url::parse(&redirect).unwrap();
    back.query_pairs_mut().append_pair("state", &of("state"));
    if let Some(error) = told.error {
        back.query_pairs_mut()
            .append_pair("error", error)
            .append_pair("error_description", "<script>alert(1)</script>");
    } else {
        let is_anew = of("prompt") == "login" && of("max_age") == "0";
        if !is_anew && (asked.contains_key("prompt") || asked.contains_key("acr_values")) {
            drop(told);
            return shared.refuse("a usual sign-in asks for more");
        }
        let issued = Issued {
            is_anew,
            acr_values: of("acr_values"),
            nonce: of("nonce"),
            challenge: of("code_challenge"),
            redirect,
        };
        told.codes.insert(code.clone(), issued);
        let answering = if told.lie == Some(Lie::AnsweringIssuer) {
            "https://evil.test"
        } else {
            &shared.issuer
        };
        back.query_pairs_mut()
            .append_pair("code", &code)
            .append_pair("iss", answering);
    }
    (StatusCode::FOUND, [(header::LOCATION, back.to_string())]).into_response()
}

async fn token(State(shared): State<Shared>, headers: HeaderMap, body: Bytes) -> Response {
    if shared.told().is_down {
        return down();
    }
    let asked: BTreeMap<String, String> = url::form_urlencoded::parse(&body).into_owned().collect();
    let of = |name: &str| asked.get(name).cloned().unwrap_or_default();
    let basic = headers
        .get(header::AUTHORIZATION)
        .and_then(|it| it.to_str().ok());
    let basic = basic.and_then(|it| it.strip_prefix("Basic "));
    let basic = basic.and_then(|it| STANDARD.decode(it).ok());
    let encode =
        |text: &str| -> String { url::form_urlencoded::byte_serialize(text.as_bytes()).collect() };
    let expected = format!("{}:{}", encode(CLIENT), encode(SECRET));
    if basic.as_deref() != Some(expected.as_bytes()) {
        let error = json!({ "error": "invalid_client", "error_description": "who are you?" });
        return (StatusCode::UNAUTHORIZED, Json(error)).into_response();
    }
    if of("grant_type") != "authorization_code" {
        return shared.refuse("`grant_type` is another");
    }
    let found = shared.told().codes.remove(&of("code"));
    let Some(issued) = found else {
        return (
            StatusCode::BAD_REQUEST,
            Json(json!({ "error": "invalid_grant" })),
        )
            .into_response();
    };
    if of("redirect_uri") != issued.redirect {
        return shared.refuse("`redirect_uri` is another than before");
    }
    let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(of("code_verifier")));
    if challenge != issued.challenge {
        return shared.refuse("`code_verifier` does not fit the challenge");
    }
    Json(shared.tokens(&issued)).into_response()
}

impl Shared {
    fn tokens(&self, issued: &Issued) -> Value {
        let mut told = self.told();
        let lie = told.lie;
        told.next += 1;
        let access = format!("access {}", told.next);
        let account = told.claims.clone();
        told.access.insert(access.clone(), account.clone());
        let half: [u8; 32] = Sha256::digest(&access).into();
        let mut claims = json!({
            "iss": self.issuer, "aud": CLIENT, "iat": now(), "exp": now() + 300,
            "nonce": issued.nonce, "at_hash": URL_SAFE_NO_PAD.encode(&half[..16]),
        });
        for (name, value) in account.as_object().unwrap() {
            if !told.is_thin || ["sub", "sid"].contains(&name.as_str()) {
                claims[name] = value.clone();
            }
        }
        if issued.is_anew {
            claims["auth_time"] = json!(now());
            let first = issued.acr_values.split(' ').next().unwrap_or_default();
            if !first.is_empty() {
                claims["acr"] = json!(first);
            }
        }
        match lie {
            Some(Lie::OldCheck) => claims["auth_time"] = json!(now() - 121),
            Some(Lie::NoCheck) => claims["auth_time"] = Value::Null,
            Some(Lie::OtherAcr) => claims["acr"] = json!("weak"),
            Some(Lie::NoAcr) => claims["acr"] = Value::Null,
            Some(Lie::Nonce) => claims["nonce"] = json!("another"),
            Some(Lie::NoNonce) => claims["nonce"] = Value::Null,
            Some(Lie::Audience) => claims["aud"] = json!("another"),
            Some(Lie::SecondAudience) => claims["aud"] = json!([CLIENT, "another"]),
            Some(Lie::Expired) => claims["exp"] = json!(now() - 1),
            Some(Lie::Issuer) => claims["iss"] = json!("https://evil.test"),
            Some(Lie::AccessToken) => claims["at_hash"] = json!("AAAAAAAAAAAAAAAAAAAAAA"),
            Some(Lie::TokenOfAnother) => {
                told.access.insert(
                    access.clone(),
                    json!({ "sub": "another", "groups": ["ops"] }),
                );
            }
            _ => {}
        }
        claims
            .as_object_mut()
            .unwrap()
            .retain(|_, it| !it.is_null());
        let number = told.key;
        let token = match lie {
            Some(Lie::NoSignature) => {
                format!("{}.{}.", part(&json!({ "alg": "none" })), part(&claims))
            }
            Some(Lie::SharedSecret) => {
                let signed = format!("{}.{}", part(&json!({ "alg": "HS256" })), part(&claims));
                let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).unwrap();
                mac.update(signed.as_bytes());
                let tag = URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes());
                format!("{signed}.{tag}")
            }
            Some(Lie::OtherKey) => {
                let other = sign(99, "JWT", &claims);
                let (_, signature) = other.rsplit_once('.').unwrap();
                let own = sign(number, "JWT", &claims);
                format!("{}.{signature}", own.rsplit_once('.').unwrap().0)
            }
            Some(Lie::UnknownKey) => sign(99, "JWT", &claims),
            _ => sign(number, "JWT", &claims),
        };
        let mut tokens =
            json!({ "access_token": access, "token_type": "Bearer", "expires_in": 300 });
        if lie != Some(Lie::NoIdToken) {
            tokens["id_token"] = json!(token);
        }
        tokens
    }
}

async fn userinfo(State(shared): State<Shared>, headers: HeaderMap) -> Response {
    let bearer = headers
        .get(header::AUTHORIZATION)
        .and_then(|it| it.to_str().ok());
    let access = bearer
        .and_then(|it| it.strip_prefix("Bearer "))
        .unwrap_or_default();
    let found = shared.told().access.get(access).cloned();
    match found {
        Some(claims) => Json(claims).into_response(),
        None => shared.refuse("the access token is none"),
    }
}
