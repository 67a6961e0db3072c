//! Makes random reviews that mostly allow calls, and rules that open calls to review.

use sepal_policy::{Approver, Approvers, Scope};

use super::some_spent;
use super::world::{World, rule};
use crate::domain::{CallId, MicroUsd};
use crate::session::{Command, PolicyEffect, Review, ReviewVerdict, Rule};

/// A review of the call that the model was asked about, or else of another call.
pub(super) fn reviewed(world: &World, other: CallId, seed: u8) -> Command {
    let running = world.state.control.reviewing.running.as_ref();
    Command::Reviewed {
        call: running.map_or(other, |running| running.call.clone()),
        review: Review {
            verdict: match seed % 8 {
                0 => ReviewVerdict::Refused,
                1 => ReviewVerdict::Doubted,
                2 => ReviewVerdict::Failed,
                _ => ReviewVerdict::Allowed,
            },
            model: Some("small".into()),
            reason: "fine".into(),
            cost: Some(MicroUsd(3)),
        },
        spent: some_spent(seed),
    }
}

/// A rule that may open calls to review, and one that also covers some of these calls and may require other
/// approvers.
pub(super) fn opening_rules(seed: u8) -> [Rule; 2] {
    let tool = if seed % 2 == 0 { "run" } else { "write_*" };
    let opened = Rule {
        reviewed: seed % 7 > 0,
        ..rule("opened", tool, PolicyEffect::Ask)
    };
    let mut others = rule("others", "write_*", PolicyEffect::Ask);
    others.approvers.who = match seed % 5 {
        0 => Approver::Two,
        1 => Approver::SomebodyElse,
        _ => Approver::Owner,
    };
    others.approvers.fresh_gesture = seed % 11 == 0;
    others.reviewed = others.approvers == Approvers::default() && seed % 3 > 0;
    [opened, others]
}

/// A rule for the session only.
pub(super) fn some_rule(seed: u8) -> Rule {
    let tool = ["read_*", "write_*", "run", "*"][usize::from(seed / 5) % 4];
    let effect = match seed % 3 {
        0 => PolicyEffect::Deny,
        1 => PolicyEffect::Ask,
        _ => PolicyEffect::Allow,
    };
    let mut rule = rule(&format!("given {}", seed % 5), tool, effect);
    rule.scope = Scope::Session;
    rule
}
