//! Tests the way from entries to contexts and back to the request, without a model.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::{
    ArrangedContexts, AssembledRequest, Assembler, ContextBuilder, MAX_BYTES, RequestOptions,
};
use crate::conversion::MADE;
use crate::{
    Context, ContextError, ContextFilter, ContextKind, ContextProvider, ContextSession,
    FilteredProvider, HistoryProvider, SystemPromptProvider,
};
use sepal_core::domain::{
    CallId, Entry, ModelCall, Native, SessionId, SessionKey, TenantId, Timestamp, TurnId,
};
use sepal_core::history::Input;
use sepal_llm::tokens::Counter;

fn session() -> ContextSession<'static> {
    ContextSession::create(SessionKey {
        tenant: TenantId::from_bits(1),
        session: SessionId::from_bits(1),
    })
}

fn call(nth: usize, name: &str, args: Value) -> ModelCall {
    ModelCall {
        id: CallId::new(1_000, nth),
        provider_id: format!("toolu_{nth}"),
        name: name.to_owned(),
        args,
    }
}

fn result(nth: usize, text: &str, is_error: bool) -> Entry {
    Entry::ToolResult {
        call_id: CallId::new(1_000, nth),
        provider_id: format!("toolu_{nth}"),
        name: "add".to_owned(),
        text: text.to_owned(),
        is_error,
        attachments: vec![],
    }
}

/// A question, two calls with signed reasoning, their results, a note, and the answer.
fn worked() -> ContextSession<'static> {
    let mut session = session();
    let entries = [
        Entry::message("user", "Add them"),
        Entry::Assistant {
            text: "I add.".to_owned(),
            calls: vec![call(0, "add", json!({"a": 1})), call(1, "add", json!({}))],
            native: Some(Native {
                family: "anthropic".to_owned(),
                blocks: json!([{"signature": "s"}]),
                compacts: false,
            }),
        },
        result(0, r#"{"sum": 3}"#, false),
        result(1, "no numbers", true),
        Entry::message("note", "A remark"),
        Entry::message("assistant", "3"),
    ];
    for (entry, at) in entries.into_iter().zip(1..) {
        session.add_entry(entry, Timestamp(at * 1_000));
    }
    session
}

async fn history(session: &ContextSession<'_>, limit: usize) -> Vec<Context> {
    let provider = HistoryProvider::new(limit);
    provider.provide(session).await.unwrap()
}

fn told(contexts: &[Context]) -> Vec<(&str, String)> {
    let told = contexts.iter();
    told.map(|context| (context.kind().as_str(), context.content().into_owned()))
        .collect()
}

/// Asserts S4.4, S4.5, S4.6, S4.7, S4.8, S4.9, S4.10, S4.15, S4.21.
#[tokio::test]
async fn every_entry_is_told_the_newest_first() {
    let worked = worked();
    let contexts = history(&worked, 100).await;
    let expected = [
        ("assistant", "3"),
        ("note", "A remark"),
        (
            "tool_result",
            "Tool: add\nSuccess: false\nError: no numbers",
        ),
        (
            "tool_result",
            "Tool: add\nSuccess: true\nResult: {\"sum\": 3}",
        ),
        ("tool_call", "Tool: add\nParameters: {}"),
        ("tool_call", "Tool: add\nParameters: {\"a\":1}"),
        ("assistant", "I add."),
        ("thinking", "[{\"signature\":\"s\"}]"),
        ("user", "Add them"),
    ];
    let expected = expected.map(|(kind, text)| (kind, text.to_owned()));
    assert_eq!(told(&contexts), expected);
    let custom = Context::new("weather", "rain");
    assert_eq!(custom.kind(), &ContextKind::Custom("weather".into()));
}

