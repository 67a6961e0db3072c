//! Proposes allow rules for the card of a call: never more than a person can oversee.

use serde_json::{Map, Value, json};

use crate::call::Call;
use crate::conditions::{CommandPrefix, Conditions, HostIs, PathBelow, folder_of, host_of};
use crate::glob::Glob;
use crate::rule::{Effect, Example, Examples, Rule, Scope};
use crate::rules::Rules;
use crate::shell::{self, Part, Word, offered_prefix};

/// The number of calls that a proposal allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Exactly this call.
    Exact,
    /// Calls with similar arguments.
    Alike,
    /// Every call of the tool.
    Tool,
}

/// An allow rule that a person may choose.
#[derive(Debug, Clone, PartialEq)]
pub struct Proposal {
    pub reach: Reach,
    rule: Rule,
}

impl Proposal {
    /// Returns the rule for this session, with its examples; its id is not set yet.
    pub fn draft(&self) -> &Rule {
        &self.rule
    }

    /// Returns the rule for the scope and the expiry that the person chose.
    pub fn into_rule(self, id: impl Into<String>, scope: Scope, until_ms: Option<u64>) -> Rule {
        Rule {
            id: id.into(),
            scope,
            until_ms,
            ..self.rule
        }
    }
}

/// Returns the proposals for a call, narrowest first. Each rule ends when the tool's definition changes, and
/// has an example that it matches and one that it does not.
pub fn propose(call: &Call<'_>) -> Vec<Proposal> {
    let exact = Conditions {
        exactly: Some(call.arguments.clone()),
        ..Conditions::default()
    };
    let mut offers = vec![(Reach::Exact, exact)];
    let alike = if call.shell.is_some() {
        call.command().and_then(commands)
    } else {
        places(call)
    };
    offers.extend(alike.map(|conditions| (Reach::Alike, conditions)));
    offers.push((Reach::Tool, Conditions::default()));
    offers
        .into_iter()
        .filter_map(|(reach, when)| proposal(call, reach, when))
        .collect()
}

/// Builds a proposal; `None` if the rule would not do what its card says.
fn proposal(call: &Call<'_>, reach: Reach, when: Conditions) -> Option<Proposal> {
    let mut rule = Rule::new("proposed", Effect::Allow, Scope::Session);
    rule.server = literal(call.server)?;
    rule.tool = literal(call.tool)?;
    rule.definition = call.definition.map(str::to_owned);
    rule.examples = Some(Examples {
        matching: Example::of(call),
        other: Some(other(call, reach, &when)),
    });
    rule.when = when;
    Rules::compile(vec![rule.clone()]).ok()?;
    rule.id = String::new();
    Some(Proposal { reach, rule })
}

/// Returns a pattern that matches only this name; `None` for a name with a star.
fn literal(name: &str) -> Option<Glob> {
    (!name.contains('*')).then(|| Glob::from(name))
}

/// Returns a call that is similar to `call` and must not match.
fn other(call: &Call<'_>, reach: Reach, when: &Conditions) -> Example {
    let mut example = Example::of(call);
    match (reach, call.shell, call.command()) {
        (Reach::Tool, _, _) => example.tool = format!("another_{}", call.tool),
        (_, Some(shell), Some(command)) => {
            let command = format!("{command} && curl evil.example");
            example.arguments = json!({ (shell.argument.as_str()): command });
        }
        (Reach::Exact, ..) => {
            let mut arguments = call.arguments.as_object().cloned().unwrap_or_else(Map::new);
            arguments.insert("another".to_owned(), Value::Bool(true));
            example.arguments = Value::Object(arguments);
        }
        (Reach::Alike, ..) => {
            let names = when
                .paths
                .iter()
                .map(|path| (&path.argument, "elsewhere/file"));
            let hosts = when
                .hosts
                .iter()
                .map(|host| (&host.argument, "https://evil.example/"));
            for (argument, value) in names.chain(hosts) {
                if let Some(place) = example.arguments.get_mut(argument) {
                    *place = Value::String(value.to_owned());
                }
            }
        }
    }
    example
}

/// Returns prefixes for all parts of a command; `None` if one of them would allow too much.
fn commands(command: &str) -> Option<Conditions> {
    let parts = shell::read(command).ok()?;
    let mut prefixes: Vec<CommandPrefix> = Vec::new();
    for part in &parts {
        let prefix = prefix(part)?;
        if !prefixes.contains(&prefix) {
            prefixes.push(prefix);
        }
    }
    Some(Conditions {
        command: Some(prefixes),
        ..Conditions::default()
    })
}

/// Returns the words that the table of harmless commands knows, if it knows all words of the part. A change
/// of folder is offered with the folder's name if another command depends on files of its folder.
fn prefix(part: &Part) -> Option<CommandPrefix> {
    if part.hidden.is_some() || part.redirects || part.is_shadow {
        return None;
    }
    let words = offered_prefix(part)?;
    if part.leads {
        let words: Option<Vec<&str>> = part.words.iter().map(Word::literal).collect();
        return Some(CommandPrefix {
            more: false,
            ..CommandPrefix::new(words?)
        });
    }
    Some(CommandPrefix::new(words))
}

