//! The ws transport module is responsible for handling websocket connections
//! The only public function is [`new_req`] which is used to upgrade a http request to a websocket connection
//!
//! Other functions are used internally to handle the websocket connection through tasks and channels
//! and to handle upgrade from polling to ws

use std::{
    future::poll_fn,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use bytes::Bytes;
use futures_util::{FutureExt, SinkExt, StreamExt, task::AtomicWaker};
use http::{
    HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, header, request::Parts,
};
use smallvec::smallvec;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::{Instant, Sleep},
};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        self, Message, Utf8Bytes,
        handshake::derive_accept_key,
        protocol::{Role, WebSocketConfig},
    },
};
use tokio_util::future::FutureExt as _;

use engineioxide_core::{Packet, ProtocolVersion, Sid, Str, TransportType};

use crate::{
    Companion, DisconnectReason, Socket, body::ResponseBody, companion::Worker,
    config::EngineIoConfig, engine::EngineIo, errors::Error, handler::EngineIoHandler,
    outbox::Group, transport::make_open_packet,
};

/// Create a response for websocket upgrade
fn ws_response<B>(ws_key: &HeaderValue) -> Response<ResponseBody<B>> {
    let derived = derive_accept_key(ws_key.as_bytes());
    let sec = derived.parse::<HeaderValue>().unwrap();
    Response::builder()
        .status(StatusCode::SWITCHING_PROTOCOLS)
        .header(http::header::UPGRADE, HeaderValue::from_static("websocket"))
        .header(
            http::header::CONNECTION,
            HeaderValue::from_static("Upgrade"),
        )
        .header(http::header::SEC_WEBSOCKET_ACCEPT, sec)
        .body(ResponseBody::empty_response())
        .unwrap() // we are only using constants
}

/// Upgrade a websocket request to create a websocket connection.
///
/// If a sid is provided in the query it means that is is upgraded from an existing HTTP polling request.
/// In this case the http polling request is closed and the SID is kept for the websocket
pub fn new_req<R: Send + 'static, B, H: EngineIoHandler>(
    engine: Arc<EngineIo<H>>,
    protocol: ProtocolVersion,
    sid: Option<Sid>,
    mut req: Request<R>,
) -> Result<Response<ResponseBody<B>>, Error> {
    let upgrade = hyper::upgrade::on(&mut req);
    let (mut parts, _body) = req.into_parts();

    let ws_key = parts
        .headers
        .get(header::SEC_WEBSOCKET_KEY)
        .ok_or(Error::InvalidWebSocketKey)?
        .clone();
    parts.headers = without_upgrade(parts.headers);

    // Whatever this task is made with, it has room for as long as the client is connected.
    let parts = Box::new(parts);
    tokio::spawn(async move {
        let res = match upgrade.await.map(hyper_util::rt::TokioIo::new) {
            Ok(conn) => on_init(engine.clone(), conn, protocol, sid, parts).await,
            Err(_e) => {
                #[cfg(feature = "tracing")]
                tracing::debug!("ws upgrade error: {}", _e);
                return;
            }
        };

        match res {
            Ok(_) => {
                #[cfg(feature = "tracing")]
                tracing::debug!(?sid, "ws closed")
            }
            Err(Error::MultipleWebsocketRequests) => {}
            Err(_e) => {
                #[cfg(feature = "tracing")]
                tracing::debug!(?sid, "ws closed with error: {_e}");
                if let Some(sid) = sid {
                    engine.close_session(sid, DisconnectReason::TransportError);
                }
            }
        }
    });

    Ok(ws_response(&ws_key))
}

/// The headers of a request without those of the upgrade, with room for no more: they are kept as
/// long as the client is connected.
fn without_upgrade(headers: HeaderMap) -> HeaderMap {
    const UPGRADE: [HeaderName; 6] = [
        header::CONNECTION,
        header::UPGRADE,
        header::SEC_WEBSOCKET_KEY,
        header::SEC_WEBSOCKET_VERSION,
        header::SEC_WEBSOCKET_EXTENSIONS,
        header::SEC_WEBSOCKET_PROTOCOL,
    ];
    let count = headers
        .keys()
        .filter(|name| !UPGRADE.contains(name))
        .count();
    let mut kept = HeaderMap::with_capacity(count);
    for (name, value) in headers.iter().filter(|(name, _)| !UPGRADE.contains(name)) {
        kept.append(name.clone(), value.clone());
    }
    kept
}

