//! Whatever was said, however long it is and whatever strategy made room: the request is one that a
//! strict vendor takes, within the limit, with the system prompt and the newest question.

use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use sepal::domain::StrategyName::{self, DeleteMiddle, DeleteOld, PartialSummary};
use sepal::domain::{CountedEntry, Entry, Native, TokenUsage};
use sepal::history::{self, Limits, Past, Window};
use sepal::llm::Compacting;
use sepal::llm::tokens::Counter;
use sepal::session::{Compaction, Gaps, SummarisedBy};
use serde_json::json;
use tokio::runtime::Runtime;

use super::{VENDORS, call, collect, provider, request, result, said};
use crate::model_stub::{ModelStub, Vendor};

/// Histories in all that run in CI; `PROPTEST_CASES` asks for more.
const CASES: u32 = 5_000;
/// Requests of one stand-in, which keeps them all.
const OF_ONE_STUB: u32 = 250;

/// A turn: the bytes of its question, of the results of each of its rounds of calls, and of its answer, and
/// with which of its answers the vendor compacts.
type Turn = (usize, Vec<Vec<usize>>, Option<usize>, Option<usize>);

fn some_turn() -> impl Strategy<Value = Turn> {
    let bytes = prop_oneof![4 => 1_usize..60, 1 => 1_usize..6_000];
    let round = prop::collection::vec(bytes.clone(), 1..4);
    let rounds = prop::collection::vec(round, 0..4);
    (
        1_usize..400,
        rounds,
        prop::option::weighted(0.8, 1_usize..600),
        prop::option::weighted(0.3, 0_usize..4),
    )
}

fn some_strategies() -> impl Strategy<Value = Vec<StrategyName>> {
    let all = vec![DeleteMiddle, DeleteOld, PartialSummary];
    prop::sample::subsequence(all, 1..4).prop_shuffle()
}

fn text(bytes: usize) -> String {
    "word ".repeat(bytes / 5 + 1)
}

/// The entries of a turn, the last of which ends with its question or with results.
fn push(
    entries: &mut Vec<Arc<CountedEntry>>,
    (question, rounds, answer, compacts): &Turn,
    vendor: Vendor,
    is_last: bool,
) {
    let first = entries.len();
    let block = |round: usize| {
        compacts
            .filter(|at| *at == round)
            .and_then(|_| block(vendor))
    };
    let mut add = |entry| entries.push(CountedEntry::new(entry));
    add(Entry::User {
        seq: first as u64 + 1,
        text: text(*question),
        attachments: vec![],
    });
    for (index, sizes) in rounds.iter().enumerate() {
        let calls: Vec<_> = (0..sizes.len())
            .map(|at| {
                let place = first * 100 + index * 10 + at;
                call(place, &format!("call_{place}"), "read_file", json!({}))
            })
            .collect();
        add(said("", calls.clone(), block(index)));
        for (call, bytes) in calls.iter().zip(sizes) {
            add(result(call, &text(*bytes)));
        }
    }
    if let Some(answer) = answer.filter(|_| !is_last) {
        add(said(&text(answer), vec![], block(rounds.len())));
    }
}

/// What a vendor gives that compacts.
fn block(vendor: Vendor) -> Option<Native> {
    family(vendor).map(|family| {
        let block = vendor.compaction("What was said.");
        Native {
            family: family.to_owned(),
            blocks: json!([{ "place": { "text": 0, "calls": 0 }, "block": block }]),
            compacts: true,
        }
    })
}

/// Whose vendors compact, and how their blocks are known.
fn family(vendor: Vendor) -> Option<&'static str> {
    match vendor {
        Vendor::Messages => Some("anthropic/stub"),
        Vendor::Responses => Some("openai/stub"),
        Vendor::Chat | Vendor::Gemini => None,
    }
}

fn summarised(shown: Window, counter: Counter) -> Window {
    let Some(due) = shown.due.clone() else {
        return shown;
    };
    let by = SummarisedBy {
        provider: "p".into(),
        model: "m".into(),
        usage: TokenUsage::default(),
        cost: None,
    };
    let words = usize::try_from(due.max_tokens).unwrap_or_default() / 2;
    shown.summarised(&"word ".repeat(words), by, |entry| counter.of_entry(entry))
}

