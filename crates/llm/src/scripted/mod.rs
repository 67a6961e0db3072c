//! The deterministic model for demos and tests (`LLM_PROVIDER=scripted`): it streams at a configurable pace,
//! calls real tools, and fails on request.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::{self, StreamExt};

use self::plan::{Breakdown, Script, plan};
use super::{
    Error, Finish, ListedModel, ModelEvent, ModelListing, ModelStream, Provider, ProviderKind,
    Request, tokens,
};
use sepal_core::domain::{Entry, TokenUsage};

mod plan;
mod report;

/// The default pause before each piece.
pub const DEFAULT_PACE: Duration = Duration::from_millis(15);
/// The name of the only model.
const MODEL: &str = "scripted";
/// The longest piece of text, in characters.
const PIECE: usize = 12;

/// A model that follows a script.
#[derive(Debug)]
pub struct Scripted {
    id: String,
    pace: Duration,
    /// The hashes of requests that failed on purpose, so that the next attempt succeeds. This is the only
    /// state that is not in the entries. Never locked across an await.
    broken: Mutex<HashSet<u64>>,
}

impl Scripted {
    /// Creates the model; a pace of zero streams as fast as possible.
    pub fn new(id: String, pace: Duration) -> Self {
        Self {
            id,
            pace,
            broken: Mutex::default(),
        }
    }

    /// Returns true if the scripted failure is due now: at every attempt, or only at the first.
    fn breaks_now(&self, breakdown: Breakdown, entries: &[Entry]) -> bool {
        if breakdown.is_lasting {
            return true;
        }
        let mut hasher = DefaultHasher::new();
        // JSON values do not implement `Hash`, but their debug form does.
        format!("{entries:?}").hash(&mut hasher);
        let key = hasher.finish();
        let mut broken = self.broken.lock().unwrap_or_else(PoisonError::into_inner);
        let broke_before = broken.remove(&key);
        if !broke_before {
            broken.insert(key);
        }
        !broke_before
    }
}

#[async_trait]
impl Provider for Scripted {
    fn id(&self) -> &str {
        &self.id
    }

    fn kind(&self) -> ProviderKind {
        ProviderKind::Scripted
    }

    async fn stream(&self, request: Request) -> Result<ModelStream, Error> {
        let entries: Vec<Entry> = request.entries.iter().cloned().collect();
        let script = plan(&entries, &request.tools);
        let breakdown = script
            .breakdown
            .filter(|&breakdown| self.breaks_now(breakdown, &entries));
        let end = breakdown.map(|breakdown| breakdown.into_error(&self.id));
        let end = match end {
            None | Some(Error::Cut { .. }) => end,
            Some(refused) => return Err(refused),
        };
        let pace = self.pace;
        let said = events(script, tokens::of_request(&request), end);
        let paced = stream::iter(said).then(move |event| async move {
            if !pace.is_zero() && matches!(event, Ok(ModelEvent::Text(_))) {
                tokio::time::sleep(pace).await;
            }
            event
        });
        Ok(paced.boxed())
    }

    async fn models(&self) -> Result<ModelListing, Error> {
        let model = ListedModel {
            id: MODEL.to_owned(),
            name: Some("Scripted model".to_owned()),
            ..ListedModel::default()
        };
        Ok(vec![model].into())
    }
}

/// The events of a script; with an error, the first half of the text and then the error.
fn events(script: Script, input_tokens: u64, cut: Option<Error>) -> Vec<Result<ModelEvent, Error>> {
    let mut pieces = pieces(&script.text);
    if cut.is_some() {
        pieces.truncate(pieces.len().div_ceil(2));
    }
    let mut events: Vec<_> = pieces
        .into_iter()
        .map(|p| Ok(ModelEvent::Text(p)))
        .collect();
    if let Some(error) = cut {
        events.push(Err(error));
        return events;
    }
    let mut output_tokens = tokens::of_text(&script.text);
    let finish = if script.calls.is_empty() {
        Finish::Stop
    } else {
        Finish::Calls
    };
    for (index, (name, args)) in script.calls.into_iter().enumerate() {
        let json = args.to_string();
        output_tokens += tokens::of_text(&name) + tokens::of_text(&json);
        events.push(Ok(ModelEvent::CallStarted {
            index,
            provider_id: format!("scripted_{index}"),
            name,
        }));
        events.push(Ok(ModelEvent::CallArguments { index, json }));
    }
    events.push(Ok(ModelEvent::Usage(TokenUsage {
        input_tokens,
        output_tokens,
        ..TokenUsage::default()
    })));
    events.push(Ok(ModelEvent::Finished(finish)));
    events
}

