//! What a command said, bounded, and how it ended.

use std::{
    collections::VecDeque, fmt::Write, os::unix::process::ExitStatusExt, process::ExitStatus,
    time::Duration,
};

use serde_json::{Value, json};

/// The most that is kept of the beginning of a stream.
const HEAD_BYTES: usize = 16 * 1024;
/// The most that is kept of the end of a stream.
const TAIL_BYTES: usize = 16 * 1024;

/// The first and the last bytes of a stream of any length, and all of it up to a limit.
#[derive(Default)]
pub(crate) struct HeadTail {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    left_out: usize,
    /// Empty as long as head and tail are all, and where all of it would be too much.
    whole: Vec<u8>,
    /// Most that is kept in `whole`.
    most: usize,
}

impl HeadTail {
    fn up_to(most: usize) -> Self {
        Self {
            most,
            ..Self::default()
        }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.keep_whole(bytes);
        let room = HEAD_BYTES.saturating_sub(self.head.len());
        let (head, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend(head);
        self.tail.extend(rest);
        let excess = self.tail.len().saturating_sub(TAIL_BYTES);
        self.tail.drain(..excess);
        self.left_out += excess;
    }

    fn keep_whole(&mut self, bytes: &[u8]) {
        let kept = self.head.len() + self.tail.len() + self.left_out;
        let all = kept + bytes.len();
        if all > self.most {
            self.whole = Vec::new();
        } else if !self.whole.is_empty() {
            self.whole.extend_from_slice(bytes);
        } else if all > HEAD_BYTES + TAIL_BYTES && self.left_out == 0 {
            let (front, back) = self.tail.as_slices();
            self.whole = [&self.head, front, back, bytes].concat();
        }
    }

    /// All of it, where the text leaves something out and it was not too long.
    pub(crate) fn whole(&self) -> Option<&[u8]> {
        (self.left_out > 0 && !self.whole.is_empty()).then_some(&self.whole)
    }

    fn is_empty(&self) -> bool {
        self.head.is_empty()
    }

    /// A character that was cut in two at the gap becomes a replacement character on each side.
    fn text(&self) -> String {
        let tail: Vec<u8> = self.tail.iter().copied().collect();
        if self.left_out == 0 {
            let whole = [self.head.as_slice(), &tail].concat();
            return String::from_utf8_lossy(&whole).into_owned();
        }
        format!(
            "{}\n[… {} bytes left out …]\n{}",
            String::from_utf8_lossy(&self.head),
            self.left_out,
            String::from_utf8_lossy(&tail)
        )
    }
}

/// Why we ended a command before its time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Stop {
    Timeout,
    Cancelled,
}

/// Everything about a command that has ended.
pub(crate) struct Report {
    pub(crate) stdout: HeadTail,
    pub(crate) stderr: HeadTail,
    pub(crate) stop: Option<Stop>,
    timeout: Duration,
    status: Option<ExitStatus>,
    took: Duration,
}

impl Report {
    /// Keeps all of each stream up to so many bytes.
    pub(crate) fn new(timeout: Duration, output_bytes: usize) -> Self {
        Self {
            stdout: HeadTail::up_to(output_bytes),
            stderr: HeadTail::up_to(output_bytes),
            stop: None,
            timeout,
            status: None,
            took: Duration::ZERO,
        }
    }

    pub(crate) fn ended(&mut self, status: ExitStatus, took: Duration) {
        self.status = Some(status);
        self.took = took;
    }

    pub(crate) fn was_stopped(&self) -> bool {
        self.stop.is_some()
    }

