//! The subjects of a measurement, and their client: one conversation over one connection.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use futures::SinkExt as _;
use reqwest::{Client, Response};
use serde_json::{Value, json};
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Message;

use crate::line::{Line, Websocket, next_text};
use crate::plan::{Plan, now_ns, sent_at};
use crate::process::Program;

/// The kinds of subjects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// The upstream, which the client asks directly.
    Upstream,
    /// The raw relay.
    Relay,
    /// Sepal with its embedded database.
    Sqlite,
    /// Sepal with Redis.
    Redis,
}

impl Kind {
    /// All kinds, in the order in which a round measures them.
    pub(crate) const ALL: [Self; 4] = [Self::Upstream, Self::Relay, Self::Sqlite, Self::Redis];

    /// Its name in reports.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Upstream => "upstream",
            Self::Relay => "relay",
            Self::Sqlite => "sepal on SQLite",
            Self::Redis => "sepal on Redis",
        }
    }

    /// True if the subject is Sepal.
    pub(crate) fn is_sepal(self) -> bool {
        matches!(self, Self::Sqlite | Self::Redis)
    }
}

/// A running subject.
pub(crate) struct Subject {
    /// The kind of the subject.
    pub(crate) kind: Kind,
    /// Its process.
    pub(crate) program: Program,
    key: String,
    _redis: Option<Program>,
}

impl Subject {
    /// Starts a subject with empty storage.
    pub(crate) fn start(kind: Kind, upstream: SocketAddr, sepal: &Path) -> Result<Self> {
        Self::start_with(kind, upstream, sepal, &[])
    }

    /// Starts a subject with the given files in its data folder, by name and content.
    pub(crate) fn start_with(
        kind: Kind,
        upstream: SocketAddr,
        sepal: &Path,
        files: &[(&str, String)],
    ) -> Result<Self> {
        let (program, redis) = match kind {
            Kind::Upstream => (Program::part(&["upstream"])?, None),
            Kind::Relay => {
                let url = format!("http://{upstream}/v1/chat/completions");
                (Program::part(&["relay", &url])?, None)
            }
            Kind::Sqlite => (Program::sepal(sepal, upstream, None, files)?, None),
            Kind::Redis => {
                let redis = Program::redis()?;
                (
                    Program::sepal(sepal, upstream, Some(redis.address), files)?,
                    Some(redis),
                )
            }
        };
        let key = if kind.is_sepal() {
            program.member_key(sepal)?
        } else {
            String::new()
        };
        Ok(Self {
            kind,
            program,
            key,
            _redis: redis,
        })
    }

    /// Opens a new conversation.
    pub(crate) async fn connect(&self) -> Result<Talk> {
        let address = self.program.address;
        if self.kind == Kind::Upstream {
            let url = format!("http://{address}/v1/chat/completions");
            return Ok(Talk::Upstream(Client::builder().build()?, url));
        }
        if self.kind == Kind::Relay {
            let (stream, _) = connect_async(format!("ws://{address}/")).await?;
            return Ok(Talk::Relay(Box::new(stream)));
        }
        self.open(&json!({ "token": self.key })).await
    }

    /// Joins a session again, from its beginning.
    pub(crate) async fn join(&self, session: &str) -> Result<Talk> {
        let auth = json!({ "token": self.key, "sessionId": session });
        self.open(&auth).await
    }

    /// The member's key.
    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    async fn open(&self, auth: &Value) -> Result<Talk> {
        let mut line = Line::websocket(self.program.address, auth).await?;
        loop {
            let packet = line.next().await?;
            if packet.starts_with("44") {
                bail!("refused: {packet}");
            }
            if packet.starts_with(r#"42["system:ready""#) {
                let session = session_of(&packet)?;
                return Ok(Talk::Sepal(Box::new(line), session));
            }
        }
    }
}

fn session_of(ready: &str) -> Result<String> {
    let ready: Vec<Value> = serde_json::from_str(ready.get(2..).context("a packet")?)?;
    let session = ready.get(1).and_then(|ready| ready.get("sessionId"));
    let session = session.and_then(Value::as_str).context("a session")?;
    Ok(session.to_owned())
}

