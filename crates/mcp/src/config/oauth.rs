//! Checks the OAuth settings of an entry.

use url::Url;

use super::problem::EntryProblem;
use sepal_core::domain::{McpGrant, McpServerConfig};

/// The most scopes of one entry.
const MAX_SCOPES: usize = 50;
/// The most origins of one entry.
const MAX_ORIGINS: usize = 10;
/// The longest text, in bytes.
const MAX_TEXT: usize = 2_048;

fn is_web(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https") && url.has_host() && url.username().is_empty()
}

pub(super) fn check(config: &McpServerConfig, found: &mut Vec<EntryProblem>) {
    let Some(oauth) = &config.oauth else {
        return;
    };
    let mut say = |field: &str, text: &str| found.push(EntryProblem::new(field, text));
    let has_header = config
        .headers
        .keys()
        .any(|name| name.eq_ignore_ascii_case("authorization"));
    if has_header {
        say(
            "oauth",
            "the header `Authorization` is sent instead: keep one of the two",
        );
    }
    let is_fit = |text: &Option<String>| {
        text.as_ref().is_none_or(|text| {
            !text.is_empty() && text.len() <= MAX_TEXT && !text.chars().any(char::is_control)
        })
    };
    if !is_fit(&oauth.client_id) {
        say("oauth.clientId", "1 to 2048 characters");
    }
    if !is_fit(&oauth.client_secret) {
        say("oauth.clientSecret", "1 to 2048 characters");
    }
    if oauth.client_secret.is_some() && oauth.client_id.is_none() {
        say("oauth.clientId", "a secret belongs to a client: name it");
    }
    let is_client = oauth.grant == McpGrant::ClientCredentials;
    if is_client && (oauth.client_id.is_none() || oauth.client_secret.is_none()) {
        say(
            "oauth.grant",
            "`client_credentials` needs `oauth.clientId` and `oauth.clientSecret`",
        );
    }
    if oauth.issuer.is_some() && oauth.client_id.is_none() {
        say(
            "oauth.clientId",
            "`oauth.issuer` says who knows a client: name the client",
        );
    }
    let is_issuer = |text: &String| {
        let url = Url::parse(text).ok();
        url.is_some_and(|url| is_web(&url) && url.query().is_none() && url.fragment().is_none())
    };
    if !oauth.issuer.as_ref().is_none_or(is_issuer) {
        say("oauth.issuer", "an http or https address without a query");
    }
    let is_origin = |text: &String| {
        let url = Url::parse(text).ok();
        url.is_some_and(|url| is_web(&url) && url.origin().ascii_serialization() == *text)
    };
    let origins = &oauth.endpoint_origins;
    if origins.len() > MAX_ORIGINS || !origins.iter().all(is_origin) {
        say(
            "oauth.endpointOrigins",
            "10 origins at most, each as `https://host` without a path",
        );
    }
    let scopes = oauth.scopes.as_deref().unwrap_or_default();
    // The characters of a scope (RFC 6749, 3.3).
    let is_letter = |c: char| c.is_ascii_graphic() && c != '"' && c != '\\';
    let is_scope = |scope: &String| {
        !scope.is_empty() && scope.len() <= MAX_TEXT && scope.chars().all(is_letter)
    };
    if scopes.len() > MAX_SCOPES || !scopes.iter().all(is_scope) {
        say(
            "oauth.scopes",
            "50 scopes at most, each a word without quotes",
        );
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::check;

    #[test]
    fn a_client_is_whole_or_absent() {
        let said = |oauth: Value, headers: Value| {
            let entry = json!({"url": "https://e.test/mcp", "oauth": oauth, "headers": headers});
            let mut found = Vec::new();
            check(&serde_json::from_value(entry).unwrap(), &mut found);
            found.into_iter().map(|it| it.field).collect::<Vec<_>>()
        };
        let good = json!({"clientId": "a", "clientSecret": "${secret:A}", "scopes": ["a:b", "c"]});
        assert!(said(good, json!({})).is_empty());
        assert!(said(json!({}), json!({})).is_empty());
        assert_eq!(said(json!({}), json!({"AUTHORIZATION": "x"})), ["oauth"]);
        assert_eq!(
            said(json!({"clientSecret": "x"}), json!({})),
            ["oauth.clientId"]
        );
        let bound = json!({
            "clientId": "a", "issuer": "https://as.test/x", "endpointOrigins": ["https://t.test:8"],
        });
        assert!(said(bound, json!({})).is_empty());
        assert_eq!(
            said(json!({"issuer": "https://as.test"}), json!({})),
            ["oauth.clientId"]
        );
        assert_eq!(
            said(json!({"clientId": "a", "issuer": "as.test"}), json!({})),
            ["oauth.issuer"]
        );
        for origin in [
            "https://t.test/",
            "t.test",
            "ftp://t.test",
            "https://T.test",
        ] {
            assert_eq!(
                said(json!({"endpointOrigins": [origin]}), json!({})),
                ["oauth.endpointOrigins"],
                "{origin}"
            );
        }
        let alone = json!({"clientId": "a", "grant": "client_credentials"});
        assert_eq!(said(alone, json!({})), ["oauth.grant"]);
        for scope in ["", "a b", "a\"b", "ä"] {
            assert_eq!(
                said(json!({"scopes": [scope]}), json!({})),
                ["oauth.scopes"],
                "{scope}"
            );
        }
    }
}
