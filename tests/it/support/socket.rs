//! A Socket.IO client of few lines: Engine.IO 4 over websocket, acknowledgements, a log.
#![expect(clippy::indexing_slicing, reason = "a missing field ends the test")]

use std::net::SocketAddr;
use std::time::Duration;

use futures::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use super::{DEADLINE, Person, described};

/// An event as it came.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Said {
    pub(crate) name: String,
    pub(crate) args: Vec<Value>,
}

impl Said {
    /// The last argument: the object with `seq`.
    pub(crate) fn rest(&self) -> &Value {
        self.args.last().unwrap()
    }

    /// Its place in the stream, if it has one.
    pub(crate) fn seq(&self) -> Option<u64> {
        self.rest().get("seq").and_then(Value::as_u64)
    }

    /// The first argument as text.
    pub(crate) fn text(&self) -> &str {
        self.args[0].as_str().unwrap_or_default()
    }
}

/// The shown events of a log, in order.
pub(super) fn shown(log: &[Said]) -> Vec<(u64, String)> {
    let placed = |said: &Said| Some((said.seq()?, said.name.clone()));
    let is_state = |name: &str| {
        matches!(
            name,
            "tool:queue" | "session:usage" | "system:ready" | "agent:delta"
        )
    };
    log.iter()
        .filter(|said| !is_state(&said.name))
        .filter_map(placed)
        .collect()
}

/// A connected client.
pub(crate) struct TestSocket {
    stream: WebSocketStream<MaybeTlsStream<TcpStream>>,
    /// What packets of its namespace begin with behind their type; empty in the main one.
    namespace: &'static str,
    /// Everything that came, in order.
    pub(crate) log: Vec<Said>,
    read: usize,
    next_ack: u64,
    acks: Vec<(u64, Value)>,
    /// `system:ready`.
    pub(crate) ready: Value,
}

impl TestSocket {
    /// Connects and waits for `system:ready`.
    pub(crate) async fn open(address: SocketAddr, person: &Person, session: Option<&str>) -> Self {
        let auth = json!({ "token": person.key, "sessionId": session });
        Self::try_open(address, auth).await.unwrap()
    }

    /// Connects with that `auth`; the error is the text of `connect_error` or of `error`.
    pub(crate) async fn try_open(address: SocketAddr, auth: Value) -> Result<Self, String> {
        Self::try_open_at(address, auth, "").await
    }

    /// The same with more in the query, for example `&model=x`.
    pub(crate) async fn try_open_at(
        address: SocketAddr,
        auth: Value,
        query: &str,
    ) -> Result<Self, String> {
        let mut socket = Self::connect_at(address, auth, &[], query).await?;
        let ready =
            socket.wait_where(|said| matches!(said.name.as_str(), "system:ready" | "error"));
        let ready = ready.await;
        if ready.name == "error" {
            return Err(ready.rest()["code"].as_str().unwrap_or_default().to_owned());
        }
        socket.ready = ready.args[0].clone();
        Ok(socket)
    }

