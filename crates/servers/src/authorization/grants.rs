//! Stores grants sealed, one for each person and server, and renews each once for all gateways.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio_util::task::TaskTracker;

use super::target::Target;
use crate::news::{Change, News, NewsKind, NewsSender, ServerUpdate};
use sepal_core::domain::{Holder, Timestamp};
use sepal_mcp::authorization::{AuthorizationError, Challenge, Discovered, Grant};
use sepal_store::clock::now;
use sepal_store::records::{GrantKey, GrantRow, SealedTokens, SecretHash};
use sepal_store::{self as store, Records, Sealer};

/// The lease of a gateway that renews tokens. It is longer than the one request that a renewal takes; after
/// it the gateway counts as dead, and another one tries with the same tokens.
const LEASE_MS: i64 = 40_000;
/// The interval at which another gateway's renewal is polled.
const LOOK: Duration = Duration::from_millis(100);
/// The time for which another gateway's renewal is waited for.
const PATIENCE_MS: i64 = 45_000;

/// The pause between two attempts to store renewed tokens.
const PAUSE: Duration = Duration::from_secs(1);
/// The time for which a call waits for its person to connect.
const WAIT: Duration = Duration::from_mins(10);
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// The grants of all people. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Grants {
    pub records: Records,
    pub sealer: Sealer,
    pub news: Arc<NewsSender>,
    pub tasks: TaskTracker,
}

/// A grant and the address that it is bound to.
#[derive(Serialize, Deserialize)]
struct Kept {
    address: String,
    grant: Grant,
}

/// A grant and its version in the row.
#[derive(Clone)]
pub(crate) struct StoredGrant {
    pub version: i64,
    pub grant: Grant,
}

impl Grants {
    /// Refuses an issuer with which the client of an entry is not registered. The expected issuer is the one
    /// that the entry names, or else the first one that was found with this client and secret at this
    /// address. So a server that changes its metadata cannot obtain the secret for another issuer. A trial
    /// stores no issuer.
    pub(crate) async fn bind_client(
        &self,
        target: &Target,
        found: &Discovered,
    ) -> Result<(), AuthorizationError> {
        let Some(known) = target.known() else {
            return Ok(());
        };
        let found = found.authority();
        let bare = |issuer: &str| issuer.trim_end_matches('/').to_owned();
        let expected = match (&target.oauth.issuer, known.secret) {
            (Some(issuer), _) => issuer.clone(),
            (None, None) => return Ok(()),
            (None, Some(secret)) => {
                let server = &target.server;
                let name = ["bound", server, &target.address(), &known.id, &secret].join("\n");
                let hash = SecretHash::of(&name);
                let bound = self.first_issuer(target, &hash, &found);
                bound.await.map_err(|error| records(&error))?
            }
        };
        if bare(&expected) == bare(&found) {
            return Ok(());
        }
        Err(AuthorizationError::OtherClient { expected, found })
    }

    /// Returns the issuer that is stored under a name; if there is none, returns `found`, which is stored
    /// unless this is a trial.
    async fn first_issuer(
        &self,
        target: &Target,
        hash: &SecretHash,
        found: &str,
    ) -> Result<String, store::Error> {
        let table = self.records.mcp_authorizations();
        let place = format!("mcp-client-issuer/{}/{}", target.scope, target.server);
        if let Some(sealed) = table.client(&target.scope, hash).await? {
            return open(&self.sealer, &place, &sealed);
        }
        if target.is_trial {
            return Ok(found.to_owned());
        }
        let sealed = seal(&self.sealer, &place, &found)?;
        table
            .keep_client(&target.scope, hash, &sealed, now())
            .await?;
        Ok(found.to_owned())
    }

    /// Returns the row of a person at a server.
    pub(crate) async fn row(&self, key: &GrantKey) -> Result<Option<GrantRow>, store::Error> {
        self.records.mcp_grants().get(key).await
    }

    /// Returns a person's grant if it is for this address: an entry that has another address by now gets no
    /// grant that was made for the old one.
    pub(crate) async fn held(
        &self,
        target: &Target,
        person: &Holder,
    ) -> Result<Option<StoredGrant>, store::Error> {
        let key = target.key(person);
        let row = self.row(&key).await?;
        let Some((version, sealed)) = row.and_then(|row| Some((row.version, row.sealed?))) else {
            return Ok(None);
        };
        let kept = self.open(&key, &sealed)?;
        let is_here = kept.address == target.address();
        let grant = kept.grant;
        Ok(is_here.then_some(StoredGrant { version, grant }))
    }

