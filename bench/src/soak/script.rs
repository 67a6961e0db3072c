//! A script for the model: the person puts it into a message, and the model executes it.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The prefix of a script in a message.
const SIGN: &str = "SOAK ";

/// One turn of the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Script {
    /// The unique id of the message.
    pub(crate) id: String,
    /// The name of the session in its workspace.
    pub(crate) tag: String,
    /// The number of words of the final answer.
    pub(crate) words: usize,
    /// Milliseconds between two words.
    pub(crate) gap_ms: u64,
    /// The calls before the answer, round by round.
    pub(crate) rounds: Vec<Vec<Deed>>,
}

/// A call of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Deed {
    /// A command that ends immediately.
    Quick,
    /// A command that takes some time.
    Slow,
    /// A command that kills the server that runs it.
    Crash,
    /// A command that ends with an error.
    Fails,
    /// Writes a file.
    Write,
    /// Reads a file that may not exist.
    Read,
    /// A tool that does not exist.
    Unknown,
    /// Invalid arguments.
    Invalid,
}

impl Script {
    /// Returns the script as the text of a message.
    pub(crate) fn text(&self) -> String {
        format!("{SIGN}{}", json!(self))
    }

    /// Reads the script of a message, if there is one.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let (_, after) = text.rsplit_once(SIGN)?;
        let mut values = serde_json::Deserializer::from_str(after).into_iter();
        values.next()?.ok()
    }
}

impl Deed {
    /// Returns the end of the tool's name, and its arguments. The call appends `mark` to the file of its
    /// session each time it runs.
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

/// Returns the mark that a call leaves when it runs, from its arguments; `None` if it leaves none.
pub(crate) fn mark_of(args: &Value) -> Option<&str> {
    let command = args.get("command")?.as_str()?;
    command.strip_prefix("echo ")?.split(' ').next()
}

/// Returns word `index` of the answer to a message in the model's request `request`.
pub(crate) fn word(id: &str, request: u64, index: usize) -> String {
    // Some characters are two code units of UTF-16, which offsets are counted in.
    let sign = if index % 7 == 3 { "𝄞é" } else { "" };
    format!("{id}/{request}:{index}{sign} ")
}

/// Reads the message and request of an answer from its beginning.
pub(crate) fn source_of(text: &str) -> Option<(&str, u64)> {
    let (id, rest) = text.split_once('/')?;
    let (request, _) = rest.split_once(':')?;
    Some((id, request.parse().ok()?))
}

/// Returns the whole answer to a message, with the given number of words.
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
