//! Checks the metadata of an authorisation server before anything in them is used.

use serde::{Deserialize, Serialize};
use url::Url;

use crate::authorization::error::AuthorizationError;
use crate::authorization::forms;

/// The fields of an authorisation server's metadata that are used.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(in crate::authorization) struct ServerMetadata {
    #[serde(default, deserialize_with = "forms::text")]
    pub(in crate::authorization) issuer: Option<String>,
    pub(in crate::authorization) authorization_endpoint: String,
    pub(in crate::authorization) token_endpoint: String,
    #[serde(default, deserialize_with = "forms::text")]
    pub(in crate::authorization) registration_endpoint: Option<String>,
    #[serde(default, deserialize_with = "forms::text")]
    pub(in crate::authorization) revocation_endpoint: Option<String>,
    #[serde(default, deserialize_with = "forms::texts")]
    pub(in crate::authorization) scopes_supported: Option<Vec<String>>,
    #[serde(default, deserialize_with = "forms::texts")]
    pub(super) response_types_supported: Option<Vec<String>>,
    #[serde(default, deserialize_with = "forms::texts")]
    pub(super) code_challenge_methods_supported: Option<Vec<String>>,
    #[serde(default, deserialize_with = "forms::texts")]
    pub(in crate::authorization) token_endpoint_auth_methods_supported: Option<Vec<String>>,
    #[serde(default, deserialize_with = "forms::flag")]
    pub(in crate::authorization) client_id_metadata_document_supported: bool,
    #[serde(default, deserialize_with = "forms::flag")]
    pub(in crate::authorization) authorization_response_iss_parameter_supported: bool,
}

/// Returns the metadata if they belong to the issuer and fit our flow. Each endpoint has to be at the
/// issuer's own origin or at one of `origins`: otherwise a server could send people to another party's
/// authorisation endpoint and have the resulting codes sent to itself (RFC 9700, section 4.4).
pub(super) fn checked(
    server: ServerMetadata,
    issuer: &str,
    origins: &[String],
) -> Result<ServerMetadata, AuthorizationError> {
    let found = server.issuer.as_deref().unwrap_or_default();
    if !is_same_issuer(found, issuer) {
        return Err(AuthorizationError::OtherIssuer {
            expected: issuer.to_owned(),
            found: found.to_owned(),
        });
    }
    let base = Url::parse(issuer).map_err(|_| metadata("its issuer is no address"))?;
    let endpoints = [
        (
            "authorization_endpoint",
            Some(&server.authorization_endpoint),
        ),
        ("token_endpoint", Some(&server.token_endpoint)),
        (
            "registration_endpoint",
            server.registration_endpoint.as_ref(),
        ),
        ("revocation_endpoint", server.revocation_endpoint.as_ref()),
    ];
    for (name, endpoint) in endpoints {
        let Some(endpoint) = endpoint else {
            continue;
        };
        let url = Url::parse(endpoint).ok();
        let Some(url) = url.filter(|url| is_as_safe(&base, url)) else {
            return Err(metadata(&format!(
                "`{endpoint}` is no address that may be asked"
            )));
        };
        let origin = url.origin().ascii_serialization();
        if url.origin() != base.origin() && !origins.contains(&origin) {
            return Err(metadata(&format!(
                "its `{name}` is at `{origin}`, which is not the origin of its issuer `{issuer}`: if \
                 both belong together, an admin adds `{origin}` to `oauth.endpointOrigins` of the entry"
            )));
        }
    }
    let offers = |list: &Option<Vec<String>>, word: &str| {
        list.as_ref()
            .is_some_and(|list| list.iter().any(|it| it == word))
    };
    if !offers(&server.code_challenge_methods_supported, "S256") {
        return Err(metadata(
            "its authorisation server does not offer PKCE with S256 \
             (`code_challenge_methods_supported`)",
        ));
    }
    if server.response_types_supported.is_some()
        && !offers(&server.response_types_supported, "code")
    {
        return Err(metadata("its authorisation server gives no codes"));
    }
    Ok(server)
}

