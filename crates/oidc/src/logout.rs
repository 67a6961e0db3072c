//! Checks logout tokens, by which a provider ends sign-ins (OpenID Connect Back-Channel Logout 1.0).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use openidconnect::core::{CoreJsonWebKey, CoreJwsSigningAlgorithm};
use openidconnect::{JsonWebKey as _, JsonWebKeyUse};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::Error;
use sepal_core::domain::Timestamp;

/// The event that makes a token a logout token.
const EVENT: &str = "http://schemas.openid.net/event/backchannel-logout";

/// The age, in seconds, above which a logout token is refused.
const MAX_AGE_S: i64 = 10 * 60;

/// The difference, in seconds, that the clocks of provider and gateway may have.
const SKEW_S: i64 = 2 * 60;

/// The longest token, in bytes.
const MAX_TOKEN: usize = 16 * 1024;

/// The claims of a logout token that was checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogoutToken {
    pub issuer: String,
    /// The token's own id. Each is used once: whoever acts on it has to check that.
    pub jti: String,
    /// The account; `None` = every account of the session.
    pub subject: Option<String>,
    /// The session at the provider; `None` = every session of the account.
    pub sid: Option<String>,
}

/// The parts of a token whose signature fits, or does not.
pub(super) struct UncheckedToken<'t> {
    header: Header,
    /// Header and payload, as they are signed.
    signed: &'t str,
    signature: Vec<u8>,
    claims: Map<String, Value>,
}

#[derive(Deserialize)]
struct Header {
    alg: CoreJwsSigningAlgorithm,
    kid: Option<String>,
    typ: Option<String>,
}

