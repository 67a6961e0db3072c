//! Tests the contents of exported documents, and that nothing in them executes.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Audience, Document, Form, Format, Part, Sink};
use crate::agent::ShownEvent;
use crate::domain::{
    Actor, Attachment, BlobId, ForkOrigin, MediaType, SessionId, Timestamp, UserId,
};
use crate::session::Event;
use crate::session::properties::Step;
use crate::session::properties::edits::{config, played};
use crate::session::properties::world::{World, digests};

fn attachment() -> Attachment {
    Attachment {
        id: BlobId::of(b"cat"),
        name: "a \"cat\".png".to_owned(),
        media_type: MediaType::Png,
        bytes: 3,
        width: Some(1),
        height: Some(1),
        source: None,
    }
}

fn ana() -> Actor {
    Actor {
        id: UserId::from_bits(1),
        name: "Ana <b>".to_owned(),
    }
}

fn document_of(events: impl IntoIterator<Item = Event>) -> Document {
    let mut document = Document::new(SessionId::from_bits(7), Timestamp(0));
    for (seq, event) in (1..).zip(events) {
        let at = Timestamp(60_000);
        document.push(ShownEvent { seq, at, event });
    }
    document
}

/// Builds a document of events in the form of the journal.
fn document() -> Document {
    let by = ana();
    let call = json!({ "id": "call_1_0", "name": "read_file", "server": "bundled", "args": { "path": "a" } });
    let event = |value: Value| serde_json::from_value::<Event>(value).unwrap();
    let usage = json!({ "inputTokens": 1, "cachedTokens": 0, "outputTokens": 1, "reasoningTokens": 0, "isEstimated": false });
    let events = [
        Event::TitleSet {
            title: "Cats & <script>".to_owned(),
            source: None,
        },
        Event::UserMessage {
            text: "look at ![x](https://evil.example/x.png) <img src=y> [z](javascript:alert(1))"
                .to_owned(),
            author: by.clone(),
            client_message_id: None,
            effort: None,
            attachments: vec![attachment()],
        },
        event(
            json!({ "type": "said", "turn": 1, "iteration": 1, "text": "I read.", "calls": [call],
            "usage": usage, "cost": null, "native": null,
            "reasoning": { "text": "think\nhard" } }),
        ),
        event(
            json!({ "type": "decided", "call": "call_1_0", "verdict": "approved",
            "by": { "kind": "person", "id": by.id, "name": "Ana" }, "reason": null, "edited": null }),
        ),
        event(
            json!({ "type": "ended", "call": "call_1_0", "name": "read_file", "server": "bundled",
            "outcome": { "status": "completed", "output": { "text": "```\n</pre>\n```" } },
            "duration_ms": 1234 }),
        ),
        event(
            json!({ "type": "answered", "turn": 1, "text": "A **cat**.", "model": "m", "usage": usage,
            "cost": null, "duration_ms": 5, "finish": "stop", "native": null }),
        ),
    ];
    document_of(events)
}

/// Writes the document with `<id>` as the content of each attachment.
fn text(format: Format) -> String {
    written(&document(), format)
}

fn written(document: &Document, format: Format) -> String {
    written_as(document, Form::Export(format))
}

fn written_as(document: &Document, form: Form) -> String {
    let mut text = Text(String::new());
    document.write(form, &mut text).unwrap();
    text.0
}

/// Collects the written text; an attachment appears as its id.
struct Text(String);

impl Sink for Text {
    fn text(&mut self, text: &str) -> std::io::Result<()> {
        self.0.push_str(text);
        Ok(())
    }

    fn content(&mut self, id: &BlobId) -> std::io::Result<()> {
        self.0.extend(["<", id.as_str(), ">"]);
        Ok(())
    }
}

#[test]
fn markdown_has_what_was_said_and_done() {
    let text = text(Format::Markdown);
    for part in [
        "# Cats & <script>\n",
        "## Ana <b> · 1970-01-01 00:01 UTC\n\nlook at",
        "- attached: image \"a \"cat\".png\", 1×1",
        "> *Thought:* think\n> hard",
        "### Call `bundled/read_file`: completed · 1.3 s · approved by Ana\n\n```json\n",
        // The fence is longer than any run of backticks in the text.
        "````\n```\n</pre>\n```\n````",
        "## Agent (m) · 1970-01-01 00:01 UTC\n\nA **cat**.",
    ] {
        assert!(text.contains(part), "{part:?} in {text}");
    }
}

