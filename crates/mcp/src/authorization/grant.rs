//! Holds the tokens that a person granted for one server, and renews and revokes them.

use reqwest::Client;
use reqwest::header::HeaderValue;
use serde::{Deserialize, Serialize};
use url::Url;

use super::client::ClientIdentity;
use super::discovery::Discovered;
use super::error::AuthorizationError;
use super::forms;
use super::http::{Answer, endpoint, refused, send};

/// The time before its expiry at which a token is renewed, in milliseconds: a request may take this long to
/// arrive.
const EARLY_MS: i64 = 30_000;

/// The codes with which servers refuse a refresh token that is no longer valid; the standard knows only the
/// first.
const ENDED: [&str; 7] = [
    "invalid_grant",
    "bad_refresh_token",
    "invalid_refresh_token",
    "expired_refresh_token",
    "invalid_token",
    "expired_token",
    "token_expired",
];

/// The endpoints that issue and revoke tokens, and our client identity there.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct TokenPlace {
    resource: String,
    token_endpoint: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    revocation_endpoint: Option<String>,
    client: ClientIdentity,
}

/// An access token and a refresh token; both are secrets.
#[derive(Clone, Serialize, Deserialize)]
pub struct Tokens {
    access: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refresh: Option<String>,
    /// When the access token expires, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ends_at: Option<i64>,
    scopes: Vec<String>,
}

impl Tokens {
    /// Returns the access token, which is sent with requests.
    pub fn access(&self) -> &str {
        &self.access
    }

    /// Returns the granted scopes.
    pub fn scopes(&self) -> &[String] {
        &self.scopes
    }

    /// Returns true if the access token is still valid for a request.
    pub fn is_fresh(&self, now_ms: i64) -> bool {
        self.ends_at.is_none_or(|ends| ends - EARLY_MS > now_ms)
    }

    /// Returns true if the tokens can be renewed without the person.
    pub fn is_renewable(&self) -> bool {
        self.refresh.is_some()
    }
}

/// A person's grant at one authorisation server. It holds secrets: whoever stores it encrypts it.
#[derive(Clone, Serialize, Deserialize)]
pub struct Grant {
    place: TokenPlace,
    pub tokens: Tokens,
}

/// The grant type of a token request, with its parameters.
pub(super) enum Request {
    Code {
        code: String,
        verifier: String,
        redirect: String,
    },
    Refresh(String),
    Client,
}

impl Grant {
    pub(super) fn new(place: TokenPlace, tokens: Tokens) -> Self {
        Self { place, tokens }
    }

    /// Requests tokens in our own name, without a person (client credentials).
    pub async fn of_client(
        client: &Client,
        found: &Discovered,
        identity: ClientIdentity,
        scopes: &[String],
        now_ms: i64,
    ) -> Result<Self, AuthorizationError> {
        let place = TokenPlace::new(found, identity);
        let tokens = place.ask(client, Request::Client, scopes, now_ms).await?;
        Ok(Self { place, tokens })
    }

    /// Renews the tokens. If the server issues no new refresh token, the old one stays.
    /// [`AuthorizationError::InvalidGrant`] means that only the person can get new tokens.
    pub async fn renewed(&self, client: &Client, now_ms: i64) -> Result<Self, AuthorizationError> {
        let refresh = self.tokens.refresh.clone();
        let refresh = refresh.ok_or(AuthorizationError::InvalidGrant)?;
        let request = Request::Refresh(refresh.clone());
        let scopes = &self.tokens.scopes;
        let mut tokens = self.place.ask(client, request, scopes, now_ms).await?;
        tokens.refresh.get_or_insert(refresh);
        Ok(Self {
            place: self.place.clone(),
            tokens,
        })
    }

    /// Revokes the tokens (RFC 7009), if the server has a revocation endpoint.
    pub async fn revoke(&self, client: &Client) -> Result<(), AuthorizationError> {
        let Some(address) = &self.place.revocation_endpoint else {
            return Ok(());
        };
        let (token, hint) = match &self.tokens.refresh {
            Some(refresh) => (refresh, "refresh_token"),
            None => (&self.tokens.access, "access_token"),
        };
        let form = vec![
            ("token", token.clone()),
            ("token_type_hint", hint.to_owned()),
        ];
        let url = endpoint(address)?;
        let answer = self.place.post(client, &url, form).await?;
        if answer.status.is_success() {
            return Ok(());
        }
        Err(refused(&answer))
    }
}

impl TokenPlace {
    pub(super) fn new(found: &Discovered, client: ClientIdentity) -> Self {
        Self {
            resource: found.resource.clone(),
            token_endpoint: found.server.token_endpoint.clone(),
            revocation_endpoint: found.server.revocation_endpoint.clone(),
            client,
        }
    }

