//! A remote server that may require people to connect, and the address to which tokens are bound.

use url::Url;

use crate::catalogue::entry::ServerEntry;
use sepal_core::domain::{Holder, McpGrant, McpOAuth, Scope};
use sepal_mcp::authorization::KnownClient;
use sepal_store::records::GrantKey;

/// A server, with our client's identity at its authorization server.
#[derive(Clone)]
pub(crate) struct Target {
    pub scope: Scope,
    pub server: String,
    /// The server's address.
    pub url: Url,
    pub oauth: McpOAuth,
    /// The secret of the entry's client, filled in.
    pub client_secret: Option<String>,
    /// The HTTP client for the server and its authorization server: it cannot reach private addresses for an
    /// entry of a tenant.
    pub client: reqwest::Client,
    /// True for a trial, of which nothing is stored.
    pub is_trial: bool,
}

impl Target {
    /// Returns `None` if the server is not remote, its entry sets the `Authorization` header, or it has no
    /// valid address.
    pub(crate) fn new(
        entry: &ServerEntry,
        url: &str,
        client_secret: Option<String>,
        client: reqwest::Client,
    ) -> Option<Self> {
        let mut names = entry.config.headers.keys();
        if !entry.is_remote() || names.any(|name| name.eq_ignore_ascii_case("authorization")) {
            return None;
        }
        Some(Self {
            scope: entry.scope.clone(),
            server: entry.name.clone(),
            url: Url::parse(url).ok()?,
            oauth: entry.config.oauth.clone().unwrap_or_default(),
            client_secret,
            client,
            is_trial: entry.is_trial,
        })
    }

    /// The address to which tokens are bound: without query and fragment, which may change from request to
    /// request.
    pub(crate) fn address(&self) -> String {
        let mut url = self.url.clone();
        url.set_query(None);
        url.set_fragment(None);
        url.into()
    }

    /// The key of a person's grant at this server.
    pub(crate) fn key(&self, person: &Holder) -> GrantKey {
        GrantKey {
            scope: self.scope.clone(),
            server: self.server.clone(),
            tenant: person.tenant.clone(),
            user: person.user.clone(),
        }
    }

    /// The client that the entry names, if any.
    pub(crate) fn known(&self) -> Option<KnownClient> {
        let id = self.oauth.client_id.clone()?;
        let secret = self.client_secret.clone();
        Some(KnownClient { id, secret })
    }

    /// Returns true if the entry connects by itself, for everybody who uses it.
    pub(crate) fn is_of_client(&self) -> bool {
        self.oauth.grant == McpGrant::ClientCredentials
    }
}
