//! Plans the scripted model's next answer, purely from the entries and tools, so it survives restarts.

use serde_json::{Value, json};

use super::report::{Round, report, rounds, went_well};
use crate::Error;
use sepal_core::domain::{Entry, Tool};

/// The most words of one answer.
const MAX_WORDS: usize = 100_000;
/// The most calls of one answer.
const MAX_CALLS: usize = 64;

/// The answer to any other text.
const INTRODUCTION: &str = "I follow a script: I am no real model, so that you can try \
everything without a key. I can really do three things with tools:\n\n\
- **make two files and show them**\n\
- **list what is in the workspace**\n\
- **run a command and explain its output**\n\n\
To talk to a real model, add a provider.";

/// One answer.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Script {
    pub(super) text: String,
    pub(super) calls: Vec<(String, Value)>,
    pub(super) breakdown: Option<Breakdown>,
}

/// A failure that the script provokes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Breakdown {
    pub(super) kind: BreakdownKind,
    /// True if every attempt fails, false if only the first does.
    pub(super) is_lasting: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BreakdownKind {
    Limited,
    Broken,
    Cut,
}

impl Breakdown {
    pub(super) fn into_error(self, provider: &str) -> Error {
        let provider = provider.to_owned();
        let said = || "the script wants it so".to_owned();
        match self.kind {
            BreakdownKind::Limited => Error::RateLimited {
                provider,
                said: said(),
                retry_after: None,
            },
            BreakdownKind::Broken => Error::Unavailable {
                provider,
                said: said(),
                retry_after: None,
                source: None,
            },
            BreakdownKind::Cut => Error::Cut {
                provider,
                source: None,
            },
        }
    }
}

/// The next answer to the last message of a person.
pub(super) fn plan(entries: &[Entry], tools: &[Tool]) -> Script {
    let asked = entries
        .iter()
        .enumerate()
        .rev()
        .find_map(|(at, entry)| match entry {
            Entry::User { text, .. } => Some((text.trim(), entries.get(at + 1..)?)),
            Entry::Assistant { .. } | Entry::ToolResult { .. } | Entry::Note { .. } => None,
        });
    let Some((text, since)) = asked else {
        return say(INTRODUCTION);
    };
    let rounds = rounds(since);
    let first = match Task::read(text) {
        Task::Introduce => return say(INTRODUCTION),
        Task::Talk(words) => return say(talk(words)),
        Task::Fail(breakdown) => return fail(breakdown),
        Task::TwoFiles => return two_files(&rounds, tools),
        Task::List(count) => list(count),
        Task::Run(command) => call(
            "I run one command and read what it prints.",
            [("execute_command", json!({ "command": command }))],
        ),
        Task::Write { path, text } => call(
            "I write one file.",
            [("write_file", json!({ "path": path, "content": text }))],
        ),
    };
    if rounds.is_empty() {
        return with_tools(first, tools);
    }
    say(report(&rounds))
}

/// The task that a message asks for.
#[derive(Debug, PartialEq)]
enum Task<'a> {
    Introduce,
    TwoFiles,
    List(usize),
    Run(&'a str),
    Write { path: &'a str, text: &'a str },
    Talk(usize),
    Fail(Breakdown),
}

impl<'a> Task<'a> {
    fn read(text: &'a str) -> Self {
        if let Some((word, rest)) = text.split_once(':')
            && let Some(task) = Self::command(word, rest.trim())
        {
            return task;
        }
        let text = text.to_lowercase();
        if text.contains("two files") {
            Self::TwoFiles
        } else if text.contains("list") && text.contains("workspace") {
            Self::List(1)
        } else if text.contains("run a command") {
            Self::Run("uname -a")
        } else {
            Self::Introduce
        }
    }

    /// Parses the commands for tests: a word, a colon, and its arguments.
    fn command(word: &str, rest: &'a str) -> Option<Self> {
        match word {
            "run" if !rest.is_empty() => Some(Self::Run(rest)),
            "write" => {
                let (path, text) = rest.split_once(char::is_whitespace)?;
                Some(Self::Write { path, text })
            }
            "calls" => Some(Self::List(rest.parse::<usize>().ok()?.clamp(1, MAX_CALLS))),
            "stream" => Some(Self::Talk(rest.parse::<usize>().ok()?.clamp(1, MAX_WORDS))),
            "fail" => {
                let (kind, is_lasting) = match rest.strip_suffix(" always") {
                    Some(kind) => (kind, true),
                    None => (rest, false),
                };
                let kind = match kind {
                    "429" => BreakdownKind::Limited,
                    "500" => BreakdownKind::Broken,
                    "cut" => BreakdownKind::Cut,
                    _ => return None,
                };
                Some(Self::Fail(Breakdown { kind, is_lasting }))
            }
            _ => None,
        }
    }
}

/// Writes two files, reads back those that were written, and reports their content.
fn two_files(rounds: &[Round<'_>], tools: &[Tool]) -> Script {
    let files = [
        ("notes/one.txt", "The first note.\n"),
        ("notes/two.txt", "The second note.\n"),
    ];
    match rounds {
        [] => {
            let writes = files
                .map(|(path, content)| ("write_file", json!({ "path": path, "content": content })));
            with_tools(call("I make two files in `notes`.", writes), tools)
        }
        [written] => {
            let reads = files.into_iter().zip(written);
            let reads = reads
                .filter(|(_, call)| went_well(call))
                .map(|((path, _), _)| ("read_file", json!({ "path": path })));
            let reads: Vec<_> = reads.collect();
            if reads.is_empty() {
                return say(report(rounds));
            }
            with_tools(call("Now I read back what is there.", reads), tools)
        }
        _ => say(report(rounds)),
    }
}

fn list(count: usize) -> Script {
    let calls = (0..count).map(|_| ("list_files", json!({ "path": "." })));
    call("I look at what is in the workspace.", calls)
}

fn talk(words: usize) -> String {
    let words = (1..=words).map(|number| format!("word{number}"));
    words.collect::<Vec<_>>().join(" ")
}

fn fail(breakdown: Breakdown) -> Script {
    Script {
        text: "This answer came through, after an attempt that broke down on purpose.".to_owned(),
        breakdown: Some(breakdown),
        ..Script::default()
    }
}

fn say(text: impl Into<String>) -> Script {
    Script {
        text: text.into(),
        ..Script::default()
    }
}

fn call(text: &str, calls: impl IntoIterator<Item = (&'static str, Value)>) -> Script {
    let calls = calls.into_iter();
    Script {
        text: text.to_owned(),
        calls: calls.map(|(name, args)| (name.to_owned(), args)).collect(),
        breakdown: None,
    }
}

/// Replaces the tool names of the calls by those of the session; if a tool is missing, says so instead.
fn with_tools(mut script: Script, tools: &[Tool]) -> Script {
    for (name, _) in &mut script.calls {
        match named(tools, name) {
            Some(own) => own.clone_into(name),
            None => {
                return say(format!(
                    "I follow a script that needs the tool `{name}`, and this session has none. \
                     The status bar says whether there is a sandbox."
                ));
            }
        }
    }
    script
}

/// Finds a tool by its name, or by its name after a server prefix (`files.read_file`).
fn named<'a>(tools: &'a [Tool], name: &str) -> Option<&'a str> {
    let names = || tools.iter().map(|tool| tool.name.as_str());
    let behind_server = |own: &&str| {
        own.strip_suffix(name)
            .is_some_and(|server| server.ends_with(['.', '_', '-', '/', ':']))
    };
    names()
        .find(|own| *own == name)
        .or_else(|| names().find(behind_server))
}

#[cfg(test)]
mod tests;
