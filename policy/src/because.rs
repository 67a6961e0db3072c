//! Defines a decision and its reason, in words for the card.

use std::fmt;

use crate::rule::{Approver, Effect};
use crate::shell::Unread;

/// The effect on a call, and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    pub effect: Effect,
    pub because: Because,
    /// The approvers whose consent the call needs: all of them, each once. The owner if no rule names another
    /// approver; empty unless the effect is ask.
    pub approvers: Vec<Approver>,
    /// True if the approval needs a fresh proof of presence.
    pub fresh_gesture: bool,
    /// True if a model may approve in the place of the owner: every asking rule surely opened the call to a
    /// model's review, and no part of a command is asked for another reason.
    pub reviewed: bool,
}

impl Decision {
    /// Returns the ids of the rules that decided, in order; none if no rule did.
    pub fn rules(&self) -> impl Iterator<Item = &str> {
        self.named().iter().map(|rule| rule.id.as_str())
    }

    /// Returns the rules that decided, in order; none if no rule did.
    pub fn named(&self) -> &[RuleName] {
        match &self.because {
            Because::AllowedBy { rules }
            | Because::DeniedBy { rules, .. }
            | Because::AskedBy { rules, .. } => rules,
            Because::MayBeDenied { rule, .. } => std::slice::from_ref(rule),
            Because::NoRule
            | Because::Unread { .. }
            | Because::PartNotAllowed { .. }
            | Because::Expired { .. }
            | Because::Drifted { .. } => &[],
        }
    }
}

/// A rule's id and name, as it is shown to people.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RuleName {
    pub id: String,
    pub name: Option<String>,
}

impl fmt::Display for RuleName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "“{}”", self.name.as_ref().unwrap_or(&self.id))
    }
}

/// The reason that a rule whose words begin like a command does not allow it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gap {
    /// The words differ, or there are more than the rule takes.
    OtherWords,
    /// A redirection, or the program itself, may write to a file.
    Redirection,
    /// A variable is set.
    Assignment,
    /// A word is known only when the command runs, and may become an option.
    OpenWord,
    /// The command runs other commands, whose effects are unknown.
    RunsUnknown,
    /// The command changes the meaning of later words of the shell.
    ChangesShell,
    /// The command runs a file that the rule does not name.
    UnnamedScript,
    /// The call has other arguments beside its command.
    OtherArguments,
    /// An option writes to a file.
    Writes { option: String },
    /// An option names or starts a program, or a folder or configuration to run from.
    Runs { option: String },
    /// The effect of an option or a subcommand is unknown.
    UnknownWord { word: String },
    /// With this word the command does more than read.
    MoreThanReads { word: String },
    /// The command writes unless it has this option.
    Without { option: &'static str },
    /// The command changes the folder from which another command of the line runs.
    Folder,
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Writes { option } => return write!(f, "`{option}` may write to a file"),
            Self::Runs { option } => {
                return write!(
                    f,
                    "`{option}` may run another program or change where it runs"
                );
            }
            Self::UnknownWord { word } => {
                return write!(f, "`{word}` may do more than read");
            }
            Self::MoreThanReads { word } => {
                return write!(f, "with `{word}` it may do more than read");
            }
            Self::Without { option } => return write!(f, "without `{option}` it writes files"),
            Self::OtherWords => "other words follow the allowed ones",
            Self::Folder => {
                "it changes to a folder that the rule does not name, and a later command depends on that folder"
            }
            Self::Redirection => "it redirects output to a file",
            Self::Assignment => "it sets a variable",
            Self::OpenWord => {
                "a word is only known when the command runs, and may become an option"
            }
            Self::RunsUnknown => "it runs something that the command does not name",
            Self::ChangesShell => "it changes what later commands mean",
            Self::UnnamedScript => "it runs a file that the rule does not name",
            Self::OtherArguments => "the call has arguments besides its command",
        };
        f.write_str(text)
    }
}

/// The reason that a call runs, is asked or is refused. As text, a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Because {
    /// These rules allow the whole call.
    AllowedBy { rules: Vec<RuleName> },
    /// These rules deny the call, or this part of the command.
    DeniedBy {
        rules: Vec<RuleName>,
        part: Option<String>,
    },
    /// These rules ask for the call, or for this part of the command.
    AskedBy {
        rules: Vec<RuleName>,
        part: Option<String>,
    },
    /// A rule may deny the call, but that is uncertain.
    MayBeDenied {
        rule: RuleName,
        part: Option<String>,
    },
    /// A rule would allow the call for another definition of the tool.
    Drifted { rule: RuleName },
    /// A rule that allowed the call has expired.
    Expired { rule: RuleName },
    /// The command could not be read.
    Unread { why: Unread },
    /// No rule allows this part of the command.
    PartNotAllowed {
        part: String,
        /// The rule that begins like the part, and the reason that it does not allow it.
        nearest: Option<(RuleName, Gap)>,
    },
    /// No rule covers the call.
    NoRule,
}

impl Because {
    /// Returns the weight of the reason: if parts of a command have several reasons, the heaviest is shown.
    pub(crate) fn weight(&self) -> u8 {
        match self {
            Self::AllowedBy { .. } => 0,
            Self::NoRule => 1,
            Self::PartNotAllowed { .. } => 2,
            Self::Unread { .. } => 3,
            Self::Expired { .. } => 4,
            Self::Drifted { .. } => 5,
            Self::MayBeDenied { .. } => 6,
            Self::AskedBy { .. } => 7,
            Self::DeniedBy { .. } => 8,
        }
    }
}

/// Formats `rule “a”` or `rules “a” and “b”`.
fn named(rules: &[RuleName]) -> String {
    let names: Vec<String> = rules.iter().map(RuleName::to_string).collect();
    match names.as_slice() {
        [] => "no rule".to_owned(),
        [one] => format!("rule {one}"),
        [others @ .., last] => format!("rules {} and {last}", others.join(", ")),
    }
}

fn of_part(part: Option<&String>) -> String {
    part.map_or_else(|| "The call".to_owned(), |part| format!("`{part}`"))
}

impl fmt::Display for Because {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AllowedBy { rules } => write!(f, "Allowed by {}.", named(rules)),
            Self::DeniedBy { rules, part } => {
                let part = of_part(part.as_ref());
                write!(f, "Denied by {}: {part}.", named(rules))
            }
            Self::AskedBy { rules, part } => {
                let part = of_part(part.as_ref());
                write!(f, "{part} needs approval by {}.", named(rules))
            }
            Self::MayBeDenied { rule, part } => {
                let part = of_part(part.as_ref());
                write!(f, "{part} may be what rule {rule} denies.")
            }
            Self::Drifted { rule } => {
                write!(f, "Rule {rule} allowed an earlier definition of this tool.")
            }
            Self::Expired { rule } => write!(f, "Rule {rule} has expired."),
            Self::Unread { why } => write!(f, "{why}."),
            Self::PartNotAllowed {
                part,
                nearest: None,
            } => write!(f, "No rule allows `{part}`."),
            Self::PartNotAllowed {
                part,
                nearest: Some((rule, gap)),
            } => write!(f, "Rule {rule} does not allow `{part}`: {gap}."),
            Self::NoRule => f.write_str("No rule covers this call."),
        }
    }
}