/// Returns true if both issuers are the same text, apart from the trailing slash of an address without a
/// path.
fn is_same_issuer(one: &str, other: &str) -> bool {
    let root = |issuer: &str| {
        let without = issuer.strip_suffix('/').unwrap_or(issuer);
        let is_root = without.matches('/').count() == 2;
        if is_root {
            without.to_owned()
        } else {
            issuer.to_owned()
        }
    };
    !one.is_empty() && root(one) == root(other)
}

/// Returns true if `url` may be requested on behalf of `base`: over http or https, and not over http if
/// `base` is https.
pub(super) fn is_as_safe(base: &Url, url: &Url) -> bool {
    let is_web = matches!(url.scheme(), "http" | "https") && url.has_host();
    let is_downgrade = base.scheme() == "https" && url.scheme() != "https";
    is_web && !is_downgrade && url.username().is_empty() && url.password().is_none()
}

/// Returns the error for metadata that cannot be used, with the reason.
pub(super) fn metadata(text: &str) -> AuthorizationError {
    AuthorizationError::Metadata(text.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{ServerMetadata, checked, is_same_issuer};

    #[test]
    fn issuers_are_the_same_text() {
        assert!(is_same_issuer("https://e.test/a", "https://e.test/a"));
        assert!(is_same_issuer("https://e.test/", "https://e.test"));
        for other in [
            "https://e.test/a/",
            "https://e.test:443/a",
            "https://E.test/a",
            "",
        ] {
            assert!(!is_same_issuer(other, "https://e.test/a"), "{other}");
        }
        assert!(!is_same_issuer("", ""));
    }

    #[test]
    fn metadata_are_refused_that_lead_astray() {
        let good = json!({
            "issuer": "https://as.test", "authorization_endpoint": "https://as.test/a",
            "token_endpoint": "https://as.test/t", "code_challenge_methods_supported": ["S256"],
        });
        let check = |change: serde_json::Value, said: &str| {
            let mut changed = good.clone();
            for (name, value) in change.as_object().unwrap() {
                changed[name] = value.clone();
            }
            let server: ServerMetadata = serde_json::from_value(changed).unwrap();
            let text = checked(
                server,
                "https://as.test",
                &["https://known.test".to_owned()],
            )
            .err()
            .map(|error| error.to_string());
            let text = text.unwrap_or_default();
            assert!(
                text.contains(said) && text.is_empty() == said.is_empty(),
                "{change}: {text}"
            );
        };
        check(json!({}), "");
        for odd in [
            json!({"scopes_supported": null, "revocation_endpoint": "", "registration_endpoint": null}),
            json!({"scopes_supported": "read write", "response_types_supported": "code token"}),
            json!({"client_id_metadata_document_supported": null}),
            json!({"authorization_response_iss_parameter_supported": "true"}),
            json!({"token_endpoint_auth_methods_supported": ["none", null, 5]}),
            json!({"code_challenge_methods_supported": "S256"}),
        ] {
            check(odd, "");
        }
        check(json!({"issuer": "https://good.test"}), "issuer");
        check(json!({"issuer": null}), "issuer");
        check(
            json!({"authorization_endpoint": "javascript:alert(1)"}),
            "no address",
        );
        check(json!({"token_endpoint": "http://as.test/t"}), "no address");
        check(
            json!({"registration_endpoint": "https://a:b@as.test/"}),
            "no address",
        );
        for name in [
            "authorization_endpoint",
            "token_endpoint",
            "registration_endpoint",
            "revocation_endpoint",
        ] {
            for elsewhere in ["https://other.test/x", "https://as.test:444/x"] {
                check(json!({ name: elsewhere }), &format!("its `{name}` is at"));
            }
            check(json!({ name: "https://known.test/x" }), "");
        }
        check(
            json!({"code_challenge_methods_supported": ["plain"]}),
            "PKCE",
        );
        check(json!({"code_challenge_methods_supported": null}), "PKCE");
        check(json!({"response_types_supported": ["token"]}), "codes");
    }
}
