//! Tests caching, replacing and probing, with providers that need no network.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt as _;

use super::super::probe::Payer;
use super::{ModelList, ModelListRequest};
use crate::agent::{Probe, ProbeError};
use crate::context;
use crate::domain::{TenantId, Timestamp};
use crate::llm::{
    self, Error, Finish, ListedModel, ModelEvent, ModelListing, ModelStream, Provider,
    ProviderKind, Refusal, Request,
};
use crate::providers::{Offer, ProviderSettings, Source};
use crate::session::ModelChoice;
use crate::tenancy::Clock;

/// Lists the models that it is made with. Models called `slow…` never answer, `gone…` are unknown.
#[derive(Default)]
struct Lister {
    models: Vec<&'static str>,
    /// The number of lists that it answers; later ones never come.
    patience: usize,
    /// The time that a list takes.
    takes: Duration,
    lists: AtomicUsize,
    asked: AtomicUsize,
    at_once: AtomicUsize,
    most_at_once: AtomicUsize,
}

#[async_trait]
impl Provider for Lister {
    fn id(&self) -> &'static str {
        "lister"
    }

    fn kind(&self) -> ProviderKind {
        ProviderKind::OpenAiCompatible
    }

    async fn stream(&self, request: Request) -> Result<ModelStream, Error> {
        assert_eq!(request.max_tokens, Some(1));
        self.asked.fetch_add(1, Ordering::Relaxed);
        let now = self.at_once.fetch_add(1, Ordering::Relaxed) + 1;
        self.most_at_once.fetch_max(now, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_millis(5)).await;
        self.at_once.fetch_sub(1, Ordering::Relaxed);
        if request.model.starts_with("slow") {
            futures::future::pending::<()>().await;
        }
        if request.model.starts_with("gone") {
            return Err(Error::Rejected {
                provider: "lister".to_owned(),
                refusal: Refusal::Address,
                said: "no such model".to_owned(),
            });
        }
        let done = ModelEvent::Finished(Finish::Length);
        Ok(futures::stream::iter([Ok(done)]).boxed())
    }

    async fn models(&self) -> Result<ModelListing, Error> {
        if self.lists.fetch_add(1, Ordering::Relaxed) >= self.patience {
            futures::future::pending::<()>().await;
        }
        tokio::time::sleep(self.takes).await;
        let model = |id: &&str| ListedModel {
            id: (*id).to_owned(),
            context_window: id.starts_with("own").then_some(8_192),
            ..ListedModel::default()
        };
        let models: Vec<ListedModel> = self.models.iter().map(model).collect();
        Ok(models.into())
    }
}

fn lister(models: &[&'static str]) -> Arc<Lister> {
    Arc::new(Lister {
        models: models.to_vec(),
        patience: usize::MAX,
        ..Lister::default()
    })
}

/// Returns an offer with that id and that provider.
fn offer(id: &str, provider: Arc<Lister>, models: &[&str]) -> Arc<Offer> {
    crate::net::install_tls();
    let settings = ProviderSettings {
        reach: llm::Settings {
            id: id.to_owned(),
            kind: ProviderKind::OpenAi,
            api_key: Some("key".into()),
            base_url: None,
            api: llm::Api::Auto,
            cache_ttl: llm::CacheTtl::default(),
            compaction: llm::CompactionSetting::default(),
            pace: Duration::ZERO,
        },
        models: models.iter().map(|id| (*id).to_owned()).collect(),
        said: llm::Overrides::default(),
        more_keys: Vec::new(),
        fallback: Vec::new(),
    };
    let client = crate::net::client(&crate::net::Settings::default()).unwrap();
    let mut offer = Offer::connect(
        settings,
        Source::Settings,
        &client,
        llm::BreakerConfig::default(),
    );
    offer.provider = provider;
    Arc::new(offer)
}

/// A payer without budgets.
struct Somebody(TenantId);

#[async_trait]
impl Payer for Somebody {
    fn tenant(&self) -> &TenantId {
        &self.0
    }

    async fn ask(&self, probe: Probe<'_>) -> Result<(), ProbeError> {
        let once = llm::RetryConfig {
            max_retries: 0,
            ..llm::RetryConfig::default()
        };
        let provider = Arc::clone(&probe.offer.provider);
        let asked = context::ask(provider, probe.request, once, |_| {});
        match tokio::time::timeout(probe.patience, asked).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(failed)) => Err(ProbeError::Failed(failed.error)),
            Err(_) => Err(ProbeError::Late),
        }
    }
}

