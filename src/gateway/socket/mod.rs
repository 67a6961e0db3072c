//! The Socket.IO door: handshake, commands in order, events without a gap.

mod batch;
mod commands;
#[cfg(test)]
mod fuzz;
mod handshake;
mod inbound;
mod news;
mod pump;
mod seat;
mod send;
mod told;

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{OriginalUri, Request};
use axum::http::{HeaderValue, Uri};
use serde_json::{Value, json};
use socketioxide::SocketIo;
use socketioxide::extract::{Extension, SocketRef};
use socketioxide::handler::ConnectHandler as _;
use socketioxide::layer::SocketIoLayer;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::pump::Pump;
use self::seat::{Seat, Seats};
use super::GatewayState;
use super::wire::{self, Refused};
use crate::domain::Code;
use crate::session::Refusal;

/// Where Socket.IO answers.
pub(super) const PATH: &str = "/socket.io";
/// Packets that may wait for one slow client; the rest waits in the journal.
const SEND_BUFFER: usize = 256;
/// How often a socket's right to be here is checked without a command.
const RECHECK: Duration = Duration::from_secs(30);

/// Limits and times of sockets; `None` = no limit.
#[derive(Debug, Clone)]
pub struct SocketSettings {
    /// Time between two heartbeats.
    pub ping_interval: Duration,
    /// Time that a client has to answer one.
    pub ping_timeout: Duration,
    /// Bytes of one packet, on websocket and polling.
    pub frame_bytes: usize,
    /// Unanswered commands of one socket.
    pub commands_per_socket: Option<usize>,
    /// Open sockets of one user.
    pub sockets_per_user: Option<usize>,
    /// Open sockets in all.
    pub sockets: Option<usize>,
    /// Failed handshakes per minute and address.
    pub connects_per_minute: Option<u32>,
}

/// What every socket shares.
struct Doors {
    state: GatewayState,
    settings: SocketSettings,
    seats: Arc<Seats>,
    /// Sandbox, storage, version and limits, as `system:ready` says them.
    installation: Value,
    tasks: TaskTracker,
    stop: CancellationToken,
}

/// Builds the layer that answers below `/socket.io`. Call [`SocketIo::close`] when stopping: a
/// pending long poll holds the server otherwise.
pub fn layer(
    state: GatewayState,
    settings: SocketSettings,
    installation: &Value,
    (tasks, stop): (TaskTracker, CancellationToken),
) -> (SocketIoLayer, SocketIo) {
    let (layer, io) = SocketIo::builder()
        .ping_interval(settings.ping_interval)
        .ping_timeout(settings.ping_timeout)
        .max_payload(settings.frame_bytes as u64)
        .ws_max_message_size(settings.frame_bytes)
        .ws_max_frame_size(settings.frame_bytes)
        .max_buffer_size(SEND_BUFFER)
        .connect_timeout(Duration::from_secs(10))
        .build_layer();
    let mut installation = installation.clone();
    if let Some(map) = installation.as_object_mut() {
        let limits = json!({
            "frameBytes": settings.frame_bytes,
            "commandsPerSocket": settings.commands_per_socket,
        });
        map.insert("limits".into(), limits);
    }
    let seats = Arc::new(Seats::new(&settings));
    let doors = Arc::new(Doors {
        state,
        settings,
        seats,
        installation,
        tasks,
        stop,
    });
    let (entry, connected) = (Arc::clone(&doors), doors);
    let enter = async move |socket: SocketRef, auth| handshake::enter(&entry, &socket, auth).await;
    let on_connect = async move |socket: SocketRef, Extension(seat): Extension<Arc<Seat>>| {
        let doors = Arc::clone(&connected);
        connected.tasks.spawn(serve(doors, socket, seat));
    };
    io.ns("/", on_connect.with(enter));
    (layer, io)
}

/// A request of a socket with headers and address of its own: the library keeps them as long as the
/// client is connected, and as they come they hold the whole buffer that they were read into.
pub fn detach(mut request: Request) -> Request {
    if !request.uri().path().starts_with(PATH) {
        return request;
    }
    request.extensions_mut().remove::<OriginalUri>();
    // What was parsed once can be parsed again; if not, the buffer stays.
    if let Ok(uri) = Uri::try_from(request.uri().to_string()) {
        *request.uri_mut() = uri;
    }
    for value in request.headers_mut().values_mut() {
        if let Ok(mut own) = HeaderValue::from_bytes(value.as_bytes()) {
            own.set_sensitive(value.is_sensitive());
            *value = own;
        }
    }
    request
}

