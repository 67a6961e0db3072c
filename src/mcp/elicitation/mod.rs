//! What a server asks the person while a call of it runs (`elicitation/create`).

mod address;
mod desk;
mod form;
mod open_questions;
mod question;

pub use address::Address;
pub(super) use desk::{Desk, HeardCall};
pub use form::Form;
pub use question::{Asked, FormAnswer, Question};

use rmcp::ErrorData;

fn refused(reason: &str) -> ErrorData {
    ErrorData::invalid_params(reason.to_owned(), None)
}
