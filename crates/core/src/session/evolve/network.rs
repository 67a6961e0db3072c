//! What commands of the session were refused of the network, and what they were allowed.

use crate::domain::{Actor, HostRefusal};
use crate::session::policy::Rule;
use crate::session::state::Control;

/// It is told once, until people act.
pub(super) fn refused(control: &mut Control, refusal: &HostRefusal) {
    let key = (refusal.host.clone(), refusal.port);
    control.refused_hosts.insert(key);
}

/// The model hears of it: it may have been told that there is no network.
pub(super) fn given(control: &mut Control, rule: &Rule, by: &Actor) {
    if let Some(hosts) = hosts(rule) {
        control.refused_hosts.clear();
        control.notes.push(format!(
            "{} allowed commands of this session to reach {hosts}, through the proxy that the environment \
             names (HTTPS_PROXY). It holds for commands that are asked for from now on.",
            by.name
        ));
    }
}

/// What was open is closed.
pub(super) fn taken_back(control: &mut Control, id: &str, by: &Actor) {
    let given = control.rules.find(id);
    if let Some(hosts) = given.and_then(|given| hosts(&given.rule)) {
        control.refused_hosts.clear();
        control.notes.push(format!(
            "{} no longer allows commands of this session to reach {hosts}.",
            by.name
        ));
    }
}

/// A fork takes no rules along, and its model may have read of them.
pub(super) fn left_behind(control: &mut Control) {
    control.refused_hosts.clear();
    let mut given = control.rules.given().iter();
    if given.any(|given| given.rule.network.is_some()) {
        let note = "what commands of the other session were allowed to reach is not allowed here.";
        control.notes.push(note.to_owned());
    }
}

fn hosts(rule: &Rule) -> Option<String> {
    let network = rule.network.as_ref()?;
    Some(network.hosts.join(", "))
}
