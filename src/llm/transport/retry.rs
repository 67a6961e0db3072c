//! Asks again where asking again can help (S0.47): transient faults only, no sooner than the
//! provider wants, and never once a tool call has come whole.

use std::sync::Arc;
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use futures::stream::StreamExt;

use crate::domain::{Code, Fault};
use crate::llm::{Answer, Collector, Error, ModelEvent, ModelStream, Provider, Request};

/// A provider that wants a longer pause than this is not waited for: the person decides.
const LONGEST_PAUSE: Duration = Duration::from_mins(2);

/// How often, and how soon again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RetryConfig {
    /// Attempts after the first.
    pub max_retries: u32,
    pub initial_backoff: Duration,
    pub max_backoff: Duration,
    /// How much longer each pause is than the one before; below 1 counts as 1.
    pub backoff_multiplier: f32,
}

impl Default for RetryConfig {
    fn default() -> Self {
        Self {
            max_retries: 3,
            initial_backoff: Duration::from_secs(1),
            max_backoff: Duration::from_secs(30),
            backoff_multiplier: 2.0,
        }
    }
}

impl RetryConfig {
    fn pauses(&self) -> ExponentialBackoff {
        ExponentialBuilder::new()
            .with_min_delay(self.initial_backoff.min(self.max_backoff))
            .with_max_delay(self.max_backoff)
            .with_factor(self.backoff_multiplier.max(1.0))
            .with_max_times(self.max_retries as usize)
            .build()
    }
}

/// What happens while a model is asked.
#[derive(Debug, Clone, PartialEq)]
pub enum Progress {
    /// The model said something.
    Event(ModelEvent),
    /// An attempt failed; what it said so far is void, and text begins at offset 0 again.
    Retry {
        /// The attempt that comes next; the first was 1.
        attempt: u32,
        /// The last attempt that there will be.
        max_attempts: u32,
        /// The pause before it.
        delay: Duration,
        /// Why the last one failed.
        code: Code,
        /// The same for people.
        reason: String,
    },
}

/// Asks a model and asks again, and waits for the whole answer; `on` is told what happens on the
/// way. Dropping it ends the request or the pause.
pub async fn ask(
    provider: Arc<dyn Provider>,
    request: Request,
    retry: RetryConfig,
    mut on: impl FnMut(Progress) + Send,
) -> Result<Answer, Error> {
    let mut asking = Box::new(RetryStream {
        provider,
        request,
        pauses: retry.pauses(),
        max_attempts: retry.max_retries.saturating_add(1),
        attempt: 1,
        state: State::Start(Duration::ZERO),
        so_far: Collector::default(),
    });
    let mut answer = Collector::default();
    while let Some(step) = asking.next().await {
        let step = step?;
        match &step {
            Progress::Event(event) => answer.push(event),
            Progress::Retry { .. } => answer = Collector::default(),
        }
        on(step);
    }
    Ok(answer.finish())
}

struct RetryStream {
    provider: Arc<dyn Provider>,
    request: Request,
    pauses: ExponentialBackoff,
    max_attempts: u32,
    attempt: u32,
    state: State,
    so_far: Collector,
}

enum State {
    /// An attempt begins after this pause.
    Start(Duration),
    Streaming(ModelStream),
    Over,
}

impl RetryStream {
    async fn next(&mut self) -> Option<Result<Progress, Error>> {
        loop {
            match &mut self.state {
                State::Over => return None,
                State::Start(pause) => {
                    let pause = *pause;
                    if !pause.is_zero() {
                        tokio::time::sleep(pause).await;
                    }
                    match self.provider.stream(self.request.clone()).await {
                        Ok(stream) => self.state = State::Streaming(stream),
                        Err(error) => return Some(self.failed(error)),
                    }
                }
                State::Streaming(stream) => {
                    return Some(match stream.next().await {
                        Some(Ok(event)) => Ok(self.said(event)),
                        Some(Err(error)) => self.failed(error),
                        None => self.failed(Error::Cut {
                            provider: self.provider.id().to_owned(),
                            source: None,
                        }),
                    });
                }
            }
        }
    }