/// Handle a websocket connection upgrade
///
/// Sends an open packet if it is not an upgrade from a polling request
///
/// Read packets from the websocket and handle them, it will block until the connection is closed
pub async fn on_init<H: EngineIoHandler, S>(
    engine: Arc<EngineIo<H>>,
    conn: S,
    protocol: ProtocolVersion,
    sid: Option<Sid>,
    req_data: Box<Parts>,
) -> Result<(), Error>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    // The handshake is in a box of its own: what it needs is freed before the connection waits.
    let opening = Box::pin(open(&engine, conn, protocol, sid, req_data));
    let (socket, ws) = opening.await?;
    let broken = CloseIfBroken(&engine, &socket);
    serve(&engine, ws, &socket).await;
    drop(broken);
    Ok(())
}

/// Closes the session when its task panics: nobody else would, and the client is to come again.
struct CloseIfBroken<'a, H: EngineIoHandler>(&'a Arc<EngineIo<H>>, &'a Arc<Socket<H::Data>>);

impl<H: EngineIoHandler> Drop for CloseIfBroken<'_, H> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0
                .close_session(self.1.id, DisconnectReason::TransportError);
        }
    }
}

/// Serves a websocket that was opened, to its end.
async fn serve<H: EngineIoHandler, S>(
    engine: &Arc<EngineIo<H>>,
    mut ws: WebSocketStream<S>,
    socket: &Arc<Socket<H::Data>>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut worker = Worker::new(socket.req_parts.extensions.get::<Companion>().cloned());
    // A polling request that was in progress during the upgrade may still hold the lock.
    let reading = socket.reading.lock();
    let Some(_reading) = reading
        .with_cancellation_token(&socket.cancellation_token)
        .await
    else {
        #[cfg(feature = "tracing")]
        tracing::debug!(sid = %socket.id, "session closed before the websocket was served");
        return;
    };

    let end = exchange(engine, &mut ws, socket, &mut worker).await;
    // What it still does concerns the session and no longer the websocket.
    drop(worker);
    match end {
        End::Failed(e) => {
            let reason =
                Option::<DisconnectReason>::from(&e).unwrap_or(DisconnectReason::TransportError);

            #[cfg(feature = "tracing")]
            tracing::debug!("error when handling packet: {:?}", e);
            engine.close_session(socket.id, reason);
        }
        End::ClosedByClient => {
            #[cfg(feature = "tracing")]
            tracing::debug!(sid = %socket.id, "ws transport was closed");
            engine.close_session(socket.id, DisconnectReason::TransportClose);
        }
        End::Cancelled => {
            #[cfg(feature = "tracing")]
            tracing::debug!(sid = %socket.id, "socket is closing");
        }
    }
    Box::pin(say_the_rest(&mut ws, socket)).await;
}

