//! Makes hidden characters of texts visible, for people who decide about calls.

pub(super) use crate::domain::{visible, visible_line};
