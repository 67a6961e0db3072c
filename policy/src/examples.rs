//! Derives examples for rules that were not made from a call: a call that the rule matches, and one that it
//! does not.

use serde_json::{Map, Value, json};

use crate::call::ShellTool;
use crate::glob::Glob;
use crate::rule::{Example, Examples, Rule};
use crate::rules::Rules;

/// Replaces the stars of a pattern.
const ANY: &str = "any";

/// A tool that runs commands, with its server's name and its own.
#[derive(Debug, Clone, Copy)]
pub struct NamedShell<'a> {
    pub server: &'a str,
    pub tool: &'a str,
    pub shell: &'a ShellTool,
}

/// Derives examples that the rule passes; `None` if that fails. `shell` is the tool to which rules about
/// commands apply.
pub fn derive_examples(rule: &Rule, shell: NamedShell<'_>) -> Option<Examples> {
    let matching = matching(rule, shell)?;
    let fits_everything = rule.server.is_any() && rule.tool.is_any() && rule.when.is_empty();
    let others = others(rule, &matching);
    let others = others
        .into_iter()
        .map(Some)
        .chain(fits_everything.then_some(None));
    others
        .map(|other| Examples {
            matching: matching.clone(),
            other,
        })
        .find(|examples| {
            let mut tried = rule.clone();
            tried.examples = Some(examples.clone());
            Rules::compile(vec![tried]).is_ok()
        })
}

fn matching(rule: &Rule, named: NamedShell<'_>) -> Option<Example> {
    let when = &rule.when;
    let is_about_shell = rule.server.fits(named.server) && rule.tool.fits(named.tool);
    let (server, tool) = if when.command.is_some() {
        is_about_shell.then(|| (named.server.to_owned(), named.tool.to_owned()))?
    } else {
        (name_for(&rule.server), name_for(&rule.tool))
    };
    let is_shell = server == named.server && tool == named.tool;
    let shell = is_shell.then_some(named.shell);
    let mut arguments = match &when.exactly {
        Some(Value::Object(exactly)) => exactly.clone(),
        Some(_) => return None,
        None => Map::new(),
    };
    if let (Some(prefix), Some(shell)) = (when.command.iter().flatten().next(), shell) {
        let words = prefix.words.iter().map(|word| quoted(word));
        let command = words.collect::<Vec<_>>().join(" ");
        arguments.insert(shell.argument.clone(), Value::String(command));
    }
    for path in &when.paths {
        let value = match path.below.as_str() {
            "" => "file".to_owned(),
            below => format!("{below}/file"),
        };
        arguments.insert(path.argument.clone(), Value::String(value));
    }
    for host in &when.hosts {
        let name = host.host.replacen("*.", "www.", 1);
        let address = format!("https://{name}/");
        arguments.insert(host.argument.clone(), Value::String(address));
    }
    Some(Example {
        server,
        tool,
        arguments: Value::Object(arguments),
        shell: shell.cloned(),
        workspace: None,
        cost_micros: when.fitting_cost(),
    })
}

/// Returns calls that are similar to the matching one, but may not match.
fn others(rule: &Rule, matching: &Example) -> Vec<Example> {
    let mut others = Vec::new();
    if let (Some(_), Some(shell)) = (&rule.when.command, &matching.shell) {
        for command in ["true", "date"] {
            let mut other = matching.clone();
            other.arguments = json!({ shell.argument.as_str(): command });
            others.push(other);
        }
    }
    if let Some(arguments) = matching.arguments.as_object().filter(|all| !all.is_empty()) {
        let mut other = matching.clone();
        let elsewhere = arguments
            .keys()
            .map(|name| (name.clone(), json!("https://another.example/elsewhere")));
        other.arguments = Value::Object(elsewhere.collect());
        others.push(other);
    }
    for cost in [0, u64::MAX] {
        let mut other = matching.clone();
        other.cost_micros = matching.cost_micros.map(|_| cost);
        others.push(other);
    }
    let mut other = matching.clone();
    other.tool = format!("another_{}", matching.tool);
    others.push(other.clone());
    other.server = format!("another_{}", matching.server);
    others.push(other);
    others
}

fn name_for(glob: &Glob) -> String {
    glob.as_str().replace('*', ANY)
}

/// Quotes a word for a shell.
fn quoted(word: &str) -> String {
    let is_plain = |sign: char| sign.is_ascii_alphanumeric() || "-_./:=@%+,".contains(sign);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Examples, NamedShell, derive_examples};
    use crate::{CommandPrefix, Conditions, Effect, HostIs, PathBelow, Rule, Scope, ShellTool};

    fn derive(rule: &Rule) -> Option<Examples> {
        let shell = ShellTool {
            argument: "command".into(),
            harmless: Vec::new(),
        };
        let named = NamedShell {
            server: "sandbox",
            tool: "execute_command",
            shell: &shell,
        };
        derive_examples(rule, named)
    }

    fn rule(when: Conditions) -> Rule {
        let mut rule = Rule::new("a", Effect::Deny, Scope::Tenant);
        rule.when = when;
        rule
    }

    #[test]
    fn a_rule_in_words_gets_examples_that_it_passes() {
        let with = |when: Conditions| derive(&rule(when)).unwrap();
        let command = with(Conditions {
            command: Some(vec![CommandPrefix::new(["git", "push"])]),
            ..Conditions::default()
        });
        assert_eq!(command.matching.arguments, json!({ "command": "git push" }));
        assert_eq!(
            command.other.unwrap().arguments,
            json!({ "command": "true" })
        );
        let path = with(Conditions {
            paths: vec![PathBelow {
                argument: "path".into(),
                below: "notes".into(),
            }],
            ..Conditions::default()
        });
        assert_eq!(path.matching.arguments, json!({ "path": "notes/file" }));
        let host = with(Conditions {
            hosts: vec![HostIs {
                argument: "url".into(),
                host: "*.example.com".into(),
            }],
            ..Conditions::default()
        });
        assert_eq!(
            host.matching.arguments,
            json!({ "url": "https://www.example.com/" })
        );
        let dear = with(Conditions {
            cost_above: Some(5),
            ..Conditions::default()
        });
        assert_eq!(dear.matching.cost_micros, Some(6));
        assert!(
            with(Conditions::default()).other.is_none(),
            "about everything"
        );
        let mut of_a_tool = rule(Conditions::default());
        of_a_tool.tool = "write_*".into();
        assert!(derive(&of_a_tool).unwrap().other.is_some());
    }

    #[test]
    fn nothing_is_made_up_for_a_schema_that_nothing_simple_fits() {
        let schema = Conditions {
            schema: Some(json!({ "required": ["a"], "properties": { "a": { "const": 7 } } })),
            ..Conditions::default()
        };
        assert_eq!(derive(&rule(schema)), None);
    }
}
