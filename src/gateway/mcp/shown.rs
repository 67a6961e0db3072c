//! Describes a waiting call as text for people who decide at a client or in a terminal: everything that
//! their approval covers, with all characters made visible.

use serde_json::Value;

use super::visible::{visible, visible_line};
use crate::domain::{Actor, FileFacts, RunsIn, RunsInKind};
use crate::session::{ApprovalRequirement, Approver, Call, CallReview, Review, ToolFacts};

/// Describes the whole call, regardless of its length.
pub fn shown(call: &Call) -> String {
    let tool = visible_line(&call.name);
    let server = visible_line(call.server());
    let mut text = format!("The tool `{tool}` of `{server}` wants to run.\n");
    if let Some(facts) = &call.facts {
        text.push_str(&about(facts));
    }
    text.push_str(&wanted(&call.wants));
    if let Some(review) = &call.review {
        text.push_str(&reviewed(review));
    }
    text.push_str("Arguments:\n");
    text.push_str(&visible(&pretty(&call.args)));
    text.push('\n');
    let proposed = call.original_args.as_ref().filter(|_| call.is_edited());
    if let Some(proposed) = proposed {
        text.push_str(&edited(call.edited_by.as_ref(), proposed));
    }
    text
}

/// Names the person who changed the arguments, and shows the arguments before the change.
fn edited(editor: Option<&Actor>, proposed: &Value) -> String {
    let editor = editor.map_or_else(|| "somebody".to_owned(), |it| visible_line(&it.name));
    let proposed = visible(&pretty(proposed));
    format!("They were changed by {editor}. Before, they were:\n{proposed}\n")
}

fn about(facts: &ToolFacts) -> String {
    let mut text = format!("It runs in {}.\n", place(&facts.runs_in));
    if let Some(since) = facts.drift {
        let since = since.to_rfc3339();
        let told = [
            "Its definition is another than the one that was accepted, since ",
            &since,
            ".\n",
        ];
        text.extend(told);
    }
    if let Some(file) = &facts.file {
        text.push_str(&changed(file));
    }
    if let Some(title) = &facts.title {
        text.extend(["Its title: ", &visible_line(title), "\n"]);
    }
    // Each line is marked, so that no line can be mistaken for one of ours.
    text.push_str("What its server says of it:\n");
    for line in visible(&facts.description).lines() {
        text.extend(["  | ", line, "\n"]);
    }
    text
}

/// Describes the requirements for the call beside the owner's approval, with one sentence for each.
fn wanted(wants: &ApprovalRequirement) -> String {
    let mut text = String::new();
    for approver in &wants.approvers {
        match approver {
            Approver::Owner => text.push_str("The owner of the session"),
            Approver::Role(role) => {
                text.extend(["Somebody with the role `", &visible_line(role), "`"]);
            }
            Approver::SomebodyElse => {
                text.push_str("Somebody else than the owner of the session");
            }
            Approver::Two => text.push_str("Two people"),
        }
        text.push_str(" must say yes.\n");
    }
    if wants.fresh_gesture {
        text.push_str("The yes needs a fresh proof of presence.\n");
    }
    if let Some(at) = wants.expires_at {
        text.extend([
            "It is rejected if nobody decides before ",
            &at.to_rfc3339(),
            ".\n",
        ]);
    }
    text
}

/// Describes the review by a model.
fn reviewed(review: &CallReview) -> String {
    match review {
        CallReview::Running => "A model reviews it, too.\n".to_owned(),
        CallReview::Over(Review { model, reason, .. }) => {
            let model = visible_line(model.as_deref().unwrap_or("nobody"));
            let reason = visible_line(reason);
            format!("A model (`{model}`) reviewed it and it was not approved so: {reason}\n")
        }
    }
}

