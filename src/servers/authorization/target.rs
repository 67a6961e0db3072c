//! A remote server that may want people to connect, as a token is bound to it.

use url::Url;

use crate::domain::{Holder, McpGrant, McpOAuth, Scope};
use crate::mcp::authorization::KnownClient;
use crate::servers::catalogue::entry::ServerEntry;
use crate::store::records::GrantKey;

/// One server and how we are known to whoever authorises for it.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) scope: Scope,
    pub(crate) server: String,
    /// Where it is.
    pub(crate) url: Url,
    pub(crate) oauth: McpOAuth,
    /// Its client's secret, filled in.
    pub(crate) client_secret: Option<String>,
    /// What reaches it and its authorisation server: nothing private for an entry of a tenant.
    pub(crate) client: reqwest::Client,
}

impl Target {
    /// `None` where the entry says what is sent in its place, or has no address.
    pub(crate) fn new(
        entry: &ServerEntry,
        url: &str,
        (client_secret, client): (Option<String>, reqwest::Client),
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
        })
    }

    /// What tokens are bound to: the address, without what may change from request to request.
    pub(crate) fn address(&self) -> String {
        let mut url = self.url.clone();
        url.set_query(None);
        url.set_fragment(None);
        url.into()
    }

    /// A person at this server.
    pub(crate) fn key(&self, person: &Holder) -> GrantKey {
        GrantKey {
            scope: self.scope.clone(),
            server: self.server.clone(),
            tenant: person.tenant.clone(),
            user: person.user.clone(),
        }
    }

    /// The client that the entry names.
    pub(crate) fn known(&self) -> Option<KnownClient> {
        let id = self.oauth.client_id.clone()?;
        let secret = self.client_secret.clone();
        Some(KnownClient { id, secret })
    }

    /// Whether the entry connects by itself, for everybody who uses it.
    pub(crate) fn is_of_client(&self) -> bool {
        self.oauth.grant == McpGrant::ClientCredentials
    }
}
