//! Serves the transcript of a session in pages. The events are those of the socket.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use super::key_of;
use crate::agent::{Page, ShownEvent};
use crate::domain::{Caller, Code};
use crate::gateway::GatewayState;
use crate::gateway::error::{ApiError, Problem};
use crate::gateway::extract::{Query, SessionPath};
use crate::gateway::wire;

const PAGE: usize = 100;
const MAX_PAGE: usize = 500;
/// The largest whole number that every client reads exactly (2^53 - 1).
const MAX_SEQ: u64 = (1 << 53) - 1;

/// A page of a transcript.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway::http) struct EventsPage {
    /// The events, oldest first. One `seq` may have two items: an output and its error.
    #[schema(value_type = Vec<EventItem>)]
    items: Vec<Value>,
    /// The `seq` from which to continue in the same direction; `null` if there are no more events.
    next_cursor: Option<String>,
}

/// An event, as the socket sends it.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes what `wire::transcript_items` writes")]
pub(in crate::gateway::http) struct EventItem {
    /// The event's position in the session.
    seq: u64,
    /// When the event happened (RFC 3339).
    at: String,
    /// The event's name.
    event: String,
    /// The event's arguments.
    args: Vec<Value>,
}

/// The part of the transcript to read.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::gateway::http) struct EventsQuery {
    /// Selects events after this `seq`; 0 is the beginning.
    #[param(minimum = 0, maximum = 9_007_199_254_740_991_u64)]
    after: Option<u64>,
    /// Selects events just before this `seq`; together with `after`, the events between the two.
    #[param(minimum = 0, maximum = 9_007_199_254_740_991_u64)]
    before: Option<u64>,
    /// The number of events in the page, 1 to 500; 100 if absent.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<usize>,
}

/// Lists the events of a session.
#[utoipa::path(get, path = "/api/sessions/{id}/events", tag = "sessions",
    params(("id" = String, Path), EventsQuery),
    responses((status = 200, body = EventsPage), (status = 404, body = Problem)),
)]
pub(in crate::gateway::http) async fn list_events(
    State(state): State<GatewayState>,
    caller: Caller,
    SessionPath(session): SessionPath,
    Query(query): Query<EventsQuery>,
) -> Result<Json<EventsPage>, ApiError> {
    let (page, limit) = part(&query)?;
    let key = key_of(&caller, session);
    let mut events = state.sessions.page(&key, &caller, page, limit).await?;
    let mut next_cursor = next(page, limit, &events);
    if let (Page::After(_), Some(before)) = (page, query.before) {
        // `seq` is dense, so there is a next page only if the next `seq` is below the bound.
        events.retain(|event| event.seq < before);
        next_cursor = next_cursor.filter(|seq| seq + 1 < before);
    }
    Ok(Json(EventsPage {
        next_cursor: next_cursor.map(|seq| seq.to_string()),
        items: events.iter().flat_map(wire::transcript_items).collect(),
    }))
}

fn part(query: &EventsQuery) -> Result<(Page, usize), ApiError> {
    let wrong = |field: &str, text: &str| ApiError::of_field(Code::InvalidArguments, field, text);
    let limit = query.limit.unwrap_or(PAGE);
    if !(1..=MAX_PAGE).contains(&limit) {
        return Err(wrong("limit", "`limit` is 1 to 500"));
    }
    for (field, seq) in [("after", query.after), ("before", query.before)] {
        if seq.is_some_and(|seq| seq > MAX_SEQ) {
            return Err(wrong(field, "a `seq` is 9007199254740991 at most"));
        }
    }
    Ok(match (query.after, query.before) {
        (None, Some(before)) => (Page::Before(before), limit),
        (after, _) => (Page::After(after.unwrap_or(0)), limit),
    })
}

/// Returns the `seq` at which the next page begins, or `None` at the end. `seq` is dense, so the oldest page
/// is the one whose first event is 1.
fn next(page: Page, limit: usize, events: &[ShownEvent]) -> Option<u64> {
    match page {
        Page::After(_) if events.len() < limit => None,
        Page::After(_) => events.last().map(|event| event.seq),
        Page::Before(_) => events.first().map(|event| event.seq).filter(|seq| *seq > 1),
    }
}

#[cfg(test)]
mod tests {
    use super::{EventsQuery, next, part};
    use crate::agent::{Page, ShownEvent};
    use crate::domain::Timestamp;
    use crate::session::Event;

    #[test]
    fn a_part_is_asked_for_in_one_direction() {
        let query = |after, before, limit| {
            part(&EventsQuery {
                after,
                before,
                limit,
            })
        };
        assert_eq!(query(None, None, None).unwrap(), (Page::After(0), 100));
        assert_eq!(
            query(Some(7), None, Some(500)).unwrap(),
            (Page::After(7), 500)
        );
        assert_eq!(query(None, Some(7), Some(1)).unwrap(), (Page::Before(7), 1));
        assert_eq!(
            query(Some(1), Some(7), None).unwrap(),
            (Page::After(1), 100)
        );
        for (after, before, limit) in [
            (Some(1 << 53), None, None),
            (None, None, Some(0)),
            (None, None, Some(501)),
        ] {
            assert!(
                query(after, before, limit).is_err(),
                "{after:?} {before:?} {limit:?}"
            );
        }
    }

    #[test]
    fn the_cursor_ends_with_the_transcript() {
        let events = |range: std::ops::RangeInclusive<u64>| -> Vec<ShownEvent> {
            let event = |seq| ShownEvent {
                seq,
                at: Timestamp(0),
                event: Event::ContextReset,
            };
            range.map(event).collect()
        };
        assert_eq!(next(Page::After(0), 3, &events(1..=3)), Some(3));
        assert_eq!(next(Page::After(3), 3, &events(4..=5)), None);
        assert_eq!(next(Page::After(9), 3, &[]), None);
        assert_eq!(next(Page::Before(9), 3, &events(6..=8)), Some(6));
        assert_eq!(next(Page::Before(3), 3, &events(1..=2)), None);
        assert_eq!(next(Page::Before(1), 3, &[]), None);
    }
}
