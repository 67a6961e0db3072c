//! Hosts that commands were refused: told once each, and only so many until people act.

use crate::domain::HostRefusal;
use crate::session::decide::Draft;
use crate::session::event::Event;

/// Hosts that are told until somebody says something or gives a rule: a program can make up any number.
const MAX_TOLD: usize = 16;

/// Tells people of one.
pub(super) fn host_refused(draft: &mut Draft<'_>, refusal: &HostRefusal) {
    let told = &draft.control.refused_hosts;
    let is_known = told.contains(&(refusal.host.clone(), refusal.port));
    if !is_known && told.len() < MAX_TOLD && draft.control.journal.is_some() {
        draft.push(Event::HostRefused(Box::new(refusal.clone())));
    }
}
