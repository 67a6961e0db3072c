//! Tests that rules about a session's network decide no calls.

use serde_json::json;

use super::{commands, rule};
use crate::Effect::{Allow, Ask, Deny};
use crate::Scope::{Person, Session, Tenant};
use crate::{Call, Conditions, Network, Rule, Rules};

/// A rule about connections decides no call, and has no other conditions.
#[test]
fn hosts_of_a_session_decide_no_call() {
    let network = Some(Network {
        hosts: vec!["pypi.org".into()],
        on_request: false,
    });
    let hosts = Rule {
        network: network.clone(),
        ..Rule::new("hosts", Allow, Session)
    };
    let deny = rule("deny", Deny, Tenant, Conditions::default());
    let args = json!({});
    let call = Call::new("sandbox", "execute_command", &args);
    for rules in [
        Rules::compile(vec![hosts.clone()]).unwrap(),
        Rules::compile_safely(vec![hosts.clone()]),
    ] {
        assert_eq!(rules.decide(&call).effect, Ask);
        assert_eq!(rules.decide(&call).rules().count(), 0);
    }
    let both = Rules::compile(vec![hosts.clone(), deny]).unwrap();
    assert_eq!(both.decide(&call).effect, Deny);

    let wrong = |change: fn(&mut Rule)| {
        let mut rule = hosts.clone();
        change(&mut rule);
        assert!(Rules::compile(vec![rule.clone()]).is_err(), "{rule:?}");
        // If it is stored nevertheless, it decides no more than before.
        let safe = Rules::compile_safely(vec![rule]);
        assert_eq!(safe.decide(&call).effect, Ask);
    };
    wrong(|rule| rule.effect = Deny);
    wrong(|rule| rule.effect = Ask);
    wrong(|rule| rule.scope = Person);
    wrong(|rule| rule.scope = Tenant);
    wrong(|rule| rule.tool = "execute_command".into());
    wrong(|rule| rule.when = commands(&["pip"]));
    wrong(|rule| rule.definition = Some("x".into()));
    wrong(|rule| rule.network.as_mut().unwrap().hosts.clear());
}
