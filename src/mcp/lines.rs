//! The stream to a server that speaks in lines, one JSON-RPC message each.
//!
//! The library has such a stream too. It reads a message by trying every kind of message, and in an
//! answer every kind of result, one after the other; that alone was a tenth of what a call cost. Here
//! the plain answer to a call is read at once, and everything else as the library reads it. Messages
//! that wait for the stream at the same time go out as one write.

use std::io::{Error, ErrorKind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::RoleClient;
use rmcp::model::{
    CallToolResult, ContentBlock, JsonRpcMessage, JsonRpcVersion2_0, MetaObject, RequestId,
    ResultType, ServerResult,
};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};

/// A longer line is dropped; the request then ends by its time limit.
const MAX_LINE_BYTES: usize = 4 * 1024 * 1024;
/// A byte order mark, which a reader of JSON may pass over.
const MARK: &[u8] = b"\xEF\xBB\xBF";
/// What a buffer for lines keeps when a longer one has gone through it.
const KEPT_BYTES: usize = 16 * 1024;

/// Both directions of a stream.
pub(super) struct Lines<R, W> {
    output: BufReader<R>,
    /// The line so far. It stays when a read is given up in the middle of it.
    line: Vec<u8>,
    /// Whether what comes up to the next line's begin belongs to one that is too long.
    is_too_long: bool,
    input: Arc<Input<W>>,
}

/// What the server reads.
struct Input<W> {
    /// Messages that nobody has begun to write. Never held across an await.
    waiting: Mutex<Vec<u8>>,
    /// `None` once it is closed or broken. Held while something is written.
    stream: tokio::sync::Mutex<Option<W>>,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Lines<R, W> {
    pub(super) fn new(output: R, input: W) -> Self {
        Self {
            output: BufReader::new(output),
            line: Vec::new(),
            is_too_long: false,
            input: Arc::new(Input {
                waiting: Mutex::default(),
                stream: tokio::sync::Mutex::new(Some(input)),
            }),
        }
    }

    /// Reads until `line` holds a whole one; whether one came. Nothing is lost when the wait is given
    /// up: what was taken from the stream lies in `line`.
    async fn next_line(&mut self) -> std::io::Result<bool> {
        loop {
            let came = self.output.fill_buf().await?;
            if came.is_empty() {
                return Ok(false);
            }
            let end = came.iter().position(|byte| *byte == b'\n');
            let piece = came.get(..end.unwrap_or(came.len())).unwrap_or_default();
            if !self.is_too_long && self.line.len() + piece.len() > MAX_LINE_BYTES {
                tracing::error!(
                    most = MAX_LINE_BYTES,
                    "A line of a server is too long and is dropped"
                );
                self.is_too_long = true;
                self.line = Vec::new();
            }
            if !self.is_too_long {
                self.line.extend_from_slice(piece);
            }
            let taken = piece.len() + usize::from(end.is_some());
            self.output.consume(taken);
            if end.is_some() && !std::mem::take(&mut self.is_too_long) {
                return Ok(true);
            }
        }
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
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => {
                    tracing::error!(%error, "The stream of a server cannot be read");
                    return None;
                }
            }
            let message = read(&self.line);
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

    /// Writes everything that waits; another one may have done so by now, or failed.
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
            // Those whose messages went with these find it broken.
            stream.take();
        }
        written
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<u8>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The message of a line; `None` if it is none that we know.
fn read(line: &[u8]) -> Option<RxJsonRpcMessage<RoleClient>> {
    let line = line.strip_prefix(MARK).unwrap_or(line).trim_ascii();
    if line.is_empty() {
        return None;
    }
    if let Ok(PlainAnswer { id, result, .. }) = serde_json::from_slice(line) {
        let result = ServerResult::CallToolResult(result.into());
        return Some(JsonRpcMessage::response(result, id));
    }
    match serde_json::from_slice(line) {
        Ok(message) => Some(message),
        Err(error) => {
            // Many programs print other things, too.
            tracing::debug!(%error, "A line of a server is no message");
            None
        }
    }
}

/// The answer to a call and nothing beside it, which no other kind of message looks like.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlainAnswer {
    #[serde(rename = "jsonrpc")]
    _version: JsonRpcVersion2_0,
    id: RequestId,
    result: PlainResult,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PlainResult {
    result_type: Option<Complete>,
    content: Vec<ContentBlock>,
    #[serde(default, deserialize_with = "present")]
    structured_content: Option<Value>,
    is_error: Option<bool>,
    #[serde(rename = "_meta")]
    meta: Option<MetaObject>,
}

/// A result that is no step on the way to one.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Complete {
    Complete,
}

