//! The counts of all counters.

use std::sync::Arc;

use serde_json::json;

use super::{Calibration, Counter, Method, estimate, estimated_usage, of_text};
use crate::{Answer, AskedCall, InvalidArguments, ProviderKind, Request, Vendor};
use sepal_core::domain::{
    CallId, CountedEntry, Encoding, Entry, ModelCall, Native, TokenUsage, Tool, ToolAnnotations,
};

/// S0.10, S1.6, S2.62.
#[test]
fn four_characters_are_a_token() {
    for (text, tokens) in [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("äöüß", 1)] {
        assert_eq!(of_text(text), tokens, "{text}");
    }
}

/// S0.6, S0.7, S0.8, S1.6, S1.17: texts, calls and results, each with its overhead.
#[test]
fn every_kind_has_its_own_overhead() {
    fn check(entry: &Entry, tokens: u64) {
        assert_eq!(estimate(entry), tokens, "{entry:?}");
    }
    let text = || "12345678".to_owned();
    check(
        &Entry::User {
            seq: 1,
            text: text(),
            attachments: vec![],
        },
        2 + 4,
    );
    check(&Entry::Note { text: text() }, 2 + 4);
    let call = ModelCall {
        id: CallId::new(1, 0),
        provider_id: "x".repeat(100),
        name: "tool".to_owned(),
        args: json!({"a": "ä"}),
    };
    let said = |calls| Entry::Assistant {
        text: text(),
        calls,
        native: None,
    };
    check(&said(vec![]), 2 + 4);
    check(&said(vec![call]), 2 + 4 + (1 + 3 + 8));
    let result = Entry::ToolResult {
        call_id: CallId::new(1, 0),
        provider_id: String::new(),
        name: "tool".to_owned(),
        text: text(),
        is_error: false,
        attachments: vec![],
    };
    check(&result, 2 + 8 + 4);
}

/// S0.9, S1.6: native blocks, and arguments that are not an object.
#[test]
fn content_of_an_unknown_kind_counts_as_its_json() {
    let said = |args, blocks| Entry::Assistant {
        text: String::new(),
        calls: vec![ModelCall {
            id: CallId::new(1, 0),
            provider_id: String::new(),
            name: "tool".to_owned(),
            args,
        }],
        native: Some(Native {
            family: "never-heard-of".to_owned(),
            blocks,
            compacts: false,
        }),
    };
    let call = |args: u64| 1 + args + 8;
    // 37 characters, four of which are two bytes.
    let unknown = json!([{"type": "never_seen", "data": "äöüß"}]);
    assert_eq!(estimate(&said(json!({}), unknown)), 4 + call(1) + 10);
    assert_eq!(estimate(&said(json!("{oops"), json!([]))), 4 + call(2) + 1);
    assert_eq!(estimate(&said(json!(null), json!(null))), 4 + call(1) + 1);
}

/// S1.3, S1.17: the estimate covers the complete request and the complete answer.
#[test]
fn an_estimate_of_usage_counts_the_request_and_the_answer() {
    let tool = Tool {
        name: "tool".to_owned(),
        title: None,
        description: "12345678".to_owned(),
        input_schema: json!({}),
        output_schema: None,
        annotations: ToolAnnotations::default(),
        needs_tasks: false,
        view: None,
        runs_as_task: false,
    };
    let mut request = Request {
        model: "m".to_owned(),
        system: Some("Be kind.".into()),
        entries: [Entry::User {
            seq: 1,
            text: "12345678".to_owned(),
            attachments: vec![],
        }]
        .into(),
        tools: Arc::from([tool]),
        deferral: None,
        temperature: None,
        effort: None,
        max_tokens: None,
        max_output: None,
        affordable: None,
        compacting: None,
        contents: crate::Contents::default(),
    };
    let asked = |args| AskedCall {
        provider_id: String::new(),
        name: "tool".to_owned(),
        args,
    };
    let answer = Answer {
        text: "abcd".to_owned(),
        reasoning: "abcdefgh".to_owned(),
        calls: vec![
            asked(Ok(json!({"a": "ä"}))),
            asked(Err(InvalidArguments::Malformed {
                raw: "{oops".to_owned(),
                problem: String::new(),
            })),
        ],
        ..Answer::default()
    };
    let usage = TokenUsage {
        input_tokens: (2 + 4) + (1 + 2 + 1 + 8) + (2 + 4),
        output_tokens: 1 + 2 + (1 + 3 + 8) + (1 + 2 + 8),
        reasoning_tokens: 2,
        is_estimated: true,
        ..TokenUsage::default()
    };
    assert_eq!(estimated_usage(&request, &answer), usage);
    request.system = None;
    request.tools = Arc::from([]);
    request.entries = [].into();
    let nothing = estimated_usage(&request, &Answer::default());
    assert_eq!((nothing.total(), nothing.is_estimated), (0, true));
}

fn openai(model: &str) -> Counter {
    Counter::new(Vendor::of(ProviderKind::OpenAi, None), model, None)
}

