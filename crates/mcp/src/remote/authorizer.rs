//! Tokens of requests to a server that authorises its people.

use std::sync::Arc;

use futures::future::BoxFuture;
use reqwest::{RequestBuilder, Response, StatusCode};
use secrecy::{ExposeSecret as _, SecretString};

use super::failure::{Error, Failure};
use crate::authorization::{AuthorizationError, Challenge};

/// Where the tokens for one server come from; one person's, or nobody's.
pub trait Authorizer: Send + Sync {
    /// What the next request is sent with; `None` = nothing, because nobody has connected.
    fn token(&self) -> BoxFuture<'_, Result<Option<SecretString>, AuthorizationError>>;

    /// The server refused a request.
    fn refused<'a>(&'a self, request: RefusedRequest<'a>) -> BoxFuture<'a, Refused>;
}

/// A request that did not run, because the server wants another token.
#[derive(Clone, Copy)]
pub struct RefusedRequest<'a> {
    /// What it was sent with.
    pub token: Option<&'a SecretString>,
    /// What the server says that it wants.
    pub challenge: Option<&'a Challenge>,
    /// Whether it was sent a second time already: then [`Refused::Again`] is no answer.
    pub is_second: bool,
}

/// What to do about a refusal.
pub enum Refused {
    /// Send it once more with this token: it did not run.
    Again(SecretString),
    /// A person has to connect, or to allow these scopes too.
    NeedsPerson(Option<String>),
    /// Tokens are not what the server wants.
    Stands,
}

/// Sends requests with the token of now.
#[derive(Clone)]
pub(super) struct Sending(pub(super) Option<Arc<dyn Authorizer>>);

impl Sending {
    /// Sends a request. One that is refused for its token is sent once more with a better one, if there
    /// is one. No redirect is followed, so the token goes to this address alone.
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

/// An answer that wants a token, or one that may do more, with what it says of it.
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
