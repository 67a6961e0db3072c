//! What a server asks the person while a call of it runs (`elicitation/create`), or asks a model, which
//! the person decides (`sampling/createMessage`).

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
