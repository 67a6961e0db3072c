//! Implements the stream to a server that sends one JSON-RPC message per line.
//!
//! rmcp has such a stream too, but without a limit on the length of a line. Messages that wait for the stream
//! at the same time go out as one write.

use std::io::{Error, ErrorKind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::RoleClient;
use rmcp::model::JsonRpcMessage;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};

use super::message::read;
use super::oversized::{Envelope, MAX_MESSAGE_BYTES, answer};
use super::pending::Pending;

/// The capacity that a line buffer keeps after a longer line went through it.
const KEPT_BYTES: usize = 16 * 1024;

/// Both directions of a stream.
pub(crate) struct Lines<R, W> {
    output: BufReader<R>,
    /// The current line so far. It is kept when a read is cancelled in the middle of it.
    line: Vec<u8>,
    /// The state of the current line, if it is too long to be kept.
    too_long: Option<TooLong>,
    input: Arc<Input<W>>,
    pending: Pending,
}

/// A line that is too long and not kept, until its end.
#[derive(Default)]
struct TooLong {
    message: Envelope,
    /// True if the waiting request was told.
    is_told: bool,
}

/// The outcome of reading a line.
enum Came {
    /// A complete line is in `line`.
    Line,
    /// A message that replaces a line that is too long.
    Instead(Box<RxJsonRpcMessage<RoleClient>>),
    /// The stream has ended.
    End,
}

/// The stream to the server.
struct Input<W> {
    /// Messages that are not being written yet. Never held across an await.
    waiting: Mutex<Vec<u8>>,
    /// `None` once the stream is closed or broken. Locked during a write.
    stream: tokio::sync::Mutex<Option<W>>,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Lines<R, W> {
    pub(crate) fn new(output: R, input: W) -> Self {
        Self {
            output: BufReader::new(output),
            line: Vec::new(),
            too_long: None,
            input: Arc::new(Input {
                waiting: Mutex::default(),
                stream: tokio::sync::Mutex::new(Some(input)),
            }),
            pending: Pending::default(),
        }
    }

    /// Reads until a line is complete. Cancel safe: bytes that were taken from the stream are in `line`, or
    /// are counted.
    async fn next_line(&mut self) -> std::io::Result<Came> {
        loop {
            let came = self.output.fill_buf().await?;
            if came.is_empty() {
                return Ok(Came::End);
            }
            let end = came.iter().position(|byte| *byte == b'\n');
            let piece = came.get(..end.unwrap_or(came.len())).unwrap_or_default();
            if self.too_long.is_none() && self.line.len() + piece.len() > MAX_MESSAGE_BYTES {
                let most = MAX_MESSAGE_BYTES;
                tracing::error!(most, "A line of a server is too long and is dropped");
                let mut too_long = TooLong::default();
                too_long.message.read(&std::mem::take(&mut self.line));
                self.too_long = Some(too_long);
            }
            match &mut self.too_long {
                Some(too_long) => too_long.message.read(piece),
                None => self.line.extend_from_slice(piece),
            }
            let taken = piece.len() + usize::from(end.is_some());
            self.output.consume(taken);
            if let Some(message) = self.instead(end.is_some()) {
                return Ok(Came::Instead(Box::new(message)));
            }
            if end.is_some() && self.too_long.take().is_none() {
                return Ok(Came::Line);
            }
        }
    }

    /// Returns the message that replaces a line that is too long, as soon as it is known.
    fn instead(&mut self, is_end: bool) -> Option<RxJsonRpcMessage<RoleClient>> {
        let too_long = self.too_long.as_mut().filter(|line| !line.is_told)?;
        let message = &too_long.message;
        let instead = match message.answers() {
            Some(id) if is_end => answer(id.clone(), message.size()),
            Some(_) | None => message.given_up()?,
        };
        too_long.is_told = true;
        if is_end {
            self.too_long = None;
        }
        Some(instead)
    }
}

impl<R, W> Transport<RoleClient> for Lines<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Error>> + Send + 'static {
        self.pending.sent(&message);
        let queued = self.input.queue(&message);
        let input = Arc::clone(&self.input);
        async move {
            queued?;
            input.write().await
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            match self.next_line().await {
                Ok(Came::Line) => {}
                Ok(Came::Instead(message)) => {
                    if let JsonRpcMessage::Error(error) = &*message
                        && let Some(id) = &error.id
                    {
                        self.pending.take_own(id);
                    }
                    return Some(*message);
                }
                Ok(Came::End) => return None,
                Err(error) => {
                    tracing::error!(%error, "The stream of a server cannot be read");
                    return None;
                }
            }
            let message = read(&self.line, &self.pending, None);
            self.line.clear();
            self.line.shrink_to(KEPT_BYTES);
            if message.is_some() {
                return message;
            }
        }
    }

    async fn close(&mut self) -> Result<(), Error> {
        self.input.stream.lock().await.take();
        Ok(())
    }
}

impl<W: AsyncWrite + Unpin> Input<W> {
    fn queue(&self, message: &TxJsonRpcMessage<RoleClient>) -> Result<(), Error> {
        let mut waiting = self.waiting();
        let before = waiting.len();
        if let Err(error) = serde_json::to_writer(&mut *waiting, message) {
            waiting.truncate(before);
            return Err(error.into());
        }
        waiting.push(b'\n');
        Ok(())
    }

