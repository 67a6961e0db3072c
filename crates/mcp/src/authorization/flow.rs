//! Runs the authorisation code flow: builds the address that a person opens, and handles the answer.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::Client;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use url::Url;

use super::client::ClientIdentity;
use super::discovery::Discovered;
use super::error::AuthorizationError;
use super::grant::{Grant, Request, TokenPlace};
use super::http::{endpoint, words};

/// The scope for which an `OpenID` Connect server issues refresh tokens.
pub(super) const OFFLINE: &str = "offline_access";
/// The last path segment of the redirect address that all issuers share.
const COMMON: &str = "callback";
/// The most scopes in one request.
const MAX_SCOPES: usize = 100;

/// The wanted scopes, best source first.
pub struct ScopeWish<'a> {
    /// The scopes that the server's challenge names.
    pub challenge: Option<&'a str>,
    /// The scopes that the server entry names.
    pub entry: Option<&'a [String]>,
    /// The scopes that the person has already allowed, which a step-up keeps.
    pub granted: &'a [String],
}

/// A pending authorisation that a person was sent to. It holds secrets: whoever stores it until the answer
/// encrypts it.
#[derive(Clone, Serialize, Deserialize)]
pub struct Authorization {
    verifier: String,
    /// The expected issuer of the answer.
    issuer: Option<String>,
    /// True if the answer names its issuer (RFC 9207).
    names_issuer: bool,
    redirect: String,
    scopes: Vec<String>,
    place: TokenPlace,
}

/// The parameters with which a person returns to the redirect address.
pub struct AuthorizationAnswer {
    pub code: Option<String>,
    /// The issuer that the answer names.
    pub issuer: Option<String>,
    pub error: Option<String>,
    pub error_description: Option<String>,
}

impl Authorization {
    /// Returns the address that the person opens, and the pending authorisation to store until the answer.
    /// `state` identifies the authorisation and is known to us alone.
    pub fn begin(
        found: &Discovered,
        client: ClientIdentity,
        redirect: &Url,
        state: &str,
        wish: &ScopeWish<'_>,
    ) -> Result<(Url, Self), AuthorizationError> {
        let scopes = scopes(found, wish);
        let verifier = URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>());
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()));
        let mut url = endpoint(&found.server.authorization_endpoint)?;
        {
            let mut query = url.query_pairs_mut();
            query
                .append_pair("response_type", "code")
                .append_pair("client_id", client.id())
                .append_pair("redirect_uri", redirect.as_str())
                .append_pair("state", state)
                .append_pair("code_challenge", &challenge)
                .append_pair("code_challenge_method", "S256")
                .append_pair("resource", &found.resource);
            if !scopes.is_empty() {
                query.append_pair("scope", &scopes.join(" "));
            }
            // OpenID Connect servers issue refresh tokens only if the person is asked for consent.
            if scopes.iter().any(|scope| scope == OFFLINE) {
                query.append_pair("prompt", "consent");
            }
        }
        let authorization = Self {
            verifier,
            issuer: found.server.issuer.clone(),
            names_issuer: found.server.authorization_response_iss_parameter_supported,
            redirect: redirect.as_str().to_owned(),
            scopes,
            place: TokenPlace::new(found, client),
        };
        Ok((url, authorization))
    }

    /// Returns true if the answer came to the redirect address of its issuer. `part` is the last segment of
    /// that address; `None` for the address that all issuers share.
    pub fn came_back_to(&self, part: Option<&str>) -> bool {
        let last = self.redirect.rsplit('/').next().unwrap_or_default();
        part.unwrap_or(COMMON) == last
    }

    /// Exchanges the answer's code for a grant.
    pub async fn finish(
        self,
        client: &Client,
        answer: AuthorizationAnswer,
        now_ms: i64,
    ) -> Result<Grant, AuthorizationError> {
        self.check_issuer(answer.issuer.as_deref())?;
        if let Some(error) = answer.error {
            let said = words(&error, answer.error_description.as_deref());
            return Err(AuthorizationError::Refused(said));
        }
        let code = answer.code.filter(|code| !code.is_empty());
        let code = code.ok_or(AuthorizationError::Token("the answer holds no code"))?;
        let request = Request::Code {
            code,
            verifier: self.verifier,
            redirect: self.redirect,
        };
        let tokens = self
            .place
            .ask(client, request, &self.scopes, now_ms)
            .await?;
        Ok(Grant::new(self.place, tokens))
    }

    /// Checks that the answer comes from the issuer that the person was sent to, before anything is sent (RFC
    /// 9207).
    fn check_issuer(&self, said: Option<&str>) -> Result<(), AuthorizationError> {
        let is_fit = match (self.issuer.as_deref(), said) {
            (Some(expected), Some(said)) => expected == said,
            (_, None) => !self.names_issuer,
            (None, Some(_)) => false,
        };
        if is_fit {
            return Ok(());
        }
        Err(AuthorizationError::OtherIssuer {
            expected: self.issuer.clone().unwrap_or_default(),
            found: words(said.unwrap_or("none"), None),
        })
    }
}

