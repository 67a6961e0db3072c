//! Writes a document as Markdown.

use std::fmt::Write as _;
use std::io;

use super::call::{CallPart, PROPOSED, arguments, ending, tool};
use super::{Audience, Document, Part, Sink, minute};
use crate::domain::Attachment;

/// Writes the document for its owner. Writing into a `String` never fails; passing it to the sink may fail.
pub(super) fn write(document: &Document, to: &mut dyn Sink) -> io::Result<()> {
    let mut out = format!("# {}\n", one_line(document.title()));
    let at = minute(document.at);
    let _ = writeln!(
        out,
        "\nSession {}, taken from Sepal at {at}.",
        document.session
    );
    for part in &document.parts(Audience::Owner) {
        to.text(&out)?;
        out.clear();
        match part {
            Part::User {
                author,
                at,
                text,
                attachments,
            } => {
                let _ = writeln!(out, "\n## {} · {}\n\n{text}", one_line(author), minute(*at));
                attached(&mut out, attachments);
            }
            Part::Agent {
                model,
                at,
                reasoning,
                text,
            } => {
                let model = model.as_ref().map(|model| format!("({model})"));
                let heading = format!("Agent {} · {}", model.unwrap_or_default(), minute(*at));
                let _ = writeln!(out, "\n## {}", one_line(&heading));
                if let Some(reasoning) = reasoning {
                    let quoted = reasoning.replace('\n', "\n> ");
                    let _ = writeln!(out, "\n> *Thought:* {quoted}");
                }
                let _ = writeln!(out, "\n{text}");
            }
            Part::Call(call) => write_call(&mut out, call),
            Part::Note { at, text } => {
                let _ = writeln!(out, "\n*{} · {}*", one_line(text), minute(*at));
            }
        }
    }
    to.text(&out)
}

fn write_call(out: &mut String, call: &CallPart) {
    let (tool, ending) = (one_line(&tool(call)), one_line(&ending(call)));
    let _ = writeln!(out, "\n### Call `{tool}`: {ending}\n");
    fenced(out, "json", &arguments(&call.args));
    if let Some(proposed) = &call.proposed {
        let _ = writeln!(out, "\n{PROPOSED}\n");
        fenced(out, "json", &arguments(proposed));
    }
    if !call.output.is_empty() {
        out.push('\n');
        fenced(out, "", &call.output);
    }
    attached(out, &call.attachments);
}

fn attached(out: &mut String, attachments: &[Attachment]) {
    for (at, attachment) in attachments.iter().enumerate() {
        let gap = if at == 0 { "\n" } else { "" };
        let _ = writeln!(
            out,
            "{gap}- attached: {}",
            one_line(&attachment.to_string())
        );
    }
}

/// Writes a code block whose fence is longer than any run of backticks in the text.
fn fenced(out: &mut String, language: &str, text: &str) {
    let runs = text.split(|letter| letter != '`').map(str::len);
    let fence = "`".repeat(runs.max().unwrap_or(0).max(2) + 1);
    let end = if text.ends_with('\n') { "" } else { "\n" };
    let _ = writeln!(out, "{fence}{language}\n{text}{end}{fence}");
}

/// Joins the lines of a text, for headings.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
