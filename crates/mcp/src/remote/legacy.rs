//! Implements the HTTP with SSE of revision 2024-11-05: `GET` opens a stream whose first event names the
//! address for posts, and all messages of the server come on that stream. The stream cannot be resumed: when
//! it ends, the MCP session ends, and the outcome of its calls is unknown.

use std::borrow::Cow;

use futures::StreamExt as _;
use reqwest::header::ACCEPT;
use rmcp::RoleClient;
use rmcp::model::ServerJsonRpcMessage;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::common::client_side_sse::BoxedSseResponse;
use rmcp::transport::common::http_header::EVENT_STREAM_MIME_TYPE;
use tokio::sync::mpsc;
use url::Url;

use super::authorizer::Sending;
use super::events::events;
use super::exchange::{Headers, asked, is, kind, moved, read_refusal, refused};
use super::failure::{Error, Failure};
use super::lifecycle::{MAX_REDIRECTS, has_origin};
use crate::wire::pending::Pending;

/// The event that names the address for posts.
const ENDPOINT: &str = "endpoint";
/// The type of message events; also the default of events without a type.
const MESSAGE: &str = "message";

/// A connection with an open stream.
pub(crate) struct Legacy {
    client: reqwest::Client,
    sending: Sending,
    /// The address for posts, at the origin of the stream.
    endpoint: Url,
    headers: Headers,
    pending: Pending,
    /// The server's events; `None` after the end of the stream.
    events: Option<BoxedSseResponse>,
    /// Errors that the server sent in answer to a post instead of on the stream.
    refusals: (
        mpsc::UnboundedSender<ServerJsonRpcMessage>,
        mpsc::UnboundedReceiver<ServerJsonRpcMessage>,
    ),
}

impl Legacy {
    /// Opens the stream and waits for the address for posts. Has no time limit of its own.
    pub(super) async fn open(
        client: reqwest::Client,
        sending: Sending,
        url: &str,
        headers: Headers,
    ) -> Result<Self, Error> {
        let mut url = url.to_owned();
        let mut redirects = 0;
        let response = loop {
            let request = client.get(&url).header(ACCEPT, EVENT_STREAM_MIME_TYPE);
            let request = request.headers(headers.clone().into_iter().collect());
            let response = sending.send(request).await?;
            match moved(&response) {
                Some(Failure::Moved(to)) if has_origin(&url, &to) && redirects < MAX_REDIRECTS => {
                    redirects += 1;
                    url = to;
                }
                Some(moved) => return Err(moved.into()),
                None => break response,
            }
        };
        if !response.status().is_success() {
            return Err(refused(response.status(), None, None));
        }
        if !is(&response, EVENT_STREAM_MIME_TYPE) {
            return Err(Error::UnexpectedContentType(kind(&response)));
        }
        // Redirects change the base of the address.
        let base = response.url().clone();
        let pending = Pending::default();
        let mut events = events(response.bytes_stream(), pending.clone(), None);
        let endpoint = endpoint(&base, &mut events).await?;
        Ok(Self {
            client,
            sending,
            endpoint,
            headers,
            pending,
            events: Some(events),
            refusals: mpsc::unbounded_channel(),
        })
    }
}

/// Reads the address for posts from the first event.
async fn endpoint(base: &Url, events: &mut BoxedSseResponse) -> Result<Url, Error> {
    let unexpected = |text: &'static str| Error::UnexpectedServerResponse(text.into());
    while let Some(event) = events.next().await {
        let event = event?;
        if event.event.as_deref() != Some(ENDPOINT) {
            continue;
        }
        let said = event.data.unwrap_or_default();
        let endpoint = base.join(said.trim());
        let endpoint = endpoint.map_err(|_| unexpected("it says no address to post to"))?;
        // The headers hold the keys of this server; no other server gets them.
        if endpoint.origin() != base.origin() {
            return Err(unexpected(
                "it wants messages posted to another scheme, host or port than its own",
            ));
        }
        return Ok(endpoint);
    }
    Err(unexpected(
        "its stream ended before it said where to post messages",
    ))
}

impl Transport<RoleClient> for Legacy {
    type Error = Error;

    fn name() -> Cow<'static, str> {
        "http with sse".into()
    }

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Error>> + Send + 'static {
        self.pending.sent(&message);
        let pending = self.pending.clone();
        let request = self.client.post(self.endpoint.clone()).json(&message);
        let request = request.headers(self.headers.clone().into_iter().collect());
        let (said, sending) = (self.refusals.0.clone(), self.sending.clone());
        async move {
            let response = sending.send(request).await?;
            if !response.status().is_success() {
                let asked = asked(&message);
                let refusal = read_refusal(response, asked.as_ref(), &pending).await?;
                // The receiver is gone if the connection has ended.
                let _ = said.send(refusal);
            }
            // The answer comes on the stream; the response only confirms that the message was accepted.
            Ok(())
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let events = self.events.as_mut()?;
        loop {
            let event = tokio::select! {
                said = self.refusals.1.recv() => return said,
                event = events.next() => event,
            };
            match event {
                Some(Ok(event)) if is_message(event.event.as_deref()) => {
                    let data = event.data.unwrap_or_default();
                    if let Ok(message) = serde_json::from_str(&data) {
                        return Some(message);
                    }
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => {
                    tracing::info!(%error, "The stream of a server broke");
                    self.events = None;
                    return None;
                }
                None => {
                    self.events = None;
                    return None;
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), Error> {
        self.events = None;
        Ok(())
    }
}

fn is_message(kind: Option<&str>) -> bool {
    kind.is_none_or(|kind| kind.is_empty() || kind == MESSAGE)
}