/// Creates the session or upgrades the one that is there.
async fn open<H: EngineIoHandler, S>(
    engine: &Arc<EngineIo<H>>,
    conn: S,
    protocol: ProtocolVersion,
    sid: Option<Sid>,
    req_data: Box<Parts>,
) -> Result<(Arc<Socket<H::Data>>, WebSocketStream<S>), Error>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let ws_config = WebSocketConfig::default()
        .read_buffer_size(engine.config.ws_read_buffer_size)
        .max_message_size(Some(engine.config.ws_max_message_size))
        .max_frame_size(Some(engine.config.ws_max_frame_size));

    let ws_init = move || WebSocketStream::from_raw_socket(conn, Role::Server, Some(ws_config));
    let (socket, ws) = if let Some(sid) = sid {
        match engine.get_socket(sid) {
            None => return Err(Error::UnknownSessionID(sid)),
            Some(socket) if socket.is_ws() => return Err(Error::MultipleWebsocketRequests),
            Some(socket) => {
                let mut ws = ws_init().await;

                let upgrade_fut = upgrade_handshake::<H, S>(&socket, &mut ws);
                match tokio::time::timeout(engine.config.upgrade_timeout, upgrade_fut)
                    .with_cancellation_token(&socket.cancellation_token)
                    .await
                {
                    Some(Ok(res)) => res?,
                    Some(Err(_)) => {
                        #[cfg(feature = "tracing")]
                        tracing::debug!(?sid, "ws upgrade timed out, closing session");
                        engine.close_session(socket.id, DisconnectReason::TransportError);
                        return Err(Error::Upgrade);
                    }
                    None => {
                        #[cfg(feature = "tracing")]
                        tracing::debug!(?sid, "socket is being closed");
                        return Err(Error::Upgrade);
                    }
                }
                (socket, ws)
            }
        }
    } else {
        let socket = engine.create_session(protocol, TransportType::Websocket, *req_data, false);

        #[cfg(feature = "tracing")]
        tracing::debug!("new websocket connection");

        let mut ws = ws_init().await;
        if let Err(e) = init_handshake(socket.id, &mut ws, &engine.config).await {
            engine.close_session(socket.id, DisconnectReason::TransportError);
            return Err(e);
        }
        if !Heartbeat::is_for(protocol) {
            socket
                .clone()
                .spawn_heartbeat(engine.config.ping_interval, engine.config.ping_timeout);
        }
        (socket, ws)
    };
    Ok((socket, ws))
}

/// Why the exchange of packets over a websocket ends.
enum End {
    /// By a close packet, a close frame, or the end of the stream.
    ClosedByClient,
    /// The session was closed.
    Cancelled,
    Failed(Error),
}

/// Sends what waits in the outbox and handles what the client says, in one task: reading goes on
/// while the client does not take what is sent, and the other way round.
async fn exchange<H: EngineIoHandler, S>(
    engine: &Arc<EngineIo<H>>,
    ws: &mut WebSocketStream<S>,
    socket: &Arc<Socket<H::Data>>,
    worker: &mut Worker,
) -> End
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut heartbeat = Heartbeat::is_for(socket.protocol).then(|| Heartbeat::new(&engine.config));
    let mut sending = Sending::default();
    let inward = Arc::new(Inward::default());
    let inward_waker = Waker::from(inward.clone());
    poll_fn(|cx| {
        inward.task.register(cx.waker());
        // What it puts into the outbox goes out now, without waking this task once more.
        socket.outbox.forget_reader();
        worker.poll(cx);
        if poll_send(ws, socket, &mut sending, cx) {
            return Poll::Ready(End::Cancelled);
        }
        if !(inward.is_due.swap(false, Ordering::AcqRel) || sending.has_failed) {
            return Poll::Pending;
        }
        let inward_cx = &mut Context::from_waker(&inward_waker);
        // Each message may have put an answer into the outbox: it goes out before the next.
        while let Poll::Ready(message) = ws.poll_next_unpin(inward_cx) {
            let message = match message {
                Some(Ok(message)) => message,
                Some(Err(e)) => return Poll::Ready(End::Failed(e.into())),
                None => return Poll::Ready(End::ClosedByClient),
            };
            match handle(engine, socket, message) {
                Ok(Handled::Message) => {
                    if poll_send(ws, socket, &mut sending, cx) {
                        return Poll::Ready(End::Cancelled);
                    }
                }
                Ok(Handled::Pong) => {
                    // Who upgraded from polling may have a heartbeat that still waits for it.
                    socket.heartbeat.notify_one();
                    if let Some(heartbeat) = &mut heartbeat {
                        heartbeat.answered();
                    }
                }
                Ok(Handled::Close) => return Poll::Ready(End::ClosedByClient),
                Err(e) => return Poll::Ready(End::Failed(e)),
            }
        }
        if let Some(heartbeat) = &mut heartbeat {
            while let Poll::Ready(due) = heartbeat.poll_due(inward_cx) {
                let is_sent = due && socket.outbox.try_send(smallvec![Packet::Ping]).is_ok();
                if !is_sent {
                    return Poll::Ready(End::Failed(Error::HeartbeatTimeout));
                }
                poll_send(ws, socket, &mut sending, cx);
            }
        }
        Poll::Pending
    })
    .await
}

