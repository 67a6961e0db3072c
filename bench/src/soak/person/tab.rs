//! A person's second tab, at another gateway than the first: it sends nothing, and must be shown every
//! event.

use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use tokio::sync::watch;
use tokio::time::Instant;

use super::profile::later;
use super::talk::Talk;
use super::witness::Witness;

/// The interval at which an idle tab checks its goal.
const LOOK: Duration = Duration::from_millis(500);
/// The time that the last event of a session may take to arrive here, even if Redis and the gateway are away
/// meanwhile.
const PATIENCE: Duration = Duration::from_secs(45);

/// The goal of the tab.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Goal {
    /// Watch the session at another gateway than this one, which the first tab uses.
    BesideOneAt(usize),
    /// Stay until this last event was seen.
    See(u64),
    /// Leave.
    Leave,
}

impl Default for Goal {
    fn default() -> Self {
        Self::BesideOneAt(0)
    }
}

/// A second tab.
pub(crate) struct Tab {
    talk: Talk,
    rng: Rng,
}

impl Tab {
    /// Opens a second tab on the session of `first`.
    pub(crate) fn beside(first: &Talk, rng: Rng) -> Self {
        let world = Arc::clone(&first.world);
        let mut talk = Talk::new(world, first.person.clone(), first.name.clone());
        talk.role = "a second tab: ";
        talk.witness = Witness::bystander();
        Self { talk, rng }
    }

    /// Watches until its goal is reached; returns its talk with the events that it has seen.
    pub(crate) async fn look(mut self, told: watch::Receiver<Goal>) -> Talk {
        let (mut stays_until, mut waits_since) = (Instant::now(), None);
        let mut first_at = 0;
        loop {
            let goal = *told.borrow();
            match goal {
                Goal::BesideOneAt(gateway) => first_at = gateway,
                Goal::See(last) if self.talk.witness.known() >= last => break,
                Goal::See(last) => {
                    let since: &mut Instant = waits_since.get_or_insert_with(Instant::now);
                    if since.elapsed() > PATIENCE {
                        let what = format!("it was not shown the last event, {last}");
                        self.talk.fail(what);
                        break;
                    }
                }
                Goal::Leave => break,
            }
            if !self.talk.is_connected() {
                let others = self.talk.world.installation.gateways.len() - 1;
                let gateway = first_at + 1 + self.rng.usize(0..others.max(1));
                let gateway = gateway % (others + 1);
                if self.talk.connect(gateway, &mut self.rng).await.is_err() {
                    self.pause().await;
                    continue;
                }
                self.talk.world.ledger.count("connections of second tabs");
                stays_until = later(&mut self.rng, 3_000, 60_000);
            }
            let may_go = !self.talk.world.phase.calm.is_cancelled() && waits_since.is_none();
            if may_go && Instant::now() >= stays_until {
                self.talk.vanish(&mut self.rng);
                self.pause().await;
            } else if self.talk.hear(Instant::now() + LOOK).await.is_err() {
                self.pause().await;
            }
        }
        self.talk.leave();
        self.talk
    }

    async fn pause(&mut self) {
        tokio::time::sleep_until(later(&mut self.rng, 200, 2_000)).await;
    }
}
