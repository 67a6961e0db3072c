//! Sends one request to a server over HTTP and reads its answer.
//!
//! rmcp's own client loses information that a person needs: the size of an answer that was too large, and the
//! call to which an error with the `id` null belongs. Here the answer to a POST always belongs to the posted
//! request.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION};
use reqwest::{RequestBuilder, Response, StatusCode};
use rmcp::model::{ClientJsonRpcMessage, JsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::transport::common::client_side_sse::BoxedSseResponse;
use rmcp::transport::common::http_header::{
    EVENT_STREAM_MIME_TYPE, HEADER_LAST_EVENT_ID, HEADER_SESSION_ID, JSON_MIME_TYPE,
};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, StreamableHttpClient, StreamableHttpPostResponse,
};

use super::authorizer::Sending;
use super::events::events;
use super::failure::{Error, Failure};
use super::refusal::Refusal;
use crate::wire::lenient;
use crate::wire::message;
use crate::wire::oversized::{MAX_COUNTED_BYTES, MAX_MESSAGE_BYTES, Size, answer};
use crate::wire::pending::Pending;

/// Most bytes of a refusal that are read.
const MAX_REFUSAL_BYTES: usize = 64 * 1024;
/// The time for which the bytes of an answer that is too large are counted.
const COUNTING_LIMIT: Duration = Duration::from_secs(2);

/// The HTTP client that rmcp sends through.
#[derive(Clone)]
pub(crate) struct Exchange {
    pub(super) client: reqwest::Client,
    pub(super) sending: Sending,
    pub(super) pending: Pending,
}

pub(super) type Headers = HashMap<HeaderName, HeaderValue>;

