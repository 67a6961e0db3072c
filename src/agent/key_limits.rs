//! Keeps API keys within the sessions and MCP servers that they are limited to.

use std::collections::BTreeSet;

use crate::domain::{Caller, Code, KeyScope};
use crate::session::Refusal;

/// Refuses a caller whose key lacks a scope. Callers without a key have all.
pub fn require_scope(caller: &Caller, scope: KeyScope) -> Result<(), Refusal> {
    if caller.has_scope(scope) {
        return Ok(());
    }
    let text = format!("this API key lacks the scope `{}`", scope.as_str());
    Err(Refusal::new(Code::ScopeMissing, text))
}

/// Checks that the caller may change what holds in every session of theirs.
pub(super) fn check_not_confined(caller: &Caller) -> Result<(), Refusal> {
    if !caller.grant.as_ref().is_some_and(|it| it.is_confined()) {
        return Ok(());
    }
    let text = "this API key is limited to some sessions or MCP servers, and this would hold in others too";
    Err(Refusal::new(Code::NotAllowed, text))
}

/// Checks that the caller may begin a session: one whose key is limited to some sessions begins no others.
pub(super) fn check_begins(caller: &Caller) -> Result<(), Refusal> {
    if caller.confined_sessions().is_none() {
        return Ok(());
    }
    let text = "this API key is limited to some sessions, and begins no others";
    Err(Refusal::new(Code::NotAllowed, text))
}

/// Checks that a key may act in a session: a key that is limited to some servers acts only where no tools of other
/// servers are offered.
pub(super) fn check_servers(
    of_key: Option<&BTreeSet<String>>,
    of_session: Option<&BTreeSet<String>>,
) -> Result<(), Refusal> {
    let Some(of_key) = of_key else { return Ok(()) };
    if of_session.is_some_and(|of_session| of_session.is_subset(of_key)) {
        return Ok(());
    }
    let text = "this API key is limited to some MCP servers, and this session may use others: begin a session \
                with the key";
    Err(Refusal::new(Code::NotAllowed, text))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::check_servers;

    #[test]
    fn a_key_acts_only_where_its_servers_are_the_only_ones() {
        let set = |names: &[&str]| -> BTreeSet<String> {
            names.iter().map(|name| (*name).to_owned()).collect()
        };
        let may = |of_key: Option<&[&str]>, of_session: Option<&[&str]>| {
            let (of_key, of_session) = (of_key.map(set), of_session.map(set));
            check_servers(of_key.as_ref(), of_session.as_ref()).is_ok()
        };
        assert!(may(None, None) && may(None, Some(&["a"])));
        assert!(may(Some(&["a", "b"]), Some(&["a"])));
        assert!(may(Some(&["a"]), Some(&[])));
        assert!(!may(Some(&["a"]), None));
        assert!(!may(Some(&["a"]), Some(&["a", "b"])));
    }
}
