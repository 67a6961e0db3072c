//! What a call gave, as the session keeps it.

use crate::domain::Code;
use crate::mcp::ToolAnswer;
use crate::session::{Outcome, Output};

/// What a server answered.
pub(super) fn ended(answer: ToolAnswer) -> Outcome {
    let ToolAnswer {
        text,
        structured,
        truncated_bytes,
        is_error,
    } = answer;
    let output = Output {
        text,
        structured,
        truncated_bytes,
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
pub(super) fn failed(code: Code, text: String) -> Outcome {
    Outcome::Failed {
        code,
        output: Output {
            text,
            ..Output::default()
        },
    }
}
