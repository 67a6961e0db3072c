//! When a provider counts as out, for how long, and which request tests whether it is back.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::{self, StreamExt as _};
use tokio::time::advance;

use super::{BreakerConfig, Guarded};
use crate::{
    Error, Finish, ModelEvent, ModelListing, ModelStream, Provider, ProviderKind, Refusal, Request,
};

/// A provider that behaves as it was last told.
struct Obedient(Mutex<(Does, u32)>);

#[derive(Clone, Copy, Debug)]
enum Does {
    Answer,
    Cut,
    Hang,
    Break,
    BeSilent,
    Limit(u64),
    RefuseKey,
    RefuseRequest,
}

#[async_trait]
impl Provider for Obedient {
    fn id(&self) -> &'static str {
        "p"
    }
    fn kind(&self) -> ProviderKind {
        ProviderKind::OpenAi
    }
    async fn stream(&self, _: Request) -> Result<ModelStream, Error> {
        let does = {
            let mut state = self.0.lock().unwrap();
            state.1 += 1;
            state.0
        };
        let (provider, said) = ("p".to_owned(), format!("{does:?}"));
        let text = || Ok(ModelEvent::Text("a".to_owned()));
        let rejected = |refusal| Error::Rejected {
            provider: "p".to_owned(),
            refusal,
            said: "no".to_owned(),
        };
        match does {
            Does::Answer => {
                let events = vec![text(), Ok(ModelEvent::Finished(Finish::Stop))];
                Ok(stream::iter(events).boxed())
            }
            Does::Cut => Ok(stream::iter(vec![text()]).boxed()),
            Does::Hang => Ok(stream::pending().boxed()),
            Does::Break => Err(Error::Unavailable {
                provider,
                said,
                retry_after: None,
                source: None,
            }),
            Does::BeSilent => Err(Error::TimedOut { provider, said }),
            Does::Limit(seconds) => Err(Error::RateLimited {
                provider,
                said,
                retry_after: Some(Duration::from_secs(seconds)),
            }),
            Does::RefuseKey => Err(rejected(Refusal::Key)),
            Does::RefuseRequest => Err(rejected(Refusal::Request)),
        }
    }
    async fn models(&self) -> Result<ModelListing, Error> {
        Ok(ModelListing::default())
    }
}

struct Stage {
    inner: Arc<Obedient>,
    guarded: Guarded,
}

impl Stage {
    fn new(faults: u32) -> Self {
        let inner = Arc::new(Obedient(Mutex::new((Does::Answer, 0))));
        let config = BreakerConfig {
            faults,
            pause: Duration::from_secs(30),
        };
        let guarded = Guarded::new(inner.clone(), "installation".to_owned(), config);
        Self { inner, guarded }
    }

    /// Sends one request: `ok`, `out`, or `failed`.
    async fn ask(&self, does: Does) -> &'static str {
        self.inner.0.lock().unwrap().0 = does;
        match self.guarded.stream(Request::default()).await {
            Ok(mut events) => {
                let mut last = None;
                while let Some(event) = events.next().await {
                    last = Some(event);
                }
                match last {
                    Some(Ok(ModelEvent::Finished(_))) => "ok",
                    _ => "failed",
                }
            }
            Err(Error::Out { .. }) => "out",
            Err(_) => "failed",
        }
    }

    fn asked(&self) -> u32 {
        self.inner.0.lock().unwrap().1
    }

    fn is_out(&self) -> bool {
        self.guarded.outage().is_some()
    }
}

