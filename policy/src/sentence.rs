//! Formats rules as sentences, for cards and lists.

use crate::conditions::{CommandPrefix, Conditions};
use crate::rule::{Approver, Effect, Network, Rule, Scope};

/// The part of a sentence for a rule that lets any words follow a command.
const ANY_WORDS: &str = "even ones that write files or run programs";

/// Formats the rule as an English sentence, or two.
pub fn sentence(rule: &Rule) -> String {
    sentence_of(rule, None)
}

/// The same with the name of the group, if the rule is of a group.
pub fn sentence_of(rule: &Rule, group: Option<&str>) -> String {
    if let Some(network) = &rule.network {
        let hosts = hosts(network);
        return format!("{}, let commands reach {hosts}.", duration(rule, group));
    }
    let except: Vec<String> = rule.except.iter().map(of_conditions).collect();
    let except = if except.is_empty() {
        String::new()
    } else {
        format!(", except {}", except.join(", or "))
    };
    let mut text = format!("{}, {}{except}.", duration(rule, group), action(rule));
    if rule.allows_everything() {
        text = format!("Everything: {}", with_small_letter(&text));
    }
    if rule.effect == Effect::Ask {
        text.push_str(&approvers(rule));
    }
    if rule.definition.is_some() && rule.effect == Effect::Allow {
        text.push_str(" This ends when the tool's definition changes.");
    }
    text
}

fn with_small_letter(text: &str) -> String {
    let mut signs = text.chars();
    let first = signs.next().map(|sign| sign.to_ascii_lowercase());
    first.into_iter().chain(signs).collect()
}

fn duration(rule: &Rule, group: Option<&str>) -> String {
    let whom = match (rule.scope, group) {
        (Scope::Session, _) => "in this session".to_owned(),
        (Scope::Person, _) => "for you".to_owned(),
        (Scope::Group, Some(group)) => format!("for the members of “{group}”"),
        (Scope::Group, None) => "for the members of a group".to_owned(),
        (Scope::Tenant, _) => "for everybody in this tenant".to_owned(),
        (Scope::Installation, _) => "for everybody on this installation".to_owned(),
    };
    match (rule.until_ms, rule.scope) {
        (Some(until_ms), _) => format!("Until {}, {whom}", date(until_ms)),
        (None, Scope::Session) => "For the rest of this session".to_owned(),
        (None, _) => format!("Always, {whom}"),
    }
}

/// Formats the action and its object.
fn action(rule: &Rule) -> String {
    let object = match &rule.when.command {
        Some(prefixes) if prefixes.iter().any(|prefix| prefix.any_words) => {
            format!("run {},", of_prefixes(prefixes))
        }
        Some(prefixes) => format!("run {}", of_prefixes(prefixes)),
        None => "run".to_owned(),
    };
    let tool = match (rule.server.is_any(), rule.tool.is_any()) {
        (true, true) => "any tool".to_owned(),
        (false, true) => format!("any tool of `{}`", rule.server.as_str()),
        (true, false) => format!("`{}` of any server", rule.tool.as_str()),
        (false, false) => format!("`{}` of `{}`", rule.tool.as_str(), rule.server.as_str()),
    };
    let preposition = if rule.when.command.is_some() {
        "with "
    } else {
        ""
    };
    let details = details(&rule.when);
    let details = if details.is_empty() {
        String::new()
    } else {
        format!(" {}", details.join(" and "))
    };
    let what = format!("{object} {preposition}{tool}{details}");
    match rule.effect {
        Effect::Allow => format!("{what} without asking"),
        Effect::Ask if rule.binding => {
            format!("ask before you {what}, whatever else is allowed")
        }
        Effect::Ask => format!("ask before you {what}"),
        Effect::Deny => format!("never {what}"),
    }
}

