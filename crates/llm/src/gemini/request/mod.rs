//! Lowers a [`Request`] to a `generateContent` body. Pure.

pub(in crate::gemini) mod thinking;

use std::borrow::Cow;
use std::collections::HashSet;

use serde::Deserialize as _;

use tracing::warn;

use self::thinking::Plan;
use crate::Request;
use crate::contents as content;
use crate::gemini::assembler::NativeParts;
use crate::gemini::schema;
use crate::gemini::wire::{
    Body, Call, CallingConfig, Content, Declaration, InlineData, Instruction, Outcome, Part,
    Response, Role, ToolConfig, Tools,
};
use crate::request::pairing::{PairedCall, Step, object_of, pair_between_people};
use crate::request::{interleave, names};
use sepal_core::domain::{Native, Tool};

/// The signature that the vendor documents for calls that its model did not make: they come from another
/// vendor's model or from data without signatures.
const FOREIGN_SIGNATURE: &str = "skip_thought_signature_validator";

/// Builds the request body.
pub(in crate::gemini) fn body<'a>(request: &'a Request, plan: &Plan, family: &str) -> Body<'a> {
    let tools = declarations(&request.tools);
    let system = request.system.as_deref();
    let system = system.filter(|text| !text.trim().is_empty());
    Body {
        system_instruction: system.map(|system| Instruction {
            parts: [said(Cow::Borrowed(system))],
        }),
        tool_config: (!tools.is_empty()).then_some(ToolConfig {
            function_calling_config: CallingConfig { mode: "AUTO" },
        }),
        tools: (!tools.is_empty())
            .then_some(Tools {
                function_declarations: tools,
            })
            .into_iter()
            .collect(),
        contents: contents(request, family),
        generation_config: plan.config(),
    }
}

fn declarations(tools: &[Tool]) -> Vec<Declaration<'_>> {
    let mut taken = HashSet::new();
    let mut forms = Vec::with_capacity(tools.len());
    for tool in tools {
        let name = names::fit(&tool.name);
        if !taken.insert(name.clone()) {
            warn!(tool.name = %tool.name, "Leave out a second tool `{}`", tool.name);
            continue;
        }
        forms.push(Declaration {
            name,
            description: &tool.description,
            parameters: schema::lower(&tool.input_schema),
        });
    }
    forms
}

fn contents<'a>(request: &'a Request, family: &str) -> Vec<Content<'a>> {
    let steps = pair_between_people(request.entries.iter());
    let wants_signatures = thinking::wants_signatures(&request.model);
    let mut contents = Vec::with_capacity(steps.len());
    for step in steps {
        match step {
            Step::User(said) => {
                let parts = request.contents.parts(said).into_iter();
                push(&mut contents, Role::User, parts.map(part).collect());
            }
            Step::Assistant {
                text,
                native,
                calls,
            } => {
                let native = native.filter(|native| native.family == family);
                let kept = native.map(kept).unwrap_or_default();
                let (mut results, mut pictures) = (Vec::new(), Vec::new());
                for (at, paired) in calls.iter().enumerate() {
                    let (text, own) = request.contents.result(paired);
                    results.push(result(paired, text, of_call(&kept, at)));
                    pictures.extend(own.into_iter().map(part));
                }
                let mut parts = model(text, &kept, &calls);
                if wants_signatures {
                    sign(&mut parts);
                }
                push(&mut contents, Role::Model, parts);
                // The vendor requires that all results come first, with nothing between the calls and their
                // results.
                results.append(&mut pictures);
                push(&mut contents, Role::User, results);
            }
        }
    }
    contents
}

/// Gives the first call of an answer without any signature the foreign signature. This applies to the whole
/// history, not only where the vendor requires it, so that the prefix stays identical byte for byte.
fn sign(parts: &mut [Part<'_>]) {
    let mut calls = parts.iter_mut().filter_map(|part| match part {
        Part::Call {
            thought_signature, ..
        } => Some(thought_signature),
        Part::Text { .. } | Part::Data { .. } | Part::Response { .. } => None,
    });
    if let Some(first) = calls.next()
        && first.is_none()
        && calls.all(|signature| signature.is_none())
    {
        *first = Some(Cow::Borrowed(FOREIGN_SIGNATURE));
    }
}

/// Appends parts; consecutive parts of one role share a message.
fn push<'a>(contents: &mut Vec<Content<'a>>, role: Role, mut parts: Vec<Part<'a>>) {
    if parts.is_empty() {
        return;
    }
    match contents.last_mut() {
        Some(last) if last.role == role => last.parts.append(&mut parts),
        Some(_) | None => contents.push(Content { role, parts }),
    }
}

fn said(text: Cow<'_, str>) -> Part<'_> {
    Part::Text {
        text,
        thought: false,
        thought_signature: None,
    }
}

fn model<'a>(text: &'a str, kept: &[NativeParts], calls: &[PairedCall<'a>]) -> Vec<Part<'a>> {
    let texts = kept.iter().filter(|kept| kept.call.is_none());
    let texts = texts.map(|kept| (kept.place, kept));
    let parts = interleave::interleave(text, calls.len(), texts);
    let parts = parts.into_iter().filter_map(|part| match part {
        interleave::Part::Text(text) => Some(said(Cow::Borrowed(text))),
        interleave::Part::Block(kept, own) => Some(Part::Text {
            text: match &kept.thought {
                Some(thought) => Cow::Owned(thought.clone()),
                None => Cow::Borrowed(own),
            },
            thought: kept.thought.is_some(),
            thought_signature: kept.thought_signature.clone().map(Cow::Owned),
        }),
        interleave::Part::Call(at) => calls.get(at).map(|paired| call(paired, of_call(kept, at))),
    });
    parts.collect()
}

fn call<'a>(paired: &PairedCall<'a>, kept: Option<&NativeParts>) -> Part<'a> {
    Part::Call {
        function_call: Call {
            id: kept.and_then(|kept| kept.id.clone()),
            name: names::fit(&paired.call.name),
            args: object_of(&paired.call.args),
        },
        thought_signature: kept.and_then(|kept| kept.thought_signature.clone().map(Cow::Owned)),
    }
}

fn part(part: content::Part<'_>) -> Part<'_> {
    match part {
        content::Part::Text(text) => said(text),
        content::Part::Image(encoded) | content::Part::Document(encoded, _) => Part::Data {
            inline_data: InlineData {
                mime_type: match encoded.media_type() {
                    // Gemini's documentation lists MPEG audio only under this name.
                    "audio/mpeg" => "audio/mp3",
                    kind => kind,
                },
                data: encoded.data(),
            },
        },
    }
}

fn result<'a>(paired: &PairedCall<'a>, text: Cow<'a, str>, kept: Option<&NativeParts>) -> Part<'a> {
    Part::Response {
        function_response: Response {
            id: kept.and_then(|kept| kept.id.clone()),
            name: names::fit(&paired.call.name),
            response: if paired.is_error {
                Outcome::Error(text)
            } else {
                Outcome::Output(text)
            },
        },
    }
}

/// The stored native parts of an answer; parts that cannot be read are skipped.
fn kept(native: &Native) -> Vec<NativeParts> {
    let blocks = native.blocks.as_array().into_iter().flatten();
    blocks
        .filter_map(|block| NativeParts::deserialize(block).ok())
        .collect()
}

fn of_call(kept: &[NativeParts], at: usize) -> Option<&NativeParts> {
    kept.iter().find(|kept| kept.call == Some(at))
}

#[cfg(test)]
mod tests;