/// Describes the file that the call creates or replaces, as it was when the model asked.
fn changed(file: &FileFacts) -> String {
    let size = match (file.exists, file.lines) {
        (false, _) => return "It makes a new file.\n".to_owned(),
        (true, Some(1)) => "1 line".to_owned(),
        (true, Some(lines)) => format!("{lines} lines"),
        (true, None) if file.bytes == 1 => "1 byte".to_owned(),
        (true, None) => format!("{} bytes", file.bytes),
    };
    format!("It replaces a file of {size}.\n")
}

fn place(runs_in: &RunsIn) -> String {
    let place = match runs_in.kind {
        RunsInKind::Sandbox => "the session's sandbox",
        RunsInKind::Container => "a place of its own",
        RunsInKind::Remote => "a remote server",
    };
    let hosts: Vec<String> = runs_in.hosts.iter().map(|it| visible_line(it)).collect();
    if hosts.is_empty() {
        return place.to_owned();
    }
    format!("{place} ({})", hosts.join(", "))
}

fn pretty(args: &Value) -> String {
    serde_json::to_string_pretty(args).unwrap_or_else(|_| args.to_string())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::{changed, reviewed, shown};
    use crate::domain::{Actor, FileFacts, UserId};
    use crate::session::properties::world::{World, proposal, say};
    use crate::session::{Call, CallReview, Review, ReviewVerdict};

    /// Names and texts of servers, models and people cannot forge a line of ours.
    #[test]
    fn no_word_of_others_stands_on_a_line_of_ours() {
        let forged =
            "fine\nArguments:\n{}\nThe owner of the session must say yes.\r\u{2028}Arguments:";
        let mut world = World::new();
        world.submit(&say("go")).unwrap();
        world.answer("", vec![proposal("run", json!({ "n": forged }))]);
        let calls: Vec<_> = world.state.control.calls().cloned().collect();
        let mut call = Call::clone(&calls[0]);
        call.name = forged.to_owned();
        let mut facts = call.facts.as_deref().unwrap().clone();
        facts.title = Some(forged.to_owned());
        facts.description = forged.to_owned();
        facts.tool.server = forged.to_owned();
        call.facts = Some(Arc::new(facts));
        call.original_args = Some(json!({ "m": forged }));
        call.edited_by = Some(Actor {
            id: UserId::from_bits(2),
            name: forged.to_owned(),
        });
        let text = shown(&call);
        let lines = |wanted: &str| text.lines().filter(|line| *line == wanted).count();
        assert_eq!(lines("Arguments:"), 1, "{text}");
        for ours in ["{}", "The owner of the session must say yes."] {
            assert_eq!(lines(ours), 0, "{text}");
        }
        assert_eq!(text.matches("  | ").count(), 4, "{text}");
    }

    #[test]
    fn what_a_model_said_that_reviews_the_call_is_one_line() {
        assert_eq!(reviewed(&CallReview::Running), "A model reviews it, too.\n");
        let over = CallReview::Over(Review {
            verdict: ReviewVerdict::Refused,
            model: Some("small".into()),
            reason: "It deletes\nArguments:".into(),
            cost: None,
        });
        let said = reviewed(&over);
        assert!(
            said.starts_with(
                "A model (`small`) reviewed it and it was not approved so: It deletes"
            ),
            "{said}"
        );
        assert_eq!(said.lines().count(), 1, "{said}");
    }

    #[test]
    fn what_becomes_of_a_file_is_said_in_words() {
        let there = FileFacts {
            exists: true,
            lines: Some(120),
            bytes: 840,
            is_text: true,
        };
        let uncounted = FileFacts {
            lines: None,
            is_text: false,
            ..there
        };
        for (file, expected) in [
            (FileFacts::NEW, "It makes a new file.\n"),
            (there, "It replaces a file of 120 lines.\n"),
            (
                FileFacts {
                    lines: Some(1),
                    ..there
                },
                "It replaces a file of 1 line.\n",
            ),
            (uncounted, "It replaces a file of 840 bytes.\n"),
        ] {
            assert_eq!(changed(&file), expected);
        }
    }
}
