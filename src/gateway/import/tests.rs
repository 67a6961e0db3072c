//! Tests the import of made-up exports in the forms of their programs.

use std::io::{Cursor, Write as _};

use serde_json::{Value, json};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::{Error, FileEntry, MAX_UNPACKED, archive};
use crate::agent::Conversation;
use crate::jobs::{Pool, Watch};
use crate::session::{SaidElsewhere, Speaker};

fn read(file: &[u8]) -> Result<Vec<FileEntry>, Error> {
    super::read(file, &Watch::default())
}

fn conversations(file: &Value) -> Vec<FileEntry> {
    read(file.to_string().as_bytes()).unwrap()
}

fn only(file: &Value) -> Conversation {
    match conversations(file).remove(0) {
        FileEntry::Conversation(conversation) => conversation,
        FileEntry::Unusable { why, .. } => panic!("{why}"),
    }
}

/// Formats messages as `person: text`, or with the model's name instead of `person`.
fn lines(conversation: &Conversation) -> Vec<String> {
    let said = conversation.said.iter();
    said.map(|SaidElsewhere { by, text, .. }| match by {
        Speaker::Person => format!("person: {text}"),
        Speaker::Model(name) => format!("{}: {text}", name.as_deref().unwrap_or("model")),
    })
    .collect()
}

fn node(parent: &Value, children: &[&str], message: &Value) -> Value {
    json!({ "parent": parent, "children": children, "message": message })
}

fn text(role: &str, at: f64, text: &str) -> Value {
    json!({
        "author": { "role": role, "name": null, "metadata": {} }, "create_time": at,
        "content": { "content_type": "text", "parts": [text] }, "recipient": "all",
        "metadata": if role == "assistant" { json!({ "model_slug": "gpt-5" }) } else { json!({}) },
    })
}

fn chatgpt() -> Value {
    let context = json!({
        "author": { "role": "user" }, "create_time": null,
        "content": { "content_type": "user_editable_context", "user_profile": "secret" },
        "metadata": { "is_visually_hidden_from_conversation": true },
    });
    let searched = json!({
        "author": { "role": "assistant" }, "create_time": 1_756_000_002.5, "recipient": "python",
        "content": { "content_type": "code", "language": "unknown", "text": "print(6*7)" },
        "metadata": { "model_slug": "gpt-5" },
    });
    let output = json!({
        "author": { "role": "tool", "name": "python" }, "create_time": 1_756_000_002.7,
        "content": { "content_type": "execution_output", "text": "42" }, "metadata": {},
        "recipient": "all",
    });
    let picture = json!({
        "author": { "role": "user" }, "create_time": 1_756_000_004.0, "recipient": "all",
        "content": { "content_type": "multimodal_text", "parts": [
            { "content_type": "image_asset_pointer", "asset_pointer": "sediment://x" }, "and this?",
            { "content_type": "hologram" },
        ] },
        "metadata": { "attachments": [{ "name": "plan.pdf" }] },
    });
    let thoughts = json!({
        "author": { "role": "assistant" }, "create_time": 1_756_000_005.0, "recipient": "all",
        "content": { "content_type": "thoughts", "thoughts": [{ "content": "hm" }] }, "metadata": {},
    });
    json!({
        "title": "Six times seven", "create_time": 1_756_000_000.25, "update_time": 1_756_000_400.5,
        "current_node": "f", "conversation_id": "6b0f0d9c", "id": "6b0f0d9c",
        "mapping": {
            "root": node(&Value::Null, &["ctx"], &Value::Null),
            "ctx": node(&json!("root"), &["a"], &context),
            "a": node(&json!("ctx"), &["b", "other"], &text("user", 1_756_000_001.0, "6*7?")),
            "other": node(&json!("a"), &[], &text("assistant", 1_756_000_009.0, "another branch")),
            "b": node(&json!("a"), &["c"], &searched),
            "c": node(&json!("b"), &["d"], &output),
            "d": node(&json!("c"), &["e"], &text("assistant", 1_756_000_003.0, "42.")),
            "e": node(&json!("d"), &["t"], &picture),
            "t": node(&json!("e"), &["f"], &thoughts),
            "f": node(&json!("t"), &[], &text("assistant", 1_756_000_006.0, "A plan.")),
        },
    })
}

