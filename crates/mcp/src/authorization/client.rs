//! Obtains our client identity at an authorisation server: registered beforehand, by the address of our own
//! metadata, or by dynamic registration, in this order.

use reqwest::{Client, RequestBuilder};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use url::Url;

use super::discovery::Discovered;
use super::error::AuthorizationError;
use super::forms;
use super::http;

/// The client name that people see when they allow access.
const NAME: &str = "Sepal";

/// The way in which the client authenticates at the token endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Method {
    #[serde(rename = "none")]
    Public,
    #[serde(rename = "client_secret_basic")]
    Basic,
    #[serde(rename = "client_secret_post")]
    Post,
}

impl Method {
    const ALL: [Self; 3] = [Self::Public, Self::Basic, Self::Post];

    fn as_str(self) -> &'static str {
        match self {
            Self::Public => "none",
            Self::Basic => "client_secret_basic",
            Self::Post => "client_secret_post",
        }
    }
}

/// Our client identity at one authorisation server. It may contain a secret: whoever stores it encrypts it.
#[derive(Clone, Serialize, Deserialize)]
pub struct ClientIdentity {
    id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    secret: Option<String>,
    method: Method,
    /// When the client secret expires, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ends_at: Option<i64>,
}

/// A client that was registered beforehand.
#[derive(Clone)]
pub struct KnownClient {
    pub id: String,
    pub secret: Option<String>,
}

/// The ways to obtain a client identity, best first.
pub struct ClientRegistration<'a> {
    /// The client that the server entry names.
    pub known: Option<&'a KnownClient>,
    /// The https address of our client metadata document, if we have one.
    pub metadata_url: Option<&'a Url>,
    /// The identity that an earlier registration returned.
    pub registered: Option<ClientIdentity>,
    /// The redirect address to which people return.
    pub redirect: &'a Url,
}

impl ClientRegistration<'_> {
    /// Obtains a client identity. The bool is true if a new registration was made, which should be stored.
    pub async fn client(
        self,
        client: &Client,
        found: &Discovered,
    ) -> Result<(ClientIdentity, bool), AuthorizationError> {
        if let Some(known) = self.known {
            return Ok((ClientIdentity::known(known, found)?, false));
        }
        if let Some(url) = self.metadata_url
            && found.server.client_id_metadata_document_supported
        {
            let id = url.as_str().to_owned();
            return Ok((ClientIdentity::new(id, None, Method::Public), false));
        }
        if let Some(registered) = self.registered {
            return Ok((registered, false));
        }
        let registered = register(client, found, self.redirect).await?;
        Ok((registered, true))
    }
}

impl ClientIdentity {
    fn new(id: String, secret: Option<String>, method: Method) -> Self {
        Self {
            id,
            secret,
            method,
            ends_at: None,
        }
    }

    /// Returns true if the client secret has expired.
    pub fn has_ended(&self, now_ms: i64) -> bool {
        self.ends_at.is_some_and(|ends| ends <= now_ms / 1_000)
    }

