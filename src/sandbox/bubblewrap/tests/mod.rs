//! Real sandboxes by the real bubblewrap with the real server inside. Where bubblewrap does not work
//! these fail with its own words and the remedy; a green run means that the walls stand. What every
//! kind of sandbox must do is held in `tests/it/sandboxes`.

mod endings;
mod house;
mod limits;
mod overlays;
mod walls;