/// Wakes the websocket's task for what comes in and for its heartbeat, and notes that it was for that:
/// what goes out mostly comes alone, and neither is asked for then.
struct Inward {
    is_due: AtomicBool,
    task: AtomicWaker,
}

impl Default for Inward {
    /// The first look at both.
    fn default() -> Self {
        Self {
            is_due: AtomicBool::new(true),
            task: AtomicWaker::new(),
        }
    }
}

impl Wake for Inward {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_due.store(true, Ordering::Release);
        self.task.wake();
    }
}

/// When to send the next ping, and until when to wait for its answer (protocol 4).
struct Heartbeat {
    timer: Pin<Box<Sleep>>,
    interval: Duration,
    timeout: Duration,
    /// When the ping was sent that has no answer yet.
    asked: Option<Instant>,
}

impl Heartbeat {
    /// In protocol 3 the client pings.
    fn is_for(protocol: ProtocolVersion) -> bool {
        protocol == ProtocolVersion::V4
    }

    /// The first ping is due at once.
    fn new(config: &EngineIoConfig) -> Self {
        Self {
            timer: Box::pin(tokio::time::sleep(Duration::ZERO)),
            interval: config.ping_interval,
            timeout: config.ping_timeout,
            asked: None,
        }
    }

    /// The client is alive; the next ping comes an interval after the last one.
    fn answered(&mut self) {
        if let Some(asked) = self.asked.take() {
            self.timer.as_mut().reset(asked + self.interval);
        }
    }

    /// Ready with true when a ping has to be sent, with false when the last one was not answered.
    fn poll_due(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        std::task::ready!(self.timer.as_mut().poll(cx));
        if self.asked.is_some() {
            return Poll::Ready(false);
        }
        let now = Instant::now();
        self.asked = Some(now);
        self.timer.as_mut().reset(now + self.timeout);
        Poll::Ready(true)
    }
}

/// Feeds what waits to the websocket as long as it takes it, and flushes once. True if the session
/// was closed, and nothing waits or the client takes nothing.
fn poll_send<D: Default + Send + Sync + 'static, S>(
    ws: &mut WebSocketStream<S>,
    socket: &Socket<D>,
    sending: &mut Sending,
    cx: &mut Context<'_>,
) -> bool
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut is_over = false;
    // What fails to be sent is seen when reading: the connection is over then.
    loop {
        if ws.poll_ready_unpin(cx).is_pending() {
            is_over = socket.outbox.poll_stopped(cx);
            break;
        }
        let group = match socket.outbox.poll_next(cx) {
            Poll::Ready(Some(group)) => group,
            Poll::Ready(None) => {
                is_over = true;
                break;
            }
            Poll::Pending => break,
        };
        for message in messages(group, socket.protocol) {
            sending.is_waiting = true;
            if let Err(_e) = ws.start_send_unpin(message) {
                sending.has_failed = true;
                #[cfg(feature = "tracing")]
                tracing::debug!("[sid={}] error sending packet: {}", socket.id, _e);
            }
        }
    }
    if sending.is_waiting
        && let Poll::Ready(flushed) = ws.poll_flush_unpin(cx)
    {
        sending.is_waiting = false;
        sending.has_failed |= flushed.is_err();
    }
    is_over
}

/// Where the sending of a websocket stands.
#[derive(Default)]
struct Sending {
    /// What was taken is not flushed yet.
    is_waiting: bool,
    /// Something was not sent: reading tells why.
    has_failed: bool,
}

/// Sends what still waits, then closes the websocket; gives up on a client that takes nothing.
async fn say_the_rest<D: Default + Send + Sync + 'static, S>(
    ws: &mut WebSocketStream<S>,
    socket: &Socket<D>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    const PATIENCE: std::time::Duration = std::time::Duration::from_secs(10);
    let rest = async {
        while let Some(Some(group)) = poll_fn(|cx| socket.outbox.poll_next(cx)).now_or_never() {
            for message in messages(group, socket.protocol) {
                ws.feed(message).await?;
            }
        }
        ws.flush().await?;
        SinkExt::close(ws).await
    };
    let _res = tokio::time::timeout(PATIENCE, rest).await;

    #[cfg(feature = "tracing")]
    tracing::trace!(sid = %socket.id, "ws closed: {_res:?}");
}