    /// Requests tokens. Tokens whose answer names no scopes get the requested ones.
    pub(super) async fn ask(
        &self,
        client: &Client,
        request: Request,
        scopes: &[String],
        now_ms: i64,
    ) -> Result<Tokens, AuthorizationError> {
        let is_renewal = matches!(request, Request::Refresh(_));
        let mut form = match request {
            Request::Code {
                code,
                verifier,
                redirect,
            } => vec![
                ("grant_type", "authorization_code".to_owned()),
                ("code", code),
                ("code_verifier", verifier),
                ("redirect_uri", redirect),
            ],
            Request::Refresh(token) => vec![
                ("grant_type", "refresh_token".to_owned()),
                ("refresh_token", token),
            ],
            Request::Client => {
                let mut form = vec![("grant_type", "client_credentials".to_owned())];
                if !scopes.is_empty() {
                    form.push(("scope", scopes.join(" ")));
                }
                form
            }
        };
        form.push(("resource", self.resource.clone()));
        let url = endpoint(&self.token_endpoint)?;
        let answer = self.post(client, &url, form).await?;
        // GitHub refuses with status 200.
        let refusal = answer.refusal();
        if refusal.is_none() && answer.status.is_success() {
            return read(&answer, scopes, now_ms);
        }
        match refusal.as_ref().map(|it| it.code.as_str()) {
            Some(code) if is_renewal && ENDED.contains(&code) => {
                Err(AuthorizationError::InvalidGrant)
            }
            Some("invalid_client" | "unauthorized_client") => {
                Err(AuthorizationError::UnknownClient)
            }
            Some(_) | None => Err(refused(&answer)),
        }
    }

    async fn post(
        &self,
        client: &Client,
        url: &Url,
        mut form: Vec<(&'static str, String)>,
    ) -> Result<Answer, AuthorizationError> {
        let request = self.client.sign(client.post(url.clone()), &mut form);
        let request = request
            .header(
                reqwest::header::CONTENT_TYPE,
                "application/x-www-form-urlencoded",
            )
            .body(encoded(&form));
        send(request, url).await
    }
}

fn encoded(form: &[(&'static str, String)]) -> String {
    let mut body = url::form_urlencoded::Serializer::new(String::new());
    body.extend_pairs(form).finish()
}

#[derive(Deserialize)]
struct TokenAnswer {
    #[serde(default, deserialize_with = "forms::text")]
    access_token: Option<String>,
    #[serde(default, deserialize_with = "forms::text")]
    token_type: Option<String>,
    #[serde(default, deserialize_with = "forms::seconds")]
    expires_in: Option<f64>,
    #[serde(default, deserialize_with = "forms::text")]
    refresh_token: Option<String>,
    #[serde(default, deserialize_with = "forms::texts")]
    scope: Option<Vec<String>>,
}

fn read(answer: &Answer, asked: &[String], now_ms: i64) -> Result<Tokens, AuthorizationError> {
    let said = answer.json_or_form();
    let said = said.and_then(|said| serde_json::from_value::<TokenAnswer>(said).ok());
    let missing = AuthorizationError::Token("its answer holds no access token");
    let Some(said) = said else {
        return Err(missing);
    };
    let Some(access) = said.access_token else {
        return Err(missing);
    };
    // Servers that name no type issue bearer tokens.
    let is_bearer = |kind: &String| kind.trim().eq_ignore_ascii_case("bearer");
    if !said.token_type.as_ref().is_none_or(is_bearer) {
        return Err(AuthorizationError::Token("its token is none for bearers"));
    }
    if HeaderValue::from_str(&format!("Bearer {access}")).is_err() {
        return Err(AuthorizationError::Token("its access token cannot be sent"));
    }
    Ok(Tokens {
        access,
        refresh: said.refresh_token,
        ends_at: said
            .expires_in
            .map(|seconds| now_ms.saturating_add(whole_ms(seconds))),
        scopes: said.scope.unwrap_or_else(|| asked.to_vec()),
    })
}

/// Converts seconds to milliseconds, clamped to ten years.
fn whole_ms(seconds: f64) -> i64 {
    const MOST: f64 = 315_360_000.0;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the bounds are far inside of what fits"
    )]
    let ms = (seconds.clamp(0.0, MOST) * 1_000.0) as i64;
    ms
}

#[cfg(test)]
mod tests {
    use reqwest::StatusCode;
    use serde_json::{Value, json};

    use super::{Answer, read};

