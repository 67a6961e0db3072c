//! Gets tokens for entries that connect by themselves (`client_credentials`): one token for everybody who
//! uses the entry, kept in memory, because a new one can be requested at any time.

use std::sync::{Arc, PoisonError};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use hashlink::LruCache;
use secrecy::{ExposeSecret as _, SecretString};
use tokio::sync::Mutex;

use super::grants::Grants;
use super::target::Target;
use sepal_core::domain::Digest;
use sepal_mcp::authorization::{
    AuthorizationError, Challenge, ClientIdentity, Grant, Tokens, discover,
};
use sepal_mcp::{Authorizer, Refused, RefusedRequest};
use sepal_store::clock::now;

/// The most entries whose tokens are kept. An entry beyond it only has to request another token.
const MOST: usize = 1_000;

/// The tokens of one entry.
type Shared = Arc<Mutex<Option<Tokens>>>;

/// The tokens of such entries. Cheap to clone.
#[derive(Clone)]
pub(crate) struct ClientGrants(Arc<std::sync::Mutex<KeptTokens>>);

/// The tokens of the entries that were used last, by the digest of scope, server, address and client: a
/// changed entry has another key, and no key contains a secret.
type KeptTokens = LruCache<Digest, Shared>;

impl Default for ClientGrants {
    fn default() -> Self {
        Self(Arc::new(std::sync::Mutex::new(KeptTokens::new(MOST))))
    }
}

/// Returns the tokens of an entry. At the limit, the entry that was used longest ago is forgotten.
fn tokens_of(kept: &mut KeptTokens, key: Digest) -> Shared {
    if let Some(tokens) = kept.get(&key) {
        return Arc::clone(tokens);
    }
    let tokens = Shared::default();
    kept.insert(key, Arc::clone(&tokens));
    tokens
}

impl ClientGrants {
    /// Returns the authorizer that sends the entry's own tokens. A trial requests tokens of its own, which
    /// are not kept.
    pub(crate) fn authorizer(&self, target: Target, grants: Grants) -> impl Authorizer + use<> {
        let tokens = if target.is_trial {
            Shared::default()
        } else {
            // Never held across an await.
            let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            tokens_of(&mut kept, key(&target))
        };
        ClientAuthorizer {
            target,
            grants,
            tokens,
        }
    }
}

fn key(target: &Target) -> Digest {
    Digest::of_json(&serde_json::json!({
        "scope": target.scope.as_str(), "server": target.server, "address": target.address(),
        "oauth": target.oauth, "secret": target.client_secret,
    }))
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
        refused: Option<&SecretString>,
        challenge: Option<&Challenge>,
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

        let grant =
            Grant::of_client(&target.client, &found, identity, scopes.as_slice(), now().0).await?;
        let access = grant.tokens.access().into();
        *tokens = Some(grant.tokens);
        Ok(access)
    }
}

impl Authorizer for ClientAuthorizer {
    fn token(&self) -> BoxFuture<'_, Result<Option<SecretString>, AuthorizationError>> {
        async { self.token_but(None, None).await.map(Some) }.boxed()
    }

    fn refused<'a>(&'a self, request: RefusedRequest<'a>) -> BoxFuture<'a, Refused> {
        let asked = async move {
            if request.is_second {
                return Refused::Stands;
            }
            match self.token_but(request.token, request.challenge).await {
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{KeptTokens, MOST, tokens_of};
    use sepal_core::domain::Digest;

    fn key(number: usize) -> Digest {
        Digest::of_bytes(&number.to_be_bytes())
    }

    #[test]
    fn the_tokens_of_the_entry_that_was_used_longest_ago_are_forgotten_at_the_limit() {
        let mut kept = KeptTokens::new(MOST);
        let first = tokens_of(&mut kept, key(0));
        let second = tokens_of(&mut kept, key(1));
        for number in 2..MOST {
            tokens_of(&mut kept, key(number));
        }
        assert!(
            Arc::ptr_eq(&first, &tokens_of(&mut kept, key(0))),
            "kept and used again"
        );
        tokens_of(&mut kept, key(MOST));
        assert_eq!(kept.len(), MOST);
        assert!(Arc::ptr_eq(&first, &tokens_of(&mut kept, key(0))));
        assert!(
            !Arc::ptr_eq(&second, &tokens_of(&mut kept, key(1))),
            "forgotten"
        );
        assert_eq!(kept.len(), MOST);
    }
}
