//! What a message asks of the model: the person writes it, the model plays it.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Stands before a script in a message.
const SIGN: &str = "SOAK ";

/// One turn of the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Script {
    /// The id of the message; no other has it.
    pub(crate) id: String,
    /// Names the session in its workspace.
    pub(crate) tag: String,
    /// Words of the final answer.
    pub(crate) words: usize,
    /// Milliseconds between two of them.
    pub(crate) gap_ms: u64,
    /// Calls before it, round by round.
    pub(crate) rounds: Vec<Vec<Deed>>,
}

/// A call of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Deed {
    /// A command that ends at once.
    Quick,
    /// One that takes its time.
    Slow,
    /// One that kills the server that runs it.
    Crash,
    /// One that ends with an error.
    Fails,
    /// A file is written.
    Write,
    /// A file is read that may not be there.
    Read,
    /// A tool that there is not.
    Unknown,
    /// Arguments that cannot be valid.
    Invalid,
}

impl Script {
    /// As a message.
    pub(crate) fn text(&self) -> String {
        format!("{SIGN}{}", json!(self))
    }

    /// The one in a message, if there is one.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let (_, after) = text.rsplit_once(SIGN)?;
        let mut values = serde_json::Deserializer::from_str(after).into_iter();
        values.next()?.ok()
    }
}

impl Deed {
    /// The tool's name as it ends, and its arguments. `mark` is what the call leaves in the file of
    /// its session, once for each time that it runs.
    pub(crate) fn call(self, tag: &str, mark: &str) -> (&'static str, Value) {
        let leave = format!("echo {mark} >> ran-{tag}");
        let command = |rest: &str| {
            let line = format!("{leave}; {rest}");
            ("execute_command", json!({ "command": line }))
        };
        match self {
            Self::Quick => command("echo done"),
            Self::Slow => command("sleep 1.5; echo done"),
            Self::Crash => command("kill -9 $PPID; sleep 5"),
            Self::Fails => command("exit 3"),
            Self::Write => (
                "write_file",
                json!({ "path": format!("notes-{tag}"), "content": mark }),
            ),
            Self::Read => ("read_file", json!({ "path": format!("notes-{tag}") })),
            Self::Unknown => ("no_such_tool", json!({})),
            Self::Invalid => ("execute_command", json!({ "command": 7 })),
        }
    }
}

/// What a call leaves behind when it runs, by its arguments; `None` if it leaves nothing.
pub(crate) fn mark_of(args: &Value) -> Option<&str> {
    let command = args.get("command")?.as_str()?;
    command.strip_prefix("echo ")?.split(' ').next()
}

/// Word `index` of the answer to a message in the model's request `request`.
pub(crate) fn word(id: &str, request: u64, index: usize) -> String {
    // Some characters are two code units of UTF-16, by which offsets are counted.
    let sign = if index % 7 == 3 { "𝄞é" } else { "" };
    format!("{id}/{request}:{index}{sign} ")
}

/// The beginning of an answer says to which message and in which request.
pub(crate) fn source_of(text: &str) -> Option<(&str, u64)> {
    let (id, rest) = text.split_once('/')?;
    let (request, _) = rest.split_once(':')?;
    Some((id, request.parse().ok()?))
}

/// The whole answer to a message, with so many words.
pub(crate) fn answer(id: &str, request: u64, words: usize) -> String {
    (0..words).map(|index| word(id, request, index)).collect()
}

#[cfg(test)]
mod tests {
    use super::{Deed, Script, answer, mark_of, source_of};

    #[test]
    fn a_script_is_read_from_the_message_that_it_is() {
        let script = Script {
            id: "s1-2".to_owned(),
            tag: "s1".to_owned(),
            words: 3,
            gap_ms: 4,
            rounds: vec![vec![Deed::Quick, Deed::Crash]],
        };
        let text = format!("SOAK {{}}\n{} and more", script.text());
        assert_eq!(Script::read(&text), Some(script));
        assert_eq!(Script::read("hello"), None);
    }

    #[test]
    fn a_call_and_an_answer_say_whose_they_are() {
        let (_, args) = Deed::Slow.call("s1", "s1-2.7.0");
        assert_eq!(mark_of(&args), Some("s1-2.7.0"));
        let (_, args) = Deed::Write.call("s1", "s1-2.7.0");
        assert_eq!(mark_of(&args), None);
        assert_eq!(source_of(&answer("s1-2", 7, 5)), Some(("s1-2", 7)));
    }
}