impl<'t> UncheckedToken<'t> {
    /// Takes a token apart.
    pub(super) fn parse(token: &'t str) -> Result<Self, Error> {
        let unreadable = || Error::Token("it cannot be read".to_owned());
        if token.len() > MAX_TOKEN {
            return Err(unreadable());
        }
        let (signed, signature) = token.rsplit_once('.').ok_or_else(unreadable)?;
        let (header, claims) = signed.split_once('.').ok_or_else(unreadable)?;
        let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|_| unreadable());
        let header: Header = serde_json::from_slice(&decode(header)?).map_err(|_| unreadable())?;
        let claims = serde_json::from_slice(&decode(claims)?).map_err(|_| unreadable())?;
        Ok(Self {
            header,
            signed,
            signature: decode(signature)?,
            claims,
        })
    }

    #[cfg(test)]
    pub(super) fn claims(&self) -> &Map<String, Value> {
        &self.claims
    }

    /// Returns true if one of the keys made the signature. Shared secrets and no signature count as none.
    pub(super) fn is_signed_by(
        &self,
        keys: &[CoreJsonWebKey],
        allowed: &[CoreJwsSigningAlgorithm],
    ) -> bool {
        if !allowed.contains(&self.header.alg) {
            return false;
        }
        let mut candidates = keys.iter().filter(|key| {
            let is_for_signatures = key.key_use().is_none_or(JsonWebKeyUse::allows_signature);
            let is_named = match (&self.header.kid, key.key_id()) {
                (Some(wanted), Some(id)) => id.as_str() == wanted,
                (None, _) => true,
                (Some(_), None) => false,
            };
            is_for_signatures && is_named
        });
        candidates.any(|key| {
            let (signed, signature) = (self.signed.as_bytes(), &self.signature);
            key.verify_signature(&self.header.alg, signed, signature)
                .is_ok()
        })
    }

    /// Checks everything but the signature.
    pub(super) fn check(
        &self,
        issuer: &str,
        client_id: &str,
        now: Timestamp,
    ) -> Result<LogoutToken, Error> {
        let refuse = |what: &str| Err(Error::Token(what.to_owned()));
        let text = |name: &str| self.claims.get(name).and_then(Value::as_str);
        let seconds = |name: &str| self.claims.get(name).and_then(Value::as_f64);
        let typ = self.header.typ.as_deref().unwrap_or("JWT");
        if !["logout+jwt", "jwt"].contains(&typ.to_ascii_lowercase().as_str()) {
            return refuse("it is a token of another kind");
        }
        if text("iss") != Some(issuer) {
            return refuse("it is of another issuer");
        }
        let is_for_us = match self.claims.get("aud") {
            Some(Value::String(one)) => one == client_id,
            Some(Value::Array(all)) => all.iter().any(|one| one.as_str() == Some(client_id)),
            Some(_) | None => false,
        };
        if !is_for_us {
            return refuse("it is for another client");
        }
        let now_s = now.0.div_euclid(1_000);
        #[expect(clippy::cast_possible_truncation, reason = "a time in seconds")]
        let issued_s = seconds("iat").map(|at| at as i64);
        let is_recent = issued_s.is_some_and(|at| {
            at >= now_s.saturating_sub(MAX_AGE_S) && at <= now_s.saturating_add(SKEW_S)
        });
        #[expect(clippy::cast_possible_truncation, reason = "a time in seconds")]
        let end_s = seconds("exp").map(|at| at as i64);
        if !is_recent || end_s.is_some_and(|at| at <= now_s.saturating_sub(SKEW_S)) {
            return refuse("it has expired, or is from the future");
        }
        let events = self.claims.get("events");
        let event = events.and_then(|events| events.get(EVENT));
        if !event.is_some_and(Value::is_object) {
            return refuse("it ends no session");
        }
        if self.claims.contains_key("nonce") {
            return refuse("it is an ID token");
        }
        let named = |name: &str| text(name).filter(|it| !it.is_empty()).map(str::to_owned);
        let Some(jti) = named("jti") else {
            return refuse("it has no `jti`");
        };
        let (subject, sid) = (named("sub"), named("sid"));
        if subject.is_none() && sid.is_none() {
            return refuse("it names neither a session nor an account");
        }
        Ok(LogoutToken {
            issuer: issuer.to_owned(),
            jti,
            subject,
            sid,
        })
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use serde_json::{Value, json};

    use super::{EVENT, UncheckedToken};
    use sepal_core::domain::Timestamp;

    const NOW_S: i64 = 1_800_000_000;

    fn check(typ: &str, change: impl FnOnce(&mut Value)) -> Result<(), String> {
        let mut claims = json!({
            "iss": "https://op.test", "aud": "sepal", "iat": NOW_S, "exp": NOW_S + 120,
            "jti": "j", "sub": "ann", "sid": "s", "events": { EVENT: {} },
        });
        change(&mut claims);
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let header = part(&json!({ "alg": "RS256", "typ": typ }));
        let token = format!("{header}.{}.AAAA", part(&claims));
        let token = UncheckedToken::parse(&token).unwrap();
        let checked = token.check("https://op.test", "sepal", Timestamp(NOW_S * 1_000));
        checked.map(drop).map_err(|error| error.to_string())
    }

    #[test]
    fn only_a_fresh_logout_token_for_this_client_is_taken() {
        assert_eq!(check("logout+jwt", |_| {}), Ok(()));
        assert_eq!(check("JWT", |it| it["aud"] = json!(["x", "sepal"])), Ok(()));
        assert_eq!(check("JWT", |it| it["sub"] = Value::Null), Ok(()));
        let refused = |typ: &str, change: fn(&mut Value), expected: &str| {
            let error = check(typ, change).unwrap_err();
            assert!(error.contains(expected), "{error}");
        };
        refused("at+jwt", |_| {}, "another kind");
        refused("JWT", |it| it["iss"] = json!("https://x"), "another issuer");
        refused("JWT", |it| it["aud"] = json!("x"), "another client");
        refused("JWT", |it| it["iat"] = json!(NOW_S - 601), "expired");
        refused("JWT", |it| it["iat"] = json!(NOW_S + 121), "future");
        refused("JWT", |it| it["iat"] = Value::Null, "expired");
        refused("JWT", |it| it["exp"] = json!(NOW_S - 120), "expired");
        refused("JWT", |it| it["events"] = json!({}), "ends no session");
        refused("JWT", |it| it["nonce"] = json!("n"), "ID token");
        refused("JWT", |it| it["jti"] = json!(""), "jti");
        let anonymous = |it: &mut Value| {
            it["sub"] = Value::Null;
            it["sid"] = Value::Null;
        };
        refused("JWT", anonymous, "neither");
    }

    #[test]
    fn a_token_that_is_none_is_refused() {
        for token in ["", "a", "a.b", "a.b.c", "e30.e30.", &"x".repeat(20_000)] {
            assert!(UncheckedToken::parse(token).is_err(), "{token:?}");
        }
    }
}