/// Asserts S4.1, S4.12, S4.13, S4.14, S4.17, S4.21.
#[tokio::test]
async fn metadata_say_what_an_entry_is_and_the_entry_stays_as_it_is() {
    let worked = worked();
    let before: Vec<_> = worked.history().cloned().collect();
    let contexts = history(&worked, 100).await;
    let metadata = |at: usize| Value::Object(contexts[at].metadata());
    let at = |second| format!("1970-01-01T00:00:0{second}.000Z");
    assert_eq!(
        metadata(0),
        json!({"entry_id": "message:6", "timestamp": at(6)})
    );
    assert_eq!(
        metadata(1),
        json!({"entry_id": "note:5.0", "timestamp": at(5)})
    );
    assert_eq!(
        metadata(3),
        json!({"entry_id": "result:call_1000_0", "timestamp": at(3), "tool_name": "add", "success": true,
               "call_id": "call_1000_0", "provider_id": "toolu_0"})
    );
    assert_eq!(metadata(2)["success"], false);
    assert_eq!(
        metadata(5),
        json!({"entry_id": "call:call_1000_0", "timestamp": at(2), "tool_name": "add",
               "call_id": "call_1000_0", "provider_id": "toolu_0"})
    );
    assert_eq!(metadata(7)["family"], "anthropic");
    let added = contexts[0].clone().with_metadata("score", 3);
    assert_eq!(added.metadata()["score"], 3);
    assert_eq!(contexts[0].metadata().get("score"), None, "it was a copy");
    let ids: std::collections::BTreeSet<String> = contexts
        .iter()
        .map(|context| context.metadata()["entry_id"].to_string())
        .collect();
    assert_eq!(ids.len(), contexts.len(), "no id twice: {ids:?}");
    assert!(worked.history().eq(before.iter()), "nothing was changed");
    let shown = serde_json::to_value(&contexts[0]).unwrap();
    let metadata = json!({"entry_id": "message:6", "timestamp": at(6)});
    let expected = json!({"type": "assistant", "content": "3", "metadata": metadata});
    assert_eq!(shown, expected);
}

