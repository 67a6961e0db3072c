//! Which failures are retried, when, and which progress is reported.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::{self, StreamExt};
use tokio::time::Instant;

use super::{Failed, Progress, RetryConfig, SoFar, ask, ask_with, jittered};
use crate::{
    Answer, Error, Finish, ModelEvent, ModelListing, ModelStream, Provider, ProviderKind, Refusal,
    Request,
};
use sepal_core::domain::Code;

/// A provider that answers with prepared attempts, in order.
struct Prepared(Mutex<VecDeque<Attempt>>);

enum Attempt {
    Refused(Error),
    Said(Vec<ModelEvent>),
    Cut(Vec<ModelEvent>),
}
use Attempt::{Cut, Refused, Said};

#[async_trait]
impl Provider for Prepared {
    fn id(&self) -> &'static str {
        "p"
    }
    fn kind(&self) -> ProviderKind {
        ProviderKind::OpenAi
    }
    async fn stream(&self, _: Request) -> Result<ModelStream, Error> {
        let (said, end) = match self.0.lock().unwrap().pop_front().unwrap() {
            Refused(error) => return Err(error),
            Said(events) => (events, None),
            Cut(events) => (events, Some(cut())),
        };
        let said = said.into_iter().map(Ok).chain(end.map(Err));
        Ok(stream::iter(said.collect::<Vec<_>>()).boxed())
    }
    async fn models(&self) -> Result<ModelListing, Error> {
        Ok(ModelListing::default())
    }
}

fn text(text: &str) -> ModelEvent {
    ModelEvent::Text(text.to_owned())
}
fn done() -> ModelEvent {
    ModelEvent::Finished(Finish::Stop)
}
fn call(index: usize) -> ModelEvent {
    ModelEvent::CallStarted {
        index,
        provider_id: String::new(),
        name: "t".to_owned(),
    }
}
fn args(json: &str) -> ModelEvent {
    ModelEvent::CallArguments {
        index: 0,
        json: json.to_owned(),
    }
}
fn limited(retry_after: Option<u64>) -> Error {
    Error::RateLimited {
        provider: "p".to_owned(),
        said: "slow".to_owned(),
        retry_after: retry_after.map(Duration::from_secs),
    }
}
fn cut() -> Error {
    Error::Cut {
        provider: "p".to_owned(),
        source: None,
    }
}

/// The result, the pauses in milliseconds, the total time, and the number of unused attempts.
struct Told {
    result: Result<Answer, Failed>,
    pauses: Vec<(u32, u128, Code)>,
    took: Duration,
    left: usize,
}

fn is_failed(told: &Told, is_it: fn(&Error) -> bool) -> bool {
    matches!(&told.result, Err(failed) if is_it(&failed.error))
}

fn request() -> Request {
    Request {
        model: "m".to_owned(),
        ..Request::default()
    }
}

async fn tell(attempts: Vec<Attempt>) -> Told {
    let provider = Arc::new(Prepared(Mutex::new(attempts.into())));
    let mut pauses = Vec::new();
    let begun = Instant::now();
    let whole: (RetryConfig, fn() -> f32) = (RetryConfig::default(), || 1.0);
    let result = ask_with(provider.clone(), request(), whole, |step| {
        if let Progress::Retry {
            attempt,
            delay,
            code,
            max_attempts,
            ..
        } = step
        {
            assert_eq!(max_attempts, 4);
            pauses.push((attempt, delay.as_millis(), code));
        }
    })
    .await;
    let left = provider.0.lock().unwrap().len();
    Told {
        result,
        pauses,
        took: begun.elapsed(),
        left,
    }
}

/// Asserts S0.39, S0.47, S1.8.
#[tokio::test(start_paused = true)]
async fn pauses_grow_and_the_last_error_stays() {
    let told = tell((0..5).map(|_| Refused(limited(None))).collect()).await;
    assert!(is_failed(&told, |error| matches!(
        error,
        Error::RateLimited { .. }
    )));
    let code = Code::ProviderRateLimited;
    assert_eq!(
        told.pauses,
        [(2, 1_000, code), (3, 2_000, code), (4, 4_000, code)]
    );
    assert_eq!(told.took, Duration::from_secs(7));
    assert_eq!(told.left, 1);
}

/// S0.47: exponential backoff, up to the longest pause.
#[test]
fn pauses_double_up_to_the_longest() {
    let retry = RetryConfig {
        max_retries: 7,
        ..RetryConfig::default()
    };
    let pauses = retry.pauses().map(|pause| pause.as_secs());
    assert_eq!(pauses.collect::<Vec<_>>(), [1, 2, 4, 8, 16, 30, 30]);
}

