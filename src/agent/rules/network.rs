//! Validates rules about the hosts that one session's commands may reach, and the caller's right to create
//! them.

use sepal_policy as policy;
use sepal_policy::{Conditions, Effect, Network, Rule, Scope};

use super::new_rule::{NewRule, RuleWhose, check, new_id, wrong};
use crate::domain::{AllowedHost, AllowedHosts, Caller, Code, MAX_ALLOWED_HOSTS, Right, Timestamp};
use crate::session::Refusal;

/// The most characters of a host that a refusal quotes.
const MAX_SHOWN: usize = 100;

/// Builds the rule, if the caller may create it: administrators of the tenant for any host, others for the
/// hosts that the settings let people allow.
pub(super) fn rule(
    new: &NewRule,
    caller: &Caller,
    on_request: &AllowedHosts,
    now: Timestamp,
) -> Result<Rule, Refusal> {
    check_shape(new)?;
    let hosts = read(&new.network)?;
    let asked: Vec<&AllowedHost> = hosts
        .iter()
        .filter(|host| on_request.cover(host).is_none())
        .collect();
    let on_request_only = !caller.may(Right::OpenAnyHost);
    if on_request_only && !asked.is_empty() {
        return Err(not_on_request(&asked, on_request));
    }
    let mut rule = Rule::new(new_id(), Effect::Allow, Scope::Session);
    rule.until_ms = new.until_ms(now);
    rule.network = Some(Network {
        hosts: hosts.iter().map(ToString::to_string).collect(),
        on_request: on_request_only,
    });
    let subject = policy::subject(&rule);
    rule.name = Some(new.name.clone().unwrap_or(subject));
    check(&rule)?;
    Ok(rule)
}

/// Returns true if the rule depends on hosts that the settings no longer name.
pub(super) fn is_lapsed(rule: &Rule, on_request: &AllowedHosts) -> bool {
    let network = rule.network.as_ref().filter(|it| it.on_request);
    network.is_some_and(|network| {
        let mut hosts = network.hosts.iter().filter_map(|host| host.parse().ok());
        hosts.any(|host| on_request.cover(&host).is_none())
    })
}

/// Refuses conditions about calls, so that nobody takes the rule for narrower than it is.
fn check_shape(new: &NewRule) -> Result<(), Refusal> {
    if new.effect != Effect::Allow {
        let text = "hosts can only be allowed: what no rule allows is refused";
        return Err(wrong("effect", text));
    }
    if !matches!(new.whose, RuleWhose::Session(_)) {
        let text = "hosts are allowed for one session; for all of them there is the setting \
                    `sandbox.network`";
        return Err(wrong("scope", text));
    }
    let is_about_calls = new.server.is_some()
        || new.tool.is_some()
        || new.call.is_some()
        || new.examples.is_some()
        || new.when != Conditions::default()
        || !new.except.is_empty();
    let is_about_asking =
        new.is_binding || new.is_reviewed || new.approvers != policy::Approvers::default();
    if is_about_calls || is_about_asking {
        let text = "a rule with `network` is about every command of the session; leave out what is about \
                    calls";
        return Err(wrong("network", text));
    }
    Ok(())
}

/// Parses the hosts, each once, or reports everything that is wrong with them.
fn read(network: &[String]) -> Result<Vec<AllowedHost>, Refusal> {
    if network.len() > MAX_ALLOWED_HOSTS {
        let text = format!("at most {MAX_ALLOWED_HOSTS} hosts are possible");
        return Err(Refusal::of_field(Code::TooLarge, "network", text));
    }
    let (mut hosts, mut problems) = (Vec::new(), Vec::new());
    for text in network {
        match text.parse::<AllowedHost>() {
            Ok(host) if hosts.contains(&host) => {}
            Ok(host) => hosts.push(host),
            Err(problem) => {
                let shown: String = text.chars().take(MAX_SHOWN).collect();
                problems.push(format!("`{}`: {problem}", shown.escape_debug()));
            }
        }
    }
    if problems.is_empty() {
        Ok(hosts)
    } else {
        Err(wrong("network", problems.join("; ")))
    }
}

fn not_on_request(asked: &[&AllowedHost], on_request: &AllowedHosts) -> Refusal {
    let asked: Vec<String> = asked.iter().map(|host| format!("`{host}`")).collect();
    let may = if on_request.is_empty() {
        "no hosts".to_owned()
    } else {
        on_request.to_string()
    };
    let text = format!(
        "only an administrator of the tenant lets a session reach {}; people may allow {may} for their own \
         sessions (`sandbox.network_on_request`)",
        asked.join(", ")
    );
    Refusal::of_field(Code::NotAllowed, "network", text)
}