    fn said(&mut self, event: ModelEvent) -> Progress {
        match &event {
            ModelEvent::Finished(_) => self.state = State::Over,
            // Only calls decide about another attempt; text need not be kept twice.
            ModelEvent::CallStarted { .. } | ModelEvent::CallArguments { .. } => {
                self.so_far.push(&event);
            }
            ModelEvent::Text(_)
            | ModelEvent::Reasoning(_)
            | ModelEvent::Usage(_)
            | ModelEvent::Native(_)
            | ModelEvent::LeftOut(_)
            | ModelEvent::StopDetail(_) => {}
        }
        Progress::Event(event)
    }

    fn failed(&mut self, error: Error) -> Result<Progress, Error> {
        self.state = State::Over;
        let Some(delay) = self.pause_after(&error) else {
            return Err(error);
        };
        self.state = State::Start(delay);
        self.so_far = Collector::default();
        self.attempt = self.attempt.saturating_add(1);
        Ok(Progress::Retry {
            attempt: self.attempt,
            max_attempts: self.max_attempts,
            delay,
            code: error.code(),
            reason: error.to_string(),
        })
    }

    fn pause_after(&mut self, error: &Error) -> Option<Duration> {
        match error.fault() {
            Fault::Transient => {}
            Fault::Validation | Fault::External | Fault::Internal => return None,
        }
        let wanted = error.retry_after().unwrap_or_default();
        if self.so_far.has_whole_call() || wanted > LONGEST_PAUSE {
            return None;
        }
        Some(self.pauses.next()?.max(wanted))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use async_trait::async_trait;
    use futures::stream::{self, StreamExt};
    use tokio::time::Instant;

    use super::{Progress, RetryConfig, ask};
    use crate::domain::Code;
    use crate::llm::{
        Answer, Error, Finish, ListedModel, ModelEvent, ModelStream, Provider, ProviderKind,
        Refusal, Request,
    };

    /// Answers with one prepared attempt after the other.
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
        async fn models(&self) -> Result<Vec<ListedModel>, Error> {
            Ok(Vec::new())
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

    /// What came of it, the pauses in milliseconds, and the time it took.
    struct Told {
        result: Result<Answer, Error>,
        pauses: Vec<(u32, u128, Code)>,
        took: Duration,
        left: usize,
    }

    async fn tell(attempts: Vec<Attempt>) -> Told {
        let provider = Arc::new(Prepared(Mutex::new(attempts.into())));
        let request = Request {
            model: "m".to_owned(),
            system: None,
            entries: [].into(),
            tools: Arc::from([]),
            temperature: None,
            effort: None,
            max_tokens: None,
            max_output: None,
            contents: crate::llm::Contents::default(),
        };
        let mut pauses = Vec::new();
        let begun = Instant::now();
        let result = ask(provider.clone(), request, RetryConfig::default(), |step| {
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
        assert!(matches!(told.result, Err(Error::RateLimited { .. })));
        let code = Code::ProviderRateLimited;
        assert_eq!(
            told.pauses,
            [(2, 1_000, code), (3, 2_000, code), (4, 4_000, code)]
        );
        assert_eq!(told.took, Duration::from_secs(7));
        assert_eq!(told.left, 1);
    }

    /// S0.47: exponential, and no pause is longer than the longest.
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
        assert_eq!(told.took, Duration::from_mins(1));
        let told = tell(vec![Refused(limited(Some(600)))]).await;
        assert!(matches!(told.result, Err(Error::RateLimited { .. })));
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
            assert!(matches!(told.result, Err(Error::Cut { .. })));
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
        assert!(matches!(told.result, Err(Error::Rejected { .. })));
        assert!(told.pauses.is_empty());
    }
}
