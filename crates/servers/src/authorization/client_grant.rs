//! Gets tokens for entries that connect by themselves (`client_credentials`): one token for everybody who
//! uses the entry, kept in memory, because a new one can be requested at any time.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use secrecy::{ExposeSecret as _, SecretString};
use tokio::sync::Mutex;

use super::grants::Grants;
use super::target::Target;
use sepal_mcp::authorization::{
    AuthorizationError, Challenge, ClientIdentity, Grant, Tokens, discover,
};
use sepal_mcp::{Authorizer, Refused, RefusedRequest};
use sepal_store::clock::now;

/// Scope, server, address and client: a changed entry has another key.
type Place = (String, String, String, String);

/// The tokens of one entry.
type Shared = Arc<Mutex<Option<Tokens>>>;

/// The tokens of such entries. Cheap to clone.
#[derive(Clone, Default)]
pub struct ClientGrants(Arc<std::sync::Mutex<HashMap<Place, Shared>>>);

impl ClientGrants {
    /// Returns the authorizer that sends the entry's own tokens.
    pub fn authorizer(&self, target: Target, grants: Grants) -> impl Authorizer + use<> {
        let secret = target.client_secret.clone().unwrap_or_default();
        let place = (
            target.scope.as_str().to_owned(),
            target.server.clone(),
            target.address(),
            format!("{:?} {secret}", target.oauth),
        );
        // Never held across an await.
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let tokens = Arc::clone(all.entry(place).or_default());
        ClientAuthorizer {
            target,
            grants,
            tokens,
        }
    }
}

struct ClientAuthorizer {
    target: Target,
    grants: Grants,
    /// Held while a token is requested, so that concurrent calls request one.
    tokens: Shared,
}

impl ClientAuthorizer {
    /// Returns a fresh token that is not the refused one.
    async fn token_but(
        &self,
        (refused, challenge): (Option<&SecretString>, Option<&Challenge>),
    ) -> Result<SecretString, AuthorizationError> {
        let mut tokens = self.tokens.lock().await;
        let known = tokens.as_ref().filter(|tokens| {
            let is_refused = refused.is_some_and(|it| it.expose_secret() == tokens.access());
            tokens.is_fresh(now().0) && !is_refused
        });
        if let Some(known) = known {
            return Ok(known.access().into());
        }
        let target = &self.target;
        let challenge = challenge.cloned().unwrap_or_default();
        let origins = &target.oauth.endpoint_origins;
        let found = discover(&target.client, &target.url, &challenge, origins).await?;
        self.grants.bind_client(target, &found).await?;
        let known = target.known().ok_or(AuthorizationError::NoClient)?;
        let identity = ClientIdentity::known(&known, &found)?;
        let asked = challenge.scope.as_deref().map(|scope| {
            scope
                .split_whitespace()
                .map(ToOwned::to_owned)
                .collect::<Vec<_>>()
        });
        let scopes = asked
            .or_else(|| target.oauth.scopes.clone())
            .unwrap_or_default();
        let who = (identity, scopes.as_slice());
        let grant = Grant::of_client(&target.client, &found, who, now().0).await?;
        let access = grant.tokens.access().into();
        *tokens = Some(grant.tokens);
        Ok(access)
    }
}

impl Authorizer for ClientAuthorizer {
    fn token(&self) -> BoxFuture<'_, Result<Option<SecretString>, AuthorizationError>> {
        async { self.token_but((None, None)).await.map(Some) }.boxed()
    }

    fn refused<'a>(&'a self, request: RefusedRequest<'a>) -> BoxFuture<'a, Refused> {
        let asked = async move {
            if request.is_second {
                return Refused::Stands;
            }
            match self.token_but((request.token, request.challenge)).await {
                Ok(token) => Refused::Again(token),
                Err(error) => {
                    tracing::warn!(mcp.server = %self.target.server, %error, "There is no token for an MCP server");
                    Refused::Stands
                }
            }
        };
        asked.boxed()
    }
}
