//! Discovers a server's authorisation server: reads the metadata of the protected resource (RFC 9728), then
//! those of its authorisation server (RFC 8414, or `OpenID` Connect discovery).

mod server_metadata;

use reqwest::Client;
use reqwest::header::ACCEPT;
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use url::Url;

use super::challenge::Challenge;
use super::error::AuthorizationError;
use super::forms;
use super::http::{LIMIT, document, failed, readable};
use server_metadata::{ServerMetadata, checked, is_as_safe, metadata};

/// The most authorisation servers of one resource that are tried.
const MAX_SERVERS: usize = 4;
const RESOURCE: &str = "/.well-known/oauth-protected-resource";
const OAUTH: &str = "/.well-known/oauth-authorization-server";
const OPENID: &str = "/.well-known/openid-configuration";

/// The result of discovery.
#[derive(Debug, Clone)]
pub struct Discovered {
    /// The server's resource identifier, as tokens name it (RFC 8707).
    pub(super) resource: String,
    /// The scopes that the server's metadata names.
    pub(super) scopes: Vec<String>,
    pub(super) server: ServerMetadata,
}

impl Discovered {
    /// Returns the issuer, which was checked against the address of its metadata. `None` for a server of
    /// 2025-03-26 without metadata.
    pub fn issuer(&self) -> Option<&str> {
        self.server.issuer.as_deref()
    }

    /// Returns the issuer; for a server without metadata, its own origin, which authorises for itself.
    pub fn authority(&self) -> String {
        let origin = || {
            let url = Url::parse(&self.resource).ok();
            url.map(|url| url.origin().ascii_serialization())
        };
        let issuer = self.issuer().map(ToOwned::to_owned);
        issuer.or_else(origin).unwrap_or_default()
    }

    /// Returns the part of our redirect address that belongs to this issuer alone.
    pub fn redirect_part(&self) -> String {
        let hash = hex::encode(Sha256::digest(self.authority()));
        hash.get(..32).unwrap_or_default().to_owned()
    }

    /// Returns true if each answer names its issuer (RFC 9207), so that answers of two issuers cannot be
    /// mixed up.
    pub fn names_issuer(&self) -> bool {
        self.server.authorization_response_iss_parameter_supported
    }

    /// Returns the key under which a registration is stored. It holds the issuer and its endpoints, so
    /// another server with the same issuer name does not match.
    pub fn registration_key(&self) -> Option<String> {
        let server = &self.server;
        let endpoint = server.registration_endpoint.as_deref()?;
        Some(format!(
            "{}\n{endpoint}\n{}",
            server.issuer.as_deref()?,
            server.token_endpoint
        ))
    }
}

#[derive(Deserialize)]
struct ResourceMetadata {
    resource: String,
    #[serde(default, deserialize_with = "forms::list")]
    authorization_servers: Vec<String>,
    #[serde(default, deserialize_with = "forms::list")]
    scopes_supported: Vec<String>,
}

/// Returns true if a server publishes protected-resource metadata; used when a server refuses a request
/// without a challenge.
pub async fn is_protected(client: &Client, url: &Url) -> bool {
    for candidate in resource_candidates(url) {
        let found = document::<ResourceMetadata>(client, &candidate).await;
        if matches!(found, Ok(Some(_))) {
            return true;
        }
    }
    false
}

/// Sends a request without a token to the server at `url` and returns its challenge.
pub async fn ask(client: &Client, url: &Url) -> Result<Challenge, AuthorizationError> {
    let body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "sepal", "version": env!("CARGO_PKG_VERSION")},
    }});
    let request = client.post(url.clone()).json(&body).timeout(LIMIT);
    let request = request.header(ACCEPT, "application/json, text/event-stream");
    let response = request.send().await.map_err(|error| failed(url, &error))?;
    Ok(Challenge::read(response.headers()).unwrap_or_default())
}

/// Finds the authorisation server of the server at `url`.
///
/// `origins`: further origins at which its endpoints may be, beside the issuer's own.
pub async fn discover(
    client: &Client,
    url: &Url,
    challenge: &Challenge,
    origins: &[String],
) -> Result<Discovered, AuthorizationError> {
    let Some(resource) = resource_metadata(client, url, challenge).await? else {
        return legacy(client, url, origins).await;
    };
    check_resource(url, &resource.resource)?;
    let named = resource.authorization_servers.iter().take(MAX_SERVERS);
    let mut last = None;
    for issuer in named {
        match server_metadata(client, url, issuer, origins).await {
            Ok(Some(server)) => {
                return Ok(Discovered {
                    resource: resource.resource,
                    scopes: resource.scopes_supported,
                    server,
                });
            }
            Ok(None) => {}
            // If one server is unreachable, the next is tried; invalid metadata end the search.
            Err(error @ AuthorizationError::Unreachable { .. }) => last = Some(error),
            Err(error) => return Err(error),
        }
    }
    Err(last.unwrap_or_else(|| {
        AuthorizationError::Metadata("it names no authorisation server that says how".to_owned())
    }))
}

