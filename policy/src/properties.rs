//! Tests invariants over random rules, edits, drift and crashes.

use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};

use crate::{
    Approver, Call, CommandPrefix, Conditions, Decision, Effect, PathBelow, Rule, Rules, Scope,
    ShellTool,
};

fn config() -> ProptestConfig {
    let default = ProptestConfig::default();
    ProptestConfig {
        cases: default.cases.max(1_024),
        failure_persistence: None,
        ..default
    }
}

fn conditions() -> impl Strategy<Value = Conditions> {
    let words = select(vec![
        "ls",
        "rm",
        "rm -r build",
        "git push",
        "git",
        "npm test",
        "env",
        "sh",
    ]);
    let command = prop::collection::vec((words, any::<bool>()), 1..3).prop_map(|prefixes| {
        let prefix = |(words, more): (&str, bool)| CommandPrefix {
            more,
            ..CommandPrefix::new(words.split(' '))
        };
        Conditions {
            command: Some(prefixes.into_iter().map(prefix).collect()),
            ..Conditions::default()
        }
    });
    let path = select(vec!["", "src", "src/a"]).prop_map(|below| Conditions {
        paths: vec![PathBelow {
            argument: "path".into(),
            below: below.into(),
        }],
        ..Conditions::default()
    });
    let exactly = select(arguments()).prop_map(|arguments| Conditions {
        exactly: Some(arguments),
        ..Conditions::default()
    });
    let cost = (0..3_u64).prop_map(|cost| Conditions {
        cost_above: Some(cost),
        ..Conditions::default()
    });
    prop_oneof![2 => Just(Conditions::default()), 6 => command, 2 => path, 2 => exactly, 1 => cost]
}

prop_compose! {
    fn rule()(
        effect in select(vec![Effect::Allow, Effect::Allow, Effect::Ask, Effect::Deny]),
        scope in select(Scope::ALL.to_vec()),
        tool in select(vec!["*", "run", "read_*"]),
        when in conditions(),
        except in prop::collection::vec(conditions(), 0..2),
        until_ms in prop::option::weighted(0.2, 0..4_u64),
        definition in prop::option::weighted(0.2, select(vec!["v1", "v2"])),
        binding in any::<bool>(),
        reviewed in any::<bool>(),
    ) -> Rule {
        let except: Vec<Conditions> = except.into_iter().filter(|it| !it.is_empty()).collect();
        Rule {
            tool: tool.into(),
            when,
            except: if effect == Effect::Allow { Vec::new() } else { except },
            until_ms,
            definition: definition.map(str::to_owned),
            binding: binding && effect == Effect::Ask,
            reviewed: reviewed
                && effect == Effect::Ask
                && matches!(scope, Scope::Group | Scope::Tenant | Scope::Installation),
            ..Rule::new("", effect, scope)
        }
    }
}

