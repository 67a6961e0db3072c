//! The live doors: Socket.IO (handshakes, commands in order, and events without gaps), and the same events as
//! server-sent events.

mod batch;
mod commands;
mod connection;
mod delivered_answer;
#[cfg(test)]
mod fuzz;
mod handshake;
mod list;
mod pump;
mod recipient;
pub(super) mod stream;
mod watch;

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{ConnectInfo, Request};
use axum::http::{HeaderValue, Uri};
use hyper::upgrade::OnUpgrade;
use serde_json::{Value, json};
use socketioxide::extract::{Extension, SocketRef};
use socketioxide::handler::ConnectHandler as _;
use socketioxide::layer::SocketIoLayer;
use socketioxide::{ParserConfig, SocketIo};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::connection::registry::Connections;
use self::connection::send::Client;
use self::connection::{Connection, End, Shows};
use self::pump::Pump;
use self::recipient::Recipient as _;
use super::GatewayState;
use super::wire::{self, Frame, RefusalPayload};
use crate::domain::{Code, Most};
use crate::session::Refusal;

/// The path of Socket.IO.
pub(super) const PATH: &str = "/socket.io";
/// The maximum number of packets in the send buffer of one client; further events wait in the journal.
const SEND_BUFFER: usize = 256;
/// The maximum number of attachments that are read of one message, in order to refuse it with an error.
const MOST_ATTACHMENTS: usize = 8;
/// The size of each websocket's read buffer in bytes: clients send little.
const READ_BUFFER: usize = 256;

/// Limits and times of sockets; `None` means no limit.
#[derive(Debug, Clone)]
pub struct SocketSettings {
    /// The time between two heartbeats.
    pub ping_interval: Duration,
    /// The time that a client has to answer a heartbeat.
    pub ping_timeout: Duration,
    /// The maximum bytes of one packet, on websocket and polling.
    pub frame_bytes: usize,
    /// The maximum number of unanswered commands of one socket.
    pub commands_per_socket: Option<usize>,
    /// The maximum bytes of the commands that wait for one socket.
    pub waiting_bytes_per_socket: Option<usize>,
    /// The maximum bytes of the commands that wait, per user, per tenant, and in all.
    pub waiting_bytes: Most,
    /// The maximum number of open sockets, per user, per tenant, and in all.
    pub sockets: Most,
    /// The maximum number of failed handshakes per minute and address.
    pub connects_per_minute: Option<u32>,
}