fn asked(offers: &[Arc<Offer>], model: &str, is_fresh: bool) -> ModelListRequest {
    ModelListRequest {
        offers: offers.to_vec(),
        choice: ModelChoice::new(offers[0].id(), model),
        is_fresh,
        payer: Box::new(Somebody(TenantId::from_bits(1))),
    }
}

fn list() -> ModelList {
    // 2026-11-25
    ModelList::new(Clock::new(|| Timestamp(1_795_600_000_000)))
}

#[tokio::test(start_paused = true)]
async fn a_list_is_kept_for_a_while_and_never_empty() {
    let provider = Arc::new(Lister {
        models: vec!["gpt-4o", "own:7b", "text-embedding-3-small"],
        patience: 1,
        ..Lister::default()
    });
    let offers = [offer("a", Arc::clone(&provider), &[])];
    let models = list();
    let found = models
        .available(&asked(&offers, "gpt-4o", false), false)
        .await;
    let [known, own] = &found.models[..] else {
        panic!("{found:?}")
    };
    assert_eq!(
        (known.context_window, known.prices.len()),
        (Some(128_000), 1)
    );
    assert!((known.prices[0].input - 2.5).abs() < 1e-9);
    assert_eq!(
        (own.name.as_str(), own.context_window, own.max_output),
        ("own:7b", Some(8_192), None)
    );
    assert!(own.prices.is_empty() && found.problems.is_empty());
    assert_eq!((own.probed, &own.problem), (None, &None));

    models
        .available(&asked(&offers, "gpt-4o", false), false)
        .await;
    assert_eq!(provider.lists.load(Ordering::Relaxed), 1);
    let away = models
        .available(&asked(&offers, "gpt-4o", true), false)
        .await;
    let ids: Vec<&str> = away.models.iter().map(|model| model.id.as_str()).collect();
    assert_eq!(ids, ["gpt-4o"]);
    assert_eq!(away.problems[0].provider, "a");
    assert!(away.problems[0].problem.contains("10 s"), "{away:?}");
    // A failure to list is cached for a shorter time.
    models
        .available(&asked(&offers, "gpt-4o", false), false)
        .await;
    assert_eq!(provider.lists.load(Ordering::Relaxed), 2);
    tokio::time::advance(Duration::from_secs(31)).await;
    models
        .available(&asked(&offers, "gpt-4o", false), false)
        .await;
    assert_eq!(provider.lists.load(Ordering::Relaxed), 3);
}

#[tokio::test(start_paused = true)]
async fn providers_are_asked_side_by_side_and_keep_their_order() {
    let slow = Arc::new(Lister::default());
    let offers = [
        offer("first", lister(&["one"]), &["named"]),
        offer("slow", slow, &["kept"]),
        offer("last", lister(&["two", "one"]), &[]),
    ];
    let began = tokio::time::Instant::now();
    let found = list()
        .available(&asked(&offers, "named", false), false)
        .await;
    assert_eq!(began.elapsed(), Duration::from_secs(10));
    let shown: Vec<String> = found
        .models
        .iter()
        .map(|model| format!("{}/{}", model.provider, model.id))
        .collect();
    assert_eq!(
        shown,
        [
            "first/named",
            "first/one",
            "slow/kept",
            "last/two",
            "last/one"
        ]
    );
    assert_eq!(found.problems.len(), 1);
    assert_eq!(
        (found.provider.as_str(), found.model.as_str()),
        ("first", "named")
    );
}

