//! What a server asks the person while a call of it runs (`elicitation/create`).

mod desk;
mod form;

pub(super) use desk::Desk;
pub use desk::{FormAnswer, Question};
pub use form::Form;