    /// Only the handshake: nothing is awaited beyond CONNECT.
    pub(crate) async fn connect(
        address: SocketAddr,
        auth: Value,
        headers: &[(&'static str, &str)],
    ) -> Result<Self, String> {
        Self::connect_at(address, auth, headers, "").await
    }

    /// Begins the handshake and leaves without waiting for anything.
    pub(crate) async fn knock(address: SocketAddr, auth: &Value) {
        let mut socket = Self::dial(address, &[], "").await.unwrap();
        socket.send_raw(&format!("40{auth}")).await;
        socket.vanish();
    }

    /// A connection, before CONNECT.
    async fn dial(
        address: SocketAddr,
        headers: &[(&'static str, &str)],
        query: &str,
    ) -> Result<Self, String> {
        let url = format!("ws://{address}/socket.io/?EIO=4&transport=websocket{query}");
        let mut request = url.into_client_request().unwrap();
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().unwrap());
        }
        let connecting = tokio_tungstenite::connect_async(request);
        let connected = tokio::time::timeout(DEADLINE, connecting).await.unwrap();
        let (stream, _) = connected.map_err(|error| error.to_string())?;
        let (log, acks) = (Vec::new(), Vec::new());
        let mut socket = Self {
            stream,
            namespace: "",
            log,
            read: 0,
            next_ack: 0,
            acks,
            ready: Value::Null,
        };
        socket
            .next_packet()
            .await
            .ok_or("closed before the handshake")?;
        Ok(socket)
    }

    async fn connect_at(
        address: SocketAddr,
        auth: Value,
        headers: &[(&'static str, &str)],
        query: &str,
    ) -> Result<Self, String> {
        let mut socket = Self::dial(address, headers, query).await?;
        socket.send_raw(&format!("40{auth}")).await;
        match socket.next_packet().await {
            Some(packet) if packet.starts_with("40") => Ok(socket),
            Some(packet) => {
                let refused: Value = serde_json::from_str(packet.get(2..).unwrap()).unwrap();
                Err(refused["message"].as_str().unwrap_or_default().to_owned())
            }
            None => Err("closed".to_owned()),
        }
    }

    /// Listens to the person's list of sessions.
    pub(crate) async fn listen(address: SocketAddr, person: &Person) -> Result<Self, String> {
        let mut socket = Self::dial(address, &[], "").await?;
        socket.namespace = "/person,";
        let auth = json!({ "token": person.key });
        socket.send_raw(&format!("40/person,{auth}")).await;
        match socket.next_packet().await {
            Some(packet) if packet.starts_with("40/person,") => Ok(socket),
            other => Err(other.unwrap_or_default()),
        }
    }

    pub(crate) async fn send_raw(&mut self, packet: &str) {
        self.stream.send(Message::text(packet)).await.unwrap();
    }

    /// The next packet that is no heartbeat; `None` at the end of the connection.
    async fn next_packet(&mut self) -> Option<String> {
        loop {
            let next = tokio::time::timeout(DEADLINE, self.stream.next()).await;
            let Ok(next) = next else {
                let last: Vec<_> = self.log.iter().rev().take(5).collect();
                panic!("nothing came before the deadline; the last that did: {last:#?}");
            };
            match next {
                Some(Ok(Message::Text(text))) if text.as_str() == "2" => self.send_raw("3").await,
                Some(Ok(Message::Text(text))) => return Some(text.as_str().to_owned()),
                Some(Ok(Message::Close(_)) | Err(_)) | None => return None,
                Some(Ok(_)) => {}
            }
        }
    }

    /// Takes one packet into the log; whether the connection still lives.
    pub(crate) async fn step(&mut self) -> bool {
        let Some(packet) = self.next_packet().await else {
            return false;
        };
        let own = packet.replacen(self.namespace, "", 1);
        if let Some(event) = own.strip_prefix("42") {
            let mut args: Vec<Value> = serde_json::from_str(event).unwrap();
            let name = args.remove(0).as_str().unwrap().to_owned();
            described::check(&name, &args);
            self.log.push(Said { name, args });
        } else if let Some(ack) = own.strip_prefix("43") {
            let digits = ack.bytes().take_while(u8::is_ascii_digit).count();
            let (id, args) = ack.split_at(digits);
            let mut args: Vec<Value> = serde_json::from_str(args).unwrap();
            self.acks.push((id.parse().unwrap(), args.remove(0)));
        }
        // A namespace disconnect ends the client's part.
        !packet.starts_with("41")
    }

    /// Sends a command without asking for an answer.
    pub(crate) async fn emit(&mut self, name: &str, args: &[Value]) {
        let mut packet = vec![json!(name)];
        packet.extend_from_slice(args);
        self.send_raw(&format!("42{}", Value::Array(packet))).await;
    }

    /// Sends a command and waits for its acknowledgement.
    pub(crate) async fn ask(&mut self, name: &str, args: &[Value]) -> Value {
        let id = self.next_ack;
        self.next_ack += 1;
        let mut packet = vec![json!(name)];
        packet.extend_from_slice(args);
        let namespace = self.namespace;
        self.send_raw(&format!("42{namespace}{id}{}", Value::Array(packet)))
            .await;
        loop {
            if let Some(at) = self.acks.iter().position(|(ack, _)| *ack == id) {
                return self.acks.remove(at).1;
            }
            assert!(
                self.step().await,
                "the connection ended before the answer to `{name}`"
            );
        }
    }

    /// Waits for the next event that fits, from where the last wait ended.
    pub(crate) async fn wait_where(&mut self, fits: impl Fn(&Said) -> bool) -> Said {
        self.wait_within(DEADLINE * 2, fits).await
    }

    /// The same, for what takes long on a busy machine.
    pub(crate) async fn wait_within(
        &mut self,
        limit: Duration,
        fits: impl Fn(&Said) -> bool,
    ) -> Said {
        let waiting = async {
            loop {
                while let Some(said) = self.log.get(self.read) {
                    self.read += 1;
                    if fits(said) {
                        return said.clone();
                    }
                }
                assert!(
                    self.step().await,
                    "the connection ended; log: {:#?}",
                    self.log
                );
            }
        };
        tokio::time::timeout(limit, waiting)
            .await
            .expect("the event never came")
    }

    /// The events that named that server.
    pub(crate) fn about(&self, server: &str) -> Vec<String> {
        let is_named = |args: &Value| args["name"] == server || args["server"] == server;
        let heard = self.log.iter();
        let heard = heard.filter(|said| said.args.iter().any(is_named));
        heard.map(|said| said.name.clone()).collect()
    }

    /// Takes in what has come already; later waits are for what comes next.
    pub(crate) async fn take_in(&mut self) {
        // Everything sent before the answer is here with it.
        let nothing = json!({ "clientMessageId": "nobody-s" });
        self.ask("message:withdraw", &[nothing]).await;
        self.read = self.log.len();
    }

    pub(crate) async fn wait_for(&mut self, name: &str) -> Said {
        self.wait_where(|said| said.name == name).await
    }

    /// Waits until the server ends the connection.
    pub(crate) async fn wait_for_end(&mut self) {
        while self.step().await {}
    }

    pub(crate) async fn say(&mut self, text: &str) {
        let answer = self.ask("message", &[json!(text)]).await;
        assert_eq!(answer["ok"], true, "{answer}");
    }

    /// The next card.
    pub(crate) async fn wait_for_approval(&mut self) -> Value {
        self.wait_for("tool:approval_required").await.args[0].clone()
    }

    pub(crate) async fn wait_for_answer(&mut self) -> String {
        self.wait_for("agent:response").await.text().to_owned()
    }

    pub(crate) async fn decide(&mut self, card: &Value, approved: bool) -> Value {
        let decision = json!({
            "callId": card["callId"], "approved": approved, "digest": card["digest"],
        });
        self.ask("tool:approval", &[decision]).await
    }

    pub(crate) async fn approve(&mut self, card: &Value) {
        let answer = self.decide(card, true).await;
        assert_eq!(answer["ok"], true, "{answer}");
    }

    pub(crate) fn session(&self) -> String {
        self.ready["sessionId"].as_str().unwrap().to_owned()
    }

    /// The shown events so far, in order.
    pub(crate) fn shown(&self) -> Vec<(u64, String)> {
        shown(&self.log)
    }

    /// The answers that came for raw packets with ids of their own, from `first` on.
    pub(crate) fn answers_from(&self, first: u64) -> Vec<&Value> {
        let own = self.acks.iter().filter(|(id, _)| *id >= first);
        own.map(|(_, answer)| answer).collect()
    }

    /// Ends the connection without a farewell.
    pub(crate) fn vanish(self) {
        drop(self.stream);
    }
}