    /// Stores a person's grant, and notifies their pages and waiting calls.
    pub(crate) async fn connect(
        &self,
        target: &Target,
        person: &Holder,
        grant: &Grant,
    ) -> Result<(), store::Error> {
        let key = target.key(person);
        let sealed = self.seal(&key, target, grant)?;
        let tokens = SealedTokens {
            sealed: &sealed,
            scopes: grant.tokens.scopes(),
        };
        self.records
            .mcp_grants()
            .connect(&key, tokens, now())
            .await?;
        self.publish(&key);
        Ok(())
    }

    /// Renews a grant that is still of version `stale`, with one request for all callers at all gateways.
    /// `None`: only the person can help.
    pub(crate) async fn renewed(
        &self,
        target: &Target,
        person: &Holder,
        stale: i64,
    ) -> Result<Option<StoredGrant>, AuthorizationError> {
        let (grants, target, person) = (self.clone(), target.clone(), person.clone());
        // The caller may be cancelled; new tokens must be stored all the same, because the old ones are used
        // up.
        let renewing = async move { grants.renew(&target, &person, stale).await };
        let renewed = self.tasks.spawn(renewing).await;
        renewed.unwrap_or_else(|_| Err(away("the renewal was stopped")))
    }

    async fn renew(
        &self,
        target: &Target,
        person: &Holder,
        stale: i64,
    ) -> Result<Option<StoredGrant>, AuthorizationError> {
        let key = target.key(person);
        let owner = hex::encode(rand::random::<[u8; 16]>());
        let began = now();
        loop {
            let held = self
                .held(target, person)
                .await
                .map_err(|error| records(&error))?;
            let Some(held) = held else {
                return Ok(None);
            };
            if held.version != stale {
                return Ok(Some(held));
            }
            let (now, until) = (now(), Timestamp(now().0 + LEASE_MS));

            let leased = self
                .records
                .mcp_grants()
                .lease(&key, held.version, owner.as_str(), now, until)
                .await;
            if leased.map_err(|error| records(&error))? {
                return self.renew_alone(target, &key, held, &owner).await;
            }
            if now.0 - began.0 > PATIENCE_MS {
                return Err(away(
                    "another gateway renews the connection and does not end",
                ));
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    async fn renew_alone(
        &self,
        target: &Target,
        key: &GrantKey,
        held: StoredGrant,
        owner: &str,
    ) -> Result<Option<StoredGrant>, AuthorizationError> {
        let renewed = held.grant.renewed(&target.client, now().0).await;
        match renewed {
            Ok(grant) => {
                let is_kept = self
                    .keep_renewed(target, key, held.version, owner, &grant)
                    .await?;
                tracing::info!(mcp.server = %key.server, tenant.id = %key.tenant, user.id = %key.user, "A connection to an MCP server was renewed");
                if is_kept {
                    let version = held.version + 1;
                    return Ok(Some(StoredGrant { version, grant }));
                }
                // The person has connected again meanwhile.
                let person = Holder {
                    tenant: key.tenant.clone(),
                    user: key.user.clone(),
                };
                self.held(target, &person)
                    .await
                    .map_err(|error| records(&error))
            }
            Err(AuthorizationError::InvalidGrant) => {
                tracing::info!(mcp.server = %key.server, tenant.id = %key.tenant, user.id = %key.user, "A connection to an MCP server has ended");
                let ended = self.records.mcp_grants().end(key, held.version).await;
                ended.map_err(|error| records(&error))?;
                Ok(None)
            }
            Err(error) => {
                let released = self.records.mcp_grants().release(key, owner).await;
                released.map_err(|error| records(&error))?;
                Err(error)
            }
        }
    }

    /// Stores renewed tokens. The old ones are used up, so a failing store is retried for half of the lease,
    /// in which nobody else may renew them. Returns false if the tokens were not stored, because the lease or
    /// the version has changed.
    async fn keep_renewed(
        &self,
        target: &Target,
        key: &GrantKey,
        version: i64,
        owner: &str,
        grant: &Grant,
    ) -> Result<bool, AuthorizationError> {
        let sealed = self
            .seal(key, target, grant)
            .map_err(|error| records(&error))?;
        let tokens = SealedTokens {
            sealed: &sealed,
            scopes: grant.tokens.scopes(),
        };
        let began = now();
        loop {
            match self
                .records
                .mcp_grants()
                .renew(key, version, owner, tokens)
                .await
            {
                Ok(is_kept) => return Ok(is_kept),
                Err(_) if now().0 - began.0 < LEASE_MS / 2 => tokio::time::sleep(PAUSE).await,
                Err(error) => return Err(records(&error)),
            }
        }
    }

    /// Waits until the person has connected to a server that requires it; returns false if they decline, or
    /// after ten minutes.
    pub(crate) async fn wait(&self, key: &GrantKey) -> bool {
        let mut news = self.news.listen();
        let until = tokio::time::Instant::now() + WAIT;
        loop {
            match self.row(key).await {
                Ok(Some(row)) if row.needed_since.is_some() => {}
                // Only connecting clears the challenge. A person who dismisses the request leaves the
                // challenge in the row, even if they had allowed less before.
                Ok(Some(row)) => return row.sealed.is_some() && row.challenge.is_none(),
                Ok(None) => return false,
                // The row is read again.
                Err(error) => tracing::debug!(?error, "A connection cannot be looked at"),
            }
            if tokio::time::Instant::now() >= until {
                return false;
            }
            // Updates of other gateways may be lost, so the row is also polled.
            let told = async {
                while let Ok(told) = news.recv().await {
                    if told.server == key.server && matches!(told.kind, NewsKind::Connection(_)) {
                        return;
                    }
                }
            };
            let _ = tokio::time::timeout(LOOK_AGAIN, told).await;
        }
    }

    /// Records that the server requires the person to connect, and notifies their pages.
    pub(crate) async fn need(&self, key: &GrantKey, challenge: &Challenge) {
        let text = serde_json::to_string(challenge).unwrap_or_default();
        match self.records.mcp_grants().need(key, &text, now()).await {
            Ok(()) => self.publish(key),
            Err(error) => {
                tracing::warn!(mcp.server = %key.server, ?error, "That a server wants its person was not kept");
            }
        }
    }

    /// Deletes the tokens of that version, which are refused and cannot be renewed.
    pub(crate) async fn end(&self, key: &GrantKey, version: i64) {
        if let Err(error) = self.records.mcp_grants().end(key, version).await {
            tracing::warn!(mcp.server = %key.server, ?error, "That a connection has ended was not kept");
        }
    }

    /// Deletes a person's row at a server, and returns their grant if they had one.
    pub(crate) async fn disconnect(&self, key: &GrantKey) -> Result<Option<Grant>, store::Error> {
        let sealed = self.records.mcp_grants().disconnect(key).await?;
        self.publish(key);
        let kept = sealed.map(|sealed| self.open(key, &sealed)).transpose()?;
        Ok(kept.map(|kept| kept.grant))
    }

    /// Notifies the person's pages and waiting calls, here and at the other gateways.
    pub(crate) fn publish(&self, key: &GrantKey) {
        self.news.publish(News {
            tenant: Some(key.tenant.clone()),
            // `NewsKind::Connection` reaches only this user anyway.
            owner: None,
            server: key.server.clone(),
            kind: NewsKind::Connection(key.user.clone()),
        });
        self.news.publish_to_gateways(ServerUpdate {
            tenant: Some(key.tenant.clone()),
            owner: None,
            server: key.server.clone(),
            change: Change::Connection(key.user.clone()),
        });
    }

    fn seal(&self, key: &GrantKey, target: &Target, grant: &Grant) -> Result<String, store::Error> {
        let kept = Kept {
            address: target.address(),
            grant: grant.clone(),
        };
        seal(&self.sealer, &context(key), &kept)
    }

    fn open(&self, key: &GrantKey, sealed: &str) -> Result<Kept, store::Error> {
        open(&self.sealer, &context(key), sealed)
    }
}

/// The sealing context of a grant.
fn context(key: &GrantKey) -> String {
    let GrantKey {
        scope,
        server,
        tenant,
        user,
    } = key;
    format!("mcp-grant/{}/{server}/{tenant}/{user}", scope.as_str())
}

/// Seals a value for its context.
pub(crate) fn seal(
    sealer: &Sealer,
    context: &str,
    value: &impl Serialize,
) -> Result<String, store::Error> {
    let text = serde_json::to_vec(value).map(zeroize::Zeroizing::new);
    let text = text.map_err(|error| store::Error::corrupt("sealed value", error.to_string()))?;
    sealer.seal(context, &text)
}

/// Opens a value that [`seal`] has sealed.
pub(crate) fn open<T: serde::de::DeserializeOwned>(
    sealer: &Sealer,
    context: &str,
    kept: &str,
) -> Result<T, store::Error> {
    let text = sealer.open(context, kept)?;
    // The error text is not passed on, because it may contain secrets.
    serde_json::from_slice(&text).map_err(|_| store::Error::corrupt("sealed value", "not shown"))
}

/// Makes the error of a request from an error of the store, and logs the latter.
pub(super) fn records(error: &store::Error) -> AuthorizationError {
    tracing::warn!(?error, "The tokens of a server cannot be read or kept");
    away("the records do not answer")
}

fn away(reason: &str) -> AuthorizationError {
    AuthorizationError::Unreachable {
        host: "the token of this server".to_owned(),
        reason: reason.to_owned(),
    }
}
