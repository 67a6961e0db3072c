//! Tests every option in the manuals of all programs that a card may offer against a rule about the program:
//! only options that read run without asking, and only they are offered.
#![expect(
    clippy::unwrap_used,
    reason = "functions that tests share are tests too"
)]

use std::collections::BTreeSet;

use sepal_policy::{
    Because, Call, CommandPrefix, Conditions, Decision, Effect, Gap, Reach, Rule, Rules, Scope,
    ShellTool, propose,
};
use serde_json::json;

const MANUALS: &str = include_str!("manuals/options.txt");

struct Section {
    prefix: &'static str,
    is_offered: bool,
    /// Classes and options, as the file lists them.
    options: Vec<(&'static str, &'static str)>,
}

fn sections() -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    for line in MANUALS.lines() {
        if let Some(name) = line.strip_prefix("## ") {
            let prefix = name.strip_suffix(" (typed)");
            sections.push(Section {
                prefix: prefix.unwrap_or(name),
                is_offered: prefix.is_none(),
                options: Vec::new(),
            });
        } else if let Some((class, options)) = line.split_once(": ")
            && let Some(section) = sections.last_mut()
        {
            let options = options.split(' ').map(|option| (class, option));
            section.options.extend(options);
        }
    }
    sections
}

/// Returns the ways in which the option may be written.
fn forms(option: &str) -> Vec<String> {
    let (name, value) = match option.strip_suffix("[=]") {
        Some(name) => (name, "attached"),
        None => match option.strip_suffix('=') {
            Some(name) => (name, "any"),
            None => (option, ""),
        },
    };
    let is_long = name.starts_with("--") || name.len() > 2;
    match (name, value) {
        ("-NUM", _) => vec!["-5".to_owned()],
        (_, "attached") if is_long => vec![name.to_owned(), format!("{name}=x")],
        (_, "attached") => vec![name.to_owned(), format!("{name}x")],
        (_, "any") if is_long => vec![format!("{name}=x"), format!("{name} x")],
        (_, "any") => vec![format!("{name} x")],
        _ => vec![name.to_owned()],
    }
}

