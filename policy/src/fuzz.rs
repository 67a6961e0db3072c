//! Fuzzes the reader of command lines: reading always ends, an allowed command was surely read, and a
//! proposal does what its card says.

use serde_json::json;

use crate::shell::{Part, base_name, read};
use crate::{Call, CommandPrefix, Conditions, Effect, Rule, Rules, Scope, ShellTool, propose};

fn rules() -> Rules {
    let commands = |words| Conditions {
        command: Some(vec![CommandPrefix::new([words])]),
        ..Conditions::default()
    };
    let rule = |id, effect, when| Rule {
        when,
        ..Rule::new(id, effect, Scope::Session)
    };
    let rules = vec![
        rule("ls", Effect::Allow, commands("ls")),
        rule("rm", Effect::Deny, commands("rm")),
    ];
    Rules::compile(rules).unwrap()
}

/// Fuzzes one command line.
#[test]
fn shell_commands() {
    sepal_fuzz::check("shell_commands", |input| {
        let text = String::from_utf8_lossy(input);
        let arguments = json!({"command": text});
        let shell = ShellTool {
            argument: "command".into(),
            harmless: vec![],
        };
        let call = Call {
            shell: Some(&shell),
            ..Call::new("sandbox", "execute_command", &arguments)
        };
        let program = |part: &Part| {
            part.words
                .first()
                .and_then(|word| word.literal().map(str::to_owned))
        };
        match (rules().decide(&call).effect, read(&text)) {
            (Effect::Allow, parts) => {
                let parts = parts.unwrap();
                assert!(
                    parts
                        .iter()
                        .all(|part| program(part).as_deref() == Some("ls"))
                );
                assert!(
                    parts
                        .iter()
                        .all(|part| !part.redirects && part.hidden.is_none())
                );
            }
            (effect, Ok(parts)) => {
                let is_rm =
                    |part: &Part| program(part).is_some_and(|name| base_name(&name) == "rm");
                assert_eq!(effect == Effect::Deny, parts.iter().any(is_rm));
            }
            (effect, Err(_)) => assert_eq!(effect, Effect::Ask),
        }
        for offer in propose(&call) {
            let rules = Rules::compile(vec![offer.into_rule("a", Scope::Session, None)]).unwrap();
            assert_eq!(rules.decide(&call).effect, Effect::Allow);
        }
    });
}