/// One conversation.
pub(crate) enum Talk {
    /// A conversation directly with the upstream.
    Upstream(Client, String),
    /// A conversation through the relay.
    Relay(Box<Websocket>),
    /// A conversation through Sepal, with the session's id.
    Sepal(Box<Line>, String),
}

/// The client's measurements of one turn.
#[derive(Default)]
pub(crate) struct Turn {
    /// The number of tokens that arrived.
    pub(crate) tokens: usize,
    /// Nanoseconds from the upstream to the client, for the first token.
    pub(crate) first_ns: Option<u64>,
    /// Nanoseconds from the upstream to the client, for every token.
    pub(crate) transits_ns: Vec<u64>,
}

impl Turn {
    fn take(&mut self, text: &str) {
        let now = now_ns();
        for sent in sent_at(text) {
            let transit = now.saturating_sub(sent);
            self.first_ns.get_or_insert(transit);
            self.transits_ns.push(transit);
            self.tokens += 1;
        }
    }
}

impl Talk {
    /// Returns the session's id, if the subject is a gateway.
    pub(crate) fn session(&self) -> Option<&str> {
        match self {
            Self::Sepal(_, session) => Some(session),
            Self::Upstream(..) | Self::Relay(_) => None,
        }
    }

    /// Sends a message, approves the calls, and waits for the end of the turn.
    pub(crate) async fn turn(&mut self, plan: Plan) -> Result<Turn> {
        let turn = match self {
            Self::Upstream(client, url) => from_upstream(client, url, plan).await?,
            Self::Relay(socket) => from_relay(socket, plan).await?,
            Self::Sepal(line, _) => from_sepal(line, plan).await?,
        };
        if turn.tokens != plan.tokens {
            bail!("{} tokens came of {}", turn.tokens, plan.tokens);
        }
        Ok(turn)
    }
}

async fn from_upstream(client: &Client, url: &str, plan: Plan) -> Result<Turn> {
    let messages = json!([{ "role": "user", "content": plan.text()? }]);
    let body = json!({ "model": "bench", "stream": true, "messages": messages });
    let mut response: Response = client.post(url).json(&body).send().await?;
    let mut turn = Turn::default();
    while let Some(piece) = response.chunk().await? {
        turn.take(std::str::from_utf8(&piece)?);
    }
    Ok(turn)
}

async fn from_relay(socket: &mut Websocket, plan: Plan) -> Result<Turn> {
    socket.send(Message::text(plan.text()?)).await?;
    let mut turn = Turn::default();
    loop {
        let text = next_text(socket).await?.context("the connection ended")?;
        turn.take(&text);
        if text.contains("[DONE]") {
            return Ok(turn);
        }
    }
}

async fn from_sepal(line: &mut Line, plan: Plan) -> Result<Turn> {
    line.send(format!("42{}", json!(["message", plan.text()?])))
        .await?;
    let mut turn = Turn::default();
    loop {
        let packet = line.next().await?;
        if packet.starts_with(r#"42["agent:delta""#) {
            turn.take(&packet);
        } else if packet.starts_with(r#"42["tool:approval_required""#) {
            line.send(approval(&packet)?).await?;
        } else if packet.starts_with(r#"42["agent:response""#) {
            return Ok(turn);
        } else if packet.starts_with(r#"42["agent:error""#) || packet.starts_with(r#"42["error""#) {
            bail!("the turn failed: {packet}");
        }
    }
}

/// Builds the approval of a card.
fn approval(packet: &str) -> Result<String> {
    let card: Vec<Value> = serde_json::from_str(packet.get(2..).context("a packet")?)?;
    let card = card.get(1).context("a card")?;
    let field = |name: &str| card.get(name).cloned().unwrap_or_default();
    let decision = json!({
        "callId": field("callId"), "approved": true, "digest": field("digest"),
    });
    Ok(format!("42{}", json!(["tool:approval", decision])))
}