/// The open sockets and event streams of this gateway, with their limits. Clones share everything.
#[derive(Clone)]
pub struct LiveConnections {
    settings: SocketSettings,
    connections: Arc<Connections>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl LiveConnections {
    /// Creates the registry; connections end when `stop` is cancelled.
    pub fn new(settings: SocketSettings, tasks: TaskTracker, stop: CancellationToken) -> Self {
        Self {
            connections: Arc::new(Connections::new(&settings)),
            settings,
            tasks,
            stop,
        }
    }

    /// Returns the tracker of tasks that a stop waits for.
    pub(super) fn tasks(&self) -> &TaskTracker {
        &self.tasks
    }
}

/// The state that all sockets and event streams share.
struct SocketContext {
    state: GatewayState,
    settings: SocketSettings,
    connections: Arc<Connections>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl SocketContext {
    fn of(state: &GatewayState) -> Self {
        let LiveConnections {
            settings,
            connections,
            tasks,
            stop,
        } = state.live.clone();
        Self {
            state: state.clone(),
            settings,
            connections,
            tasks,
            stop,
        }
    }

    /// Returns the installation's part of `system:ready`: sandbox, storage, version and limits.
    fn installation(&self) -> Value {
        let system = self.state.system.now();
        json!({
            "version": system.version,
            "sandbox": system.sandbox,
            "storage": { "kind": system.storage.kind },
            "limits": {
                "frameBytes": self.settings.frame_bytes,
                "commandsPerSocket": self.settings.commands_per_socket,
            },
        })
    }
}

/// Builds the layer that answers below `/socket.io`. Call [`SocketIo::close`] when stopping: otherwise a
/// pending long poll keeps the server open.
pub fn layer(state: &GatewayState) -> (SocketIoLayer, SocketIo) {
    let context = Arc::new(SocketContext::of(state));
    let settings = &context.settings;
    let (layer, io) = SocketIo::builder()
        .ping_interval(settings.ping_interval)
        .ping_timeout(settings.ping_timeout)
        .max_payload(settings.frame_bytes as u64)
        .ws_max_message_size(settings.frame_bytes)
        .ws_max_frame_size(settings.frame_bytes)
        .max_buffer_size(SEND_BUFFER)
        // No command takes attachments, and the library buffers them until the last one has arrived.
        .with_parser(
            ParserConfig::common()
                .max_incoming_binaries(MOST_ATTACHMENTS)
                .max_incoming_binary_buf_size(settings.frame_bytes),
        )
        .ws_read_buffer_size(READ_BUFFER)
        .connect_timeout(Duration::from_secs(10))
        .build_layer();
    context.tasks.spawn(watch::run(Arc::clone(&context)));
    let listed = Arc::clone(&context);
    let (entry, connected) = (Arc::clone(&context), context);
    let enter = async move |socket: SocketRef, auth| handshake::enter(&entry, &socket, auth).await;
    let on_connect =
        async move |socket: SocketRef, Extension(connection): Extension<Arc<Connection>>| {
            let Some(client) = Client::of(socket) else {
                return tracing::error!("A socket without a companion is not served");
            };
            // Frames for a websocket are sent in the same poll of its task.
            let companion = client.companion().clone();
            let serving = serve(Arc::clone(&connected), client, connection);
            companion.give(Box::pin(connected.tasks.track_future(serving)));
        };
    io.ns("/", on_connect.with(enter));
    list::open(&io, &listed);
    (layer, io)
}

/// Gives a socket's request its own copies of headers and address, and drops the extensions of routing: the
/// library keeps the request as long as the client is connected, and headers share the whole buffer that
/// they were read into.
pub fn detach(mut request: Request) -> Request {
    if !request.uri().path().starts_with(PATH) {
        return request;
    }
    let mut passed = std::mem::take(request.extensions_mut());
    let kept = request.extensions_mut();
    if let Some(peer) = passed.remove::<ConnectInfo<SocketAddr>>() {
        kept.insert(peer);
    }
    if let Some(upgrade) = passed.remove::<OnUpgrade>() {
        kept.insert(upgrade);
    }
    // A URI that was parsed once can be parsed again; otherwise the buffer stays.
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

/// Serves one socket from `system:ready` to its end.
async fn serve(context: Arc<SocketContext>, client: Client, connection: Arc<Connection>) {
    let caller = &connection.entered.caller;
    let Shows::Session(key) = &connection.shows else {
        return;
    };
    // Short-lived state is boxed, because thousands of these tasks wait at the same time.
    let joined = match Box::pin(context.state.sessions.join(key, caller)).await {
        Ok(joined) => Box::new(joined),
        Err(refusal) => return Box::pin(dismiss(&client, &refusal)).await,
    };
    let (tenant, choice) = (&caller.tenant.id, &joined.view.model);
    if let Some(refusal) = context.state.providers.missing_key(tenant, choice) {
        return Box::pin(dismiss(&client, &refusal)).await;
    }
    let journal = &joined.view.journal;
    let mut pump = Pump::new(&context, &client, &connection, key, journal);
    let aside = pin!(async {
        tokio::select! {
            biased;
            end = connection.ends.next() => end,
            end = commands::run(&context, &client, &connection, key) => End::Told(end),
        }
    });
    let end = tokio::select! {
        // Commands first: a resume point that a command sets is then seen in the same poll.
        biased;
        end = aside => end,
        end = pump.run(joined) => end,
    };
    match end {
        End::Gone => {}
        End::Told(refusal) => Box::pin(dismiss(&client, &refusal)).await,
    }
}

/// Sends the reason, then disconnects.
async fn dismiss(client: &Client, refusal: &Refusal) {
    if client.emit(&farewell(refusal), None).await.is_ok() {
        client.disconnect();
    }
}

/// Returns the frame that tells why a connection ends.
fn farewell(refusal: &Refusal) -> Frame {
    let refused: RefusalPayload = wire::refused(refusal);
    wire::frame(
        "error",
        &[
            &refused.message,
            &json!({
                "code": refused.code, "category": refused.category, "requestId": refused.request_id,
            }),
        ],
    )
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
    use std::net::SocketAddr;

    use axum::extract::{ConnectInfo, OriginalUri, Request};
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
        let peer = ConnectInfo(SocketAddr::from(([127, 0, 0, 1], 9)));
        request.extensions_mut().insert(peer);
        assert!(!buffer.is_unique());

        let request = detach(request);
        assert!(buffer.is_unique());
        assert_eq!(request.extensions().len(), 1);
        let kept = request.extensions().get::<ConnectInfo<SocketAddr>>();
        assert_eq!(kept.map(|ConnectInfo(peer)| peer.port()), Some(9));
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