/// Returns a short description of what the rule is about, by which people recognise a rule without a name.
pub fn subject(rule: &Rule) -> String {
    if let Some(network) = &rule.network {
        return network.hosts.join(", ");
    }
    if let Some(prefixes) = &rule.when.command {
        let short = prefixes.iter().map(|prefix| CommandPrefix {
            any_words: false,
            ..prefix.clone()
        });
        return of_prefixes(&short.collect::<Vec<_>>()).replace('`', "");
    }
    match rule.tool.as_exact() {
        Some(tool) => tool.to_owned(),
        None if rule.tool.is_any() && rule.server.is_any() => "any tool".to_owned(),
        None => format!("{} of {}", rule.tool.as_str(), rule.server.as_str()),
    }
}

fn hosts(network: &Network) -> String {
    let hosts = network.hosts.iter().map(|host| format!("`{host}`"));
    hosts.collect::<Vec<_>>().join(" and ")
}

fn of_prefixes(prefixes: &[CommandPrefix]) -> String {
    let prefixes: Vec<String> = prefixes
        .iter()
        .map(|prefix| {
            let words: Vec<String> = prefix.words.iter().map(|word| quoted(word)).collect();
            let words = words.join(" ");
            match (prefix.more, prefix.any_words) {
                (_, true) => format!("`{words}` with any further words, {ANY_WORDS}"),
                (true, false) => format!("`{words} …`"),
                (false, false) => format!("`{words}`"),
            }
        })
        .collect();
    prefixes.join(" or ")
}

