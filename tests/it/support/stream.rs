//! A reader of server-sent events of few lines, with a log like that of a socket.

use std::net::SocketAddr;

use reqwest::Response;
use serde_json::Value;

use super::socket::{Said, shown};
use super::{DEADLINE, Person, TestApp, described};

/// An open stream.
pub(crate) struct TestStream {
    response: Response,
    unread: Vec<u8>,
    /// Everything that came, in order.
    pub(crate) log: Vec<Said>,
    /// The `id` behind each entry of the log; where it had none, that before it.
    pub(crate) ids: Vec<String>,
    read: usize,
}

impl TestStream {
    /// Asks for a session's stream; the error is the refusal.
    pub(crate) async fn try_open(
        address: SocketAddr,
        person: &Person,
        session: &str,
        last_id: Option<&str>,
    ) -> Result<Self, Value> {
        let path = format!("/api/sessions/{session}/stream");
        Self::try_open_at(address, person, &path, last_id).await
    }

    /// The same at another path.
    pub(crate) async fn try_open_at(
        address: SocketAddr,
        person: &Person,
        path: &str,
        last_id: Option<&str>,
    ) -> Result<Self, Value> {
        let request = TestApp::http().get(format!("http://{address}{path}"));
        let mut request = request.bearer_auth(&person.key);
        if let Some(id) = last_id {
            request = request.header("last-event-id", id);
        }
        let response = request.send().await.unwrap();
        if response.status() != 200 {
            return Err(response.json().await.unwrap());
        }
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Ok(Self {
            response,
            unread: Vec::new(),
            log: Vec::new(),
            ids: Vec::new(),
            read: 0,
        })
    }

    /// Opens a session's stream.
    pub(crate) async fn open(
        address: SocketAddr,
        person: &Person,
        session: &str,
        last_id: Option<&str>,
    ) -> Self {
        let opened = Self::try_open(address, person, session, last_id).await;
        opened.unwrap_or_else(|refused| panic!("{refused}"))
    }

    /// Takes what comes next into the log; false at the end of the stream.
    pub(crate) async fn step(&mut self) -> bool {
        loop {
            if let Some(end) = self.unread.windows(2).position(|two| two == b"\n\n") {
                let block: Vec<u8> = self.unread.drain(..end + 2).collect();
                if self.take(std::str::from_utf8(&block).unwrap()) {
                    return true;
                }
                continue;
            }
            let chunk = tokio::time::timeout(DEADLINE, self.response.chunk()).await;
            match chunk.expect("nothing came before the deadline") {
                Ok(Some(bytes)) => self.unread.extend_from_slice(&bytes),
                Ok(None) | Err(_) => return false,
            }
        }
    }

    /// Reads one block; false for a heartbeat.
    fn take(&mut self, block: &str) -> bool {
        let (mut name, mut data, mut id) = (None, None, self.last_id().to_owned());
        for line in block.lines().filter(|line| !line.is_empty()) {
            match line.split_once(": ") {
                Some(("event", value)) => name = Some(value.to_owned()),
                Some(("data", value)) => data = Some(serde_json::from_str(value).unwrap()),
                Some(("id", value)) => value.clone_into(&mut id),
                _ => assert!(line.starts_with(':'), "{line}"),
            }
        }
        let Some(name) = name else { return false };
        let args: Vec<Value> = data.unwrap();
        described::check(&name, &args);
        self.log.push(Said { name, args });
        self.ids.push(id);
        true
    }

    /// The id of the last event that had one.
    pub(crate) fn last_id(&self) -> &str {
        self.ids.last().map_or("", String::as_str)
    }

    /// Waits for the next event of that name, from where the last wait ended.
    pub(crate) async fn wait_for(&mut self, name: &str) -> Said {
        loop {
            while let Some(said) = self.log.get(self.read) {
                self.read += 1;
                if said.name == name {
                    return said.clone();
                }
            }
            assert!(self.step().await, "the stream ended: {:#?}", self.log);
        }
    }

    /// Reads to the end of the stream.
    pub(crate) async fn wait_for_end(&mut self) {
        while self.step().await {}
    }

    /// The shown events so far, in order.
    pub(crate) fn shown(&self) -> Vec<(u64, String)> {
        shown(&self.log)
    }
}
