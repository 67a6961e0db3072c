//! What servers offer beside tools: listed, read, completed and subscribed over an open connection.

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

/// How long a server may take for all its lists.
const LISTING_LIMIT: Duration = Duration::from_secs(30);

/// How long a server may take to subscribe us.
const SUBSCRIBING_LIMIT: Duration = Duration::from_secs(10);

/// The resources and prompts of an open connection.
pub struct Offers<'c>(&'c Connection);

impl<'c> Offers<'c> {
    /// Of that connection.
    pub fn of(connection: &'c Connection) -> Self {
        Self(connection)
    }

    /// All that the server says that it offers, bounded. What cannot be listed is a problem of the offer
    /// and no error: the rest holds.
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

    /// Reads a resource; several contents where it is a folder.
    pub async fn read(&self, uri: &str, limit: Duration) -> Result<Vec<AnswerContent>, Error> {
        reading::resource(self.0, uri, limit).await
    }

    /// Reads the document of a view; none for a resource without content.
    pub async fn view(&self, uri: &str, limit: Duration) -> Result<Option<GivenView>, Error> {
        views::view(self.0, uri, limit).await
    }

    /// Asks for a prompt with its arguments.
    pub async fn prompt(
        &self,
        name: &str,
        arguments: serde_json::Map<String, serde_json::Value>,
        limit: Duration,
    ) -> Result<GivenPrompt, Error> {
        reading::prompt(self.0, (name, arguments), limit).await
    }

    /// Values that an argument may have.
    pub async fn complete(&self, of: &Completing, limit: Duration) -> Result<Vec<String>, Error> {
        reading::complete(self.0, of, limit).await
    }

    /// Lets the server say when a resource changes, where it can. The first who asks over this
    /// connection gets the addresses of all that change, each once until it is asked for again.
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
        // Who hears the changes hears those of other resources too.
        if let Err(error) = answer {
            tracing::debug!(%error, "A resource was not subscribed");
        }
        changes
    }
}