fn with_call<T>(command: &str, then: impl FnOnce(&Call<'_>) -> T) -> T {
    let arguments = json!({ "command": command });
    let shell = ShellTool {
        argument: "command".into(),
        harmless: vec![],
    };
    then(&Call {
        shell: Some(&shell),
        ..Call::new("sandbox", "execute_command", &arguments)
    })
}

fn rules(prefix: &str) -> Rules {
    let rule = Rule {
        when: Conditions {
            command: Some(vec![CommandPrefix::new(prefix.split(' '))]),
            ..Conditions::default()
        },
        ..Rule::new("prefix", Effect::Allow, Scope::Session)
    };
    Rules::compile(vec![rule]).unwrap()
}

fn is_offered(call: &Call<'_>) -> bool {
    propose(call)
        .iter()
        .any(|offer| offer.reach == Reach::Alike)
}

/// Returns true if the decision is right for an option of that class.
fn is_right(class: &str, decision: &Decision) -> bool {
    let gap = if let Because::PartNotAllowed { nearest, .. } = &decision.because {
        nearest.as_ref().map(|(_, gap)| gap)
    } else {
        None
    };
    match (class, decision.effect) {
        ("reads", effect) => effect == Effect::Allow,
        (_, Effect::Allow | Effect::Deny) => false,
        // The parser of commands knows some options by itself.
        (_, Effect::Ask) if gap == Some(&Gap::RunsUnknown) => true,
        ("writes", _) => matches!(gap, Some(Gap::Writes { .. })),
        ("runs", _) => matches!(gap, Some(Gap::Runs { .. })),
        ("unknown", _) => true,
        _ => false,
    }
}

#[test]
fn each_option_of_each_manual_does_what_its_class_says() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for section in sections() {
        let rules = rules(section.prefix);
        let mut has_read = false;
        for (class, option) in &section.options {
            for (at, form) in forms(option).into_iter().enumerate() {
                count += 1;
                let command = match section.prefix {
                    "[" => format!("[ {form} x ]"),
                    "sed" => format!("sed {form} 5p x"),
                    prefix => format!("{prefix} {form}"),
                };
                let decision = with_call(&command, |call| rules.decide(call));
                // Making a proposal is slow: only one option that reads is tried, and each other option once.
                let is_read = *class == "reads";
                let is_tried = at == 0 && (!is_read || !has_read);
                has_read |= is_read;
                let offered = is_tried && with_call(&command, is_offered);
                let may_be_offered = is_tried && section.is_offered && is_read;
                if !is_right(class, &decision) || offered != may_be_offered {
                    wrong.push(format!(
                        "{command} ({class}, {offered}): {}",
                        decision.because
                    ));
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(count > 3_000, "{count}");
}

/// GNU programs and git accept abbreviated long options, and combined letters.
#[test]
fn what_does_more_than_read_is_asked_in_every_way_in_which_it_may_be_written() {
    let mut wrong = Vec::new();
    for section in sections() {
        let rules = rules(section.prefix);
        let of = |wanted: fn(&str) -> bool| {
            let options = section.options.iter();
            let options = options.filter(move |(class, _)| wanted(class));
            options.map(|(_, option)| option.trim_end_matches("[=]").trim_end_matches('='))
        };
        let reads: BTreeSet<&str> = of(|class| class == "reads").collect();
        let is_letter = |option: &str| option.len() == 2 && option.starts_with('-');
        let flag = section
            .options
            .iter()
            .find(|(class, option)| *class == "reads" && is_letter(option));
        let mut texts = Vec::new();
        for harmful in of(|class| class != "reads") {
            if let Some(name) = harmful.strip_prefix("--") {
                let cut = (1..name.len()).map(|end| format!("--{}", &name[..end]));
                let cut = cut.filter(|text| !reads.contains(text.as_str()));
                texts.extend(cut);
            } else if let Some((_, flag)) = flag.filter(|_| is_letter(harmful)) {
                texts.push(format!("{flag}{}", harmful.trim_start_matches('-')));
                texts.push(format!("{flag}{}x", harmful.trim_start_matches('-')));
            }
        }
        for text in texts {
            let command = format!("{} {text}", section.prefix);
            let decision = with_call(&command, |call| rules.decide(call));
            if decision.effect == Effect::Allow {
                wrong.push(command);
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// Options before a subcommand, and variables before a command.
#[test]
fn options_before_the_subcommand_are_options_too() {
    for (prefix, command, is_allowed) in [
        ("git", "git --no-pager log", true),
        ("git", "git -P status -s", true),
        ("git", "git -C evil status", false),
        ("git", "git -c core.pager=evil log", false),
        ("git", "git --git-dir=evil log", false),
        ("git", "git --git-dir evil log", false),
        ("git", "git --work-tree=evil log", false),
        ("git", "git --exec-path=evil log", false),
        ("git", "git --config-env=core.pager=X log", false),
        ("git", "git -p log", false),
        ("git", "git evil", false),
        ("git", "git push", false),
        ("git -C sub log", "git -C sub log --oneline", true),
        ("git -C sub log", "git -C sub log --output=x", false),
        ("npm", "npm --silent test", true),
        ("npm", "npm --prefix evil test", false),
        ("npm", "npm -C evil test", false),
        ("cargo", "cargo --locked test", true),
        ("cargo", "cargo --config evil test", false),
        ("cargo", "cargo -C evil test", false),
        ("cargo", "cargo +nightly test", false),
        ("docker", "docker ps -a", true),
        ("docker", "docker -H tcp://evil ps", false),
        ("docker", "docker --context evil ps", false),
        ("kubectl", "kubectl -n web get pods", true),
        ("kubectl", "kubectl --kubeconfig evil get pods", false),
        ("kubectl", "kubectl delete pod x", false),
        ("uv", "uv tree", true),
        ("uv", "uv sync", false),
        ("uv", "uv --directory evil tree", false),
        ("ls", "GIT_PAGER=evil ls", false),
        ("git", "GIT_DIR=evil git log", false),
        ("git", "env GIT_DIR=evil git log", false),
        ("pip", "pip --python evil list", false),
        ("terraform", "terraform -chdir=evil validate", false),
        ("go", "go -C evil vet", false),
        ("pnpm", "pnpm --dir evil test", false),
        ("yarn", "yarn --cwd evil test", false),
        ("bun", "bun --cwd evil test", false),
    ] {
        let decision = with_call(command, |call| rules(prefix).decide(call));
        assert_eq!(
            decision.effect == Effect::Allow,
            is_allowed,
            "{command}: {}",
            decision.because
        );
    }
}
