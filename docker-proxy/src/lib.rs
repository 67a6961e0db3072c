//! Filters requests to a container engine, one file per check of a request: lets through what Sepal's
//! sandboxes need and nothing else.
//!
//! A path filter is not enough: a volume with bind options or an `exec` with `Privileged` reads the whole
//! machine behind allowed paths. So nothing that a client sends reaches the engine. Each request is parsed
//! into a few checked values, and a new one is written from a template; anything in a request beyond the
//! template is refused by name. Existing objects are looked up at the engine first, must carry our label, and
//! are then addressed by their id.

mod address;
mod answer;
mod attach;
mod calls;
mod engine;
mod filter;
#[cfg(test)]
mod fuzz;
mod name;
mod owned;
mod quota;
mod refusal;
mod request;
mod route;
mod server;
mod settings;
mod template;

pub use self::{
    address::{Address, AddressError},
    route::{ROUTES, Route, table},
    server::{Listener, health, serve},
    settings::{Label, Most, Settings, SettingsError},
};
