//! Connects a container's streams to the owner's: one task for each direction, so that an owner who reads
//! only one of them blocks nothing else.

use bollard::container::{AttachContainerResults, LogOutput};
use futures::StreamExt as _;
use tokio::{
    io::{AsyncWriteExt as _, DuplexStream, copy, duplex},
    sync::mpsc,
};
use tokio_util::task::TaskTracker;

/// The buffer size of each direction.
const BUFFER_BYTES: usize = 64 << 10;
/// The most lines of stderr that wait to be received.
const MAX_WAITING_LINES: usize = 256;
/// Most bytes that are kept of one line.
const MAX_LINE_BYTES: usize = 4096;

/// The owner's ends of the streams.
pub(super) struct Streams {
    pub(super) stdin: DuplexStream,
    pub(super) stdout: DuplexStream,
    pub(super) stderr: mpsc::Receiver<String>,
}

/// Starts to forward between container and owner. The tasks end when one of the sides does.
pub(super) fn pump(attached: AttachContainerResults, tasks: &TaskTracker) -> Streams {
    let (stdin, mut said) = duplex(BUFFER_BYTES);
    let (mut heard, stdout) = duplex(BUFFER_BYTES);
    let (lines, stderr) = mpsc::channel(MAX_WAITING_LINES);
    let AttachContainerResults {
        mut output,
        mut input,
    } = attached;
    tasks.spawn(async move {
        // An error means that the container has ended, which the supervisor notices too.
        let _ = copy(&mut said, &mut input).await;
        // The other half of the connection stays open, so this half has to be shut down.
        let _ = input.shutdown().await;
    });
    tasks.spawn(async move {
        let mut lines = Lines::new(lines);
        while let Some(Ok(part)) = output.next().await {
            match part {
                // An owner that stopped reading stdout misses the rest; stderr is still read.
                LogOutput::StdOut { message } | LogOutput::Console { message } => {
                    let _ = heard.write_all(&message).await;
                }
                LogOutput::StdErr { message } => lines.push(&message),
                LogOutput::StdIn { .. } => {}
            }
        }
        lines.finish();
    });
    Streams {
        stdin,
        stdout,
        stderr,
    }
}

/// Cuts bytes into lines of bounded length; a full buffer loses lines and does not block the sandbox.
struct Lines {
    rest: Vec<u8>,
    lines: mpsc::Sender<String>,
}

impl Lines {
    fn new(lines: mpsc::Sender<String>) -> Self {
        Self {
            rest: Vec::new(),
            lines,
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            for piece in part.chunks(MAX_LINE_BYTES) {
                self.rest.extend_from_slice(piece);
                if piece.ends_with(b"\n") || self.rest.len() >= MAX_LINE_BYTES {
                    self.send();
                }
            }
        }
    }

    fn finish(&mut self) {
        if !self.rest.is_empty() {
            self.send();
        }
    }

    fn send(&mut self) {
        let line = String::from_utf8_lossy(&self.rest).trim_end().to_owned();
        self.rest.clear();
        let _ = self.lines.try_send(line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(parts: &[&[u8]]) -> Vec<String> {
        let (sender, mut receiver) = mpsc::channel(MAX_WAITING_LINES);
        let mut lines = Lines::new(sender);
        for part in parts {
            lines.push(part);
        }
        lines.finish();
        drop(lines);
        std::iter::from_fn(|| receiver.try_recv().ok()).collect()
    }

    #[test]
    fn lines_are_whole_wherever_the_parts_are_cut() {
        assert_eq!(
            lines(&[b"one\ntw", b"o\n", b"three"]),
            ["one", "two", "three"]
        );
        assert!(lines(&[]).is_empty());
    }

    #[test]
    fn a_line_without_end_is_cut_and_a_flood_is_dropped() {
        let long = vec![b'x'; 3 * MAX_LINE_BYTES];
        assert!(lines(&[&long]).iter().all(|it| it.len() <= MAX_LINE_BYTES));
        let flood = b"y\n".repeat(10 * MAX_WAITING_LINES);
        assert_eq!(lines(&[&flood]).len(), MAX_WAITING_LINES);
    }
}
