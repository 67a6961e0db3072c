//! Manages a person's own connections to servers (OAuth): begins one, finishes it with the answer of the
//! authorization server, ends it. Nobody can do this for another person.

mod error;
mod report;

use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};
use url::Url;

pub use self::error::ConnectError;
use self::report::challenge;
pub use self::report::{ConnectionReport, ConnectionState};
use super::authorization::{Grants, Target, open, seal};
use crate::catalogue::entry::ServerEntry;
use crate::connections::opening::Failure;
use crate::registry::Servers;
use sepal_core::domain::{Caller, Role, Scope, Timestamp};
use sepal_mcp::authorization::{
    Authorization, AuthorizationAnswer, AuthorizationError, Challenge, ClientIdentity,
    ClientRegistration, Discovered, ScopeWish, ask, discover,
};
use sepal_store as store;
use sepal_store::clock::now;
use sepal_store::records::SecretHash;

/// The time that a person may take at the authorization server.
const LIFE_MS: i64 = 10 * 60 * 1_000;
/// The longest path that people return to, in bytes.
const MAX_PATH: usize = 512;

/// Our own addresses, as browsers and authorization servers reach them.
#[derive(Debug, Clone)]
pub struct RedirectAddress {
    /// The redirect URI.
    pub callback: Url,
    /// The address of our client metadata document, if it is served over https.
    pub client_document: Option<Url>,
}

impl RedirectAddress {
    /// Returns the addresses for one issuer: an answer that arrives at another issuer's address is refused
    /// (RFC 9700, section 4.4). `None` if `part` is not the identifier of an issuer.
    pub fn of_issuer(&self, part: &str) -> Option<Self> {
        let is_part = part.len() == 32 && part.bytes().all(|byte| byte.is_ascii_hexdigit());
        let below = |url: &Url| {
            let mut url = url.clone();
            url.path_segments_mut().ok()?.push(part);
            Some(url)
        };
        let callback = below(&self.callback).filter(|_| is_part)?;
        Some(Self {
            callback,
            client_document: self.client_document.as_ref().and_then(below),
        })
    }

    /// A client that was registered by hand keeps the common address if the authorization server names itself
    /// as issuer in each answer; otherwise the addresses of the issuer are used.
    fn fit(&self, target: &Target, found: &Discovered) -> Self {
        if target.known().is_some() && found.names_issuer() {
            return self.clone();
        }
        let own = self.of_issuer(&found.redirect_part());
        own.unwrap_or_else(|| self.clone())
    }
}

/// A connection that has begun.
#[derive(Debug, Clone)]
pub struct Begun {
    /// The authorization URL that the person opens.
    pub url: Url,
}

/// The answer of the authorization server, as the person's browser brought it.
pub struct ConnectionAnswer {
    pub state: SecretString,
    /// The part of the redirect address that identifies the issuer, if it has one.
    pub redirect_part: Option<String>,
    pub code: Option<SecretString>,
    pub issuer: Option<String>,
    pub error: Option<String>,
    pub error_description: Option<String>,
}

/// The stored state of an authorization that has begun and has not finished.
#[derive(Serialize, Deserialize)]
struct Pending {
    /// The server's address at the beginning.
    address: String,
    authorization: Authorization,
    return_to: String,
    /// The key of the client registration in use, which is forgotten if the authorization server does not
    /// know the client.
    registration: Option<String>,
}

/// The operations of a caller on their connections.
pub struct Connections<'a> {
    pub servers: &'a Servers,
    pub caller: &'a Caller,
}