/// One socket from `system:ready` to its end.
async fn serve(doors: Arc<Doors>, socket: SocketRef, seat: Arc<Seat>) {
    let Some(mut inbox) = seat.take_inbox() else {
        return;
    };
    let caller = &seat.entered.caller;
    // What is needed for a moment only lies in boxes: this task waits with thousands of its kind.
    let joined = match Box::pin(doors.state.sessions.join(&seat.key, caller)).await {
        Ok(joined) => Box::new(joined),
        Err(refusal) => return Box::pin(dismiss(&socket, &refusal)).await,
    };
    let (tenant, choice) = (&caller.tenant.id, &joined.view.model);
    if let Some(refusal) = doors.state.providers.missing_key(tenant, choice) {
        return Box::pin(dismiss(&socket, &refusal)).await;
    }
    let (resume, resumes) = tokio::sync::mpsc::channel(4);
    let mut pump = Pump::new(
        Arc::clone(&doors),
        socket.clone(),
        Arc::clone(&seat),
        resumes,
    );
    let end = tokio::select! {
        () = seat.gone.cancelled() => return,
        () = doors.stop.cancelled() => Some(stopping()),
        end = revoked(&doors, &seat) => Some(end),
        () = news::run(&doors, &socket, &seat) => return,
        end = pump.run(joined) => end,
        end = commands::run(&doors, &socket, &seat, (&mut inbox, &resume)) => end,
    };
    if let Some(refusal) = end {
        Box::pin(dismiss(&socket, &refusal)).await;
    }
}

/// Ends when the person may no longer be here.
async fn revoked(doors: &Doors, seat: &Seat) -> Refusal {
    let mut revocations = doors.state.tenancy.revocations();
    loop {
        let is_concerned = tokio::select! {
            revoked = revocations.recv() => match revoked {
                Ok(revoked) => revoked.concerns(&seat.entered),
                Err(_) => true,
            },
            () = tokio::time::sleep(RECHECK) => true,
        };
        if is_concerned && !Box::pin(seat.is_still_valid(&doors.state.tenancy)).await {
            return Refusal::new(Code::Unauthorized, "the sign-in has ended; sign in again");
        }
    }
}

/// Says why, then disconnects.
async fn dismiss(socket: &SocketRef, refusal: &Refusal) {
    let refused: Refused = wire::refused(refusal);
    let frame = wire::frame(
        "error",
        &[
            &refused.message,
            &json!({
                "code": refused.code, "category": refused.category, "requestId": refused.request_id,
            }),
        ],
    );
    if send::emit(socket, &frame).await.is_ok() {
        let _ = socket.clone().disconnect();
    }
}

fn stopping() -> Refusal {
    Refusal::new(
        Code::ServerStopping,
        "the server is stopping; connect again in a moment",
    )
}

#[cfg(test)]
mod tests {
    use axum::body::{Body, Bytes};
    use axum::extract::{OriginalUri, Request};
    use axum::http::{HeaderValue, Uri};

    use super::detach;

    #[test]
    fn a_request_of_a_socket_holds_nothing_of_the_buffer_it_was_read_into() {
        let buffer = Bytes::from(b"/socket.io/?EIO=4 some agent".to_vec());
        let uri = Uri::from_maybe_shared(buffer.slice(..17)).unwrap();
        let mut agent = HeaderValue::from_maybe_shared(buffer.slice(18..)).unwrap();
        agent.set_sensitive(true);
        let mut request = Request::new(Body::empty());
        request.extensions_mut().insert(OriginalUri(uri.clone()));
        *request.uri_mut() = uri;
        request.headers_mut().insert("user-agent", agent);
        assert!(!buffer.is_unique());

        let request = detach(request);
        assert!(buffer.is_unique());
        assert_eq!(request.uri(), "/socket.io/?EIO=4");
        assert_eq!(request.headers()["user-agent"], "some agent");
        assert!(request.headers()["user-agent"].is_sensitive());
    }

    #[test]
    fn other_requests_stay_as_they_are() {
        let buffer = Bytes::from(b"/api/sessions".to_vec());
        let mut request = Request::new(Body::empty());
        *request.uri_mut() = Uri::from_maybe_shared(buffer.clone()).unwrap();
        let request = detach(request);
        assert_eq!(request.uri(), "/api/sessions");
        assert!(!buffer.is_unique());
    }
}