/// The websocket messages for what is sent together.
fn messages(group: Group, protocol: ProtocolVersion) -> impl Iterator<Item = Message> {
    let (encoded, packets) = match group {
        Group::Encoded(text) => (Utf8Bytes::try_from(Bytes::from(text)).ok(), None),
        Group::Packets(packets) => (None, Some(*packets)),
    };
    let packets = packets.into_iter().flatten();
    let packets = packets.filter_map(move |packet| to_message(packet, protocol));
    encoded.map(Message::Text).into_iter().chain(packets)
}

/// The websocket message for a packet, if there is one.
fn to_message(packet: Packet, protocol: ProtocolVersion) -> Option<Message> {
    match packet {
        Packet::Binary(bin) | Packet::BinaryV3(bin) if protocol == ProtocolVersion::V3 => {
            // v3 protocol requires packet type as the first byte.
            // This requires a new buffer. This is OK as it is only for the V3 protocol.
            let mut buff = Vec::with_capacity(bin.len() + 1);
            buff.push(0x04);
            buff.extend(bin);
            Some(Message::Binary(buff.into()))
        }
        Packet::Binary(bin) | Packet::BinaryV3(bin) => Some(Message::Binary(bin)),
        // A Noop Packet maybe sent by the server to upgrade from a polling connection
        // In the case that the packet was not poll in time it will remain in the outbox and therefore
        // it should be discarded here
        Packet::Noop => None,
        packet => Some(Message::Text(String::from(packet).into())),
    }
}

/// What a message of the client was.
enum Handled {
    Message,
    /// A sign of life.
    Pong,
    Close,
}

/// Handles one message of the client.
fn handle<H: EngineIoHandler>(
    engine: &Arc<EngineIo<H>>,
    socket: &Arc<Socket<H::Data>>,
    message: Message,
) -> Result<Handled, Error> {
    match message {
        Message::Text(msg) => match Packet::parse(socket.protocol, ws_bytes_to_str(msg))? {
            Packet::Close => {
                #[cfg(feature = "tracing")]
                tracing::debug!("[sid={}] closing session", socket.id);
                return Ok(Handled::Close);
            }
            Packet::Pong | Packet::Ping => return Ok(Handled::Pong),
            Packet::Message(msg) => engine.handler.on_message(msg, socket.clone()),
            p => return Err(Error::BadPacket(p)),
        },
        Message::Binary(mut data) => {
            if socket.protocol == ProtocolVersion::V3 && !data.is_empty() {
                // The first byte is the message type, which we don't need.
                data = data.split_off(1);
            }
            engine.handler.on_binary(data, socket.clone());
        }
        Message::Close(_) => {
            #[cfg(feature = "tracing")]
            tracing::debug!("websocket closed, closing session");
            return Ok(Handled::Close);
        }
        _ => {
            #[cfg(feature = "tracing")]
            tracing::debug!(sid = ?socket.id, "unexpected ws message");
        }
    }
    Ok(Handled::Message)
}

/// Send a Engine.IO [`OpenPacket`] to initiate a websocket connection
async fn init_handshake<S>(
    sid: Sid,
    ws: &mut WebSocketStream<S>,
    config: &EngineIoConfig,
) -> Result<(), Error>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let packet = Packet::Open(make_open_packet(TransportType::Websocket, sid, config));
    let packet: String = packet.into();
    ws.send(Message::Text(packet.into())).await?;
    Ok(())
}

