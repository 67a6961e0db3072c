//! Reports hosts that commands were refused: each host once, and a limited number until a person acts.

use crate::domain::HostRefusal;
use crate::session::decide::Draft;
use crate::session::event::Event;

/// Maximum number of hosts reported until a person sends a message or gives a rule, because a program can
/// make up any number.
const MAX_TOLD: usize = 16;

/// Reports a refused host.
pub(super) fn host_refused(draft: &mut Draft<'_>, refusal: &HostRefusal) {
    let told = &draft.control.refused_hosts;
    let is_known = told.contains(&(refusal.host.clone(), refusal.port));
    if !is_known && told.len() < MAX_TOLD && draft.control.journal.is_some() {
        draft.push(Event::HostRefused(Box::new(refusal.clone())));
    }
}
