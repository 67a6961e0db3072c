//! Text that is safe to judge by eye, as cards of calls need it.

pub(super) use crate::domain::{visible, visible_line};