/// Upgrade a session from a polling request to a websocket request.
///
/// Before upgrading the session the server should send a NOOP packet to any pending polling request.
///
/// ## Handshake :
/// ```text
/// CLIENT                                                 SERVER
///│                                                      │
///│   GET /engine.io/?EIO=4&transport=websocket&sid=...  │
///│ ───────────────────────────────────────────────────► │
///│  ◄─────────────────────────────────────────────────┘ │
///│            HTTP 101 (WebSocket handshake)            │
///│                                                      │
///│            -----  WebSocket frames -----             │
///│  ─────────────────────────────────────────────────►  │
///│                         2probe                       │ (ping packet)
///│  ◄─────────────────────────────────────────────────  │
///│                         3probe                       │ (pong packet)
///│  ─────────────────────────────────────────────────►  │
///│                         5                            │ (upgrade packet)
///│                                                      │
///│            -----  WebSocket frames -----             │
/// ```
#[cfg_attr(
    feature = "tracing",
    tracing::instrument(level = "trace", skip(socket, ws))
)]
async fn upgrade_handshake<H: EngineIoHandler, S>(
    socket: &Arc<Socket<H::Data>>,
    ws: &mut WebSocketStream<S>,
) -> Result<(), Error>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    #[cfg(feature = "tracing")]
    tracing::debug!("starting websocket connection upgrade");

    // The socket is upgrading, from now on all polling
    // request will return a `Packet::Noop`
    socket.start_upgrade();

    // We send a last Noop request to close a potential waiting polling request.
    if !socket.outbox.send_control(smallvec![Packet::Noop]) {
        return Err(Error::Upgrade);
    }

    // wait for any current polling connection to finish by waiting for the socket to be unlocked
    // All other polling connection will be immediately closed with a NOOP packet.
    let _lock = socket.reading.lock().await;

    // Fetch the next packet from the ws stream, it should be a PingUpgrade packet
    let msg = match ws.next().await {
        Some(Ok(Message::Text(d))) => d,
        _ => Err(Error::Upgrade)?,
    };
    match Packet::parse(socket.protocol, ws_bytes_to_str(msg))? {
        Packet::PingUpgrade => {
            #[cfg(feature = "tracing")]
            tracing::debug!("received first ping upgrade");
            // Respond with a PongUpgrade packet
            ws.send(Message::Text(String::from(Packet::PongUpgrade).into()))
                .await?;
        }
        p => Err(Error::BadPacket(p))?,
    };

    // Fetch the next packet from the ws stream, it should be an Upgrade packet
    let msg = match ws.next().await {
        Some(Ok(Message::Text(d))) => d,
        Some(Ok(Message::Close(_))) => {
            #[cfg(feature = "tracing")]
            tracing::debug!("ws stream closed before upgrade");
            Err(Error::Upgrade)?
        }
        _ => {
            #[cfg(feature = "tracing")]
            tracing::debug!("unexpected ws message before upgrade");
            Err(Error::Upgrade)?
        }
    };
    match Packet::parse(socket.protocol, ws_bytes_to_str(msg))? {
        Packet::Upgrade => {
            #[cfg(feature = "tracing")]
            tracing::debug!("ws upgraded successfully")
        }
        p => Err(Error::BadPacket(p))?,
    };

    socket.upgrade_to_websocket();
    Ok(())
}