impl Connections<'_> {
    /// Returns the caller's connections, and the servers that require one.
    pub async fn list(&self) -> Result<Vec<ConnectionReport>, ConnectError> {
        let Caller { user, tenant, .. } = self.caller;
        let offering = self.servers.offering(self.caller.whose()).await?;
        let rows = self.grants().records.mcp_grants();
        let rows = rows.of_person(&tenant.id, &user.id).await?;
        let is_there = |scope: &Scope, name: &str| {
            offering
                .server(name)
                .is_some_and(|server| server.entry.scope == *scope)
        };
        let rows = rows.iter().filter(|(scope, name, _)| is_there(scope, name));
        let reports = rows.map(|(_, name, row)| ConnectionReport::new(name, Some(row)));
        let reports = reports.filter(|report| report.state != ConnectionState::Absent);
        Ok(reports.collect())
    }

    /// Begins a connection and returns the URL that the person opens. `return_to` is the path of our page
    /// that they return to.
    pub async fn begin(
        &self,
        name: &str,
        own: &RedirectAddress,
        return_to: Option<&str>,
    ) -> Result<Begun, ConnectError> {
        let return_to = path(return_to.unwrap_or("/"))?;
        let target = self.target(name).await?;
        let key = target.key(&self.caller.holder());
        let row = self.grants().row(&key).await?;
        let kept = row.as_ref().and_then(challenge).unwrap_or_default();
        // The server's answer now tells where its metadata is; the challenge of an earlier call tells which
        // scopes.
        let asked = ask(&target.client, &target.url).await?;
        let challenge = Challenge {
            scope: kept.scope.clone().or(asked.scope),
            resource_metadata: asked.resource_metadata.or(kept.resource_metadata),
            error: kept.error,
        };
        let origins = &target.oauth.endpoint_origins;
        let found = discover(&target.client, &target.url, &challenge, origins).await?;
        self.grants().bind_client(&target, &found).await?;
        let own = &own.fit(&target, &found);
        let (client, registration) = self.client(&target, &found, own).await?;
        let is_connected = row.as_ref().is_some_and(|row| row.sealed.is_some());
        let granted = row.filter(|_| is_connected).map(|row| row.scopes);
        let wish = ScopeWish {
            challenge: challenge.scope.as_deref(),
            entry: target.oauth.scopes.as_deref(),
            granted: granted.as_deref().unwrap_or_default(),
        };
        let state: SecretString = hex::encode(rand::random::<[u8; 32]>()).into();

        let (url, authorization) =
            Authorization::begin(&found, client, &own.callback, state.expose_secret(), &wish)?;
        let pending = Pending {
            address: target.address(),
            authorization,
            return_to,
            registration,
        };
        let hash = SecretHash::of(state.expose_secret());
        let sealed = seal(self.sealer(), &context(&state), &pending)?;
        let ends = Timestamp(now().0 + LIFE_MS);
        let table = self.grants().records.mcp_authorizations();
        table.begin(&key, &hash, &sealed, now(), ends).await?;
        Ok(Begun { url })
    }

    /// Finishes a connection with the answer of the authorization server. Returns the server's name, and the
    /// path of our page that the person returns to.
    pub async fn finish(&self, answer: ConnectionAnswer) -> Result<(String, String), ConnectError> {
        let Caller { user, tenant, .. } = self.caller;
        let hash = SecretHash::of(answer.state.expose_secret());
        let table = self.grants().records.mcp_authorizations();
        let taken = table.take(&tenant.id, &user.id, &hash, now()).await?;
        let (key, sealed) = taken.ok_or(ConnectError::Stale)?;
        let pending: Pending = open(self.sealer(), &context(&answer.state), &sealed)?;
        let target = self.target(&key.server).await?;
        // The entry may have changed meanwhile: a grant for one server is not given to another.
        if target.scope != key.scope || target.address() != pending.address {
            return Err(ConnectError::Stale);
        }
        if !pending
            .authorization
            .came_back_to(answer.redirect_part.as_deref())
        {
            return Err(ConnectError::OtherAddress);
        }
        let answer = AuthorizationAnswer {
            code: answer.code.map(|code| code.expose_secret().to_owned()),
            issuer: answer.issuer,
            error: answer.error,
            error_description: answer.error_description,
        };
        let finished = pending
            .authorization
            .finish(&target.client, answer, now().0)
            .await;
        if let (Err(AuthorizationError::UnknownClient), Some(registration)) =
            (&finished, &pending.registration)
        {
            let hash = SecretHash::of(registration);
            table.forget_client(&target.scope, &hash).await?;
        }
        let grant = finished?;
        let person = self.caller.holder();
        self.grants().connect(&target, &person, &grant).await?;
        tracing::info!(mcp.server = %key.server, tenant.id = %tenant.id, user.id = %user.id, "A person connected to an MCP server");
        self.servers.list_for(&key.server, person);
        Ok((key.server, pending.return_to))
    }

    /// Ends the caller's connection: the tokens are revoked if the authorization server supports that, and
    /// forgotten. Calls that wait for the connection end.
    pub async fn disconnect(&self, name: &str) -> Result<(), ConnectError> {
        let target = self.target(name).await?;
        let key = target.key(&self.caller.holder());
        let ended = self.grants().disconnect(&key).await?;
        if let Some(grant) = ended
            && let Err(error) = grant.revoke(&target.client).await
        {
            tracing::warn!(mcp.server = %name, %error, "The tokens of a server were not given back; they are forgotten here");
        }
        Ok(())
    }

    /// Notes that the caller does not connect now: calls that wait for it end, the connection remains as it
    /// is.
    pub async fn dismiss(&self, name: &str) -> Result<(), ConnectError> {
        let target = self.target(name).await?;
        let key = target.key(&self.caller.holder());
        self.grants().records.mcp_grants().dismiss(&key).await?;
        self.grants().publish(&key);
        Ok(())
    }

    /// Returns the server, if people connect to it and the caller may.
    async fn target(&self, name: &str) -> Result<Target, ConnectError> {
        let offering = self.servers.offering(self.caller.whose()).await?;
        let server = offering.server(name);
        let entry: &ServerEntry = match server {
            Some(server) => &server.entry,
            None => return Err(ConnectError::NotFound(name.to_owned())),
        };
        if self.caller.user.role < Role::Member {
            return Err(ConnectError::NotAllowed);
        }
        let target = self.servers.0.opener.target(entry).await;
        let target = target.map_err(|failure: Failure| ConnectError::Entry(failure.text))?;
        let not_for = |why| ConnectError::NotForPeople(name.to_owned(), why);
        let target = target.ok_or_else(|| {
            not_for("it runs here, or its entry says what is sent as `Authorization`")
        })?;
        if target.is_of_client() {
            return Err(not_for(
                "its entry connects by itself (`client_credentials`)",
            ));
        }
        Ok(target)
    }

    /// Returns our client identity at the authorization server, and the key under which our registration is
    /// stored.
    async fn client(
        &self,
        target: &Target,
        found: &Discovered,
        own: &RedirectAddress,
    ) -> Result<(ClientIdentity, Option<String>), ConnectError> {
        let table = self.grants().records.mcp_authorizations();
        let name = found.registration_key();
        let name = name.map(|key| format!("{key}\n{}", own.callback));
        let hash = name.as_deref().map(SecretHash::of);
        let place = |name: &str| format!("mcp-client/{}/{name}", target.scope.as_str());
        let mut registered: Option<ClientIdentity> = None;
        if let (Some(name), Some(hash)) = (&name, &hash)
            && let Some(sealed) = table.client(&target.scope, hash).await?
        {
            registered = Some(open(self.sealer(), &place(name), &sealed)?);
        }
        let known = target.known();
        let registration = ClientRegistration {
            known: known.as_ref(),
            metadata_url: own.client_document.as_ref(),
            registered: registered.filter(|client| !client.has_ended(now().0)),
            redirect: &own.callback,
        };
        let (client, is_new) = registration.client(&target.client, found).await?;
        if let (true, Some(name), Some(hash)) = (is_new, &name, &hash) {
            let sealed = seal(self.sealer(), &place(name), &client)?;
            table
                .keep_client(&target.scope, hash, &sealed, now())
                .await?;
        }
        Ok((client, name))
    }

    fn grants(&self) -> &Grants {
        &self.servers.0.opener.grants
    }

    fn sealer(&self) -> &store::Sealer {
        &self.grants().sealer
    }
}

/// The sealing context of a pending authorization.
fn context(state: &SecretString) -> String {
    format!("mcp-authorization/{}", state.expose_secret())
}

/// Checks that `text` is a path of our own page, so that nobody is redirected to another site.
fn path(text: &str) -> Result<String, ConnectError> {
    let begins = text.starts_with('/') && !text.starts_with("//");
    let is_plain = |c: char| !c.is_control() && c != '\\' && !c.is_whitespace();
    if begins && text.len() <= MAX_PATH && text.chars().all(is_plain) {
        return Ok(text.to_owned());
    }
    Err(ConnectError::Invalid(
        "returnTo",
        "`returnTo` is a path of this page: it begins with one `/`",
    ))
}

#[cfg(test)]
mod tests {
    use super::path;

    #[test]
    fn nobody_is_sent_to_another_site() {
        for fit in ["/", "/sessions/ses_1?x=1#y"] {
            assert!(path(fit).is_ok(), "{fit}");
        }
        for unfit in [
            "",
            "x",
            "//evil.test",
            "/\\evil.test",
            "https://evil.test",
            "/a b",
            "/\n",
        ] {
            assert!(path(unfit).is_err(), "{unfit}");
        }
    }
}