/// Reads the resource's metadata from the address in the challenge, or from the well-known addresses with and
/// without the path.
async fn resource_metadata(
    client: &Client,
    url: &Url,
    challenge: &Challenge,
) -> Result<Option<ResourceMetadata>, AuthorizationError> {
    let mut candidates = Vec::new();
    if let Some(named) = &challenge.resource_metadata {
        candidates.push(named_address(url, named)?);
    }
    for candidate in resource_candidates(url) {
        if !candidates.contains(&candidate) {
            candidates.push(candidate);
        }
    }
    for candidate in candidates {
        // Without it, the server's own origin would be asked for tokens in place of the one that it names.
        if let Some(found) = readable(client, &candidate).await? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

fn resource_candidates(url: &Url) -> Vec<Url> {
    let path = url.path().trim_end_matches('/');
    let mut candidates = vec![at(url, &format!("{RESOURCE}{path}"))];
    if !path.is_empty() {
        candidates.push(at(url, RESOURCE));
    }
    candidates
}

/// Parses the metadata address in a challenge. A server over https must not name an http address.
fn named_address(url: &Url, named: &str) -> Result<Url, AuthorizationError> {
    let parsed = Url::parse(named).or_else(|_| url.join(named)).ok();
    parsed
        .filter(|named| is_as_safe(url, named))
        .ok_or_else(|| metadata(&format!("`{named}` is no address of metadata")))
}

/// Checks that the resource is the server that was asked: otherwise a token for another resource would be
/// sent to it.
fn check_resource(url: &Url, resource: &str) -> Result<(), AuthorizationError> {
    let wrong = || {
        metadata(&format!(
            "it says that it is the resource `{resource}`, and its address is another"
        ))
    };
    let named = Url::parse(resource).map_err(|_| wrong())?;
    let (path, own) = (named.path().trim_end_matches('/'), url.path());
    let below = own.strip_prefix(path);
    let is_within = below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let is_fit = named.origin() == url.origin() && is_within && named.fragment().is_none();
    is_fit.then_some(()).ok_or_else(wrong)
}

/// Reads the metadata of the authorisation server with this issuer.
async fn server_metadata(
    client: &Client,
    resource: &Url,
    issuer: &str,
    origins: &[String],
) -> Result<Option<ServerMetadata>, AuthorizationError> {
    let wrong = || metadata(&format!("`{issuer}` is no issuer"));
    let address = Url::parse(issuer).map_err(|_| wrong())?;
    let is_issuer = address.query().is_none() && address.fragment().is_none();
    if !is_issuer || !is_as_safe(resource, &address) {
        return Err(wrong());
    }
    let path = address.path().trim_end_matches('/');
    let mut candidates = vec![
        at(&address, &format!("{OAUTH}{path}")),
        at(&address, &format!("{OPENID}{path}")),
    ];
    if !path.is_empty() {
        candidates.push(at(&address, &format!("{path}{OPENID}")));
    }
    for candidate in candidates {
        if let Some(found) = document::<ServerMetadata>(client, &candidate).await? {
            return checked(found, issuer, origins).map(Some);
        }
    }
    Ok(None)
}

/// Handles a server of 2025-03-26: its own origin authorises, with metadata or at fixed addresses.
async fn legacy(
    client: &Client,
    url: &Url,
    origins: &[String],
) -> Result<Discovered, AuthorizationError> {
    let resource = canonical(url);
    let issuer = url.origin().ascii_serialization();
    let server = match server_metadata(client, url, &issuer, origins).await? {
        Some(server) => server,
        None => ServerMetadata {
            authorization_endpoint: at(url, "/authorize").into(),
            token_endpoint: at(url, "/token").into(),
            registration_endpoint: Some(at(url, "/register").into()),
            ..ServerMetadata::default()
        },
    };
    Ok(Discovered {
        resource,
        scopes: Vec::new(),
        server,
    })
}

/// Returns the address without query, fragment and trailing slash, which do not identify a resource.
fn canonical(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    let text: String = url.into();
    text.strip_suffix('/')
        .map_or(text.clone(), ToOwned::to_owned)
}

fn at(url: &Url, path: &str) -> Url {
    let mut url = url.clone();
    url.set_path(path);
    url.set_query(None);
    url.set_fragment(None);
    url
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::{check_resource, named_address};

    #[test]
    fn a_resource_is_the_server_or_a_folder_above_it() {
        let url = Url::parse("https://e.test/a/mcp?key=1").unwrap();
        let check = |resource: &str, expected: bool| {
            assert_eq!(
                check_resource(&url, resource).is_ok(),
                expected,
                "{resource}"
            );
        };
        for fit in [
            "https://e.test/a/mcp",
            "https://E.test:443/a/",
            "https://e.test",
        ] {
            check(fit, true);
        }
        for unfit in [
            "http://e.test/a/mcp",
            "https://evil.test/a/mcp",
            "https://e.test/a/m",
            "https://e.test/a/mcp/deeper",
            "https://e.test/a/mcp#x",
            "mcp",
        ] {
            check(unfit, false);
        }
    }

    #[test]
    fn a_challenge_does_not_lead_from_https_to_http() {
        let url = Url::parse("https://e.test/mcp").unwrap();
        assert!(named_address(&url, "https://other.test/x").is_ok());
        assert!(named_address(&url, "/x").is_ok());
        for bad in [
            "http://e.test/x",
            "file:///etc/passwd",
            "https://a:b@e.test/",
        ] {
            assert!(named_address(&url, bad).is_err(), "{bad}");
        }
    }
}