/// Splits a text into words with their trailing space; long words are split further.
fn pieces(text: &str) -> Vec<String> {
    let mut pieces = Vec::new();
    for word in text.split_inclusive([' ', '\n']) {
        let mut rest = word;
        while let Some((at, _)) = rest.char_indices().nth(PIECE) {
            let (piece, tail) = rest.split_at(at);
            pieces.push(piece.to_owned());
            rest = tail;
        }
        pieces.push(rest.to_owned());
    }
    pieces
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use futures::StreamExt;
    use tokio::time::Instant;

    use super::{DEFAULT_PACE, Scripted, pieces};
    use crate::{Answer, Error, Finish, ModelEvent, Progress, Provider, Request, RetryConfig, ask};
    use sepal_core::domain::{Code, Entry};

    fn request(text: &str) -> Request {
        Request {
            model: "scripted".to_owned(),
            system: None,
            entries: [Entry::User {
                seq: 1,
                text: text.to_owned(),
                attachments: vec![],
            }]
            .into(),
            tools: Arc::from([]),
            deferral: None,
            temperature: None,
            effort: None,
            max_tokens: None,
            max_output: None,
            affordable: None,
            compacting: None,
            contents: crate::Contents::default(),
        }
    }

    async fn tell(text: &str) -> (Result<Answer, Error>, Vec<Code>) {
        let model = Arc::new(Scripted::new("scripted".to_owned(), Duration::ZERO));
        let mut codes = Vec::new();
        let answer = ask(model, request(text), RetryConfig::default(), |step| {
            if let Progress::Retry { code, .. } = step {
                codes.push(code);
            }
        });
        let answer = answer.await.map_err(|failed| failed.error);
        (answer, codes)
    }

    #[test]
    fn pieces_make_the_whole() {
        let text = "one  two\nanextremelylongwordwithoutblanks ä";
        assert_eq!(pieces(text).concat(), text);
        assert!(pieces(text).iter().all(|piece| piece.chars().count() <= 12));
        assert!(pieces("").is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn it_talks_at_its_pace_and_counts_tokens() {
        let model = Scripted::new("scripted".to_owned(), DEFAULT_PACE);
        let begun = Instant::now();
        let events: Vec<_> = model
            .stream(request("stream: 10"))
            .await
            .unwrap()
            .collect()
            .await;
        assert_eq!(begun.elapsed(), DEFAULT_PACE * 10);
        let (answer, _) = tell("stream: 10").await;
        let answer = answer.unwrap();
        assert_eq!(answer.text.split_whitespace().count(), 10);
        let usage = answer.usage.unwrap();
        assert_eq!((usage.input_tokens, usage.is_estimated), (3 + 4, false));
        assert_eq!(usage.output_tokens, (answer.text.len() as u64).div_ceil(4));
        assert!(matches!(
            events.last(),
            Some(Ok(ModelEvent::Finished(Finish::Stop)))
        ));
    }

    #[tokio::test(start_paused = true)]
    async fn it_breaks_down_once_or_always() {
        for (fault, code) in [
            ("429", Code::ProviderRateLimited),
            ("500", Code::ProviderUnavailable),
            ("cut", Code::ProviderUnavailable),
        ] {
            let (answer, codes) = tell(&format!("fail: {fault}")).await;
            assert_eq!(
                (answer.unwrap().finish, codes),
                (Some(Finish::Stop), vec![code])
            );
            let (answer, codes) = tell(&format!("fail: {fault} always")).await;
            assert_eq!((answer.unwrap_err().code(), codes), (code, vec![code; 3]));
        }
    }
}
