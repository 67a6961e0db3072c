//! Tables for this file.

use serde_json::{Value, json};

use super::{Breakdown, BreakdownKind, Task, plan};
use sepal_core::domain::{CallId, Entry, ModelCall, Tool, ToolAnnotations};

fn tools(names: &[&str]) -> Vec<Tool> {
    let tool = |name: &&str| Tool {
        name: (*name).to_owned(),
        title: None,
        description: String::new(),
        input_schema: Value::Null,
        output_schema: None,
        annotations: ToolAnnotations::default(),
        needs_tasks: false,
        view: None,
        runs_as_task: false,
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
        attachments: vec![],
    }
}

/// Plans an answer, then records it and the given results, as the agent would.
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
            attachments: vec![],
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