#[tokio::test(start_paused = true)]
async fn faults_in_a_row_open_it_and_then_nobody_is_asked() {
    let stage = Stage::new(3);
    for does in [Does::Break, Does::Cut, Does::Answer, Does::Break, Does::Cut] {
        stage.ask(does).await;
        assert!(!stage.is_out(), "an answer between them begins anew");
    }
    assert_eq!(stage.ask(Does::Break).await, "failed");
    assert!(stage.is_out());
    let asked = stage.asked();
    for _ in 0..10 {
        assert_eq!(stage.ask(Does::Answer).await, "out");
    }
    assert_eq!(stage.asked(), asked);
    let outage = stage.guarded.outage().unwrap();
    assert_eq!(outage.said, "Break");
    let pause = outage.next_try.duration_since(outage.since);
    assert_eq!(pause.as_secs(), 30);
    let text = outage.to_string();
    assert!(text.starts_with("has been out since 20"), "{text}");
    assert!(text.ends_with("its last words: Break"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn one_request_tries_whether_it_is_back_and_the_pause_grows_until_it_is() {
    let stage = Stage::new(1);
    stage.ask(Does::Break).await;
    for pause in [30, 60, 120, 240, 480, 480] {
        advance(Duration::from_secs(pause - 1)).await;
        assert_eq!(stage.ask(Does::Answer).await, "out", "{pause}");
        advance(Duration::from_secs(1)).await;
        assert_eq!(stage.ask(Does::Break).await, "failed", "{pause}");
    }
    advance(Duration::from_mins(8)).await;
    assert_eq!(stage.ask(Does::Answer).await, "ok");
    assert!(!stage.is_out());
    assert_eq!(stage.ask(Does::Answer).await, "ok");
}

#[tokio::test(start_paused = true)]
async fn while_one_tries_the_others_wait_for_nothing() {
    let stage = Stage::new(1);
    stage.ask(Does::Break).await;
    advance(Duration::from_secs(30)).await;
    stage.inner.0.lock().unwrap().0 = Does::Hang;
    let trying = stage.guarded.stream(Request::default()).await.unwrap();
    assert_eq!(stage.ask(Does::Answer).await, "out");
    // The trial request was abandoned, so the next request becomes the trial.
    drop(trying);
    assert_eq!(stage.ask(Does::Answer).await, "ok");
}

/// An outage costs one timeout instead of one per person.
#[tokio::test(start_paused = true)]
async fn silence_opens_it_at_once_unless_others_were_answered_meanwhile() {
    let stage = Stage::new(3);
    stage.ask(Does::BeSilent).await;
    assert!(stage.is_out());

    let stage = Stage::new(3);
    let leave = stage.guarded.stream(Request::default()).await.unwrap();
    drop(leave);
    let (breaker, sign) = (
        super::Breaker::new(BreakerConfig::default(), ProviderKind::OpenAi),
        super::Sign::Silent("x"),
    );
    let slow = breaker.admit().unwrap();
    let quick = breaker.admit().unwrap();
    assert!(breaker.saw(quick, super::Sign::Answers).is_none());
    assert!(breaker.saw(slow, sign).is_none(), "others were answered");
}

#[tokio::test(start_paused = true)]
async fn refusals_and_short_limits_never_open_it_and_long_limits_do_for_their_time() {
    let stage = Stage::new(1);
    for does in [
        Does::RefuseKey,
        Does::RefuseRequest,
        Does::Limit(1),
        Does::Limit(120),
    ] {
        for _ in 0..5 {
            assert_eq!(stage.ask(does).await, "failed");
            assert!(!stage.is_out(), "{does:?}");
        }
    }
    stage.ask(Does::Limit(600)).await;
    advance(Duration::from_secs(599)).await;
    assert_eq!(stage.ask(Does::Answer).await, "out");
    advance(Duration::from_secs(1)).await;
    // A refused trial request shows that the provider works.
    assert_eq!(stage.ask(Does::RefuseKey).await, "failed");
    assert!(!stage.is_out());
}

#[tokio::test(start_paused = true)]
async fn nothing_opens_one_that_is_switched_off_but_the_provider_itself() {
    let stage = Stage::new(0);
    for _ in 0..20 {
        assert_eq!(stage.ask(Does::Break).await, "failed");
        assert_eq!(stage.ask(Does::BeSilent).await, "failed");
    }
    assert!(!stage.is_out());
}
