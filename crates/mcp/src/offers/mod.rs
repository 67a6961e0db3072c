//! Lists, reads, completes and subscribes to a server's resources and prompts over an open connection.

#![expect(
    deprecated,
    reason = "a later revision of the protocol subscribes otherwise; today's servers do so"
)]

mod listing;
mod reading;
mod views;

pub use reading::{Completing, GivenPrompt, PromptMessage, Reference};
pub use views::GivenView;

use std::time::Duration;

use rmcp::model::{ClientRequest, SubscribeRequest, SubscribeRequestParams};

use tokio::sync::mpsc;

use crate::connection::Connection;
use crate::error::Error;
use crate::tools::content::AnswerContent;
use sepal_core::domain::ServerOffer;

/// The time limit for all lists of a server.
const LISTING_LIMIT: Duration = Duration::from_secs(30);

/// The time limit for a subscription.
const SUBSCRIBING_LIMIT: Duration = Duration::from_secs(10);

/// The resources and prompts of an open connection.
pub struct Offers<'c>(&'c Connection);

impl<'c> Offers<'c> {
    /// Creates the accessor for `connection`.
    pub fn of(connection: &'c Connection) -> Self {
        Self(connection)
    }

    /// Lists everything that the server offers, bounded. A list that fails is a problem of the offer instead
    /// of an error: the rest is still valid.
    pub async fn list(&self) -> ServerOffer {
        let listing = listing::list(self.0);
        let listed = tokio::time::timeout(LISTING_LIMIT, listing).await;
        listed.unwrap_or_else(|_| ServerOffer {
            problems: vec![format!(
                "its resources and prompts were not listed within {} s",
                LISTING_LIMIT.as_secs()
            )],
            ..ServerOffer::default()
        })
    }

    /// Reads a resource; a folder may return several contents.
    pub async fn read(&self, uri: &str, limit: Duration) -> Result<Vec<AnswerContent>, Error> {
        reading::resource(self.0, uri, limit).await
    }

    /// Reads the document of a view; `None` for a resource without content.
    pub async fn view(&self, uri: &str, limit: Duration) -> Result<Option<GivenView>, Error> {
        views::view(self.0, uri, limit).await
    }

    /// Requests a prompt with its arguments.
    pub async fn prompt(
        &self,
        name: &str,
        arguments: serde_json::Map<String, serde_json::Value>,
        limit: Duration,
    ) -> Result<GivenPrompt, Error> {
        reading::prompt(self.0, name, arguments, limit).await
    }

    /// Returns possible values of an argument.
    pub async fn complete(&self, of: &Completing, limit: Duration) -> Result<Vec<String>, Error> {
        reading::complete(self.0, of, limit).await
    }

    /// Asks the server to report changes of a resource, if it can. The first caller on this connection
    /// receives the addresses of all changed resources, each once until it is subscribed again.
    pub async fn subscribe(&self, uri: &str) -> Option<mpsc::UnboundedReceiver<String>> {
        let info = self.0.peer().peer_info();
        let declared = info
            .as_ref()
            .and_then(|info| info.capabilities.resources.as_ref());
        if declared.is_none_or(|resources| resources.subscribe != Some(true)) {
            return None;
        }
        // Before the answer: a change may come with it.
        let changes = self.0.resources().watch(uri);
        if self.0.listens_for(uri) {
            return changes;
        }
        let params = SubscribeRequestParams::new(uri);
        let request = ClientRequest::SubscribeRequest(SubscribeRequest::new(params));
        let answer = self.0.answer(request, SUBSCRIBING_LIMIT).await;
        // The receiver of the changes serves other resources too, so it is returned even after a failure.
        if let Err(error) = answer {
            tracing::debug!(%error, "A resource was not subscribed");
        }
        changes
    }
}