/// What is there, even if it is `null`.
fn present<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(value).map(Some)
}

impl From<PlainResult> for CallToolResult {
    fn from(plain: PlainResult) -> Self {
        let mut result = Self::default();
        result.result_type = plain
            .result_type
            .map(|Complete::Complete| ResultType::COMPLETE);
        result.content = plain.content;
        result.structured_content = plain.structured_content;
        result.is_error = plain.is_error;
        result.meta = plain.meta;
        result
    }
}

#[cfg(test)]
mod tests {
    use rmcp::RoleClient;
    use rmcp::model::ServerResult;
    use rmcp::service::RxJsonRpcMessage;
    use rmcp::transport::Transport as _;
    use tokio::io::{AsyncWriteExt as _, duplex, split};

    use super::{Lines, MAX_LINE_BYTES, PlainAnswer, read};

    fn is_plain(line: &str) -> bool {
        serde_json::from_str::<PlainAnswer>(line).is_ok()
    }

    #[test]
    fn an_answer_to_a_call_is_read_at_once_as_the_library_reads_it() {
        for line in [
            r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"a\nb"}]}}"#,
            r#"{"result":{"content":[],"isError":true,"structuredContent":null},"id":"x","jsonrpc":"2.0"}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[],"_meta":{"a":1}}}"#,
            r#"{"jsonrpc":"2.0","id":7.0,"result":{"content":[{"type":"resource_link","uri":"a:b","name":"n"}]}}"#,
        ] {
            assert!(is_plain(line), "{line}");
            let theirs: RxJsonRpcMessage<RoleClient> = serde_json::from_str(line).unwrap();
            let ours = read(line.as_bytes()).unwrap();
            assert_eq!(format!("{ours:?}"), format!("{theirs:?}"));
            let (_, result) = ours
                .into_response()
                .map(|(result, id)| (id, result))
                .unwrap();
            assert!(matches!(result, ServerResult::CallToolResult(_)), "{line}");
        }
    }

    #[test]
    fn everything_else_is_left_to_the_library() {
        for line in [
            r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[],"content":[]}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"isError":true}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"content":[],"resultType":"input_required"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"no"}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
        ] {
            assert!(!is_plain(line), "{line}");
            let theirs: RxJsonRpcMessage<RoleClient> = serde_json::from_str(line).unwrap();
            let ours = read(line.as_bytes()).unwrap();
            assert_eq!(format!("{ours:?}"), format!("{theirs:?}"));
        }
        for line in [
            "",
            "\r",
            "ready.",
            "{}",
            r#"{"jsonrpc":"2.0","id":1}"#,
            "\u{feff}",
        ] {
            assert!(read(line.as_bytes()).is_none(), "{line}");
        }
    }

    #[tokio::test]
    async fn lines_come_whole_and_one_that_is_too_long_is_dropped() {
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
            let long = vec![b'x'; MAX_LINE_BYTES + 1];
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
    async fn what_is_said_at_the_same_time_is_one_write_in_order() {
        let (ours, theirs) = duplex(1 << 16);
        let (output, input) = split(ours);
        let mut lines = Lines::new(output, input);
        let say = |id: usize| {
            let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
            serde_json::from_str(&text).unwrap()
        };
        let (first, second) = (lines.send(say(1)), lines.send(say(2)));
        // The later one takes both with it; the earlier one finds that it is done.
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