/// Asserts S4.4, S4.15, S4.16, S4.20, S4.21.
#[tokio::test]
async fn the_limit_counts_entries_and_nothing_said_is_no_context() {
    let mut session = session();
    assert_eq!(history(&session, 10).await.len(), 0);
    for (text, at) in [("one", 1), ("two", 2), ("three", 3)] {
        session.add_entry(Entry::message("user", text), Timestamp(at));
    }
    let texts = |contexts: Vec<Context>| {
        let texts = contexts.iter().map(|it| it.content().into_owned());
        texts.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(texts(history(&session, 2).await), "three two");
    assert_eq!(texts(history(&session, 0).await), "");
    assert_eq!(texts(history(&session, 9).await), "three two one");
    assert_eq!(session.input(), "three");
}

/// Gives the contexts or error that it was made with.
struct FixedProvider(&'static str, Result<Vec<Context>, ContextError>);

#[async_trait]
impl ContextProvider for FixedProvider {
    fn name(&self) -> &str {
        self.0
    }

    async fn provide(&self, _: &ContextSession<'_>) -> Result<Vec<Context>, ContextError> {
        self.1.clone()
    }
}

fn assembler(providers: Vec<Arc<dyn ContextProvider>>) -> Assembler {
    let prompt = SystemPromptProvider::new("Be kind. {{tools}}", Input::Apart("query")).unwrap();
    ContextBuilder::default()
        .with_system_prompt(prompt)
        .with_context_providers(providers)
        .build()
}

async fn arranged(assembler: &Assembler, session: &ContextSession<'_>) -> ArrangedContexts {
    let gathered = assembler.gather(session).await;
    assert_eq!(gathered.failures, []);
    gathered.arranged(session)
}

fn request(arranged: &ArrangedContexts, turn: usize) -> AssembledRequest {
    let options = RequestOptions::default();
    let system = arranged.system(&options.tools, "").unwrap();
    AssembledRequest::new(&system, arranged.history(), turn, options)
}

/// Asserts S4.3, S4.19, D5: the order is reversed once, and the entries are exact to the byte for the vendor.
#[tokio::test]
async fn a_request_holds_the_original_entries_the_oldest_first() {
    let worked = worked();
    let whole = assembler(vec![Arc::new(HistoryProvider::whole())]);
    let arranged = arranged(&whole, &worked).await;
    assert!(arranged.is_whole());
    let originals = worked.history().collect::<Vec<_>>();
    let pairs = arranged.history().iter().rev().zip(&originals);
    assert!(
        pairs
            .into_iter()
            .all(|(one, other)| Arc::ptr_eq(one, other))
    );
    assert_eq!(arranged.history().len(), originals.len());
    let request = request(&arranged, 2);
    assert_eq!(request.system.as_deref(), Some("Be kind."));
    let entries = request.entries.iter();
    assert!(entries.eq(originals.iter().rev().map(|entry| &****entry)));
}

/// Asserts S4.2, S4.18, S4.19.
#[tokio::test]
async fn what_others_give_stands_where_its_provider_stands() {
    let mut session = session();
    for (role, text) in [("user", "one"), ("assistant", "1"), ("user", "two")] {
        session.add_entry(Entry::message(role, text), Timestamp(1));
    }
    let rules = vec![
        Context::new("b", "newer rule"),
        Context::new("a", "older </context> rule"),
    ];
    let facts = vec![Context::system("And brief."), Context::new("fact", "rain")];
    let assembler = assembler(vec![
        Arc::new(FixedProvider("rules", Ok(rules))),
        Arc::new(HistoryProvider::whole()),
        Arc::new(FixedProvider("weather", Ok(facts))),
    ]);
    let arranged = arranged(&assembler, &session).await;
    let request = request(&arranged, 1);
    assert_eq!(request.system.as_deref(), Some("Be kind.\n\nAnd brief."));
    let texts: Vec<&str> = request
        .entries
        .iter()
        .map(|entry| match entry {
            Entry::User { text, .. } | Entry::Assistant { text, .. } | Entry::Note { text } => text,
            Entry::ToolResult { .. } => "",
        })
        .collect();
    let expected = [
        "<context type=\"a\" source=\"rules\">\nolder <\\/context> rule\n</context>",
        "<context type=\"b\" source=\"rules\">\nnewer rule\n</context>",
        "one",
        "1",
        "<context type=\"fact\" source=\"weather\">\nrain\n</context>",
        "two",
    ];
    assert_eq!(texts, expected);
    let system = arranged
        .system(&RequestOptions::default().tools, "")
        .unwrap();
    let sources = system.sources(Counter::default());
    assert_eq!(sources.keys().collect::<Vec<_>>(), ["rules", "weather"]);
    let tokens = system.tokens(&[], Counter::default());
    let own = system.weights(&[], Counter::default()).system;
    assert_eq!(tokens, own + sources.values().sum::<u64>());
}

/// Asserts S4.16: a provider that fails costs only its own contexts.
#[tokio::test]
async fn a_provider_that_fails_is_told_once_a_turn_and_the_others_count() {
    let mut session = session();
    session.add_entry(Entry::message("user", "one"), Timestamp(1));
    let much = vec![
        Context::new("x", "new"),
        Context::new("x", "y".repeat(MAX_BYTES)),
    ];
    let assembler = assembler(vec![
        Arc::new(FixedProvider(
            "broken",
            Err(ContextError::new("it is away")),
        )),
        Arc::new(FixedProvider("much", Ok(much))),
        Arc::new(HistoryProvider::whole()),
    ]);
    let gathered = assembler.gather(&session).await;
    let failures: Vec<String> = gathered
        .failures
        .iter()
        .map(|(name, error)| format!("{name}: {error}"))
        .collect();
    let expected = [
        "broken: it is away",
        "much: it gave more than 256 KiB; the oldest was left out",
    ];
    assert_eq!(failures, expected);
    assert_eq!(
        request(&gathered.arranged(&session), 1)
            .entries
            .iter()
            .count(),
        2
    );
    let again = assembler.gather(&session).await;
    assert_eq!(again.failures, [], "the same turn");
    assert_eq!(
        request(&again.arranged(&session), 1).entries.iter().count(),
        2
    );
}

/// Asserts S4.15, S4.23: a request can be built of what a filter or a limit leaves.
#[tokio::test]
async fn of_a_message_in_part_the_rest_is_asked_and_no_signature() {
    let worked = worked();
    let no_thoughts = ContextFilter::default()
        .kinds(["user", "assistant", "tool_call", "tool_result"].map(ContextKind::from));
    let provider = FilteredProvider::new(Arc::new(HistoryProvider::whole()), no_thoughts);
    let filtered = arranged(&assembler(vec![Arc::new(provider)]), &worked).await;
    assert!(!filtered.is_whole());
    assert_eq!(filtered.history().len(), 5, "no remark");
    let Entry::Assistant {
        text,
        calls,
        native,
    } = &**filtered.history()[1]
    else {
        panic!("{filtered:?}");
    };
    assert_eq!((text.as_str(), calls.len(), native), ("I add.", 2, &None));
    let words = ContextFilter::default().kinds([ContextKind::Assistant]);
    let provider = FilteredProvider::new(Arc::new(HistoryProvider::whole()), words);
    let words = arranged(&assembler(vec![Arc::new(provider)]), &worked).await;
    let Entry::Assistant { calls, .. } = &**words.history()[0] else {
        panic!("{words:?}");
    };
    assert!(calls.is_empty());
    let newest = arranged(&assembler(vec![Arc::new(HistoryProvider::new(2))]), &worked).await;
    assert_eq!(newest.history().len(), 2);
}

/// An unchanged context is the same text, counted once, in every turn.
#[tokio::test]
async fn a_context_is_asked_for_once_a_turn() {
    struct Counting(std::sync::atomic::AtomicUsize);

    #[async_trait]
    impl ContextProvider for Counting {
        fn name(&self) -> &'static str {
            "counting"
        }

        async fn provide(&self, _: &ContextSession<'_>) -> Result<Vec<Context>, ContextError> {
            let asked = self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            Ok(vec![Context::new("count", asked.to_string())])
        }
    }

    let assembler = assembler(vec![Arc::new(Counting(0.into()))]);
    let key = SessionKey {
        tenant: TenantId::from_bits(1),
        session: SessionId::from_bits(1),
    };
    let mut seen = Vec::new();
    for turn in [1, 1, 2] {
        let session = ContextSession::of(&key, &[], TurnId(turn));
        let gathered = assembler.gather(&session).await.arranged(&session);
        let at_hand = assembler.at_hand(&session).arranged(&session);
        let texts = [gathered, at_hand].map(|it| format!("{:?}", request(&it, 0).entries));
        assert_eq!(texts[0], texts[1]);
        seen.push(texts[0].clone());
    }
    assert_eq!(seen[0], seen[1]);
    assert_ne!(seen[1], seen[2]);
}

/// Asserts S4.17.
#[tokio::test]
async fn contexts_are_made_for_each_request_and_their_content_only_for_who_reads_it() {
    let worked = worked();
    let assembler = assembler(vec![Arc::new(HistoryProvider::whole())]);
    let made = MADE.get();
    for _ in 0..2 {
        let arranged = arranged(&assembler, &worked).await;
        let originals: Vec<_> = worked.history().collect();
        let pairs = arranged.history().iter().rev().zip(originals);
        assert!(
            pairs
                .into_iter()
                .all(|(one, other)| Arc::ptr_eq(one, other))
        );
        assert_eq!(request(&arranged, 2).system.as_deref(), Some("Be kind."));
    }
    assert_eq!(MADE.get(), made, "no content and no metadata was made");
    let contexts = history(&worked, 1).await;
    let _ = (contexts[0].content(), contexts[0].metadata());
    assert_eq!(MADE.get(), made + 2);
}