/// Names of arguments that hold paths, as tools use them.
const PATHS: &[&str] = &[
    "destination",
    "dir",
    "directory",
    "file",
    "file_path",
    "filename",
    "filepath",
    "folder",
    "path",
    "source",
];

/// Names of arguments that hold addresses.
const ADDRESSES: &[&str] = &["href", "uri", "url"];

/// Returns the folders of all paths and the hosts of all addresses; `None` if there are none, or one cannot
/// surely be read.
fn places(call: &Call<'_>) -> Option<Conditions> {
    let mut conditions = Conditions::default();
    for (name, value) in call.arguments.as_object()? {
        let text = || value.as_str();
        let argument = name.clone();
        if PATHS.contains(&name.as_str()) {
            let below = folder_of(text()?, call.workspace)?;
            conditions.paths.push(PathBelow { argument, below });
        } else if ADDRESSES.contains(&name.as_str()) {
            let host = host_of(text()?)?;
            conditions.hosts.push(HostIs { argument, host });
        }
    }
    (!conditions.is_empty()).then_some(conditions)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Reach, propose};
    use crate::{Call, Effect, Rules, Scope, ShellTool, sentence};

    fn shell() -> ShellTool {
        ShellTool {
            argument: "command".into(),
            harmless: vec!["timeout_s".into()],
        }
    }

    /// Returns the sentence of the proposal for similar commands, if there is one.
    fn alike(command: &str) -> Option<String> {
        let arguments = json!({"command": command});
        let shell = shell();
        let call = Call {
            shell: Some(&shell),
            ..Call::new("sandbox", "execute_command", &arguments)
        };
        let offers = propose(&call);
        let reaches: Vec<Reach> = offers.iter().map(|offer| offer.reach).collect();
        assert_eq!(
            (reaches.first(), reaches.last()),
            (Some(&Reach::Exact), Some(&Reach::Tool)),
            "{command}"
        );
        for offer in &offers {
            let rules =
                Rules::compile(vec![offer.clone().into_rule("a", Scope::Person, None)]).unwrap();
            assert_eq!(rules.decide(&call).effect, Effect::Allow, "{command}");
        }
        let offer = offers.iter().find(|offer| offer.reach == Reach::Alike)?;
        let text = sentence(offer.draft());
        Some(
            text.split('`')
                .filter(|text| text.ends_with('…'))
                .collect::<Vec<_>>()
                .join(" "),
        )
    }

    #[test]
    fn a_prefix_is_offered_only_where_it_gives_little_away() {
        for (command, offered) in [
            ("npm test", Some("npm test …")),
            ("npm test --silent", Some("npm test …")),
            ("npm test -- --watch=false", None),
            ("npm run build:web", Some("npm run build:web …")),
            ("cargo test --locked | tail -5", Some("cargo test … tail …")),
            ("git status", Some("git status …")),
            ("ls -l", Some("ls …")),
            ("git push", None),
            ("git -c a=b status", None),
            ("npm run", None),
            ("npm install left-pad", None),
            ("npm exec x", None),
            ("npx jest", None),
            ("sh -c 'ls'", None),
            ("bash x.sh", None),
            ("env ls", None),
            ("sudo ls", None),
            ("python x.py", None),
            ("node", None),
            ("timeout 5 ls", None),
            ("xargs ls", None),
            ("find . -name x", Some("find …")),
            ("find . -exec ls {} +", Some("ls … find …")),
            ("find . -delete", None),
            ("cargo fmt", None),
            ("cargo fmt --check", Some("cargo fmt --check …")),
            ("go build ./...", None),
            ("sort -o x y", None),
            ("npm audit fix", None),
            ("git branch new", None),
            ("make test", None),
            ("rm build", None),
            ("./ls", None),
            ("/bin/ls", None),
            ("ls > x", None),
            ("ls && rm x", None),
            ("A=1 ls", None),
            ("$X", None),
            ("ls \u{a0}", None),
            ("alias ls=rm", None),
        ] {
            assert_eq!(alike(command).as_deref(), offered, "{command}");
        }
    }

    #[test]
    fn folders_and_hosts_are_offered_where_they_are_sure() {
        for (arguments, offered) in [
            (
                json!({"path": "src/a/b.rs", "text": "x"}),
                json!({"paths": [{"argument": "path", "below": "src/a"}]}),
            ),
            (
                json!({"url": "https://example.com/a"}),
                json!({"hosts": [{"argument": "url", "host": "example.com"}]}),
            ),
            (json!({"path": "a.rs"}), Value::Null),
            (json!({"path": "../a/b.rs"}), Value::Null),
            (json!({"path": "src/a", "url": "https://a@b/"}), Value::Null),
            (json!({"query": "x"}), Value::Null),
        ] {
            let call = Call::new("files", "tool", &arguments);
            let offers = propose(&call);
            let alike = offers.iter().find(|offer| offer.reach == Reach::Alike);
            let when = alike
                .map(|offer| json!(offer.draft().when))
                .unwrap_or_default();
            assert_eq!(when, offered, "{arguments}");
        }
    }
}
