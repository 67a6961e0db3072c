//! What the scripted model says next: a function of the entries and tools, so it survives restarts.

use serde_json::{Value, json};

use super::report::{Round, report, rounds, went_well};
use crate::domain::{Entry, Tool};
use crate::llm::Error;

/// Words of one answer.
const MAX_WORDS: usize = 100_000;
/// Calls of one answer.
const MAX_CALLS: usize = 64;

/// What it answers any other text.
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
    /// Names and arguments.
    pub(super) calls: Vec<(String, Value)>,
    pub(super) breakdown: Option<Breakdown>,
}

/// A fault to be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Breakdown {
    pub(super) kind: BreakdownKind,
    /// At every attempt, not only at the first.
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

/// The next answer.
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

/// What a message asks for.
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

    /// The phrases for tests: a word, a colon, and what it needs.
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

/// Writes two files, reads back those that were written, and tells what it read.
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

/// Names the calls as this session's tools are named; says so when one is missing.
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

/// A tool by its name, or by its name behind its server's (`files.read_file`).
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
mod tests {
    use serde_json::{Value, json};

    use super::{Breakdown, BreakdownKind, Task, plan};
    use crate::domain::{CallId, Entry, ModelCall, Tool, ToolAnnotations};

    fn tools(names: &[&str]) -> Vec<Tool> {
        let tool = |name: &&str| Tool {
            name: (*name).to_owned(),
            title: None,
            description: String::new(),
            input_schema: Value::Null,
            annotations: ToolAnnotations::default(),
        };
        names.iter().map(tool).collect()
    }

    fn bundled() -> Vec<Tool> {
        tools(&["read_file", "write_file", "list_files", "execute_command"])
    }

    fn user(text: &str) -> Entry {
        Entry::User {
            seq: 1,
            text: text.to_owned(),
        }
    }

    /// Plans, then records the answer and the given results, as the agent would.
    fn play(entries: &mut Vec<Entry>, results: &[Result<&str, &str>]) -> String {
        let script = plan(entries, &bundled());
        let stamp = i64::try_from(entries.len()).unwrap();
        let calls: Vec<ModelCall> = script
            .calls
            .iter()
            .enumerate()
            .map(|(index, (name, args))| ModelCall {
                id: CallId::new(stamp, index),
                provider_id: String::new(),
                name: name.clone(),
                args: args.clone(),
            })
            .collect();
        assert_eq!(calls.len(), results.len(), "{script:?}");
        entries.push(Entry::Assistant {
            text: script.text.clone(),
            calls: calls.clone(),
            native: None,
        });
        for (call, result) in calls.into_iter().zip(results) {
            entries.push(Entry::ToolResult {
                call_id: call.id,
                provider_id: String::new(),
                name: call.name,
                text: result.unwrap_or_else(|text| text).to_owned(),
                is_error: result.is_err(),
            });
        }
        script.text
    }

    #[test]
    fn messages_are_understood() {
        fn check(text: &str, task: &Task<'_>) {
            assert_eq!(Task::read(text), *task, "{text}");
        }
        let fail = |kind, is_lasting| Task::Fail(Breakdown { kind, is_lasting });
        check("hello", &Task::Introduce);
        check("", &Task::Introduce);
        check("Make two files and show them", &Task::TwoFiles);
        check("List what is in the workspace", &Task::List(1));
        check(
            "Run a command and explain its output",
            &Task::Run("uname -a"),
        );
        check("run:  ls -l: x ", &Task::Run("ls -l: x"));
        check("run:", &Task::Introduce);
        check(
            "write: a/b.txt one two\nthree",
            &Task::Write {
                path: "a/b.txt",
                text: "one two\nthree",
            },
        );
        check("write: a", &Task::Introduce);
        check("calls: 3", &Task::List(3));
        check("calls: 999999", &Task::List(64));
        check("calls: x", &Task::Introduce);
        check("stream: 5", &Task::Talk(5));
        check("fail: 429", &fail(BreakdownKind::Limited, false));
        check("fail: 500", &fail(BreakdownKind::Broken, false));
        check("fail: cut always", &fail(BreakdownKind::Cut, true));
        check("fail: often", &Task::Introduce);
    }

    #[test]
    fn it_makes_two_files_reads_both_and_quotes_what_it_read() {
        let mut entries = vec![user("make two files and show them")];
        play(&mut entries, &[Ok("written"), Ok("written")]);
        let Entry::Assistant { calls, .. } = &entries[1] else {
            panic!("no answer")
        };
        assert_eq!(
            (calls[0].name.as_str(), &calls[1].args["path"]),
            ("write_file", &json!("notes/two.txt"))
        );
        play(
            &mut entries,
            &[Ok("The first note."), Err("Rejected by Ann: not now")],
        );
        let said = play(&mut entries, &[]);
        for quoted in ["written", "The first note.", "Rejected by Ann: not now"] {
            assert!(said.contains(quoted), "{said}");
        }
        entries.push(user("make two files and show them"));
        assert_eq!(
            plan(&entries, &bundled()).calls.len(),
            2,
            "it can be asked again"
        );
    }

    #[test]
    fn it_reads_back_only_what_was_written() {
        let mut entries = vec![user("make two files and show them")];
        play(&mut entries, &[Err("Rejected"), Ok("written")]);
        let reads = plan(&entries, &bundled()).calls;
        assert_eq!(
            reads,
            [("read_file".to_owned(), json!({"path": "notes/two.txt"}))]
        );
        let mut entries = vec![user("make two files and show them")];
        play(
            &mut entries,
            &[Err("Rejected: why so?"), Err("The outcome is unknown.")],
        );
        let said = play(&mut entries, &[]);
        assert!(
            said.contains("why so?") && said.contains("outcome is unknown"),
            "{said}"
        );
    }

    #[test]
    fn the_other_tasks_call_once_and_then_report() {
        for (text, name, args) in [
            (
                "list what is in the workspace",
                "list_files",
                json!({"path": "."}),
            ),
            (
                "run a command and explain its output",
                "execute_command",
                json!({"command": "uname -a"}),
            ),
            (
                "run: echo 'x'",
                "execute_command",
                json!({"command": "echo 'x'"}),
            ),
            (
                "write: a.txt hi",
                "write_file",
                json!({"path": "a.txt", "content": "hi"}),
            ),
        ] {
            let mut entries = vec![user(text)];
            assert_eq!(plan(&entries, &bundled()).calls, [(name.to_owned(), args)]);
            play(&mut entries, &[Ok("Linux sandbox 6.1")]);
            entries.push(Entry::Note {
                text: "a remark".to_owned(),
            });
            let said = play(&mut entries, &[]);
            assert!(said.contains("Linux sandbox 6.1"), "{said}");
        }
        assert_eq!(plan(&[user("calls: 7")], &bundled()).calls.len(), 7);
        assert_eq!(plan(&[user("stream: 3")], &[]).text, "word1 word2 word3");
    }

    #[test]
    fn tools_are_found_behind_their_server_and_a_missing_one_is_said() {
        let found = plan(&[user("run: x")], &tools(&["files.execute_command"]));
        assert_eq!(found.calls[0].0, "files.execute_command");
        let missing = plan(&[user("run: x")], &tools(&["myexecute_command"]));
        assert!(missing.calls.is_empty() && missing.text.contains("execute_command"));
        assert!(plan(&[], &[]).text.starts_with("I follow a script"));
    }
}
