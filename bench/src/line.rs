//! A client's connection to Socket.IO (Engine.IO 4), by websocket or polling; packets are texts.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use futures::{SinkExt as _, StreamExt as _};
use reqwest::Client;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::sync::{Mutex, mpsc};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

/// A websocket of the client.
pub(crate) type Websocket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// The separator between two packets of one body.
const SEPARATOR: char = '\u{1e}';
/// The time limit of a polling request; a poll lasts until the next heartbeat at most.
const PATIENCE: Duration = Duration::from_mins(1);

/// A connection. Dropping it closes it without a close packet.
pub(crate) enum Line {
    /// A single websocket.
    Websocket(Box<Websocket>),
    /// Successive HTTP requests.
    Polling(Box<Polling>),
}

/// A polling connection. A task polls, so that cancelling a wait for a packet loses nothing.
pub(crate) struct Polling {
    packets: mpsc::UnboundedReceiver<Result<String>>,
    post: Arc<Post>,
    _end: DropGuard,
}

impl Line {
    /// Connects by websocket and sends the CONNECT packet; the answer arrives as a packet.
    pub(crate) async fn websocket(address: SocketAddr, auth: &Value) -> Result<Self> {
        let url = format!("ws://{address}/socket.io/?EIO=4&transport=websocket");
        let (mut socket, _) = connect_async(url).await?;
        let opened = next_text(&mut socket).await?;
        opened.context("the connection ended before it began")?;
        let mut line = Self::Websocket(Box::new(socket));
        line.send(format!("40{auth}")).await?;
        Ok(line)
    }

    /// Connects by polling and sends the CONNECT packet.
    pub(crate) async fn polling(
        client: &Client,
        address: SocketAddr,
        auth: &Value,
    ) -> Result<Self> {
        let url = format!("http://{address}/socket.io/?EIO=4&transport=polling");
        let opened = client.get(&url).timeout(PATIENCE).send().await?;
        let opened = opened.error_for_status()?.text().await?;
        let opened: Value = serde_json::from_str(opened.get(1..).context("an open packet")?)?;
        let id = opened.get("sid").and_then(Value::as_str);
        let url = format!("{url}&sid={}", id.context("a connection has an id")?);
        let post = Arc::new(Post {
            client: client.clone(),
            url,
            turn: Mutex::default(),
        });
        let (into, packets) = mpsc::unbounded_channel();
        let end = CancellationToken::new();
        let polling = end
            .clone()
            .run_until_cancelled_owned(poll(Arc::clone(&post), into));
        TaskTracker::new().spawn(polling);
        let polling = Polling {
            packets,
            post,
            _end: end.drop_guard(),
        };
        let mut line = Self::Polling(Box::new(polling));
        line.send(format!("40{auth}")).await?;
        Ok(line)
    }

    /// Returns the next packet that is not a heartbeat. Cancelling the wait loses nothing.
    pub(crate) async fn next(&mut self) -> Result<String> {
        match self {
            Self::Websocket(socket) => loop {
                let text = next_text(socket).await?.context("the connection ended")?;
                if text != "2" {
                    return Ok(text);
                }
                // If the wait is cancelled here, the next read or write sends the fed answer.
                socket.feed(Message::text("3")).await?;
                socket.flush().await?;
            },
            Self::Polling(polling) => {
                let packet = polling.packets.recv().await;
                packet.context("the connection ended")?
            }
        }
    }

    /// Sends a packet.
    pub(crate) async fn send(&mut self, packet: String) -> Result<()> {
        match self {
            Self::Websocket(socket) => Ok(socket.send(Message::text(packet)).await?),
            Self::Polling(polling) => polling.post.send(packet).await,
        }
    }
}

/// Sends the packets of a polling connection: one request at a time.
struct Post {
    client: Client,
    url: String,
    turn: Mutex<()>,
}

impl Post {
    async fn send(&self, packet: String) -> Result<()> {
        let _turn = self.turn.lock().await;
        let sent = self.client.post(&self.url).body(packet).timeout(PATIENCE);
        sent.send().await?.error_for_status()?;
        Ok(())
    }
}

async fn poll(post: Arc<Post>, into: mpsc::UnboundedSender<Result<String>>) {
    loop {
        match poll_once(&post).await {
            Ok(packets) => {
                for packet in packets {
                    // If the receiver is gone, this task is being cancelled too.
                    let _ = into.send(Ok(packet));
                }
            }
            Err(error) => {
                let _ = into.send(Err(error));
                return;
            }
        }
    }
}

async fn poll_once(post: &Post) -> Result<Vec<String>> {
    let asked = post.client.get(&post.url).timeout(PATIENCE).send().await?;
    let body = asked.error_for_status()?.text().await?;
    let mut packets = Vec::new();
    for packet in body.split(SEPARATOR) {
        match packet {
            "2" => post.send("3".to_owned()).await?,
            "1" => bail!("the server closed the connection"),
            packet => packets.push(packet.to_owned()),
        }
    }
    Ok(packets)
}

/// Returns the next text of a websocket; `None` at its end.
pub(crate) async fn next_text(socket: &mut Websocket) -> Result<Option<String>> {
    loop {
        match socket.next().await {
            Some(Ok(Message::Text(text))) => return Ok(Some(text.as_str().to_owned())),
            Some(Ok(Message::Close(reason))) => bail!("closed: {reason:?}"),
            Some(Ok(_)) => {}
            Some(Err(error)) => return Err(error.into()),
            None => return Ok(None),
        }
    }
}
