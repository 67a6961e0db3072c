//! `settings` of `mcp-config.json`. What we do not know in it is another program's.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::tools::toolbox::Naming;

/// The file's name, for what is wrong with it.
const NAME: &str = "mcp-config.json";
/// Milliseconds that may lie between two looks at remote servers.
const LOOKS_MS: std::ops::RangeInclusive<u64> = 1_000..=86_400_000;

/// How often remote servers are looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Looks {
    /// Nobody said.
    #[default]
    Usual,
    /// Not at all.
    Never,
    /// So often.
    Every(Duration),
}

/// What they say: how tools are named, whether sessions connect before the first call, how often remote
/// servers are looked at.
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