    /// For the model: the end first, because it decides how the rest is read.
    pub(crate) fn text(&self) -> String {
        let mut text = self.ending();
        for (name, stream) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            if !stream.is_empty() {
                let _ = write!(text, "\n--- {name} ---\n{}", stream.text());
            }
        }
        if self.stdout.is_empty() && self.stderr.is_empty() {
            text.push_str("\nNo output.");
        }
        text
    }

    fn ending(&self) -> String {
        match (self.stop, self.exit_code(), self.signal()) {
            (Some(Stop::Timeout), ..) => format!(
                "Stopped: the command ran longer than {} s. Split the work, or let it do less.",
                self.timeout.as_secs()
            ),
            (Some(Stop::Cancelled), ..) => "Stopped: the call was cancelled.".to_owned(),
            (None, Some(code), _) => format!("Exit code {code}"),
            (None, None, Some(9)) => "Killed by signal 9 (SIGKILL), perhaps because the sandbox \
                                      ran out of memory. Use less of it."
                .to_owned(),
            (None, None, Some(25)) => "Killed by signal 25 (SIGXFSZ): a file grew past the \
                                       sandbox's limit. Write less."
                .to_owned(),
            (None, None, Some(signal)) => format!("Killed by signal {signal}"),
            (None, None, None) => "It is not known how the command ended.".to_owned(),
        }
    }

    /// The streams of which the text leaves something out, whole, by their names.
    pub(crate) fn whole(&self) -> impl Iterator<Item = (&'static str, &[u8])> {
        let streams = [("stdout", &self.stdout), ("stderr", &self.stderr)];
        let whole = streams.map(|(name, stream)| Some((name, stream.whole()?)));
        whole.into_iter().flatten()
    }

    /// For programs: `structuredContent`. The output itself is only in the text, once.
    pub(crate) fn facts(&self) -> Value {
        json!({
            "exit_code": self.exit_code(),
            "signal": self.signal(),
            "timed_out": self.stop == Some(Stop::Timeout),
            "cancelled": self.stop == Some(Stop::Cancelled),
            "duration_ms": u64::try_from(self.took.as_millis()).unwrap_or(u64::MAX),
            "stdout_bytes_left_out": self.stdout.left_out,
            "stderr_bytes_left_out": self.stderr.left_out,
        })
    }

    fn exit_code(&self) -> Option<i32> {
        self.status.and_then(|status| status.code())
    }

    fn signal(&self) -> Option<i32> {
        self.status.and_then(|status| status.signal())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_output_is_whole() {
        let mut output = HeadTail::default();
        output.push("żółw".as_bytes());
        output.push(b"\n");
        assert_eq!(output.text(), "żółw\n");
    }

    #[test]
    fn long_output_keeps_both_ends_and_counts_the_rest() {
        let mut output = HeadTail::default();
        for _ in 0..10 {
            output.push(&[b'a'; HEAD_BYTES]);
        }
        output.push(b"end");
        assert_eq!(output.left_out, 8 * HEAD_BYTES + 3);
        let text = output.text();
        assert!(text.contains("[… 131075 bytes left out …]"));
        assert!(text.starts_with("aaa") && text.ends_with("aend"));
    }

    #[test]
    fn all_of_a_long_output_is_kept_up_to_its_limit() {
        let whole = |most: usize, chunks: &[&[u8]]| {
            let mut output = HeadTail::up_to(most);
            for chunk in chunks {
                output.push(chunk);
            }
            output.whole().map(<[u8]>::to_vec)
        };
        let (half, most) = (vec![b'a'; HEAD_BYTES], 4 * HEAD_BYTES);
        assert_eq!(whole(most, &[&half, &half]), None, "nothing is left out");
        let expected = [&half[..], &half, b"end"].concat();
        assert_eq!(whole(most, &[&half, &half, b"end"]), Some(expected));
        let expected = half.repeat(4);
        assert_eq!(whole(most, &[&half[..]; 4]), Some(expected.clone()));
        assert_eq!(whole(most, &[&expected]), Some(expected));
        assert_eq!(whole(most, &[&half, &half, &half, &half, b"x", b"y"]), None);
        assert_eq!(whole(0, &[&half[..]; 4]), None);
    }

    #[test]
    fn output_exactly_as_long_as_what_is_kept_is_whole() {
        let mut output = HeadTail::default();
        output.push(&vec![b'x'; HEAD_BYTES + TAIL_BYTES]);
        assert_eq!(output.text().len(), HEAD_BYTES + TAIL_BYTES);
    }
}
