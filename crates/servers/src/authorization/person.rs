//! Authorizes requests to a server, in the name of one person or of nobody.

use futures::FutureExt as _;
use futures::future::BoxFuture;
use secrecy::{ExposeSecret as _, SecretString};

use super::grants::{Grants, records};
use super::target::Target;
use sepal_core::domain::Holder;
use sepal_mcp::authorization::{AuthorizationError, Challenge, is_protected};
use sepal_mcp::{Authorizer, Refused, RefusedRequest};
use sepal_store::clock::now;

/// Sends a person's token, and records when a server requires more.
pub(crate) struct PersonAuthorizer {
    pub grants: Grants,
    pub target: Target,
    pub person: Holder,
}

impl PersonAuthorizer {
    async fn current(&self) -> Result<Option<SecretString>, AuthorizationError> {
        let held = self.grants.held(&self.target, &self.person).await;
        let Some(held) = held.map_err(|error| records(&error))? else {
            return Ok(None);
        };
        let tokens = &held.grant.tokens;
        // A token that cannot be renewed is sent for as long as the server accepts it.
        if tokens.is_fresh(now().0) || !tokens.is_renewable() {
            return Ok(Some(tokens.access().into()));
        }
        self.renewed(held.version).await
    }

    async fn renewed(&self, stale: i64) -> Result<Option<SecretString>, AuthorizationError> {
        let renewed = self
            .grants
            .renewed(&self.target, &self.person, stale)
            .await?;
        Ok(renewed.map(|held| held.grant.tokens.access().into()))
    }

    /// Returns another token than the refused one, if there is one without the person's help.
    async fn other_than(&self, refused: Option<&SecretString>) -> Option<SecretString> {
        let held = self.grants.held(&self.target, &self.person).await.ok()??;
        let access = held.grant.tokens.access();
        if refused.is_none_or(|token| token.expose_secret() != access) {
            return Some(access.into());
        }
        if held.grant.tokens.is_renewable() {
            return self.renewed(held.version).await.ok()?;
        }
        self.grants
            .end(&self.target.key(&self.person), held.version)
            .await;
        None
    }

    async fn answer(&self, request: RefusedRequest<'_>) -> Refused {
        let is_wanted = request.challenge.is_some()
            || request.token.is_some()
            || is_protected(&self.target.client, &self.target.url).await;
        if !is_wanted {
            return Refused::Stands;
        }
        let wants_more = request
            .challenge
            .is_some_and(Challenge::is_insufficient_scope);
        if !wants_more
            && !request.is_second
            && let Some(token) = self.other_than(request.token).await
        {
            return Refused::Again(token);
        }
        let challenge = request.challenge.cloned().unwrap_or_default();
        let key = self.target.key(&self.person);
        self.grants.need(&key, &challenge).await;
        Refused::NeedsPerson(challenge.scope)
    }
}

impl Authorizer for PersonAuthorizer {
    fn token(&self) -> BoxFuture<'_, Result<Option<SecretString>, AuthorizationError>> {
        self.current().boxed()
    }

    fn refused<'a>(&'a self, request: RefusedRequest<'a>) -> BoxFuture<'a, Refused> {
        self.answer(request).boxed()
    }
}

/// For probes in nobody's name: detects that a server requires people to connect.
pub(crate) struct Nobody(pub Target);

impl Authorizer for Nobody {
    fn token(&self) -> BoxFuture<'_, Result<Option<SecretString>, AuthorizationError>> {
        std::future::ready(Ok(None)).boxed()
    }

    fn refused<'a>(&'a self, request: RefusedRequest<'a>) -> BoxFuture<'a, Refused> {
        let asked = async move {
            let target = &self.0;
            match request.challenge {
                Some(challenge) => Refused::NeedsPerson(challenge.scope.clone()),
                None if is_protected(&target.client, &target.url).await => {
                    Refused::NeedsPerson(None)
                }
                None => Refused::Stands,
            }
        };
        asked.boxed()
    }
}