#[test]
fn chatgpt_gives_the_branch_that_is_shown_with_calls_in_words() {
    let conversation = only(&json!([chatgpt()]));
    assert_eq!(conversation.title, "Six times seven");
    assert_eq!(conversation.origin, ("chatgpt", "6b0f0d9c".to_owned()));
    assert_eq!(conversation.created_at.unwrap().0, 1_756_000_000_250);
    assert_eq!(
        lines(&conversation),
        [
            "person: 6*7?",
            "gpt-5: Called `python` with\n\n```json\nprint(6*7)\n```\n\n`python` gave\n\n```\n42\n```\n\n42.",
            "person: [Left out: an image]\n\nand this?\n\n\
             [Left out: a part of the kind `hologram`]\n\n[Left out: the file `plan.pdf`]",
            "gpt-5: A plan.",
        ]
    );
    assert_eq!(conversation.said[0].at.unwrap().0, 1_756_000_001_000);
}

#[test]
fn links_that_go_in_a_circle_end_and_a_lost_end_is_the_newest_message() {
    let mut circle = chatgpt();
    circle["mapping"]["a"]["parent"] = json!("f");
    assert_eq!(only(&json!([circle])).said.len(), 4);
    let mut lost = chatgpt();
    lost["current_node"] = json!("gone");
    assert_eq!(
        lines(&only(&json!([lost]))),
        ["person: 6*7?", "gpt-5: another branch"]
    );
}

#[test]
fn what_is_no_conversation_is_told_beside_those_that_are() {
    let broken = json!({ "title": "Corrupted", "id": "x" });
    let mut nameless = chatgpt();
    for name in ["id", "conversation_id"] {
        nameless[name] = Value::Null;
    }
    let mut empty = chatgpt();
    empty["mapping"] = json!({});
    let found = conversations(&json!([broken, chatgpt(), nameless, empty]));
    let told: Vec<&str> = found
        .iter()
        .map(|found| match found {
            FileEntry::Conversation(_) => "taken",
            FileEntry::Unusable { why, .. } => why,
        })
        .collect();
    assert_eq!(
        told,
        [
            "it is no conversation of a known form",
            "taken",
            "it has no id, by which it would be known again",
            "it is empty",
        ]
    );
    assert!(matches!(&found[0], FileEntry::Unusable { title, .. } if title == "Corrupted"));
}

fn message(id: &str, parent: &str, is_person: bool, text: &str) -> Value {
    json!({
        "messageId": id, "parentMessageId": parent, "isCreatedByUser": is_person, "text": text,
        "sender": if is_person { "User" } else { "GPT-4o" },
        "model": if is_person { Value::Null } else { json!("gpt-4o") },
        "createdAt": "2024-04-09T14:32:05.230Z", "error": false, "unfinished": false,
    })
}

const NOBODY: &str = "00000000-0000-0000-0000-000000000000";

fn librechat(messages: &Value) -> Value {
    json!({
        "conversationId": "af1ea676", "endpoint": "openAI", "title": "Sails", "branches": true,
        "exportAt": "16:33:32 GMT+0200", "recursive": false, "options": { "model": "gpt-4o" },
        "messages": messages,
    })
}

#[test]
fn librechat_gives_the_newest_branch_of_a_list() {
    let mut answer = message("d", "c", false, "");
    answer["content"] = json!([
        { "type": "think", "think": "hm" },
        { "type": "tool_call", "tool_call": {
            "id": "1", "type": "tool_call", "name": "search", "args": "{\"q\":\"sail\"}",
            "output": "found ``` it",
        } },
        { "type": "text", "text": { "value": "So." } },
        { "type": "text", "text": "Done." },
        { "type": "dream" },
    ]);
    let mut asked = message("c", "a2", true, "how?");
    asked["files"] = json!([{ "filename": "sail.png", "type": "image/png" }]);
    let conversation = only(&librechat(&json!([
        message("q", NOBODY, true, "hello"),
        message("a1", "q", false, "first"),
        message("a2", "q", false, "second"),
        asked,
        answer,
    ])));
    assert_eq!(conversation.origin, ("librechat", "af1ea676".to_owned()));
    assert_eq!(conversation.created_at.unwrap().0, 1_712_673_125_230);
    assert_eq!(
        lines(&conversation),
        [
            "person: hello",
            "gpt-4o: second",
            "person: how?\n\n[Left out: the file `sail.png`]",
            "gpt-4o: Called `search` with\n\n```json\n{\"q\":\"sail\"}\n```\n\nIt gave\n\n\
             ````\nfound ``` it\n````\n\nSo.\n\nDone.\n\n[Left out: a part of the kind `dream`]",
        ]
    );
}

