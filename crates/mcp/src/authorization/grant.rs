//! Holds the tokens that a person granted for one server, and renews and revokes them.

use reqwest::Client;
use reqwest::header::HeaderValue;
use serde::{Deserialize, Serialize};
use url::Url;

use super::client::ClientIdentity;
use super::discovery::Discovered;
use super::error::AuthorizationError;
use super::http::{Answer, Refusal, endpoint, send};

/// The time before its expiry at which a token is renewed, in milliseconds: a request may take this long to
/// arrive.
const EARLY_MS: i64 = 30_000;

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
        (identity, scopes): (ClientIdentity, &[String]),
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
        if answer.status.is_success() {
            return read(&answer, scopes, now_ms);
        }
        let refusal: Option<Refusal> = answer.json();
        match refusal.as_ref().map(|it| it.error.as_str()) {
            Some("invalid_grant") if is_renewal => Err(AuthorizationError::InvalidGrant),
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
    access_token: String,
    token_type: String,
    #[serde(default)]
    expires_in: Option<f64>,
    #[serde(default)]
    refresh_token: Option<String>,
    #[serde(default)]
    scope: Option<String>,
}

fn read(answer: &Answer, asked: &[String], now_ms: i64) -> Result<Tokens, AuthorizationError> {
    let said: Option<TokenAnswer> = answer.json();
    let said = said.ok_or(AuthorizationError::Token(
        "its answer holds no access token",
    ))?;
    if !said.token_type.eq_ignore_ascii_case("bearer") {
        return Err(AuthorizationError::Token("its token is none for bearers"));
    }
    let is_sendable = HeaderValue::from_str(&format!("Bearer {}", said.access_token)).is_ok();
    if said.access_token.is_empty() || !is_sendable {
        return Err(AuthorizationError::Token("its access token cannot be sent"));
    }
    let scopes = match &said.scope {
        Some(scope) => scope.split_whitespace().map(ToOwned::to_owned).collect(),
        None => asked.to_vec(),
    };
    Ok(Tokens {
        access: said.access_token,
        refresh: said.refresh_token.filter(|token| !token.is_empty()),
        ends_at: said
            .expires_in
            .map(|seconds| now_ms.saturating_add(whole_ms(seconds))),
        scopes,
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

fn refused(answer: &Answer) -> AuthorizationError {
    let said = answer.json::<Refusal>().map(|refusal| refusal.words());
    let status = || format!("status {}", answer.status.as_u16());
    AuthorizationError::Refused(said.unwrap_or_else(status))
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
        check(token(json!({"token_type": "DPoP"})), None);
        check(token(json!({"access_token": "a\nX-Evil: 1"})), None);
        check(token(json!({"access_token": ""})), None);
        check(json!({"token_type": "bearer"}), None);
    }
}
