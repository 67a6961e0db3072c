//! Tests real sandboxes by the real bubblewrap with the real server inside. If bubblewrap does not work here,
//! these tests fail with its own message and the remedy; a green run means that the isolation works.
//! `tests/it/sandboxes` tests what every kind of sandbox must do.

mod endings;
mod house;
mod limits;
mod overlays;
mod walls;
