//! What a session may try against its sandbox, through the tools that it really has.
//!
//! Each attack ends refused or bounded, the session's next call works, and a second session beside
//! it notices nothing.

mod files;
mod hunger;
mod place;
mod streams;
mod tried;

use super::house;
