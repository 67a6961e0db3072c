//! Whose view asks for a call: its server is that of the call that the view belongs to, by the journal, and
//! not by the word of whoever passes the request on.

use crate::agent::mailbox::ViewRequest;
use crate::agent::sessions::{Page, Sessions};
use crate::domain::{CallId, Caller, Code, SessionKey};
use crate::session::{Event, Refusal};

/// Shown events that are read at a time.
const PAGE: usize = 500;
/// How much later a call starts, by the journal's clock, than its id says at the least.
const SKEW_MS: i64 = 60_000;

/// Fills in the server of the tool and the name of the view's call.
pub(in crate::agent::sessions) async fn find_view(
    sessions: &Sessions,
    key: &SessionKey,
    caller: &Caller,
    asked: &mut ViewRequest,
) -> Result<(), Refusal> {
    let call = &asked.origin.call;
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
            server.clone_into(&mut asked.at.server);
            name.clone_into(&mut asked.origin.tool);
            return Ok(());
        }
        let oldest = events.first().ok_or_else(|| unknown(call))?;
        if oldest.at.0.saturating_add(SKEW_MS) < since {
            return Err(unknown(call));
        }
        before = oldest.seq;
    }
}

/// Server and tool of the call, if it started and has a view.
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

/// The millisecond in an id of a call.
fn stamp(call: &CallId) -> Option<i64> {
    call.as_str().split('_').nth(1)?.parse().ok()
}

fn unknown(call: &CallId) -> Refusal {
    let text = format!("no call `{call}` of this session has a view");
    Refusal::of_field(Code::NoSuchCall, "callId", text)
}