impl StreamableHttpClient for Exchange {
    type Error = Failure;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Error> {
        self.pending.sent(&message);
        let request = self.client.post(&*uri).json(&message);
        let request = with_headers(request, session_id.as_deref(), custom_headers);
        let asked = asked(&message);
        let answered = async {
            let response = self.sending.send(request).await?;
            let asked = (asked.clone(), &self.pending);
            read(response, asked, session_id.is_some()).await
        };
        let answered = answered.await;
        if let (Err(_), Some(asked)) = (&answered, &asked) {
            self.pending.take_own(asked);
        }
        answered
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        _auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<(), Error> {
        let request = with_headers(self.client.delete(&*uri), Some(&session_id), custom_headers);
        let response = self.sending.send(request).await?;
        // Many servers do not support ending a session.
        if response.status() != StatusCode::METHOD_NOT_ALLOWED {
            response.error_for_status().map_err(Failure::Client)?;
        }
        Ok(())
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<BoxedSseResponse, Error> {
        let request = with_headers(
            self.client.get(&*uri),
            session_id.as_deref(),
            custom_headers,
        );
        let request = match last_event_id {
            Some(id) => request.header(HEADER_LAST_EVENT_ID, id),
            None => request,
        };
        let response = self.sending.send(request).await?;
        match response.status() {
            StatusCode::METHOD_NOT_ALLOWED => Err(Error::ServerDoesNotSupportSse),
            // Another attempt would not change the credentials.
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(Error::AuthRequired(
                AuthRequiredError::new(response.status().to_string()),
            )),
            status if !status.is_success() => Err(refused(status, None, None)),
            _ if is(&response, EVENT_STREAM_MIME_TYPE) => {
                Ok(events(response.bytes_stream(), self.pending.clone(), None))
            }
            _ => Err(Error::UnexpectedContentType(kind(&response))),
        }
    }
}

fn with_headers(
    request: RequestBuilder,
    session: Option<&str>,
    headers: Headers,
) -> RequestBuilder {
    let takes = [EVENT_STREAM_MIME_TYPE, JSON_MIME_TYPE].join(", ");
    let request = request.header(ACCEPT, takes);
    let request = match session {
        Some(session) => request.header(HEADER_SESSION_ID, session),
        None => request,
    };
    request.headers(headers.into_iter().collect())
}

/// Returns the id of a request; `None` for messages that are not answered.
pub(super) fn asked(message: &ClientJsonRpcMessage) -> Option<RequestId> {
    match message {
        JsonRpcMessage::Request(request) => Some(request.id.clone()),
        JsonRpcMessage::Response(_)
        | JsonRpcMessage::Notification(_)
        | JsonRpcMessage::Error(_) => None,
    }
}

/// Reads the answer to a posted message.
async fn read(
    response: Response,
    (asked, pending): (Option<RequestId>, &Pending),
    had_session: bool,
) -> Result<StreamableHttpPostResponse, Error> {
    let status = response.status();
    if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
        return Ok(StreamableHttpPostResponse::Accepted);
    }
    if status == StatusCode::NOT_FOUND && had_session {
        return Err(Error::SessionExpired);
    }
    if let Some(moved) = moved(&response) {
        return Err(moved.into());
    }
    let session = response.headers().get(HEADER_SESSION_ID);
    let session = session
        .and_then(|id| id.to_str().ok())
        .map(ToOwned::to_owned);
    if !status.is_success() {
        let error = read_refusal(response, asked.as_ref(), pending).await?;
        return Ok(StreamableHttpPostResponse::Json(error, session));
    }
    if is(&response, EVENT_STREAM_MIME_TYPE) {
        let events = events(response.bytes_stream(), pending.clone(), asked);
        return Ok(StreamableHttpPostResponse::Sse(events, session));
    }
    let Some(asked) = asked else {
        // A notification has no answer to wait for.
        return Ok(StreamableHttpPostResponse::Accepted);
    };
    let kind = kind(&response);
    let is_json = is(&response, JSON_MIME_TYPE);
    let message = match read_body(response, MAX_MESSAGE_BYTES).await? {
        // Some servers send their messages under another type, or under none.
        Ok(body) => match message::read(&body, pending, Some(&asked)) {
            Some(message) => message,
            None if is_json => {
                let text = "its answer is no message".into();
                return Err(Error::UnexpectedServerResponse(text));
            }
            None => return Err(Error::UnexpectedContentType(kind)),
        },
        Err(size) => {
            pending.take_own(&asked);
            answer(asked, size)
        }
    };
    Ok(StreamableHttpPostResponse::Json(message, session))
}

/// Returns the new address of the server, if the answer is a redirect. The query of another origin is left
/// out: it is shown, and may hold a key.
pub(super) fn moved(response: &Response) -> Option<Failure> {
    let is_redirect = matches!(
        response.status(),
        StatusCode::MOVED_PERMANENTLY
            | StatusCode::TEMPORARY_REDIRECT
            | StatusCode::PERMANENT_REDIRECT
    );
    let to = response.headers().get(LOCATION).filter(|_| is_redirect)?;
    let mut to = response.url().join(to.to_str().ok()?.trim()).ok()?;
    to.set_fragment(None);
    if to.origin() != response.url().origin() {
        to.set_query(None);
    }
    Some(Failure::Moved(to.into()))
}

/// Returns the JSON-RPC error of an answer with a failure status, if it names the posted request: then it
/// comes from the server itself. Anything else may come from an intermediary and becomes an `Err`.
pub(super) async fn read_refusal(
    response: Response,
    asked: Option<&RequestId>,
    pending: &Pending,
) -> Result<ServerJsonRpcMessage, Error> {
    let status = response.status();
    // An unreadable body counts as empty; the status still says that the request failed.
    let body = read_body(response, MAX_REFUSAL_BYTES).await;
    let body = body.ok().and_then(Result::ok).unwrap_or_default();
    let said = lenient::parse(&body).ok();
    let is_auth = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    let id = said.as_ref().and_then(|said| said.get("id"));
    if !is_auth
        && id.is_some_and(|id| !id.is_null())
        && let Some(JsonRpcMessage::Error(error)) = message::read(&body, pending, None)
        && error.id.as_ref() == asked
    {
        return Ok(JsonRpcMessage::Error(error));
    }
    let said = said.as_ref().map(|said| said.get("error").unwrap_or(said));
    let code = said.and_then(|said| said.get("code")?.as_i64());
    let words = match said {
        Some(said) => lenient::words(said),
        // The page of a proxy says nothing that its status does not say.
        None => String::from_utf8(body)
            .ok()
            .filter(|text| !text.trim().is_empty() && !text.contains('<')),
    };
    Err(refused(status, code, words.as_deref()))
}

pub(super) fn refused(status: StatusCode, code: Option<i64>, words: Option<&str>) -> Error {
    Failure::Refused(Refusal::new(status, code, words)).into()
}

/// Returns the body, or its size if it is larger than `most`.
async fn read_body(response: Response, most: usize) -> Result<Result<Vec<u8>, Size>, Error> {
    let said = response
        .content_length()
        .filter(|bytes| *bytes > most as u64);
    if let Some(bytes) = said {
        let is_more = false;
        return Ok(Err(Size { bytes, is_more }));
    }
    let mut body = Vec::new();
    let mut pieces = response.bytes_stream();
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(Failure::Client)?;
        if body.len() + piece.len() > most {
            let mut bytes = (body.len() + piece.len()) as u64;
            let counting = async {
                while bytes <= MAX_COUNTED_BYTES {
                    match pieces.next().await {
                        Some(Ok(piece)) => bytes += piece.len() as u64,
                        Some(Err(_)) => return false,
                        None => return true,
                    }
                }
                false
            };
            let is_whole = tokio::time::timeout(COUNTING_LIMIT, counting).await;
            let is_more = is_whole != Ok(true);
            return Ok(Err(Size { bytes, is_more }));
        }
        body.extend_from_slice(&piece);
    }
    Ok(Ok(body))
}

pub(super) fn is(response: &Response, kind: &str) -> bool {
    let header = response.headers().get(CONTENT_TYPE);
    let begins = |header: &HeaderValue| {
        let begin = header.as_bytes().get(..kind.len());
        begin.is_some_and(|begin| begin.eq_ignore_ascii_case(kind.as_bytes()))
    };
    header.is_some_and(begins)
}

pub(super) fn kind(response: &Response) -> Option<String> {
    let header = response.headers().get(CONTENT_TYPE)?;
    Some(String::from_utf8_lossy(header.as_bytes()).into_owned())
}
