//! The baseline to compare with: forwards the upstream's events over a websocket, piece by piece, without
//! parsing or storing them. A program that does more than this cannot cost less.

use std::net::SocketAddr;

use anyhow::{Context as _, Result};
use futures::{SinkExt as _, StreamExt as _};
use reqwest::Client;
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::accept_async_with_config;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};
use tokio_util::task::TaskTracker;

/// The number of bytes that are read at once; clients send little.
const READ_BUFFER: usize = 4 * 1024;

/// Serves until the process is ended; prints its address on standard output.
pub(crate) async fn serve(upstream: &str) -> Result<()> {
    crate::install_tls();
    let client = Client::builder().tcp_nodelay(true).build()?;
    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await?;
    println!("{}", listener.local_addr()?);
    let connections = TaskTracker::new();
    loop {
        let (stream, _) = listener.accept().await?;
        let (client, upstream) = (client.clone(), upstream.to_owned());
        connections.spawn(async move {
            // A client that disconnects ends only its own connection.
            let _ = relay(stream, &client, &upstream).await;
        });
    }
}

async fn relay(stream: TcpStream, client: &Client, upstream: &str) -> Result<()> {
    stream.set_nodelay(true)?;
    // The default of 128 KiB would be most of the memory of an idle connection.
    let config = WebSocketConfig::default().read_buffer_size(READ_BUFFER);
    let mut socket = accept_async_with_config(stream, Some(config)).await?;
    while let Some(message) = socket.next().await {
        let Message::Text(plan) = message? else {
            continue;
        };
        let body = json!({
            "model": "bench", "stream": true,
            "messages": [{ "role": "user", "content": plan.as_str() }],
        });
        let asked = client.post(upstream).json(&body).send().await?;
        let mut pieces = asked.error_for_status()?.bytes_stream();
        while let Some(piece) = pieces.next().await {
            let text = Utf8Bytes::try_from(piece?).context("the upstream sends text")?;
            socket.send(Message::Text(text)).await?;
        }
    }
    Ok(())
}
