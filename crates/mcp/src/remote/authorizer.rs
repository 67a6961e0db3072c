//! Adds tokens to the requests to a server that authorises its users.

use std::sync::Arc;

use futures::future::BoxFuture;
use reqwest::{RequestBuilder, Response, StatusCode};
use secrecy::{ExposeSecret as _, SecretString};

use super::failure::{Error, Failure};
use crate::authorization::{AuthorizationError, Challenge};

/// Provides tokens for one server, on behalf of one person or of nobody.
pub trait Authorizer: Send + Sync {
    /// Returns the token for the next request; `None` if nobody has connected.
    fn token(&self) -> BoxFuture<'_, Result<Option<SecretString>, AuthorizationError>>;

    /// Decides what to do about a request that the server refused.
    fn refused<'a>(&'a self, request: RefusedRequest<'a>) -> BoxFuture<'a, Refused>;
}

/// A request that did not run, because the server wants another token.
#[derive(Clone, Copy)]
pub struct RefusedRequest<'a> {
    /// The token with which the request was sent.
    pub token: Option<&'a SecretString>,
    /// The server's challenge.
    pub challenge: Option<&'a Challenge>,
    /// True if the request was already sent twice: then [`Refused::Again`] is not a valid answer.
    pub is_second: bool,
}

/// The reaction to a refusal.
pub enum AccessError {
    /// Send the request again with this token: it did not run.
    Again(SecretString),
    /// A person has to connect, or to allow these additional scopes.
    NeedsPerson(Option<String>),
    /// A token would not help: the refusal stands.
    Stands,
}

/// Sends requests with the current token.
#[derive(Clone)]
pub(super) struct Sending(pub(super) Option<Arc<dyn Authorizer>>);

impl Sending {
    /// Sends a request. If it is refused because of its token, it is sent again with a better one, if there
    /// is one. No redirect is followed, so the token goes only to this address.
    pub(super) async fn send(&self, request: RequestBuilder) -> Result<Response, Error> {
        let Some(authorizer) = &self.0 else {
            return Ok(request.send().await.map_err(Failure::Client)?);
        };
        let token = authorizer.token().await.map_err(Failure::Token)?;
        let again = request.try_clone();
        let response = with(request, token.as_ref()).send().await;
        let response = response.map_err(Failure::Client)?;
        let Some(Refusal { challenge }) = refusal(&response) else {
            return Ok(response);
        };
        let refused = RefusedRequest {
            token: token.as_ref(),
            challenge: challenge.as_ref(),
            is_second: false,
        };
        match (authorizer.refused(refused).await, again) {
            (Refused::NeedsPerson(scopes), _) => Err(Failure::NeedsPerson(scopes).into()),
            (Refused::Again(token), Some(request)) => self.second(request, token).await,
            (Refused::Stands | Refused::Again(_), _) => Ok(response),
        }
    }

    async fn second(
        &self,
        request: RequestBuilder,
        token: SecretString,
    ) -> Result<Response, Error> {
        let response = with(request, Some(&token)).send().await;
        let response = response.map_err(Failure::Client)?;
        let (Some(Refusal { challenge }), Some(authorizer)) = (refusal(&response), &self.0) else {
            return Ok(response);
        };
        let refused = RefusedRequest {
            token: Some(&token),
            challenge: challenge.as_ref(),
            is_second: true,
        };
        match authorizer.refused(refused).await {
            Refused::NeedsPerson(scopes) => Err(Failure::NeedsPerson(scopes).into()),
            Refused::Stands | Refused::Again(_) => Ok(response),
        }
    }
}

fn with(request: RequestBuilder, token: Option<&SecretString>) -> RequestBuilder {
    match token {
        Some(token) => request.bearer_auth(token.expose_secret()),
        None => request,
    }
}

/// A response that requires a token, or one with more scopes, with its challenge.
struct Refusal {
    challenge: Option<Challenge>,
}

fn refusal(response: &Response) -> Option<Refusal> {
    let challenge = Challenge::read(response.headers());
    let status = response.status();
    if status == StatusCode::UNAUTHORIZED {
        return Some(Refusal { challenge });
    }
    let wants_more = challenge
        .as_ref()
        .is_some_and(Challenge::is_insufficient_scope);
    (status == StatusCode::FORBIDDEN && wants_more).then_some(Refusal { challenge })
}