/// Quotes a word if needed, so that its end is visible.
fn quoted(word: &str) -> String {
    let is_plain = |sign: char| sign.is_alphanumeric() || "-_./:=@%+,".contains(sign);
    if word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

fn of_conditions(conditions: &Conditions) -> String {
    let mut parts = Vec::new();
    parts.extend(conditions.command.as_deref().map(of_prefixes));
    parts.extend(details(conditions));
    parts.join(" and ")
}

/// Formats all conditions but the command.
fn details(conditions: &Conditions) -> Vec<String> {
    let mut parts = Vec::new();
    if let Some(arguments) = &conditions.exactly {
        parts.push(format!("with exactly `{arguments}`"));
    }
    for path in &conditions.paths {
        let below = if path.below.is_empty() {
            "in the workspace".to_owned()
        } else {
            format!("below `{}`", path.below)
        };
        parts.push(format!("with `{}` {below}", path.argument));
    }
    for host in &conditions.hosts {
        parts.push(format!("with `{}` at `{}`", host.argument, host.host));
    }
    if conditions.schema.is_some() {
        parts.push("with arguments that fit the rule's schema".to_owned());
    }
    if let Some(limit) = conditions.cost_above {
        parts.push(format!(
            "once the session has cost more than {}",
            dollars(limit)
        ));
    }
    if let Some(limit) = conditions.cost_below {
        parts.push(format!(
            "while the session has cost less than {}",
            dollars(limit)
        ));
    }
    parts
}

fn approvers(rule: &Rule) -> String {
    let who = match &rule.approvers.who {
        Approver::Owner => String::new(),
        Approver::Role(name) => format!(" Somebody with the role `{name}` must say yes."),
        Approver::SomebodyElse => " Somebody else must say yes.".to_owned(),
        Approver::Two => " Two people must say yes.".to_owned(),
    };
    let gesture = if rule.approvers.fresh_gesture {
        " The yes needs a fresh proof of presence."
    } else {
        ""
    };
    let review = if rule.reviewed {
        " A model may approve it."
    } else {
        ""
    };
    format!("{who}{gesture}{review}")
}

fn dollars(micros: u64) -> String {
    let fraction = format!("{:06}", micros % 1_000_000);
    let fraction = fraction.trim_end_matches('0');
    format!("${}.{fraction:0<2}", micros / 1_000_000)
}

/// Formats a time such as `2026-11-25 20:47 UTC`.
fn date(ms: u64) -> String {
    let minutes = ms / 60_000;
    let (days, minutes) = (minutes / 1_440, minutes % 1_440);
    // Converts days to the civil calendar, counted from March of year 0 in eras of 400 years.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!(
        "{year:04}-{month:02}-{day:02} {:02}:{:02} UTC",
        minutes / 60,
        minutes % 60
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{date, dollars, sentence, subject};
    use crate::{Approver, CommandPrefix, Conditions, Effect, Network, PathBelow, Rule, Scope};

    #[test]
    fn a_rule_reads_as_a_sentence() {
        let mut rule = Rule::new("a", Effect::Allow, Scope::Session);
        rule.server = "sandbox".into();
        rule.tool = "execute_command".into();
        rule.when.command = Some(vec![CommandPrefix::new(["npm", "test"])]);
        assert_eq!(
            sentence(&rule),
            "For the rest of this session, run `npm test …` with `execute_command` of `sandbox` without asking."
        );
        let mut rule = Rule::new("b", Effect::Deny, Scope::Tenant);
        rule.when.command = Some(vec![CommandPrefix::new(["git", "push"])]);
        rule.except = vec![Conditions {
            command: Some(vec![CommandPrefix {
                words: vec!["git".into(), "push".into(), "a b".into()],
                more: false,
                any_words: false,
            }]),
            ..Conditions::default()
        }];
        assert_eq!(
            sentence(&rule),
            "Always, for everybody in this tenant, never run `git push …` with any tool, except `git push 'a b'`."
        );
        let mut rule = Rule::new("c", Effect::Ask, Scope::Person);
        rule.tool = "write_file".into();
        rule.until_ms = Some(0);
        rule.when.paths = vec![PathBelow {
            argument: "path".into(),
            below: "src".into(),
        }];
        rule.when.cost_above = Some(1_500_000);
        rule.approvers.who = Approver::Two;
        assert_eq!(
            sentence(&rule),
            "Until 1970-01-01 00:00 UTC, for you, ask before you run `write_file` of any server with `path` below `src` and once the session has cost more than $1.50. Two people must say yes."
        );
        let mut rule = Rule::new("d", Effect::Allow, Scope::Installation);
        rule.when.exactly = Some(json!({"a": 1}));
        rule.definition = Some("x".into());
        assert_eq!(
            sentence(&rule),
            "Always, for everybody on this installation, run any tool with exactly `{\"a\":1}` without asking. This ends when the tool's definition changes."
        );
    }

    #[test]
    fn a_rule_about_hosts_says_where_commands_may_go() {
        let mut rule = Rule::new("a", Effect::Allow, Scope::Session);
        rule.network = Some(Network {
            hosts: vec!["pypi.org".into(), "*.example.com:8443".into()],
            on_request: true,
        });
        assert_eq!(
            sentence(&rule),
            "For the rest of this session, let commands reach `pypi.org` and `*.example.com:8443`."
        );
        assert_eq!(subject(&rule), "pypi.org, *.example.com:8443");
        rule.until_ms = Some(0);
        assert_eq!(
            sentence(&rule),
            "Until 1970-01-01 00:00 UTC, in this session, let commands reach `pypi.org` and `*.example.com:8443`."
        );
    }

    #[test]
    fn a_rule_without_a_name_is_known_by_what_it_is_about() {
        let mut rule = Rule::new("a", Effect::Allow, Scope::Session);
        assert_eq!(subject(&rule), "any tool");
        rule.server = "files".into();
        assert_eq!(subject(&rule), "* of files");
        rule.tool = "write_file".into();
        assert_eq!(subject(&rule), "write_file");
        rule.when.command = Some(vec![CommandPrefix::new(["npm", "test"])]);
        assert_eq!(subject(&rule), "npm test …");
    }

    #[test]
    fn dates_and_money_are_written_in_full() {
        for (ms, expected) in [
            (951_782_399_000, "2000-02-28 23:59 UTC"),
            (951_782_400_000, "2000-02-29 00:00 UTC"),
            (1_764_104_860_000, "2025-11-25 21:07 UTC"),
            (4_107_542_400_000, "2100-03-01 00:00 UTC"),
        ] {
            assert_eq!(date(ms), expected);
        }
        assert_eq!(dollars(1), "$0.000001");
        assert_eq!(dollars(2_000_000), "$2.00");
    }
}