#[test]
fn librechat_gives_the_newest_branch_of_a_tree_however_deep_it_is() {
    let mut tree = Value::Null;
    for place in (0..40).rev() {
        let mut this = message(
            &format!("m{place}"),
            "",
            place % 2 == 0,
            &format!("{place}"),
        );
        let older = message("old", "", false, "not shown");
        this["children"] = if tree.is_null() {
            json!([])
        } else {
            json!([older, tree])
        };
        tree = this;
    }
    let mut export = librechat(&Value::Null);
    export.as_object_mut().unwrap().remove("messages");
    export["recursive"] = json!(true);
    export["messagesTree"] = json!([tree]);
    let conversation = only(&export);
    assert_eq!(conversation.said.len(), 40);
    assert_eq!(conversation.said[39].text, "39");

    // Deeper than a recursive reader could go.
    let depth = 2_500;
    let mut text = String::from(r#"{"conversationId":"x","title":"deep","messagesTree":["#);
    text.push_str(&r#"{"text":"a","children":["#.repeat(depth));
    text.push_str(&"]}".repeat(depth));
    text.push_str("]}");
    let found = read(text.as_bytes()).unwrap();
    assert!(matches!(&found[..], [FileEntry::Conversation(_)]));
}

fn open_webui(answer: &Value) -> Value {
    json!([{
        "id": "chat-1", "user_id": "u1", "title": "Weather", "created_at": 1_700_001_000,
        "updated_at": 1_700_001_020, "archived": false, "pinned": false, "meta": {},
        "chat": { "title": "Weather", "models": ["llama3.1:latest"], "history": {
            "currentId": "b",
            "messages": {
                "a": { "id": "a", "parentId": null, "childrenIds": ["b", "c"], "role": "user",
                    "content": "Weather in Paris?", "timestamp": 1_700_001_000,
                    "files": [{ "type": "image", "url": "data:" }, { "type": "file", "name": "x.txt" }] },
                "b": answer,
                "c": { "id": "c", "parentId": "a", "role": "assistant", "content": "not shown",
                    "timestamp": 1_700_001_030 },
            },
        } },
    }])
}

#[test]
fn open_webui_gives_the_branch_that_is_shown_in_its_older_and_newer_form() {
    let older = "<details type=\"reasoning\" done=\"true\" duration=\"3\">\n<summary>Thought</summary>\n\
                 &gt; hm\n</details>\n<details type=\"tool_calls\" done=\"true\" id=\"1\" \
                 name=\"get_weather\" arguments=\"&quot;{\\&quot;city\\&quot;:\\&quot;Paris\\&quot;}&quot;\" \
                 result=\"&quot;18C&quot;\">\n<summary>Tool Executed</summary>\n</details>\n18 degrees.";
    let newer = json!([
        { "type": "reasoning", "content": [{ "type": "output_text", "text": "hm" }] },
        { "type": "function_call", "name": "get_weather", "arguments": "{\"city\":\"Paris\"}" },
        { "type": "function_call_output", "output": [{ "type": "input_text", "text": "18C" }] },
        { "type": "message", "content": [{ "type": "output_text", "text": "18 degrees." }] },
    ]);
    let answer = |output: &Value| {
        json!({
            "id": "b", "parentId": "a", "childrenIds": [], "role": "assistant", "content": older,
            "model": "llama3.1:latest", "timestamp": 1_700_001_020, "done": true, "output": output,
        })
    };
    for (output, args) in [
        (Value::Null, "{\n  \"city\": \"Paris\"\n}"),
        (newer, "{\"city\":\"Paris\"}"),
    ] {
        let conversation = only(&open_webui(&answer(&output)));
        assert_eq!(conversation.origin, ("open-webui", "chat-1".to_owned()));
        let answer = format!(
            "llama3.1:latest: Called `get_weather` with\n\n```json\n{args}\n```\n\nIt gave\n\n\
             ```\n18C\n```\n\n18 degrees."
        );
        let said: Vec<String> = lines(&conversation)
            .iter()
            .map(|line| line.replace("\n\n\n", "\n\n"))
            .collect();
        let asked =
            "person: Weather in Paris?\n\n[Left out: an image]\n\n[Left out: the file `x.txt`]";
        assert_eq!(said, [asked, &answer], "{output}");
    }
}

#[test]
fn folded_parts_of_open_webui_stay_and_only_reasoning_and_calls_leave() {
    let thought =
        "<details type=\"reasoning\" done=\"true\">\n<summary>Thought</summary>\nhm\n</details>";
    let call = "<details type=\"tool_calls\" name=\"t\" arguments=\"&quot;{}&quot;\" result=\"&quot;r&quot;\">\n<summary>x</summary>\n</details>";
    let called = "Called `t` with\n\n```json\n{}\n```\n\nIt gave\n\n```\nr\n```";
    let own = "<details>\n<summary>Steps</summary>\n1. Go\n</details>";
    let nested = "<details open>\n<summary>A</summary>\n<details>b</details>\nc\n</details>";
    let run =
        "<details type=\"code_interpreter\" done=\"true\">\n<summary>Ran</summary>\n</details>";
    for (answer, expected) in [
        (format!("{thought}\nYes."), "Yes.".to_owned()),
        (format!("{own}\nYes."), format!("{own}\nYes.")),
        (format!("{thought}{own}"), own.to_owned()),
        (nested.to_owned(), nested.to_owned()),
        (run.to_owned(), run.to_owned()),
        (format!("a\n{call}\nb"), format!("a\n\n\n{called}\n\n\nb")),
        (
            format!("<details>\nx {thought} y\n</details>"),
            "<details>\nx  y\n</details>".to_owned(),
        ),
        (
            format!("<details type=\"reasoning\">a {own} b</details>Yes."),
            "Yes.".to_owned(),
        ),
        (
            "<detailsx> a <details".to_owned(),
            "<detailsx> a <details".to_owned(),
        ),
        ("a </details> b".to_owned(), "a </details> b".to_owned()),
        ("a <details> b".to_owned(), "a <details> b".to_owned()),
        (
            "a <details type=\"reasoning\"> b".to_owned(),
            "a <details type=\"reasoning\"> b".to_owned(),
        ),
        (
            format!("{own} <details type=\"reasoning\"> b {own}"),
            format!("{own} <details type=\"reasoning\"> b {own}"),
        ),
    ] {
        let message = json!({
            "id": "b", "parentId": "a", "role": "assistant", "content": answer, "model": "m",
        });
        let conversation = only(&open_webui(&message));
        assert_eq!(conversation.said[1].text, expected, "{answer}");
    }
}

#[test]
fn chatgpts_marks_of_sources_become_links() {
    let mark = "\u{e200}cite\u{e202}turn0search1\u{e201}";
    let mut export = chatgpt();
    export["mapping"]["f"]["message"]["content"]["parts"] = json!([format!("Rain. {mark}")]);
    export["mapping"]["f"]["message"]["metadata"]["content_references"] = json!([
        { "matched_text": mark, "items": [{ "title": "Rain", "url": "https://rain.test" }] },
        { "matched_text": " ", "type": "sources_footnote" },
    ]);
    let lines = lines(&only(&json!([export])));
    assert_eq!(lines[3], "gpt-5: Rain. [Rain](https://rain.test)");
}

#[test]
fn one_damaged_message_of_chatgpt_changes_only_itself_and_is_listed() {
    let whole = lines(&only(&json!([chatgpt()])));
    for content in [
        json!({}),
        json!({ "content_type": 5 }),
        json!({ "content_type": "text" }),
        json!({ "content_type": "text", "parts": 5 }),
        json!({ "content_type": "text", "parts": [{ "odd": 1 }] }),
        json!({ "content_type": "code" }),
        json!({ "content_type": "dream" }),
        json!("words"),
        json!([1]),
    ] {
        let mut export = chatgpt();
        export["mapping"]["f"]["message"]["content"] = content.clone();
        let conversation = only(&json!([export]));
        let read = lines(&conversation);
        assert_eq!(read[..3], whole[..3], "{content}");
        assert!(
            read[3].starts_with("gpt-5: [Left out: "),
            "{content}: {read:?}"
        );
        let listed = super::left_out_of(&conversation);
        assert_eq!(listed.len(), 4, "{content}: {listed:?}");
    }
}

#[test]
fn our_own_export_comes_back_without_what_was_withdrawn() {
    let at = "2026-11-25T10:00:00.000Z";
    let event = |seq: u64, name: &str, args: Value| json!({ "seq": seq, "at": at, "event": name, "args": args });
    let call = json!({ "callId": "call_1_0", "name": "read_file", "server": "bundled",
        "args": { "path": "a" } });
    let conversation = only(&json!({
        "sepal": { "export": "session", "version": 1 }, "id": "ses_1", "title": "Files",
        "exportedAt": at, "attachments": {},
        "events": [
            event(1, "user:message", json!(["read a", { "attachments": [{ "name": "p.png" }] }])),
            event(2, "session:changed", json!([{ "title": "Files" }])),
            event(3, "agent:thinking", json!([{ "turn": 1, "model": "m" }])),
            event(4, "agent:message", json!(["Reading.", { "calls": [call] }])),
            event(5, "tool:output", json!(["content", { "name": "read_file", "callId": "call_1_0" }])),
            event(6, "user:message", json!(["never mind", {}])),
            event(7, "session:changed", json!([{ "withdrawn": "m-1", "messageSeq": 6 }])),
            event(8, "agent:response", json!(["Read.", { "model": "gpt-5" }])),
        ],
    }));
    assert_eq!(
        lines(&conversation),
        [
            "person: read a\n\n[Left out: the file `p.png`]",
            "gpt-5: Reading.\n\nCalled `read_file` with\n\n```json\n{\n  \"path\": \"a\"\n}\n```\n\n\
             `read_file` gave\n\n```\ncontent\n```\n\nRead.",
        ]
    );
}

#[test]
fn what_is_known_by_nothing_is_refused_in_words() {
    assert!(matches!(read(b"hello"), Err(Error::NotJson(_))));
    assert!(matches!(read(&[0xff, 0xfe, 0]), Err(Error::NotJson(_))));
    assert_eq!(read(b"{}"), Err(Error::Unknown));
    assert_eq!(read(b"[{\"a\":1}]"), Err(Error::Unknown));
    assert_eq!(read(b"[]"), Ok(Vec::new()));
    assert!(matches!(read(b"PK\x03\x04 broken"), Err(Error::Archive(_))));
    let newer = br#"{"sepal":{"export":"session","version":2},"events":[]}"#;
    assert_eq!(read(newer), Err(Error::Unknown));
}

fn zipped(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in files {
        writer
            .start_file(*name, SimpleFileOptions::default())
            .unwrap();
        writer.write_all(content).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

#[test]
fn an_archive_gives_the_conversations_in_it_and_never_more_than_it_may() {
    let file = json!([chatgpt()]).to_string();
    let archive = zipped(&[
        ("user.json", b"{}"),
        ("export/conversations-001.json", b"[]"),
        ("export/conversations.json", file.as_bytes()),
        ("shared_conversations.json", b"no JSON"),
    ]);
    assert_eq!(read(&archive).unwrap().len(), 1);
    assert_eq!(
        read(&zipped(&[("user.json", b"{}")])),
        Err(Error::NoConversations)
    );
    // The packed file has about a thousandth of the unpacked size.
    let bomb = zipped(&[("conversations.json", &vec![b' '; 1 << 20])]);
    assert!(bomb.len() < 1 << 12);
    let unpack = |most| archive::read_conversations(&bomb, most, |_| Ok(()));
    assert!(matches!(unpack(1 << 16), Err(Error::TooMuch(_))));
    assert!(unpack(MAX_UNPACKED).is_ok());
    let headers = [&b"PK\x03\x04"[..], &b"PK\x01\x02".repeat(100_001)].concat();
    assert_eq!(read(&headers), Err(Error::TooMuch("100,000 files")));
}

/// A reader that scanned the rest of the tree at each level took a second for each of these conversations,
/// and a file may contain hundreds of them.
#[test]
fn many_deep_conversations_are_gone_through_once() {
    let depth = 2_000;
    let mut tree = String::from(r#"{"conversationId":"x","messagesTree":["#);
    let filling = "y".repeat(200);
    tree.push_str(&format!(r#"{{"text":"{filling}","children":["#).repeat(depth));
    tree.push_str(&"]}".repeat(depth));
    tree.push_str("]}");
    let file = format!("[{}]", vec![tree; 40].join(","));
    let found = read(file.as_bytes()).unwrap();
    assert_eq!(found.len(), 40);
    let is_taken = |found: &FileEntry| matches!(found, FileEntry::Conversation(_));
    assert!(found.iter().all(is_taken));
}

#[test]
fn few_bytes_that_are_many_values_are_left_out() {
    let mut wide = chatgpt();
    wide["title"] = json!("Wide");
    let zeros = format!("[{}0]", "0,".repeat(500_001));
    let text = wide
        .to_string()
        .replacen('{', &format!("{{\"x\":{zeros},"), 1);
    let found = read(format!("[{text},{}]", chatgpt()).as_bytes()).unwrap();
    assert!(
        matches!(&found[0], FileEntry::Unusable { title, why } if title == "Wide" && why.contains("500,000"))
    );
    assert!(matches!(found[1], FileEntry::Conversation(_)));
    let entries = format!("[{}0]", "0,".repeat(10_000));
    let refused = read(entries.as_bytes());
    assert_eq!(refused, Err(Error::TooMuch("10,000 conversations")));
}

#[test]
fn what_is_attached_is_decoded_once_however_often_it_is_named() {
    let at = "2026-11-25T10:00:00.000Z";
    let message = |seq: u64| {
        json!({ "seq": seq, "at": at, "event": "user:message",
            "args": ["look", { "attachments": [{ "id": "a", "name": "p.png" }] }] })
    };
    let events: Vec<Value> = (1..=1_000).map(message).collect();
    let conversation = only(&json!({
        "sepal": { "export": "session", "version": 1 }, "id": "ses_1", "title": "Files",
        "attachments": { "a": "eHl6".repeat(10_000) }, "events": events,
    }));
    let places = conversation.files.iter().map(|file| file.content.as_ptr());
    let places: std::collections::BTreeSet<_> = places.collect();
    assert_eq!((conversation.files.len(), places.len()), (1_000, 1));
}

#[tokio::test]
async fn reading_ends_when_nobody_waits_for_it() {
    let file = json!([chatgpt()]).to_string();
    let (tell, told) = std::sync::mpsc::channel();
    let place = Pool::new("test", 1).place().await.unwrap();
    let mut import = Box::pin(place.run_watched(move |watch| {
        let mut read = Ok(Vec::new());
        while read.is_ok() {
            read = super::read(file.as_bytes(), watch);
        }
        tell.send(read).unwrap();
    }));
    assert!(futures::poll!(&mut import).is_pending());
    drop(import);
    assert_eq!(told.recv().unwrap(), Err(Error::Abandoned));
}

#[test]
fn a_text_that_is_too_long_says_what_is_missing() {
    let mut long = chatgpt();
    long["mapping"]["a"]["message"]["content"]["parts"] = json!(["ü".repeat(300_000)]);
    let conversation = only(&json!([long]));
    let text = &conversation.said[0].text;
    assert!(text.len() < 263_000);
    assert!(
        text.ends_with("[Left out: the rest, 337856 bytes]"),
        "{}",
        &text[text.len() - 60..]
    );
}
