//! The limit to compare with: what arrives as events goes out over a websocket, piece by piece,
//! unread and unkept. A program that does more than this cannot cost less.

use std::net::SocketAddr;

use anyhow::{Context as _, Result};
use futures::{SinkExt as _, StreamExt as _};
use reqwest::Client;
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::accept_async;
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};
use tokio_util::task::TaskTracker;

/// Serves until the process is ended; says its address on standard output.
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
            // A client that goes away ends its connection and nothing else.
            let _ = relay(stream, &client, &upstream).await;
        });
    }
}

async fn relay(stream: TcpStream, client: &Client, upstream: &str) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut socket = accept_async(stream).await?;
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