/// Asserts S3.10.
#[test]
fn a_model_has_the_vocabulary_that_was_published_for_it() {
    fn check(model: &str, encoding: Encoding) {
        assert_eq!(openai(model).encoding(), encoding, "{model}");
    }
    for model in [
        "gpt-4o",
        "gpt-4o-mini",
        "gpt-4.1-nano",
        "gpt-5",
        "gpt-5.6-sol",
        "o3-mini",
    ] {
        check(model, Encoding::O200k);
    }
    for model in ["gpt-4", "gpt-4-turbo-2024-04-09", "gpt-3.5-turbo"] {
        check(model, Encoding::Cl100k);
    }
    for model in ["gpt-6-luna", "gpt-50", "o30", "davinci"] {
        check(model, Encoding::FourCharacters);
    }
    let other = Vendor::of(ProviderKind::Anthropic, None);
    let other = Counter::new(other, "gpt-4o", None);
    assert_eq!(other.method(), Method::Estimated);
}

/// Asserts S3.10: the numbers are those of the vendor's own tool.
#[test]
fn published_vocabularies_count_exactly() {
    for (text, o200k, cl100k) in [
        ("", 0, 0),
        ("hello world", 2, 2),
        ("The quick brown fox jumps over the lazy dog.", 10, 10),
        ("antidisestablishmentarianism", 6, 6),
        ("お誕生日おめでとう", 8, 9),
    ] {
        let counts = (
            openai("gpt-4o").of_text(text),
            openai("gpt-4").of_text(text),
        );
        assert_eq!(counts, (o200k, cl100k), "{text}");
    }
    assert_eq!(openai("gpt-4o").method(), Method::Exact);
}

#[test]
fn an_entry_is_counted_once_for_each_encoding_and_stays_right_when_the_model_changes() {
    let text = "The quick brown fox jumps over the lazy dog.".to_owned();
    let entry = CountedEntry::new(Entry::User {
        seq: 1,
        text,
        attachments: vec![],
    });
    let (exact, rough) = (openai("gpt-4o"), openai("gpt-6-luna"));
    for _ in 0..2 {
        assert_eq!((exact.of_entry(&entry), rough.of_entry(&entry)), (14, 15));
    }
    assert!(entry.is_weighed(Encoding::O200k) && !entry.is_weighed(Encoding::Cl100k));
    // A long text that was never counted is left to another thread.
    let long = CountedEntry::new(Entry::Note {
        text: "word ".repeat(100_000),
    });
    let at_hand = |entry: &CountedEntry| exact.at_hand([entry].into_iter()).method();
    assert_eq!(at_hand(&entry), Method::Exact);
    assert_eq!(at_hand(&long), Method::Estimated);
    exact.of_entry(&long);
    assert_eq!(at_hand(&long), Method::Exact);
}

/// Texts on many topics, for a conversation with a provider that counts differently.
const TEXTS: [&str; 6] = [
    "Please read the report about the harvest and say in three sentences what has changed since \
     last year, what the farmers expect, and which numbers look wrong to you.",
    "fn window(past: Past<'_>, limits: Limits) -> Window {\n    let most = limits.max_tokens\
     .unwrap_or(u64::MAX);\n    let (earlier, turn) = past.parted();\n}\n",
    r#"{"id":"ses_01","items":[{"name":"wheat","tons":412.5},{"name":"rye","tons":97.25}]}"#,
    "Die Ernte war in diesem Jahr deutlich besser als im vergangenen, obwohl es im Fr\u{fc}hjahr \
     lange nicht geregnet hat und viele H\u{f6}fe zu wenig Wasser hatten.",
    "\u{4eca}\u{5e74}\u{7684}\u{6536}\u{6210}\u{6bd4}\u{53bb}\u{5e74}\u{597d}\u{5f97}\u{591a}\u{3002}",
    "$ cargo test --workspace\ntest result: ok. 546 passed; 0 failed; finished in 41.27s\n",
];

/// Asserts S3.10.
#[test]
fn after_twenty_reports_half_of_the_counts_are_off_by_less_than_five_percent() {
    let vendor = Vendor::of(ProviderKind::Anthropic, None);
    let learned = |known: &Calibration| Counter::new(vendor, "claude-haiku-5-5", Some(known));
    let truth = openai("gpt-4o");
    let mut known = Calibration::default();
    let mut entries = Vec::new();
    let mut errors = Vec::new();
    for call in 0..40 {
        for text in TEXTS.iter().cycle().skip(call).take(1 + call % 3) {
            let text = (*text).to_owned();
            entries.push(CountedEntry::new(Entry::User {
                seq: 1,
                text,
                attachments: vec![],
            }));
        }
        // A fifth more than OpenAI's count, and three tokens per message.
        let reported: u64 = entries.iter().map(|entry| truth.of_entry(entry) + 3).sum();
        let reported = reported * 6 / 5;
        let now = learned(&known);
        if call >= 20 {
            assert_eq!(now.method(), Method::Calibrated);
            let counted: u64 = entries.iter().map(|entry| now.of_entry(entry)).sum();
            errors.push(counted.abs_diff(reported) * 1_000 / reported);
        }
        let counted = entries.iter().map(|entry| now.counted(entry)).sum();
        // Every ninth report is wrong.
        let said = if call % 9 == 8 {
            reported * 4
        } else {
            reported
        };
        known.learn(counted, said);
    }
    errors.sort_unstable();
    assert!(errors[errors.len() / 2] < 50, "{errors:?}");
    let told = learned(&known).error().unwrap();
    assert!(told < 50, "{told}");
}
