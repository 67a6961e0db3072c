//! Makes room in memory for one more session: at a limit, idle sessions of the user or tenant that has most
//! are unloaded.

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::registry::SessionRegistry;
use crate::agent::mailbox::{Message, limit_reached};
use crate::domain::{
    Caller, Holder, ReachedLimit, Resource, SessionKey, Share, ShareLevel, TenantId, UserId,
};
use crate::session::Refusal;

/// The most sessions asked to unload at once.
const ASKED: usize = 64;
/// The time that these sessions have to unload.
const PATIENCE: Duration = Duration::from_secs(1);
/// The pause between two checks.
const PAUSE: Duration = Duration::from_millis(10);

/// The limit of sessions in memory.
const SESSIONS: Resource = Resource {
    name: "sessions",
    plural: "sessions that are in use",
    remedy: "wait for a turn to end, or stop one",
    total: "runtime.limits.sessions",
    setting: "runtime.limits.sessions",
};

impl SessionRegistry {
    /// Takes a place in memory for a session that `caller` opens.
    pub(super) async fn make_room(&self, caller: &Caller) -> Result<Share, Refusal> {
        let deadline = Instant::now() + PATIENCE;
        let mut is_asked = false;
        loop {
            let reached = match self.live.take(caller.holder(), 1) {
                Ok(share) => return Ok(share),
                Err(reached) => reached,
            };
            if !is_asked {
                self.ask_to_leave(&caller.holder(), reached);
                is_asked = true;
            } else if Instant::now() >= deadline {
                return Err(limit_reached(&SESSIONS, reached));
            }
            sleep(PAUSE).await;
        }
    }

    /// Opens a session that has begun, whatever the limits are by now.
    pub(super) fn wake(self: &Arc<Self>, key: &SessionKey) {
        drop(self.spawn(key, None, self.live.count(None, 1)));
    }

    /// Asks sessions that count against that limit to unload if nobody needs them; those of the user with the
    /// most first.
    fn ask_to_leave(&self, holder: &Holder, reached: ReachedLimit) {
        let slots = self.slots();
        let held = |tenant: &TenantId, user: &UserId| {
            let (tenant, user) = (tenant.clone(), user.clone());
            self.live.held(&Holder { tenant, user }).0
        };
        let mut found: Vec<_> = slots
            .iter()
            .filter_map(|(key, slot)| {
                let user = &slot.genesis.owner.id;
                let rank = match reached.whose {
                    ShareLevel::User => (*user == holder.user).then_some(0),
                    ShareLevel::Tenant if key.tenant != holder.tenant => None,
                    ShareLevel::Tenant | ShareLevel::All => Some(held(&key.tenant, user)),
                };
                Some((Reverse(rank?), slot.mailbox.as_ref()?))
            })
            .collect();
        found.sort_unstable_by_key(|(rank, _)| *rank);
        // Send while the slots are locked, because a session stays in memory while anybody but its slot holds
        // its mailbox.
        for (_, mailbox) in found.into_iter().take(ASKED) {
            // A session whose mailbox is full is in use.
            let _ = mailbox.try_send(Message::Evict);
        }
    }
}