    #[test]
    fn tokens_are_for_bearers_and_end_in_time() {
        let check = |body: Value, expected: Option<(bool, bool)>| {
            let answer = Answer {
                status: StatusCode::OK,
                body: body.to_string().into_bytes(),
            };
            let tokens = read(&answer, &["asked".to_owned()], 1_000_000).ok();
            let found = tokens.map(|it| (it.is_fresh(1_000_000), it.is_renewable()));
            assert_eq!(found, expected, "{body}");
        };
        let token = |rest: Value| {
            let mut token = json!({"access_token": "a", "token_type": "bearer"});
            for (name, value) in rest.as_object().unwrap() {
                token[name] = value.clone();
            }
            token
        };
        check(token(json!({})), Some((true, false)));
        check(
            token(json!({"expires_in": 3600, "refresh_token": "r"})),
            Some((true, true)),
        );
        check(token(json!({"expires_in": 29})), Some((false, false)));
        check(token(json!({"expires_in": 1e300})), Some((true, false)));
        check(token(json!({"expires_in": "3600"})), Some((true, false)));
        check(token(json!({"expires_in": "29.5"})), Some((false, false)));
        check(token(json!({"expires_in": 29.5})), Some((false, false)));
        // These say nothing of their end.
        for unknown in [
            json!(null),
            json!("soon"),
            json!(0),
            json!("0"),
            json!(-1),
            json!({}),
        ] {
            check(token(json!({"expires_in": unknown})), Some((true, false)));
        }
        check(token(json!({"token_type": null})), Some((true, false)));
        check(token(json!({"token_type": ""})), Some((true, false)));
        check(json!({"access_token": "a"}), Some((true, false)));
        check(token(json!({"refresh_token": null})), Some((true, false)));
        check(token(json!({"refresh_token": ""})), Some((true, false)));
        check(token(json!({"error": null})), Some((true, false)));
        check(token(json!({"token_type": "DPoP"})), None);
        check(token(json!({"access_token": "a\nX-Evil: 1"})), None);
        check(token(json!({"access_token": ""})), None);
        check(json!({"token_type": "bearer"}), None);
    }

    #[test]
    fn scopes_are_read_in_any_form() {
        let check = |scope: Value, expected: &[&str]| {
            let body = json!({"access_token": "a", "scope": scope});
            let body = body.to_string().into_bytes();
            let answer = Answer {
                status: StatusCode::OK,
                body,
            };
            let tokens = read(&answer, &["asked".to_owned()], 0).ok();
            let found = tokens.map(|it| it.scopes);
            let expected: Vec<String> = expected.iter().map(ToString::to_string).collect();
            assert_eq!(found, Some(expected), "{scope}");
        };
        check(json!("read write"), &["read", "write"]);
        check(json!("read,write"), &["read", "write"]);
        check(json!(["read", "write", null]), &["read", "write"]);
        check(json!(""), &[]);
        check(json!(null), &["asked"]);
        check(json!(5), &["asked"]);
    }

    #[test]
    fn a_form_is_a_token_and_a_refusal_is_one_with_any_status() {
        let answer = |body: &str| Answer {
            status: StatusCode::OK,
            body: body.as_bytes().to_vec(),
        };
        let form = answer("access_token=a%2Bb&scope=repo&token_type=bearer&expires_in=29");
        let tokens = read(&form, &[], 1_000_000).ok().unwrap();
        assert_eq!(
            (tokens.access(), tokens.scopes()),
            ("a+b", &["repo".to_owned()][..])
        );
        assert!(!tokens.is_fresh(1_000_000));
        for (body, expected) in [
            (
                r#"{"error":"bad_refresh_token","error_description":"expired"}"#,
                Some(("bad_refresh_token", "bad_refresh_token: expired")),
            ),
            (
                "error=bad_code&error_description=The+code+is+old",
                Some(("bad_code", "bad_code: The code is old")),
            ),
            (
                r#"{"error":"access_denied"}"#,
                Some(("access_denied", "access_denied")),
            ),
            (
                r#"{"error":{"code":"x","message":"no"}}"#,
                Some(("x", "x: no")),
            ),
            (r#"{"error":{"message":"no"}}"#, Some(("", "no"))),
            (r#"{"error":null,"access_token":"a"}"#, None),
            (r#"{"error":"","access_token":"a"}"#, None),
            ("<html>", None),
            ("", None),
        ] {
            let refusal = answer(body).refusal();
            let found = refusal
                .as_ref()
                .map(|it| (it.code.as_str(), it.words.as_str()));
            assert_eq!(found, expected, "{body}");
        }
    }
}