/// The requests of a conversation, turn for turn, the first of which have to leave something too. Where a
/// vendor compacts, everything that it does not stand for is there.
fn windows(
    turns: &[Turn],
    limits: Limits,
    strategies: &[StrategyName],
    vendor: Vendor,
    compactor: Option<&str>,
) -> Vec<Window> {
    let counter = Counter::default();
    let count = |entry: &CountedEntry| counter.of_entry(entry);
    let (mut entries, mut shown) = (Vec::new(), Vec::new());
    let mut made: Option<Compaction> = None;
    for turn in turns {
        let mut asked = entries.clone();
        push(&mut asked, turn, vendor, true);
        let past = Past {
            entries: &asked,
            question: None,
            gaps: Gaps::NONE,
            compaction: made.as_ref(),
            compactor,
        };
        let window = history::window(past, limits, strategies, count);
        let window = summarised(window, counter);
        let kept = window.entries.len();
        let newest = past.newest_turn();
        assert!(
            window.tokens <= limits.max_tokens.unwrap() || kept == newest,
            "over the limit"
        );
        let question = &asked[asked.len() - newest];
        let is_there = window.entries.iter().any(|entry| entry == question);
        assert!(is_there, "the newest question is gone");
        if let Some(read_past) = window.resumed {
            let family = compactor.unwrap();
            let block = asked.iter().rposition(|entry| entry.compacts(family));
            let behind = asked.len() - block.unwrap();
            assert_eq!(kept - read_past, behind, "what came after the block");
            assert!(read_past < newest || newest == 0, "what came before it");
            assert!(window.read()[0].compacts(family), "the block itself");
        }
        made = window
            .compacted
            .as_ref()
            .map(|it| it.compaction.clone())
            .or(made);
        shown.push(window);
        push(&mut entries, turn, vendor, false);
    }
    shown
}

fn holds_for(vendor: Vendor, cases: u32) {
    let runtime = Runtime::new().unwrap();
    let stub = runtime.block_on(ModelStub::start_as(vendor));
    let provider = provider(&stub, crate::model_stub::STUB_KEY);
    let config = Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    };
    let conversation = (
        prop::collection::vec(some_turn(), 1..10),
        200_u64..3_000,
        prop::option::of(2_usize..40),
        some_strategies(),
        any::<bool>(),
    );
    let run = |(turns, tokens, max_messages, strategies, compacts): (
        Vec<Turn>,
        u64,
        Option<usize>,
        Vec<_>,
        bool,
    )| {
        let limits = Limits {
            max_tokens: Some(tokens),
            max_messages,
        };
        let compactor = family(vendor).filter(|_| compacts);
        let shown = windows(&turns, limits, &strategies, vendor, compactor);
        let last = shown.last().unwrap();
        let mut body = request(vendor, Vec::new());
        body.entries = last.entries.clone().into();
        body.compacting = compactor.map(|_| Compacting {
            threshold: 50_000,
            resumes: last.resumed.is_some(),
        });
        if last.has_short_results {
            body.tools = [history::read_more_definition()].into();
        }
        stub.will_say("Done.");
        let answer = runtime.block_on(collect(&provider, body));
        prop_assert!(answer.is_ok(), "{vendor:?} refuses: {:?}", answer.err());
        Ok(())
    };
    TestRunner::new(config).run(&conversation, run).unwrap();
}

/// What is left of earlier turns fits beside the newest one, but not with the summary that stood before
/// them.
#[test]
fn a_summary_leaves_where_the_newest_turn_takes_its_room() {
    let newest = vec![vec![35, 50, 585], vec![55, 20, 55], vec![50, 45, 40]];
    let turns: [Turn; 3] = [
        (1, vec![vec![3090], vec![5, 25]], Some(495), None),
        (45, vec![], Some(505), None),
        (335, newest, None, None),
    ];
    let limits = Limits {
        max_tokens: Some(909),
        max_messages: None,
    };
    let shown = windows(&turns, limits, &[PartialSummary], Vendor::Chat, None);
    let notes = |window: &Window| {
        let is_note = |entry: &&Arc<CountedEntry>| matches!(****entry, Entry::Note { .. });
        window.entries.iter().filter(is_note).count()
    };
    let notes: Vec<usize> = shown.iter().map(notes).collect();
    assert_eq!(notes, [0, 1, 0], "the summary was there, and left");
}

/// Asserts S0.11, S0.17, S3.41.
#[test]
fn every_vendor_takes_whatever_a_compaction_leaves() {
    let cases = Config::default().cases.max(CASES);
    let vendors = VENDORS.into_iter().chain([Vendor::Chat]);
    for vendor in vendors {
        for _ in 0..(cases / 4).div_ceil(OF_ONE_STUB) {
            holds_for(vendor, OF_ONE_STUB);
        }
    }
}
