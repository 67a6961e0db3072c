//! Real sandboxes by the real bubblewrap with the real server inside. Where bubblewrap does not work
//! these fail with its own words and the remedy; a green run means that the walls stand.

mod endings;
mod house;
mod limits;
mod walls;
