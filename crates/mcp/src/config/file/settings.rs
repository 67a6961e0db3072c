//! Reads `settings` of `mcp-config.json`. Unknown members belong to other programs.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::tools::toolbox::Naming;

/// The name of the file, for messages about problems.
const NAME: &str = "mcp-config.json";
/// The allowed interval between two checks of remote servers, in milliseconds.
const LOOKS_MS: std::ops::RangeInclusive<u64> = 1_000..=86_400_000;

/// The interval at which remote servers are checked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Looks {
    /// The setting is missing: the default interval.
    #[default]
    Usual,
    /// Never.
    Never,
    /// At this interval.
    Every(Duration),
}

/// Reads the settings: how tools are named, whether sessions connect before the first call, and how often
/// remote servers are checked.
pub(super) fn read(root: &Map<String, Value>, problems: &mut Vec<String>) -> (Naming, bool, Looks) {
    let (mut naming, mut connects_ahead, mut looks) = (Naming::default(), false, Looks::Usual);
    let setting = |name: &str| root.get("settings").and_then(|it| it.get(name));
    match setting("autoConnect").map(Value::as_bool) {
        None => {}
        Some(Some(is_on)) => connects_ahead = is_on,
        Some(None) => problems.push(format!(
            "`{NAME}`: `settings.autoConnect` is `true` or `false`"
        )),
    }
    match setting("healthCheckInterval").map(Value::as_u64) {
        None => {}
        Some(Some(0)) => looks = Looks::Never,
        Some(Some(ms)) if LOOKS_MS.contains(&ms) => {
            looks = Looks::Every(Duration::from_millis(ms));
        }
        Some(_) => problems.push(format!(
            "`{NAME}`: `settings.healthCheckInterval` is {} to {} milliseconds, or 0 for never",
            LOOKS_MS.start(),
            LOOKS_MS.end()
        )),
    }
    match setting("toolNamespacing").map(|said| serde_json::from_value(said.clone())) {
        None => {}
        Some(Ok(said)) => naming = said,
        Some(Err(_)) => problems.push(format!(
            "`{NAME}`: `settings.toolNamespacing` is `auto`, `prefix` or `none`"
        )),
    }
    (naming, connects_ahead, looks)
}
