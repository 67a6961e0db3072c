//! What a call gave, as the session keeps it.

use crate::agent::attachments::Attachments;
use crate::agent::journal::fence::Fenced;
use crate::domain::{Attachment, Code, SessionKey};
use crate::mcp::ToolAnswer;
use crate::session::{Call, Outcome, Output};

/// What a server answered, with the pictures of it, which are kept with the session.
pub(in crate::agent) async fn kept(
    mut answer: ToolAnswer,
    key: &SessionKey,
    attachments: &Attachments,
) -> Outcome {
    let images = std::mem::take(&mut answer.images);
    let mut pictures = Vec::with_capacity(images.len());
    for image in images {
        match attachments.keep_image(key, image).await {
            Ok(picture) => pictures.push(picture),
            Err(refusal) => {
                let text = format!("\n[an image was not kept: {refusal}]");
                answer.text.push_str(&text);
            }
        }
    }
    ended(answer, pictures)
}

fn ended(answer: ToolAnswer, attachments: Vec<Attachment>) -> Outcome {
    let ToolAnswer {
        text,
        structured,
        truncated_bytes,
        is_error,
        images: _,
    } = answer;
    let output = Output {
        text,
        structured,
        truncated_bytes,
        attachments,
    };
    if is_error {
        Outcome::Failed {
            code: Code::ToolFailed,
            output,
        }
    } else {
        Outcome::Completed { output }
    }
}

/// Why there is no answer.
pub(in crate::agent) fn failed(code: Code, text: String) -> Outcome {
    Outcome::Failed {
        code,
        output: Output {
            text,
            ..Output::default()
        },
    }
}

/// What became of a call that was sent and whose end nobody knows: of one that only reads, nothing that
/// anybody had to look into.
pub(in crate::agent) fn lost(call: &Call, if_it_only_reads: Outcome, cause: String) -> Outcome {
    let facts = call.facts.as_ref();
    if facts.is_some_and(|facts| facts.may_run_again()) {
        return if_it_only_reads;
    }
    Outcome::Unknown { cause: Some(cause) }
}

/// What became of a call that was not sent because of its fence.
pub(in crate::agent) fn fenced(fenced: &Fenced) -> Outcome {
    tracing::warn!(error = ?fenced, "A call is not sent");
    match fenced {
        // Whoever went on has said what became of it, and this is refused as too late.
        Fenced::TakenOver => Outcome::Unknown {
            cause: Some(fenced.to_string()),
        },
        Fenced::Unclear(_) | Fenced::Unreadable(_) => {
            failed(Code::StoreUnavailable, format!("not run: {fenced}"))
        }
    }
}
