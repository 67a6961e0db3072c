//! Runs work that keeps a thread busy: decoding, packing, hashing, compiling, files of unknown size.
//!
//! Such work runs on separate threads, so that it does not block the async threads. Each kind of work has a
//! [`Pool`] with a limited number of places. A place belongs to the work itself: it moves into the closure
//! and is freed when the closure ends. A client that disconnects ends its request, but not the work that the
//! request started; if the request held the place, clients could start unlimited work.
//!
//! This is the only module that may call `spawn_blocking` (`clippy.toml`).

mod pool;

pub use pool::{Error, Place, Pool, Watch};