/// Returns the challenge's scopes, else the entry's, else those that the server's metadata names. Scopes of a
/// challenge are added to those already granted.
fn scopes(found: &Discovered, wish: &ScopeWish<'_>) -> Vec<String> {
    let named = wish
        .challenge
        .map(|text| text.split_whitespace().map(ToOwned::to_owned));
    let mut wanted: Vec<String> = match (named, wish.entry) {
        (Some(named), _) => wish.granted.iter().cloned().chain(named).collect(),
        (None, Some(entry)) => entry.to_vec(),
        (None, None) => found.scopes.clone(),
    };
    let offered = found.server.scopes_supported.as_deref().unwrap_or_default();
    if !wanted.is_empty() && offered.iter().any(|scope| scope == OFFLINE) {
        wanted.push(OFFLINE.to_owned());
    }
    let mut scopes: Vec<String> = Vec::new();
    for scope in wanted {
        if !scopes.contains(&scope) && scopes.len() < MAX_SCOPES {
            scopes.push(scope);
        }
    }
    scopes
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use serde_json::json;
    use url::Url;

    use super::{Authorization, Discovered, ScopeWish};
    use crate::authorization::client::{ClientIdentity, KnownClient};

    fn discovered(scopes_offered: &[&str]) -> Discovered {
        let server = serde_json::from_value(json!({
            "issuer": "https://as.test", "authorization_endpoint": "https://as.test/a?tenant=1",
            "token_endpoint": "https://as.test/t", "scopes_supported": scopes_offered,
            "authorization_response_iss_parameter_supported": true,
        }));
        Discovered {
            resource: "https://e.test/mcp".to_owned(),
            scopes: vec!["read".to_owned()],
            server: server.unwrap(),
        }
    }

    fn begin(found: &Discovered, wish: &ScopeWish<'_>) -> (HashMap<String, String>, Authorization) {
        let known = KnownClient {
            id: "us".to_owned(),
            secret: None,
        };
        let client = ClientIdentity::known(&known, found).unwrap();
        let redirect = Url::parse("https://sepal.test/back").unwrap();
        let (url, begun) = Authorization::begin(found, client, &redirect, "state", wish).unwrap();
        (url.query_pairs().into_owned().collect(), begun)
    }

    const NOTHING: ScopeWish<'static> = ScopeWish {
        challenge: None,
        entry: None,
        granted: &[],
    };

    #[test]
    fn the_address_asks_for_a_code_with_pkce_for_this_resource() {
        let (query, _) = begin(&discovered(&["offline_access"]), &NOTHING);
        for (name, value) in [
            ("tenant", "1"),
            ("response_type", "code"),
            ("client_id", "us"),
            ("redirect_uri", "https://sepal.test/back"),
            ("state", "state"),
            ("code_challenge_method", "S256"),
            ("resource", "https://e.test/mcp"),
            ("scope", "read offline_access"),
            ("prompt", "consent"),
        ] {
            assert_eq!(query[name], value, "{name}");
        }
        assert_eq!(query["code_challenge"].len(), 43);
    }

    #[test]
    fn an_answer_at_the_address_of_another_issuer_is_refused() {
        let found = discovered(&[]);
        let known = KnownClient {
            id: "us".to_owned(),
            secret: None,
        };
        let begun = |redirect: &str| {
            let client = ClientIdentity::known(&known, &found).unwrap();
            let redirect = Url::parse(redirect).unwrap();
            Authorization::begin(&found, client, &redirect, "state", &NOTHING)
                .unwrap()
                .1
        };
        let mut other = found.clone();
        other.server.issuer = Some("https://evil.test".to_owned());
        let part = found.redirect_part();
        assert_ne!(part, other.redirect_part());
        let own = begun(&format!("https://sepal.test/x/oauth/callback/{part}"));
        let common = begun("https://sepal.test/x/oauth/callback");
        for (answered, is_own, is_common) in [
            (Some(part.as_str()), true, false),
            (Some(other.redirect_part().as_str()), false, false),
            (None, false, true),
        ] {
            assert_eq!(own.came_back_to(answered), is_own, "{answered:?}");
            assert_eq!(common.came_back_to(answered), is_common, "{answered:?}");
        }
    }

    #[test]
    fn scopes_come_from_the_challenge_then_the_entry_then_the_metadata() {
        let check = |wish: &ScopeWish<'_>, expected: &str| {
            assert_eq!(begin(&discovered(&[]), wish).0["scope"], expected);
        };
        let entry = ["own".to_owned()];
        let granted = ["read".to_owned()];
        check(&NOTHING, "read");
        check(
            &ScopeWish {
                entry: Some(&entry),
                ..NOTHING
            },
            "own",
        );
        let challenge = Some("write read");
        check(
            &ScopeWish {
                entry: Some(&entry),
                challenge,
                granted: &[],
            },
            "write read",
        );
        check(
            &ScopeWish {
                entry: None,
                challenge,
                granted: &granted,
            },
            "read write",
        );
    }

    #[test]
    fn an_answer_of_another_issuer_is_refused_before_anything_is_sent() {
        let check = |said: Option<&str>, expected: bool| {
            let begun = begin(&discovered(&[]), &NOTHING).1;
            assert_eq!(begun.check_issuer(said).is_ok(), expected, "{said:?}");
        };
        check(Some("https://as.test"), true);
        check(Some("https://evil.test"), false);
        // The server says that its answers always name the issuer.
        check(None, false);
        let mut found = discovered(&[]);
        found.server.authorization_response_iss_parameter_supported = false;
        let begun = begin(&found, &NOTHING).1;
        assert!(begun.check_issuer(None).is_ok());
        assert!(begun.check_issuer(Some("https://evil.test")).is_err());
        found.server.issuer = None;
        assert!(
            begin(&found, &NOTHING)
                .1
                .check_issuer(Some("https://as.test"))
                .is_err()
        );
    }
}