fn ws_bytes_to_str(bytes: tungstenite::Utf8Bytes) -> Str {
    // SAFETY: the bytes are guaranteed to be valid UTF-8 by the tungstenite parser
    unsafe { Str::from_bytes_unchecked(bytes.into()) }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;
    use futures_util::StreamExt;
    use http::Request;
    use tokio::io::DuplexStream;

    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(1);

    #[derive(Debug)]
    struct StubHandler;
    impl EngineIoHandler for StubHandler {
        type Data = ();
        fn on_connect(self: Arc<Self>, _: Arc<Socket<()>>) {}
        fn on_disconnect(&self, _: Arc<Socket<()>>, _: DisconnectReason) {}
        fn on_message(self: &Arc<Self>, _: Str, _: Arc<Socket<()>>) {}
        fn on_binary(self: &Arc<Self>, _: Bytes, _: Arc<Socket<()>>) {}
    }

    fn socket() -> Arc<Socket<()>> {
        Arc::new(Socket::new(
            ProtocolVersion::V4,
            TransportType::Websocket,
            &EngineIoConfig::default(),
            Request::<()>::default().into_parts().0,
            Box::new(|_, _| ()),
            false,
        ))
    }

    fn engine() -> Arc<EngineIo<StubHandler>> {
        Arc::new(EngineIo::new(
            Arc::new(StubHandler),
            EngineIoConfig::default(),
        ))
    }

    async fn ws_pair() -> (WebSocketStream<DuplexStream>, WebSocketStream<DuplexStream>) {
        let (server, client) = tokio::io::duplex(1024);
        (
            WebSocketStream::from_raw_socket(server, Role::Server, None).await,
            WebSocketStream::from_raw_socket(client, Role::Client, None).await,
        )
    }

    /// A polling request can still hold the lock at the end of an upgrade.
    #[tokio::test]
    async fn writer_waits_for_the_lock_of_a_polling_request() {
        let socket = socket();
        let (server, mut client) = ws_pair().await;
        let engine = engine();
        let mut serving = std::pin::pin!(serve(&engine, server, &socket));

        let polling = socket.reading.lock().await;
        socket.emit(Str::from("hello")).unwrap();
        assert!(
            serving.as_mut().now_or_never().is_none(),
            "the writer should wait for the lock"
        );
        assert!(
            client.next().now_or_never().is_none(),
            "nothing should be sent without the lock"
        );

        drop(polling);
        let msg = tokio::time::timeout(TIMEOUT, async {
            tokio::select! {
                () = &mut serving => panic!("the writer should go on"),
                msg = client.next() => msg,
            }
        })
        .await
        .expect("the writer should send the packet")
        .unwrap()
        .unwrap();
        assert_eq!(msg, Message::text("4hello"));
    }

    #[tokio::test]
    async fn writer_waiting_for_the_lock_stops_with_the_session() {
        let socket = socket();
        let (server, _client) = ws_pair().await;
        let engine = engine();
        let mut serving = std::pin::pin!(serve(&engine, server, &socket));

        let _polling = socket.reading.lock().await;
        assert!(serving.as_mut().now_or_never().is_none());

        socket.cancel();
        tokio::time::timeout(TIMEOUT, serving)
            .await
            .expect("the writer should stop");
    }

    /// A client that takes nothing does not keep its own messages from being read.
    #[tokio::test]
    async fn reading_goes_on_while_writing_is_blocked() {
        let mut worker = Worker::new(None);
        let socket = socket();
        let (mut server, mut client) = ws_pair().await;
        socket.emit("x".repeat(64 * 1024)).unwrap();
        let engine = engine();
        let mut exchange = std::pin::pin!(exchange(&engine, &mut server, &socket, &mut worker));
        client.send(Message::text("3")).await.unwrap();
        tokio::time::timeout(TIMEOUT, async {
            tokio::select! {
                _ = &mut exchange => panic!("the exchange should go on"),
                () = socket.heartbeat.notified() => {}
            }
        })
        .await
        .expect("the pong should be read");

        let got = tokio::time::timeout(TIMEOUT, async {
            tokio::select! {
                _ = &mut exchange => panic!("the exchange should go on"),
                message = client.next() => message,
            }
        });
        let text = got.await.unwrap().unwrap().unwrap();
        assert_eq!(text.len(), 1 + 64 * 1024);
    }

    #[tokio::test]
    async fn a_closed_session_ends_the_exchange_and_what_waits_is_sent() {
        let mut worker = Worker::new(None);
        let socket = socket();
        let (mut server, mut client) = ws_pair().await;
        socket.cancel();
        let engine = engine();
        let end = exchange(&engine, &mut server, &socket, &mut worker);
        let end = tokio::time::timeout(TIMEOUT, end).await.unwrap();
        assert!(matches!(end, End::Cancelled));

        socket.emit("goodbye").unwrap();
        say_the_rest(&mut server, &socket).await;
        assert_eq!(
            client.next().await.unwrap().unwrap(),
            Message::text("4goodbye")
        );
        assert!(matches!(client.next().await, Some(Ok(Message::Close(_)))));
    }

    #[tokio::test]
    async fn a_close_packet_ends_the_exchange() {
        let mut worker = Worker::new(None);
        let socket = socket();
        let (mut server, mut client) = ws_pair().await;
        client.send(Message::text("1")).await.unwrap();
        let engine = engine();
        let end = exchange(&engine, &mut server, &socket, &mut worker);
        let end = tokio::time::timeout(TIMEOUT, end).await.unwrap();
        assert!(matches!(end, End::ClosedByClient));
    }
}
