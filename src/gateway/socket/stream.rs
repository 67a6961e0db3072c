//! Shows a session, or the caller's session list, as server-sent events. A stream is a connection like a
//! socket: it counts against the same limits, hears the same news, and ends with the caller's access. Its
//! events come from the same pump.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures::StreamExt as _;
use tokio::sync::mpsc;

use super::connection::{Connection, ConnectionTask, End, ResumePoint, Shows};
use super::pump::Pump;
use super::recipient::{ClientGone, Cursor, Recipient};
use super::{SocketContext, farewell, stopping};
use crate::domain::{Code, JournalId, SessionKey};
use crate::gateway::GatewayState;
use crate::gateway::error::ApiError;
use crate::gateway::wire::Frame;
use crate::tenancy::AuthenticatedCaller;

/// The header with the id of the last event that a reader took.
pub(in crate::gateway) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// The header that keeps nginx from collecting a response before it passes it on.
const BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
/// The maximum number of frames that wait for one reader; further events wait in the journal.
const WAITING: usize = 16;

/// The reader of an event stream.
struct Reader {
    frames: mpsc::Sender<Event>,
    /// The time after which a reader that takes nothing is cut off. It can resume from its last event.
    patience: Duration,
}

impl Recipient for Reader {
    async fn emit(&self, frame: &Frame, cursor: Option<Cursor<'_>>) -> Result<(), ClientGone> {
        let sent = self
            .frames
            .send_timeout(event(frame, cursor), self.patience);
        sent.await.map_err(|_| ClientGone)
    }
}

/// Converts a frame to a server-sent event: the same name, and the arguments as a JSON array.
fn event(frame: &Frame, cursor: Option<Cursor<'_>>) -> Event {
    let event = Event::default().event(frame.name).data(frame.arguments());
    match cursor {
        Some(Cursor { journal, seq }) => event.id(format!("{seq}.{journal}")),
        None => event,
    }
}

/// Returns the point from which a reader resumes: `Last-Event-ID`, otherwise the `after` of the address.
pub(in crate::gateway) fn resume_point(
    headers: &HeaderMap,
    after: Option<u64>,
) -> Result<Option<ResumePoint>, ApiError> {
    let Some(id) = headers.get(LAST_EVENT_ID).filter(|id| !id.is_empty()) else {
        return Ok(after.map(|seq| (seq, None)));
    };
    let point = id.to_str().ok().and_then(read_id);
    let wrong = || {
        let text = "`Last-Event-ID` has to be the `id` of an event of this stream";
        ApiError::of_field(Code::InvalidArguments, "Last-Event-ID", text)
    };
    point.map(Some).ok_or_else(wrong)
}

fn read_id(id: &str) -> Option<ResumePoint> {
    match id.split_once('.') {
        Some((seq, journal)) => Some((seq.parse().ok()?, Some(JournalId::parse(journal)?))),
        None => Some((id.parse().ok()?, None)),
    }
}

/// Shows a session from `has` on, or from its current state.
pub(in crate::gateway) async fn show_session(
    state: &GatewayState,
    entered: AuthenticatedCaller,
    key: SessionKey,
    has: Option<ResumePoint>,
) -> Result<Response, ApiError> {
    let context = SocketContext::of(state);
    if context.stop.is_cancelled() {
        return Err(stopping().into());
    }
    let place = context.connections.take(entered.caller.holder())?;
    let joined = Box::new(state.sessions.join(&key, &entered.caller).await?);
    let shows = Shows::Session(key);
    let connection = Arc::new(Connection::new(entered, shows, has, place));
    context.connections.add(&connection);
    let (reader, response) = open(&context);
    let tasks = context.tasks.clone();
    tasks.spawn(async move {
        let Shows::Session(key) = &connection.shows else {
            return;
        };
        let mut pump = Pump::new(&context, &reader, &connection, key, &joined.view.journal);
        let end = tokio::select! {
            biased;
            end = serve(&reader, &connection) => end,
            end = pump.run(joined) => end,
        };
        reader.end(&end);
    });
    Ok(response)
}

/// Shows the changes of the caller's session list.
pub(in crate::gateway) fn show_list(
    state: &GatewayState,
    entered: AuthenticatedCaller,
) -> Result<Response, ApiError> {
    let context = SocketContext::of(state);
    if context.stop.is_cancelled() {
        return Err(stopping().into());
    }
    let place = context.connections.take(entered.caller.holder())?;
    let shows = Shows::List {
        _watch: state.sessions.watch_lists(),
    };
    let connection = Arc::new(Connection::new(entered, shows, None, place));
    context.connections.add(&connection);
    let (reader, response) = open(&context);
    context.tasks.spawn(async move {
        let end = serve(&reader, &connection).await;
        reader.end(&end);
    });
    Ok(response)
}

fn open(context: &SocketContext) -> (Reader, Response) {
    let settings = &context.settings;
    let (frames, mut waiting) = mpsc::channel(WAITING);
    let events = futures::stream::poll_fn(move |cx| waiting.poll_recv(cx));
    let heartbeats = KeepAlive::new().interval(settings.ping_interval);
    let events = Sse::new(events.map(Ok::<_, Infallible>)).keep_alive(heartbeats);
    let headers = [(BUFFERING, HeaderValue::from_static("no"))];
    let reader = Reader {
        frames,
        patience: settings.ping_interval + settings.ping_timeout,
    };
    (reader, (headers, events).into_response())
}

/// Sends news until the connection has to end.
async fn serve(reader: &Reader, connection: &Connection) -> End {
    let news = pin!(async {
        loop {
            match connection.queued.next().await {
                ConnectionTask::Send(news) => {
                    if let Err(gone) = reader.emit(&news, None).await {
                        return End::from(gone);
                    }
                }
                // A stream takes no commands.
                ConnectionTask::Answer(_) | ConnectionTask::Refuse(_) => {}
            }
        }
    });
    tokio::select! {
        biased;
        end = connection.ends.next() => end,
        () = reader.frames.closed() => End::Gone,
        end = news => end,
    }
}

impl Reader {
    /// Tells why the stream ends, if the reader takes it at once; its next request is answered with the same
    /// reason.
    fn end(&self, end: &End) {
        if let End::Told(refusal) = end {
            let _ = self.frames.try_send(event(&farewell(refusal), None));
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderMap, HeaderValue};

    use super::resume_point;
    use crate::domain::JournalId;

    #[test]
    fn a_reader_resumes_from_its_last_event() {
        let journal = JournalId::from_bits(7);
        let point = |id: &str, after| {
            let mut headers = HeaderMap::new();
            headers.insert("last-event-id", HeaderValue::from_str(id).unwrap());
            resume_point(&headers, after).map_err(|error| error.into_refusal().field)
        };
        assert_eq!(point("", None), Ok(None));
        assert_eq!(point("", Some(4)), Ok(Some((4, None))));
        assert_eq!(point("12", Some(4)), Ok(Some((12, None))));
        let id = format!("12.{journal}");
        assert_eq!(point(&id, None), Ok(Some((12, Some(journal)))));
        for wrong in ["x", "-1", "12.", "12.ses_1", "1.2.3"] {
            assert!(point(wrong, None).is_err(), "{wrong}");
        }
        assert_eq!(resume_point(&HeaderMap::new(), None).ok(), Some(None));
    }
}