#[tokio::test]
async fn a_default_that_is_not_listed_is_replaced_and_that_is_said() {
    async fn check(listed: &[&'static str], named: &[&str], default: &str, expected: &str) {
        let offers = [offer("a", lister(listed), named)];
        let models = list();
        for _ in 0..2 {
            let found = models
                .available(&asked(&offers, default, false), false)
                .await;
            assert_eq!(found.model, expected, "{listed:?}");
            let is_said = found
                .problems
                .iter()
                .any(|said| said.problem.contains(expected));
            assert_eq!(is_said, default != expected, "{found:?}");
            let stand_in = offers[0].stand_in(default);
            assert_eq!(stand_in.is_some(), default != expected);
        }
    }
    check(&["x", "gpt-4o"], &[], "gpt-4o", "gpt-4o").await;
    check(&["x", "gpt-4o"], &[], "gone", "gpt-4o").await;
    check(&["x", "y"], &[], "gone", "x").await;
    check(&["x", "y"], &["gone"], "gone", "gone").await;
    check(&["gpt-4o-2024-08-06"], &[], "gpt-4o", "gpt-4o").await;
    check(
        &["gpt-4.1-2025-04-14"],
        &[],
        "gpt-4.1-latest",
        "gpt-4.1-latest",
    )
    .await;
    check(&[], &[], "gone", "gone").await;
    // Retired on 2026-10-23: its successor replaces it, unless the settings name it or none is listed.
    let old = "gpt-4-turbo";
    check(&["gpt-5.4", old, "gpt-5.6-sol"], &[], old, "gpt-5.6-sol").await;
    check(&[old, "gpt-6-luna"], &[], old, old).await;
    check(&[old, "gpt-5.6-sol"], &[old], old, old).await;
    check(
        &["gpt-5.6", "gpt-4.1"],
        &[],
        "gpt-3.5-turbo-0125",
        "gpt-5.6",
    )
    .await;
}

/// Asserts S2.54.
#[tokio::test]
async fn a_model_says_when_it_ends_and_soon_in_words() {
    let offers = [offer(
        "a",
        lister(&["gpt-4o", "gpt-5.1", "gpt-6-luna", "x"]),
        &[],
    )];
    let asked = asked(&offers, "gpt-4o", false);
    let models = list().available(&asked, false).await.models;
    let said: Vec<_> = models
        .iter()
        .map(|model| (model.retires_at.as_deref(), model.retires.as_deref()))
        .collect();
    let soon = "its vendor retires it on 2027-01-14, in 50 days";
    assert_eq!(
        said,
        [
            (Some("2027-01-14"), Some(soon)),
            (Some("2027-04-01"), None),
            (None, None),
            (None, None)
        ]
    );
}

/// Three slow lists cost the time of one.
#[tokio::test(start_paused = true)]
async fn lists_of_several_providers_are_asked_side_by_side() {
    let slow = |id, model| {
        let provider = Lister {
            models: vec![model],
            patience: usize::MAX,
            takes: Duration::from_millis(300),
            ..Lister::default()
        };
        offer(id, Arc::new(provider), &[])
    };
    let offers = [slow("a", "gpt-4o"), slow("b", "gpt-6-luna"), slow("c", "x")];
    let began = tokio::time::Instant::now();
    let asked = asked(&offers, "gpt-4o", false);
    let found = list().available(&asked, false).await;
    assert_eq!(found.models.len(), 3);
    assert!(
        began.elapsed() < Duration::from_secs(1),
        "{:?}",
        began.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn a_probe_asks_a_bounded_number_few_at_a_time() {
    const MANY: [&str; 20] = [
        "m00", "m01", "m02", "m03", "m04", "m05", "m06", "m07", "m08", "m09", "m10", "m11", "m12",
        "m13", "m14", "m15", "m16", "gone", "slow", "gpt-4o",
    ];
    let provider = lister(&MANY);
    let offers = [offer("a", Arc::clone(&provider), &[])];
    let found = list().available(&asked(&offers, "slow", false), true).await;
    assert_eq!(provider.asked.load(Ordering::Relaxed), 12);
    assert_eq!(provider.most_at_once.load(Ordering::Relaxed), 4);
    let of = |id: &str| found.models.iter().find(|model| model.id == id).unwrap();
    // The default is probed first, then the models that the catalogue knows.
    assert!(of("slow").problem.as_ref().unwrap().contains("20 s"));
    assert_eq!(
        (of("gpt-4o").probed, &of("gpt-4o").problem),
        (Some(true), &None)
    );
    assert_eq!(of("m16").probed, Some(false));
}

#[tokio::test]
async fn a_check_tells_what_each_model_answers() {
    let offers = [
        offer("a", lister(&["fine", "tts-1"]), &[]),
        offer("b", lister(&["gone-1"]), &[]),
    ];
    let found = list().check(&asked(&offers, "gone-default", true)).await;
    let shown = serde_json::to_value(&found).unwrap();
    let status = |provider: usize, at: usize| {
        let model = &shown["providers"][provider]["models"][at];
        let (id, status) = (
            model["model"].as_str().unwrap(),
            model["status"].as_str().unwrap(),
        );
        assert!(model["latencyMs"].is_u64());
        assert_eq!(model.get("cause").is_some(), status != "available");
        format!("{id} {status}")
    };
    assert_eq!(status(0, 0), "gone-default not_found");
    assert_eq!(status(0, 1), "fine available");
    assert_eq!(status(1, 0), "gone-1 not_found");
    assert_eq!(shown["providers"][1]["models"].as_array().unwrap().len(), 1);
    assert_eq!(shown["providers"][0]["skipped"], 0);
}
