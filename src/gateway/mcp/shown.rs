//! A waiting call in words, for people who decide at a client or in a terminal: everything that their
//! yes is about, and nothing that looks other than it is.

use serde_json::Value;

use super::visible::{visible, visible_line};
use crate::domain::{RunsIn, RunsInKind};
use crate::session::{Call, ToolFacts};

/// All of a call, however long.
pub fn shown(call: &Call) -> String {
    let tool = visible_line(&call.name);
    let server = visible_line(call.server());
    let mut text = format!("The tool `{tool}` of `{server}` wants to run.\n");
    if let Some(facts) = &call.facts {
        text.push_str(&about(facts));
    }
    text.push_str("Arguments:\n");
    text.push_str(&visible(&pretty(&call.args)));
    text.push('\n');
    text
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
    if let Some(title) = &facts.title {
        text.extend(["Its title: ", &visible_line(title), "\n"]);
    }
    // Each line is marked, so that none can pass for one of ours.
    text.push_str("What its server says of it:\n");
    for line in visible(&facts.description).lines() {
        text.extend(["  | ", line, "\n"]);
    }
    text
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
