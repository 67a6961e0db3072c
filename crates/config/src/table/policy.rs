//! `policy.rules`: rules about calls that an operator defines.

use super::families::{Family, Field, FieldKind};
use super::{Kind, Word};

const fn field(name: &'static str, kind: FieldKind, doc: &'static str) -> Field {
    Field { name, kind, doc }
}

const TEXT: FieldKind = FieldKind::One(Kind::Text);

/// `policy.rules`.
pub const RULES: Family = Family {
    key: "policy.rules",
    shown: "policy.rules.<name>",
    doc: "Rules about the calls of everybody's sessions (docs/rules.md). What is denied here nobody allows; \
          what is asked or allowed here, tenants, people and sessions may decide otherwise, unless it is \
          asked with `binding`.",
    fields: &[
        field(
            "effect",
            FieldKind::One(Kind::OneOf(&[
                Word::Is("allow"),
                Word::Is("ask"),
                Word::Is("deny"),
            ])),
            "What happens to the calls that it is about.",
        ),
        field(
            "server",
            TEXT,
            "The MCP server, `*` stands for any text; any without it.",
        ),
        field(
            "tool",
            TEXT,
            "The tool, as its server calls it, `*` stands for any text; any without it.",
        ),
        field(
            "command",
            FieldKind::Arguments,
            "The words with which the command begins, for tools that run commands.",
        ),
        field(
            "any_words",
            FieldKind::One(Kind::Flag),
            "Whether any words may follow those of `command`, also ones that write files or run programs; for \
             `allow`. Without it, only words that are known to be harmless.",
        ),
        field(
            "below",
            FieldKind::Map,
            "Arguments that are paths, each with the folder of the workspace that it is below.",
        ),
        field(
            "hosts",
            FieldKind::Map,
            "Arguments that are addresses, each with its host; `*.` before a domain is every host below it.",
        ),
        field(
            "schema",
            TEXT,
            "A JSON Schema, as text, that the arguments fit.",
        ),
        field(
            "cost_above_usd",
            FieldKind::One(Kind::Number(0.0, 1e6)),
            "The session has cost more than so many US dollars.",
        ),
        field(
            "except",
            FieldKind::Arguments,
            "The words of a command that it leaves to others; for `ask` and `deny`.",
        ),
        field(
            "binding",
            FieldKind::One(Kind::Flag),
            "Whether it also asks what nearer rules allow; for `ask`.",
        ),
        field(
            "approvers",
            TEXT,
            "Who must say yes; for `ask`: `owner` (of the session; that without it), `somebody_else`, `two`, \
             `role:approver`, `role:member`, `role:admin` or `role:owner`. What wants more than the owner's \
             yes is asked whatever nearer rules allow.",
        ),
        field(
            "fresh_gesture",
            FieldKind::One(Kind::Flag),
            "Whether the yes needs a fresh proof of presence; for `ask`.",
        ),
        field(
            "reviewed",
            FieldKind::One(Kind::Flag),
            "Whether the model of `agent.reviewer.model` may say yes in the place of the person; for `ask`.",
        ),
    ],
    env: &[],
};