/// Text of models and tools is hostile.
#[test]
fn a_page_shows_markup_of_others_as_text_and_loads_nothing() {
    let text = text(Format::Html);
    let id = BlobId::of(b"cat");
    for part in [
        "<title>Cats &amp; &lt;script&gt;</title>",
        "<h2>Ana &lt;b&gt; <small>",
        "&lt;img src=y&gt;",
        "<a href=\"https://evil.example/x.png\" rel=\"noopener noreferrer\">x</a>",
        &format!("<img alt=\"a &quot;cat&quot;.png\" src=\"data:image/png;base64,<{id}>\">"),
        "&lt;/pre&gt;",
        "A <strong>cat</strong>.",
    ] {
        assert!(text.contains(part), "{part:?} in {text}");
    }
    assert!(!text.contains("javascript:"), "{text}");
    assert!(!text.contains("<script"), "{text}");
    assert_eq!(text.matches("<img").count(), 1, "{text}");
}

#[test]
fn json_has_the_events_and_every_attachment_once() {
    let text = text(Format::Json);
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["title"], "Cats & <script>");
    let events = value["events"].as_array().unwrap();
    let names: Vec<&str> = events
        .iter()
        .filter_map(|it| it["event"].as_str())
        .collect();
    assert_eq!(
        names,
        [
            "session:changed",
            "user:message",
            "agent:message",
            "tool:decided",
            "tool:output",
            "agent:response"
        ]
    );
    let id = BlobId::of(b"cat");
    assert_eq!(
        value["attachments"],
        json!({ id.as_str(): format!("<{id}>") })
    );
}

/// As on the page, a withdrawn message is left out, and the reasoning before a stop is included.
#[test]
fn a_withdrawn_message_is_left_out_and_a_stopped_answer_is_whole() {
    let message = |text: &str, id: &str| Event::UserMessage {
        text: text.to_owned(),
        author: ana(),
        client_message_id: Some(id.to_owned()),
        effort: None,
        attachments: vec![],
    };
    let stopped = json!({ "type": "cancelled", "turn": 1, "text": "half", "reasoning": { "text": "thought" } });
    let document = document_of([
        message("kept", "m-1"),
        message("regretted", "m-2"),
        Event::Withdrawn {
            message_seq: 2,
            client_message_id: "m-2".to_owned(),
        },
        serde_json::from_value(stopped).unwrap(),
    ]);
    for format in [Format::Markdown, Format::Html] {
        let text = written(&document, format);
        for part in ["kept", "thought", "half", "The turn was stopped."] {
            assert!(text.contains(part), "{part:?} in {text}");
        }
        assert!(!text.contains("regretted"), "{text}");
    }
}

#[test]
fn a_shared_document_has_neither_reasoning_nor_ids_of_sessions() {
    let origin = SessionId::from_bits(9);
    let mut document = document();
    let forked = Event::Forked {
        origin: ForkOrigin {
            session: origin.clone(),
            seq: 2,
            root: origin.clone(),
        },
        has_files: None,
    };
    let (seq, at) = (100, Timestamp(60_000));
    document.push(ShownEvent {
        seq,
        at,
        event: forked,
    });
    let hidden = ["think", document.session.as_str(), origin.as_str()].map(str::to_owned);
    let text = written_as(&document, Form::Shared);
    assert!(text.contains("A <strong>cat</strong>."), "{text}");
    for hidden in &hidden {
        assert!(!text.contains(hidden), "{hidden} in {text}");
    }
    for format in [Format::Markdown, Format::Html] {
        let text = written(&document, format);
        for hidden in &hidden {
            assert!(text.contains(hidden), "{hidden} in {text}");
        }
    }
}