/// An event in the life of an installation's rules.
#[derive(Debug, Clone)]
enum Step {
    Add(Rule),
    Edit(Index, Rule),
    Remove(Index),
    /// The tool's definition changes.
    Drift(&'static str),
    Wait,
    /// The stored rules are read again, in any order.
    Crash(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => rule().prop_map(Step::Add),
        2 => (any::<Index>(), rule()).prop_map(|(at, rule)| Step::Edit(at, rule)),
        1 => any::<Index>().prop_map(Step::Remove),
        1 => select(vec!["v1", "v2", "v3"]).prop_map(Step::Drift),
        1 => Just(Step::Wait),
        2 => any::<usize>().prop_map(Step::Crash),
    ]
}

const COMMANDS: &[&str] = &[
    "ls",
    "ls -l",
    "rm x",
    "rm -r build",
    "git push",
    "git -C x push",
    "git status",
    "npm test",
    "env rm x",
    "sh -c 'rm x'",
    "$X",
    "ls > x",
    "A=1 ls",
    "ls; rm x",
    "npm test && git push",
    "ls `x`",
    "ls $(rm x)",
];

fn arguments() -> Vec<Value> {
    let commands = COMMANDS.iter().map(|command| json!({"command": command}));
    let paths = ["src/a/b", "src/c", "../src", "d"].map(|path| json!({"path": path}));
    commands.chain(paths).chain([json!({})]).collect()
}

/// Decides all test calls.
fn all(rules: &Rules, definition: &str, now_ms: u64) -> Vec<(Value, Decision)> {
    let shell = ShellTool {
        argument: "command".into(),
        harmless: vec![],
    };
    let mut decided = Vec::new();
    for arguments in arguments() {
        for (tool, cost_micros) in [("run", Some(1)), ("read_file", None)] {
            let call = Call {
                shell: (tool == "run").then_some(&shell),
                definition: Some(definition),
                cost_micros,
                now_ms,
                ..Call::new("server", tool, &arguments)
            };
            let decision = rules.decide(&call);
            decided.push((json!([tool, arguments]), decision));
        }
    }
    decided
}

fn compile(rules: &[Rule]) -> Rules {
    Rules::compile(rules.to_vec()).unwrap()
}

/// Gives each rule an id of its own.
fn named(rules: Vec<Rule>) -> Vec<Rule> {
    let named = rules.into_iter().enumerate().map(|(at, rule)| Rule {
        id: format!("r{at}"),
        ..rule
    });
    named.collect()
}

proptest! {
    #![proptest_config(config())]

    /// No sequence of rules, drift, edits and crashes lets a call run that the newest rules deny.
    #[test]
    fn what_the_newest_rules_deny_never_runs(steps in prop::collection::vec(step(), 1..12)) {
        let (mut rules, mut definition, mut now_ms, mut next) = (Vec::<Rule>::new(), "v1", 0_u64, 0);
        for step in steps {
            match step {
                Step::Add(rule) => {
                    next += 1;
                    rules.push(Rule { id: format!("r{next}"), ..rule });
                }
                Step::Edit(at, rule) if !rules.is_empty() => {
                    let at = at.index(rules.len());
                    rules[at] = Rule { id: rules[at].id.clone(), ..rule };
                }
                Step::Remove(at) if !rules.is_empty() => {
                    rules.swap_remove(at.index(rules.len()));
                }
                Step::Drift(to) => definition = to,
                Step::Wait => now_ms += 1,
                Step::Crash(by) => {
                    let stored = serde_json::to_string(&rules).unwrap();
                    let mut read: Vec<Rule> = serde_json::from_str(&stored).unwrap();
                    let len = read.len().max(1);
                    read.rotate_left(by % len);
                    prop_assert_eq!(all(&compile(&read), definition, now_ms), all(&compile(&rules), definition, now_ms));
                    rules = read;
                }
                Step::Edit(..) | Step::Remove(_) => {}
            }
            let decided = all(&compile(&rules), definition, now_ms);
            for denying in rules.iter().filter(|rule| rule.effect == Effect::Deny) {
                let alone = all(&compile(std::slice::from_ref(denying)), definition, now_ms);
                for ((call, alone), (_, together)) in alone.iter().zip(&decided) {
                    if alone.effect == Effect::Deny {
                        prop_assert_eq!(together.effect, Effect::Deny, "{}", call);
                    }
                    // A call that may be denied is asked.
                    if alone.rules().next().is_some() {
                        prop_assert!(together.effect >= Effect::Ask, "{}", call);
                    }
                }
            }
        }
    }

    /// An allow rule refuses nothing and lets nothing run that is denied; a deny rule lets nothing run; an
    /// ask rule lets nothing run.
    #[test]
    fn a_rule_changes_decisions_only_in_its_own_direction(
        rules in prop::collection::vec(rule(), 0..6),
        added in rule(),
    ) {
        let mut rules = named(rules);
        let before = all(&compile(&rules), "v1", 1);
        rules.push(Rule { id: "added".into(), ..added.clone() });
        let after = all(&compile(&rules), "v1", 1);
        for ((call, before), (_, after)) in before.iter().zip(&after) {
            match added.effect {
                Effect::Allow => {
                    prop_assert!(after.effect <= before.effect, "{}", call);
                    prop_assert_eq!(before.effect == Effect::Deny, after.effect == Effect::Deny, "{}", call);
                }
                Effect::Ask | Effect::Deny => prop_assert!(after.effect >= before.effect, "{}", call),
            }
        }
    }

    /// Only rules that open calls to review open any, and an open call was asked by such rules alone.
    #[test]
    fn only_rules_that_open_calls_open_them(
        rules in prop::collection::vec(rule(), 0..6),
        added in rule(),
    ) {
        let mut rules = named(rules);
        let before = all(&compile(&rules), "v1", 1);
        for (call, decision) in &before {
            let by_reviewed = |id: &str| rules.iter().any(|rule| rule.id == id && rule.reviewed);
            if decision.reviewed {
                prop_assert_eq!(decision.effect, Effect::Ask, "{}", call);
                prop_assert!(decision.rules().all(by_reviewed), "{}", call);
                prop_assert_eq!(&decision.approvers, &[Approver::Owner], "{}", call);
                prop_assert!(!decision.fresh_gesture, "{}", call);
            }
        }
        if added.reviewed || added.effect == Effect::Allow {
            return Ok(());
        }
        rules.push(Rule { id: "added".into(), ..added });
        for ((call, before), (_, after)) in before.iter().zip(&all(&compile(&rules), "v1", 1)) {
            prop_assert!(before.reviewed || !after.reviewed, "{}", call);
        }
    }

    #[test]
    fn the_order_of_rules_does_not_matter(rules in prop::collection::vec(rule(), 0..8), by in any::<usize>()) {
        let mut rules = named(rules);
        let before = all(&compile(&rules), "v1", 1);
        rules.reverse();
        let len = rules.len().max(1);
        rules.rotate_left(by % len);
        prop_assert_eq!(all(&compile(&rules), "v1", 1), before);
    }

    /// A compound command runs only if each of its commands would run alone, and is refused if one of them
    /// would be.
    #[test]
    fn a_compound_command_is_decided_as_strictly_as_its_parts(
        rules in prop::collection::vec(rule(), 0..6),
        one in select(COMMANDS), two in select(COMMANDS),
        between in select(vec![" && ", " || ", "; ", " | ", "\n", " & "]),
    ) {
        let rules: Vec<Rule> = named(rules).into_iter().filter(|rule| {
            // Conditions on exact arguments look at the whole call.
            let exact = |conditions: &Conditions| conditions.exactly.is_some();
            !exact(&rule.when) && !rule.except.iter().any(exact)
        }).collect();
        let rules = compile(&rules);
        let shell = ShellTool { argument: "command".into(), harmless: vec![] };
        let decide = |command: String| {
            let arguments = json!({"command": command});
            rules.decide(&Call { shell: Some(&shell), ..Call::new("server", "run", &arguments) }).effect
        };
        let apart = decide(one.to_owned()).max(decide(two.to_owned()));
        let together = decide(format!("{one}{between}{two}"));
        // An unread command denies nothing, but never runs if a part would not.
        let is_read = !one.contains('`') && !two.contains('`');
        prop_assert!(together >= apart.min(Effect::Ask));
        prop_assert!(!is_read || together == apart);
    }
}
