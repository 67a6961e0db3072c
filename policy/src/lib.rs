//! Decides which tool calls run, ask or are refused: by rules that read as sentences, without a clock, I/O or
//! a model.
//!
//! Start at [`Rules::decide`]; `docs/rules.md` explains the decisions for people.

mod because;
mod call;
mod conditions;
mod examples;
mod glob;
mod propose;
mod rule;
mod rules;
mod sentence;
mod shell;

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod properties;

pub use because::{Because, Decision, Gap, RuleName};
pub use call::{Call, ShellTool};
pub use conditions::{CommandPrefix, Conditions, HostIs, PathBelow};
pub use examples::{NamedShell, derive_examples};
pub use glob::Glob;
pub use propose::{Proposal, Reach, propose};
pub use rule::{Approver, Approvers, Effect, Example, Examples, Network, Rule, Scope};
pub use rules::{Problem, Rules};
pub use sentence::{sentence, sentence_of, subject};
pub use shell::Unread;
