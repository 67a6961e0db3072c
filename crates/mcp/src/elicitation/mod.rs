//! Handles what a server asks during a call: questions to the person (`elicitation/create`), and completions
//! of a model, which the person approves (`sampling/createMessage`).

mod address;
mod completion;
mod desk;
mod form;
mod open_questions;
mod question;
mod sampling;

pub use address::Address;
pub(super) use desk::{Desk, HeardCall};
pub use form::Form;
pub use question::{Asked, FormAnswer, Question};
pub use sampling::SamplingRequest;

use rmcp::ErrorData;

fn refused(reason: &str) -> ErrorData {
    ErrorData::invalid_params(reason.to_owned(), None)
}
