//! Work that keeps a thread busy: decoding, packing, hashing, compiling, files of unknown size.
//!
//! Such work runs on threads of its own and not on those that answer everybody. Each kind of work has a
//! [`Pool`] with so many places, and a place belongs to the work itself: it moves into the closure and is
//! given back when the closure ends. A client that hangs up ends its request, but not what the request
//! began; if the request held the place, everybody could begin as much as they like.
//!
//! This is the only module that may call `spawn_blocking` (`clippy.toml`).

mod pool;

pub use pool::{Error, Place, Pool, Watch};
