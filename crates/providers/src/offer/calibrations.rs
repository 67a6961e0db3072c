//! Keeps the token calibrations learned from providers' reports: in memory at each offer, and stored for the
//! next start and for other gateways.
//!
//! They are stored by scope and address. Reports of a provider that a tenant added calibrate that tenant
//! only, even if another tenant added the same address: model names are private, and a ratio reveals how
//! unusual a tenant's texts are.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use serde_json::json;

use super::{Offer, Source};
use sepal_core::domain::{Digest, Scope, Timestamp};
use sepal_llm::tokens::{Calibration, Counter};
use sepal_store::records::CalibrationRow;
use sepal_store::{self as store, Records};

/// The most models of one provider whose calibrations are remembered.
const CALIBRATED: usize = 64;
/// The time for which an unchanged record is kept.
const KEPT_MS: i64 = 90 * 24 * 3_600_000;

/// The calibrations, by model.
type Learned = BTreeMap<String, Calibration>;

impl Offer {
    /// Returns the counter of one of its models.
    pub fn counter(&self, model: &str) -> Counter {
        let learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        Counter::new(self.vendor(), model, learned.get(model))
    }

    /// Calibrates a model with the counted and the reported tokens.
    pub fn calibrate(&self, model: &str, counted: u64, reported: u64) {
        let mut learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        if learned.len() >= CALIBRATED && !learned.contains_key(model) {
            learned.clear();
        }
        let known = learned.entry(model.to_owned()).or_default();
        known.learn(counted, reported);
    }

    /// Merges the stored calibrations. Returns what has to be stored, if anything was learned here.
    fn take_up(&self, kept: &Learned) -> Option<Learned> {
        let mut learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        let has_news = learned.values().any(Calibration::has_news);
        let mut merged = kept.clone();
        for (model, own) in &*learned {
            let by_others = kept.get(model);
            if own.has_news() || by_others.is_none() {
                let fresh = if own.has_news() {
                    own.onto(by_others)
                } else {
                    own.clone()
                };
                merged.insert(model.clone(), fresh);
            }
        }
        if merged.len() > CALIBRATED {
            merged.retain(|model, _| learned.contains_key(model));
        }
        learned.clone_from(&merged);
        has_news.then_some(merged)
    }

    /// The scope and address of its record. The operator's providers count as the installation's, because
    /// they serve everybody.
    fn calibration_place(&self) -> (Scope, String) {
        let scope = match &self.source {
            Source::Settings => Scope::Installation,
            Source::Added(scope) => scope.clone(),
        };
        let address = json!([self.kind().as_str(), self.base_url()]);
        (scope, Digest::of_json(&address).as_str().to_owned())
    }
}

/// Merges the calibrations that all gateways stored, and stores what was learned here since.
pub(crate) async fn keep(records: &Records, offers: &[Arc<Offer>]) -> Result<(), store::Error> {
    let records = records.calibrations();
    let rows = records.all().await?;
    let kept = rows.into_iter().filter_map(|row| {
        let learned = read(&row)?;
        Some(((row.scope, row.address), learned))
    });
    let mut kept: BTreeMap<_, _> = kept.collect();
    for offer in offers {
        let place = offer.calibration_place();
        let known = kept.get(&place).cloned().unwrap_or_default();
        let Some(learned) = offer.take_up(&known) else {
            continue;
        };
        let now = jiff::Timestamp::now().as_millisecond();
        let row = CalibrationRow {
            scope: place.0.clone(),
            address: place.1.clone(),
            learned: serde_json::to_string(&learned).unwrap_or_default(),
            updated_at: Timestamp(now),
        };
        records.put(&row, Timestamp(now - KEPT_MS)).await?;
        kept.insert(place, learned);
    }
    Ok(())
}

/// Parses a record; one that is invalid is ignored, and written anew.
fn read(row: &CalibrationRow) -> Option<Learned> {
    let learned: Option<Learned> = serde_json::from_str(&row.learned).ok();
    let learned = learned.filter(|learned| learned.values().all(Calibration::is_sound));
    if learned.is_none() {
        tracing::warn!(scope = %row.scope, "What was learned about counting tokens at one address cannot be read and is left out");
    }
    learned
}