#[test]
fn arguments_that_ran_stand_beside_those_that_were_proposed() {
    let mut document = document();
    let decided = json!({ "type": "decided", "call": "call_1_0", "verdict": "approved",
        "by": { "kind": "person", "id": ana().id, "name": "Ana" }, "reason": null,
        "edited": { "args": { "path": "b" }, "digest": "d", "equal": "e" },
        "edited_by": { "id": UserId::from_bits(2), "name": "Bo" } });
    let decided = |event: &Event| matches!(event, Event::Decided { .. }).then(|| decided.clone());
    for shown in &mut document.events {
        if let Some(decided) = decided(&shown.event) {
            shown.event = serde_json::from_value(decided).unwrap();
        }
    }
    let forms = [Format::Markdown, Format::Html].map(Form::Export);
    for form in forms.into_iter().chain([Form::Shared]) {
        let text = written_as(&document, form);
        let ran = text.find("\"path\": \"b\"").unwrap();
        let proposed = text.find("\"path\": \"a\"").unwrap();
        assert!(ran < proposed, "{text}");
        for part in [
            "approved by Ana, with arguments that Bo changed",
            "Before a person changed them, the arguments were:",
        ] {
            assert!(text.contains(part), "{part:?} in {text}");
        }
    }
    let value: Value = serde_json::from_str(&written(&document, Format::Json)).unwrap();
    let decided = value["events"].as_array().unwrap().iter();
    let mut decided = decided.filter(|it| it["event"] == "tool:decided");
    let decided = &decided.next().unwrap()["args"][0];
    assert_eq!(decided["args"], json!({ "path": "b" }), "{decided}");
    assert_eq!(decided["edited"], true);
    assert_eq!(decided["editedBy"]["name"], "Bo");
}

/// Exports the session for its owner.
fn exported(world: &World) -> Document {
    let mut document = Document::new(SessionId::from_bits(7), Timestamp(0));
    for commit in &world.journal {
        for (seq, event) in commit.shown() {
            let (at, event) = (commit.at, event.clone());
            document.push(ShownEvent { seq, at, event });
        }
    }
    document
}

/// Returns the arguments of each call in the document's conversation.
fn shown_arguments(document: &Document, audience: Audience) -> BTreeMap<String, Value> {
    let parts = document.parts(audience).into_iter();
    let calls = parts.filter_map(|part| match part {
        Part::Call(call) => Some((call.id.to_string(), call.args)),
        Part::User { .. } | Part::Agent { .. } | Part::Note { .. } => None,
    });
    calls.collect()
}

/// Returns the arguments of each call in the exported events.
fn told_arguments(document: &Document) -> BTreeMap<String, Value> {
    let value: Value = serde_json::from_str(&written(document, Format::Json)).unwrap();
    let mut told = BTreeMap::new();
    for item in value["events"].as_array().unwrap() {
        let said = item["args"].as_array().unwrap().last().unwrap();
        let calls = match item["event"].as_str().unwrap() {
            "agent:message" => said["calls"].as_array().unwrap().clone(),
            "tool:view_call" => vec![said.clone()],
            "tool:decided" if said["args"].is_object() => vec![said.clone()],
            _ => continue,
        };
        for call in calls {
            let id = call["callId"].as_str().unwrap().to_owned();
            told.insert(id, call["args"].clone());
        }
    }
    told
}

proptest! {
    #![proptest_config(config())]

    /// Regardless of who changed and approved a call, the transcript, an export and a share of the session
    /// show the arguments whose digest the call started with.
    #[test]
    fn what_is_shown_of_a_call_that_started_is_what_ran(
        seed in any::<u8>(),
        steps in prop::collection::vec(any::<Step>(), 1..40),
    ) {
        let world = played(seed, steps);
        let document = exported(&world);
        let shown = [Audience::Owner, Audience::Others].map(|who| shown_arguments(&document, who));
        let readings: Vec<_> = shown.into_iter().chain([told_arguments(&document)]).collect();
        for event in world.events() {
            let Event::Started { call, name, digest, .. } = event else { continue };
            for shown in &readings {
                let (of_shown, _) = digests(name, &shown[call.as_str()]);
                prop_assert_eq!(&of_shown, digest, "{} {:?}", call, shown);
            }
        }
    }
}