    /// Returns the identity of a pre-registered client, with an authentication method that the server
    /// supports.
    pub fn known(known: &KnownClient, found: &Discovered) -> Result<Self, AuthorizationError> {
        let is_fit = |method: &Method| (*method == Method::Public) == known.secret.is_none();
        let method = offered(found).into_iter().find(is_fit);
        let method = method.ok_or_else(|| {
            let text = "its authorisation server knows no way for this client to show itself: check \
                        `oauth.clientSecret` (`token_endpoint_auth_methods_supported`)";
            AuthorizationError::Metadata(text.to_owned())
        })?;
        Ok(Self::new(known.id.clone(), known.secret.clone(), method))
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// Adds the client's authentication to a request to the token endpoint.
    pub(super) fn sign(
        &self,
        request: RequestBuilder,
        form: &mut Vec<(&'static str, String)>,
    ) -> RequestBuilder {
        match (self.method, &self.secret) {
            (Method::Basic, Some(secret)) => {
                // Both parts are form-encoded (RFC 6749, 2.3.1).
                let part = |text: &str| {
                    url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>()
                };
                request.basic_auth(part(&self.id), Some(part(secret)))
            }
            (Method::Post, Some(secret)) => {
                form.push(("client_id", self.id.clone()));
                form.push(("client_secret", secret.clone()));
                request
            }
            (Method::Public, _) | (Method::Basic | Method::Post, None) => {
                form.push(("client_id", self.id.clone()));
                request
            }
        }
    }
}

/// Returns the authentication methods that both the server and we support, in our order of preference. A
/// server that lists none is assumed to support `client_secret_basic`, the default of the standard; any
/// server accepts a public client.
fn offered(found: &Discovered) -> Vec<Method> {
    let said = found.server.token_endpoint_auth_methods_supported.as_ref();
    let takes = |method: &Method| match said {
        Some(list) => list.iter().any(|it| it == method.as_str()),
        None => *method != Method::Post,
    };
    Method::ALL.into_iter().filter(takes).collect()
}

#[derive(Deserialize)]
struct Registered {
    #[serde(default, deserialize_with = "forms::text")]
    client_id: Option<String>,
    #[serde(default, deserialize_with = "forms::text")]
    client_secret: Option<String>,
    #[serde(default, deserialize_with = "forms::seconds")]
    client_secret_expires_at: Option<f64>,
    #[serde(default, deserialize_with = "forms::text")]
    token_endpoint_auth_method: Option<String>,
}

/// Registers us dynamically (RFC 7591).
async fn register(
    client: &Client,
    found: &Discovered,
    redirect: &Url,
) -> Result<ClientIdentity, AuthorizationError> {
    let Some(endpoint) = &found.server.registration_endpoint else {
        return Err(AuthorizationError::NoClient);
    };
    let methods = offered(found);
    let method = methods.first().copied().unwrap_or(Method::Public);
    // The registration names no scopes: the current ones would be all that the client may ever request.
    let body = metadata(redirect, method);
    let url = http::endpoint(endpoint)?;
    let answer = http::send(client.post(url.clone()).json(&body), &url).await?;
    if !answer.status.is_success() {
        return Err(http::refused(&answer));
    }
    let made: Option<Registered> = answer.json();
    let made = made.filter(|made| made.client_id.is_some());
    let Some(made) = made else {
        if answer.refusal().is_some() {
            return Err(http::refused(&answer));
        }
        return Err(AuthorizationError::Token(
            "its registration names no client",
        ));
    };
    let secret = made.client_secret;
    let said = made.token_endpoint_auth_method;
    let said = Method::ALL
        .into_iter()
        .find(|it| Some(it.as_str()) == said.as_deref());
    let method = match (said, &secret) {
        (Some(said), _) => said,
        (None, None) => Method::Public,
        (None, Some(_)) if method == Method::Public => Method::Basic,
        (None, Some(_)) => method,
    };
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the bound is far inside of what fits"
    )]
    let ends_at = made
        .client_secret_expires_at
        .map(|ends| ends.min(1e15) as i64);
    Ok(ClientIdentity {
        ends_at,
        ..ClientIdentity::new(made.client_id.unwrap_or_default(), secret, method)
    })
}

/// Returns the client metadata.
fn metadata(redirect: &Url, method: Method) -> Value {
    let kind = if redirect.scheme() == "https" {
        "web"
    } else {
        "native"
    };
    json!({
        "client_name": NAME,
        "redirect_uris": [redirect.as_str()],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": method.as_str(),
        "application_type": kind,
    })
}

/// Returns the client metadata document at our own address, which replaces a registration.
pub fn client_metadata(url: &Url, redirect: &Url) -> Value {
    let mut document = metadata(redirect, Method::Public);
    if let Some(document) = document.as_object_mut() {
        document.insert("client_id".to_owned(), url.as_str().into());
        let home = url.origin().ascii_serialization();
        document.insert("client_uri".to_owned(), home.into());
    }
    document
}
