//! Replays every remaining session from its journal with the program itself: the decisions made under
//! faults, kills and takeovers must be the same.

use anyhow::{Context as _, Result, ensure};

use super::ledger::{Ledger, Place};
use crate::soak::world::World;

/// The name of the count of replayed sessions.
const REPLAYED: &str = "sessions decided again from their journals";

/// Replays all sessions of an installation whose gateways are stopped.
pub(crate) fn replay(world: &World) {
    let name = world.installation.name;
    eprintln!("{name}: all sessions are decided again from their journals");
    if let Err(error) = try_replay(world) {
        world.fail(name, format!("sessions cannot be decided again: {error:#}"));
    }
}

fn try_replay(world: &World) -> Result<()> {
    let gateway = world
        .installation
        .gateway(0)
        .context("a gateway is there")?;
    let (is_same, said) = gateway.replay_all()?;
    for line in said.lines().filter(|line| line.starts_with("DIFFERS")) {
        world.fail(world.installation.name, format!("a replay {line}"));
    }
    let (sessions, rest) = summary(&said).with_context(|| format!("it said `{said}`"))?;
    for _ in 0..sessions {
        world.ledger.count(REPLAYED);
    }
    let kept = world.all_kept().len();
    ensure!(
        sessions >= kept,
        "{kept} sessions stayed, and there are {sessions}"
    );
    ensure!(is_same, "{rest}");
    Ok(())
}

/// Returns the number of replayed sessions, and the rest of that line.
fn summary(said: &str) -> Option<(usize, &str)> {
    let lines = said.lines();
    let mut found = lines.filter_map(|line| line.split_once(" sessions were decided again, "));
    let (sessions, rest) = found.next_back()?;
    Some((sessions.parse().ok()?, rest))
}

/// Fails a run that replayed fewer sessions than required.
pub(crate) fn check_count(ledger: &Ledger, least: u64) {
    let replayed = ledger.counted(REPLAYED);
    if replayed < least {
        let place = Place {
            installation: "",
            session: "",
            seq: 0,
        };
        let what = format!("{replayed} sessions were decided again, and {least} are wanted");
        ledger.fail(place, what);
    }
}

#[cfg(test)]
mod tests {
    use super::summary;

    #[test]
    fn the_last_line_says_how_many() {
        let said =
            "DIFFERS: ses_1: commit 3\n12 sessions were decided again, 1 of them otherwise.\n";
        assert_eq!(summary(said), Some((12, "1 of them otherwise.")));
        assert_eq!(summary("sepal: no such file"), None);
    }
}