#[tokio::test(start_paused = true)]
async fn the_provider_says_when_unless_it_is_too_long() {
    let told = tell(vec![
        Refused(limited(Some(60))),
        Said(vec![text("hi"), done()]),
    ])
    .await;
    assert_eq!(told.result.unwrap().text, "hi");
    // A minute, plus half of the pause as jitter.
    assert_eq!(told.took, Duration::from_millis(60_500));
    let told = tell(vec![Refused(limited(Some(600)))]).await;
    assert!(is_failed(&told, |error| matches!(
        error,
        Error::RateLimited { .. }
    )));
    assert_eq!(told.took, Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_cut_answer_begins_again_and_what_it_said_is_void() {
    let told = tell(vec![
        Cut(vec![text("hel")]),
        Said(vec![text("h")]),
        Said(vec![text("hello"), done()]),
    ])
    .await;
    assert_eq!(told.result.unwrap().text, "hello");
    assert_eq!(
        told.pauses.len(),
        2,
        "an end without `Finished` is a cut too"
    );
}

#[tokio::test(start_paused = true)]
async fn nothing_is_asked_again_once_a_call_came_whole() {
    for whole in [vec![call(0), args(r#"{"a":1}"#)], vec![call(0), call(1)]] {
        let told = tell(vec![Cut(whole)]).await;
        assert!(is_failed(&told, |error| matches!(error, Error::Cut { .. })));
        assert!(told.pauses.is_empty());
    }
    let half = vec![call(0), args(r#"{"a":"#)];
    let told = tell(vec![Cut(half), Said(vec![text("ok"), done()])]).await;
    let answer = told.result.unwrap();
    assert_eq!((answer.text.as_str(), answer.calls.len()), ("ok", 0));
}

#[tokio::test(start_paused = true)]
async fn what_cannot_get_better_is_not_repeated() {
    let refused = Error::Rejected {
        provider: "p".to_owned(),
        refusal: Refusal::Key,
        said: "no".to_owned(),
    };
    let told = tell(vec![Refused(refused)]).await;
    assert!(is_failed(&told, |error| matches!(
        error,
        Error::Rejected { .. }
    )));
    assert!(told.pauses.is_empty());
}

/// Asserts S0.47: half of each pause is fixed, and no retry is earlier than the provider asks.
#[test]
fn a_part_of_each_pause_is_left_to_chance() {
    fn check(pause: u64, wanted: u64, chance: f32, expected: u64) {
        let ms = Duration::from_millis;
        let found = jittered(ms(pause), ms(wanted), chance);
        assert_eq!(found, ms(expected), "{pause} {wanted} {chance}");
    }
    check(4_000, 0, 0.0, 2_000);
    check(4_000, 0, 0.5, 3_000);
    check(4_000, 0, 1.0, 4_000);
    check(4_000, 60_000, 0.0, 60_000);
    check(4_000, 60_000, 0.5, 61_000);
    check(0, 0, 0.5, 0);
    check(4_000, 0, 7.0, 4_000);
}

#[tokio::test(start_paused = true)]
async fn those_who_failed_together_do_not_come_back_together() {
    let mut pauses = std::collections::BTreeSet::new();
    for _ in 0..50 {
        let attempts = vec![Refused(limited(None)), Said(vec![done()])];
        let provider = Arc::new(Prepared(Mutex::new(attempts.into())));
        let begun = Instant::now();
        let asked = ask(provider, request(), RetryConfig::default(), |_| {}).await;
        assert!(asked.is_ok());
        let took = begun.elapsed();
        assert!(
            took >= Duration::from_millis(500) && took <= Duration::from_millis(1_001),
            "{took:?}"
        );
        pauses.insert(took);
    }
    assert!(pauses.len() > 10, "{pauses:?}");
}

/// Asserts that a stop during a pause takes effect at once.
#[tokio::test(start_paused = true)]
async fn a_pause_ends_as_soon_as_nobody_waits_for_it() {
    let attempts = vec![Refused(limited(Some(60))), Said(vec![done()])];
    let provider = Arc::new(Prepared(Mutex::new(attempts.into())));
    let (paused, pausing) = tokio::sync::oneshot::channel();
    let mut paused = Some(paused);
    let asking = tokio_util::task::TaskTracker::new().spawn({
        let provider = provider.clone();
        ask(provider, request(), RetryConfig::default(), move |step| {
            if let Progress::Retry { .. } = step {
                let _ = paused.take().unwrap().send(());
            }
        })
    });
    pausing.await.unwrap();
    let stopped = Instant::now();
    asking.abort();
    assert!(asking.await.unwrap_err().is_cancelled());
    assert!(stopped.elapsed() < Duration::from_millis(100));
    assert_eq!(
        provider.0.lock().unwrap().len(),
        1,
        "nobody was asked again"
    );
}

/// The partial answer of a failed attempt is reported, because it is billed.
#[tokio::test(start_paused = true)]
async fn what_a_failed_attempt_brought_is_told() {
    let attempts = vec![
        Cut(vec![text("hel")]),
        Cut(vec![call(0), args(r#"{"a":1}"#)]),
    ];
    let provider = Arc::new(Prepared(Mutex::new(attempts.into())));
    let mut lost = Vec::new();
    let asked = ask(provider, request(), RetryConfig::default(), |step| {
        if let Progress::Retry { so_far, .. } = step {
            lost.push(so_far);
        }
    });
    let failed = asked.await.unwrap_err();
    assert_eq!(lost.len(), 1);
    assert_eq!(lost[0].answer.text, "hel");
    assert!(!lost[0].has_whole_call && failed.so_far.has_whole_call);
    assert_eq!(failed.so_far.answer.calls.len(), 1);
    assert_eq!(SoFar::default().answer.text, "");
}
