//! Handles requests of a view to its server. The journal names that server, by the view's call; the client
//! that passes the request on does not choose it.

use serde_json::json;

use super::views::MAX_WAIT;
use super::{MAX_URI, SessionOffers, refused};
use crate::agent::request::ViewRequest;
use crate::agent::sessions::{Page, Sessions, may_act};
use crate::domain::{CallId, Caller, Code, Holder, SessionKey};
use crate::mcp::{AnswerContent, Offers};
use crate::session::{Event, Refusal};

/// Shown events per read.
const PAGE: usize = 500;
/// The most by which the journal's clock may place a call's start before the time in its id.
const SKEW_MS: i64 = 60_000;
/// The most bytes of all contents of a resource that a view reads.
const MAX_READ_BYTES: usize = 2 * 1024 * 1024;

/// A content of a resource that a view reads.
#[derive(Debug, Clone, PartialEq)]
pub struct ViewContent {
    pub uri: String,
    /// The MIME type that the server gives.
    pub mime_type: Option<String>,
    pub body: ViewBody,
}

/// The body of such a content.
#[derive(Debug, Clone, PartialEq)]
pub enum ViewBody {
    Text(String),
    Bytes(Vec<u8>),
}

impl SessionOffers<'_> {
    /// Reads a resource for the view of a call, from that call's server, over the session's own connection.
    /// Nothing of it is stored.
    pub async fn read_for_view(
        &self,
        key: &SessionKey,
        caller: &Caller,
        call: &CallId,
        uri: &str,
    ) -> Result<Vec<ViewContent>, Refusal> {
        may_act(caller)?;
        if uri.is_empty() || uri.len() > MAX_URI {
            let text = format!("the address of a resource has 1 to {MAX_URI} bytes");
            return Err(Refusal::of_field(Code::InvalidArguments, "uri", text));
        }
        let (server, _) = whose(self.0, key, caller, call).await?;
        let _share = self.0.attachments().begin(Holder {
            tenant: caller.tenant.id.clone(),
            user: caller.user.id.clone(),
        })?;

        let opened = self
            .open(
                key,
                caller,
                &server,
                "resources/read",
                json!({ "uri": uri }),
            )
            .await?;
        let offers = Offers::of(&opened.held.connection);
        let contents = offers.read(uri, opened.limit.min(MAX_WAIT)).await;
        let contents = contents.map_err(|error| refused(&server, &error))?;
        let mut room = MAX_READ_BYTES;
        let pieces = contents.into_iter().map(|content| {
            let piece = piece(content, uri);
            let bytes = match &piece.body {
                ViewBody::Text(text) => text.len(),
                ViewBody::Bytes(bytes) => bytes.len(),
            };
            room = room.checked_sub(bytes).ok_or_else(too_large)?;
            Ok(piece)
        });
        pieces.collect()
    }
}

fn piece(content: AnswerContent, read_from: &str) -> ViewContent {
    let of = |uri: Option<String>, mime_type, body| ViewContent {
        uri: uri.unwrap_or_else(|| read_from.to_owned()),
        mime_type,
        body,
    };
    match content {
        AnswerContent::Resource {
            uri,
            mime_type,
            text,
        } => of(Some(uri), mime_type, ViewBody::Text(text)),
        AnswerContent::File(file) => of(file.uri, file.mime_type, ViewBody::Bytes(file.bytes)),
        AnswerContent::Text(text) => of(None, None, ViewBody::Text(text)),
        AnswerContent::Link(link) => of(Some(link.uri.clone()), None, ViewBody::Text(link.uri)),
    }
}

fn too_large() -> Refusal {
    let text = format!("the resource has more than {MAX_READ_BYTES} bytes, which a view may read");
    Refusal::of_field(Code::TooLarge, "uri", text)
}

/// Fills in the tool's server and the name of the view's call.
pub(in crate::agent::sessions) async fn find_view(
    sessions: &Sessions,
    key: &SessionKey,
    caller: &Caller,
    asked: &mut ViewRequest,
) -> Result<(), Refusal> {
    let found = whose(sessions, key, caller, &asked.origin.call).await?;
    (asked.at.server, asked.origin.tool) = found;
    Ok(())
}

/// Returns server and tool of a call of the session that has a view.
pub(super) async fn whose(
    sessions: &Sessions,
    key: &SessionKey,
    caller: &Caller,
    call: &CallId,
) -> Result<(String, String), Refusal> {
    let since = stamp(call).ok_or_else(|| unknown(call))?;
    let joined = sessions.join(key, caller).await?;
    let mut before = joined.view.seq.saturating_add(1);
    loop {
        let page = Page::Before(before);
        let events = sessions.page(key, caller, page, PAGE).await?;
        let mut started = events
            .iter()
            .rev()
            .filter_map(|shown| match_view(&shown.event, call));
        if let Some((server, name)) = started.next() {
            return Ok((server.to_owned(), name.to_owned()));
        }
        let oldest = events.first().ok_or_else(|| unknown(call))?;
        if oldest.at.0.saturating_add(SKEW_MS) < since {
            return Err(unknown(call));
        }
        before = oldest.seq;
    }
}

/// Returns server and tool of the call, if the event is its start and it has a view.
fn match_view<'e>(event: &'e Event, id: &CallId) -> Option<(&'e str, &'e str)> {
    if let Event::Started {
        call,
        name,
        server,
        view: Some(_),
        ..
    } = event
        && call == id
    {
        Some((server, name))
    } else {
        None
    }
}

/// The timestamp in milliseconds in a call's id.
fn stamp(call: &CallId) -> Option<i64> {
    call.as_str().split('_').nth(1)?.parse().ok()
}

fn unknown(call: &CallId) -> Refusal {
    let text = format!("no call `{call}` of this session has a view");
    Refusal::of_field(Code::NoSuchCall, "callId", text)
}
