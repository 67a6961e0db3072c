//! Folds refused hosts, and tells the model which hosts rules opened or closed.

use crate::domain::{Actor, HostRefusal};
use crate::session::policy::Rule;
use crate::session::state::Control;

/// Remembers a refused host, so that it is reported once until a person acts.
pub(super) fn refused(control: &mut Control, refusal: &HostRefusal) {
    let key = (refusal.host.clone(), refusal.port);
    control.refused_hosts.insert(key);
}

/// Tells the model of newly allowed hosts, since it may have been told that there is no network.
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

/// Tells the model that hosts are no longer allowed.
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

/// Tells the model of a fork that the other session's network rules do not apply; a fork copies no rules.
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