    /// Writes all waiting messages; another writer may have written them already, or failed.
    async fn write(&self) -> Result<(), Error> {
        let mut stream = self.stream.lock().await;
        let Some(open) = stream.as_mut() else {
            return Err(Error::new(ErrorKind::NotConnected, "the stream is closed"));
        };
        let waiting = std::mem::take(&mut *self.waiting());
        if waiting.is_empty() {
            return Ok(());
        }
        let written = async {
            open.write_all(&waiting).await?;
            open.flush().await
        };
        let written = written.await;
        if written.is_err() {
            // Senders whose messages were part of this write find the stream broken.
            stream.take();
        }
        written
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<u8>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use rmcp::transport::Transport as _;
    use tokio::io::{AsyncWriteExt as _, duplex, split};

    use super::{Lines, MAX_MESSAGE_BYTES};
    use crate::wire::oversized::{MAX_COUNTED_BYTES, size};

    #[tokio::test]
    async fn lines_come_whole_and_what_is_too_long_but_no_answer_is_dropped() {
        let (ours, mut theirs) = duplex(1 << 16);
        let (output, input) = split(ours);
        let mut lines = Lines::new(output, input);
        let answer = |id: usize| {
            format!("\u{feff}{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"content\":[]}}}}\r\n")
        };
        let say = async {
            let first = answer(1);
            let (begin, rest) = first.split_at(9);
            theirs.write_all(begin.as_bytes()).await.unwrap();
            tokio::task::yield_now().await;
            theirs.write_all(rest.as_bytes()).await.unwrap();
            theirs.write_all(b"not JSON\n\n").await.unwrap();
            let long = vec![b'x'; MAX_MESSAGE_BYTES + 1];
            theirs.write_all(&long).await.unwrap();
            theirs
                .write_all(format!("\n{}", answer(2)).as_bytes())
                .await
                .unwrap();
            drop(theirs);
        };
        let hear = async {
            let mut ids = Vec::new();
            while let Some(message) = lines.receive().await {
                ids.push(message.into_response().unwrap().1.to_string());
            }
            assert!(lines.line.capacity() <= super::KEPT_BYTES);
            ids
        };
        let ((), ids) = tokio::join!(say, hear);
        assert_eq!(ids, ["1", "2"]);
    }

    #[tokio::test]
    async fn an_answer_that_is_too_long_is_told_with_its_size_once() {
        let (ours, mut theirs) = duplex(1 << 16);
        let (output, input) = split(ours);
        let mut lines = Lines::new(output, input);
        let long = |id: u32, bytes: usize| {
            let text = "x".repeat(bytes);
            format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"content\":\"{text}\"}}}}\n")
        };
        let endless = usize::try_from(MAX_COUNTED_BYTES).unwrap() + (1 << 20);
        let small = "{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"content\":[]}}\n";
        let said = [
            long(1, MAX_MESSAGE_BYTES),
            long(2, endless),
            small.to_owned(),
        ];
        let first = said[0].len() as u64 - 1;
        let say = async {
            for line in said {
                theirs.write_all(line.as_bytes()).await.unwrap();
            }
            drop(theirs);
        };
        let hear = async {
            let mut heard = Vec::new();
            while let Some(message) = lines.receive().await {
                let wire = serde_json::to_value(&message).unwrap();
                let long = serde_json::from_value(wire["error"].clone())
                    .ok()
                    .and_then(|it| size(&it));
                heard.push((wire["id"].as_u64().unwrap(), long.map(|it| it.to_string())));
            }
            heard
        };
        let ((), heard) = tokio::join!(say, hear);
        let ids: Vec<u64> = heard.iter().map(|(id, _)| *id).collect();
        assert_eq!(ids, [1, 2, 3]);
        let texts: Vec<&str> = heard.iter().filter_map(|(_, it)| it.as_deref()).collect();
        assert!(texts[0] == format!("{first} bytes"), "{texts:?}");
        assert!(texts[1].contains("more than 67108864 bytes"), "{texts:?}");
        assert_eq!(texts.len(), 2);
    }

    #[tokio::test]
    async fn what_is_said_at_the_same_time_is_one_write_in_order() {
        let (ours, theirs) = duplex(1 << 16);
        let (output, input) = split(ours);
        let mut lines = Lines::new(output, input);
        let say = |id: usize| {
            let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
            serde_json::from_str(&text).unwrap()
        };
        let (first, second) = (lines.send(say(1)), lines.send(say(2)));
        // The later sender writes both messages; the earlier one finds nothing left to write.
        second.await.unwrap();
        first.await.unwrap();
        lines.close().await.unwrap();
        assert!(lines.send(say(3)).await.is_err());
        drop(lines);
        let mut heard = String::new();
        let mut theirs = theirs;
        tokio::io::AsyncReadExt::read_to_string(&mut theirs, &mut heard)
            .await
            .unwrap();
        let ids: Vec<i64> = heard
            .lines()
            .map(|line| {
                serde_json::from_str::<serde_json::Value>(line).unwrap()["id"]
                    .as_i64()
                    .unwrap()
            })
            .collect();
        assert_eq!(ids, [1, 2]);
    }
}
