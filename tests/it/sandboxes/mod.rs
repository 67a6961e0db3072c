//! What every kind of sandbox must do, held against each of them: real bubblewrap, real Docker,
//! Docker through our proxy.
//! What only one of them has is tested beside its code.

mod archives;
mod calls;
mod capacity;
mod containers;
mod copies;
mod disk;
pub(crate) mod egress;
mod endings;
mod escape;
mod house;
mod limits;
mod walls;

/// Makes a test of every function for each runtime.
macro_rules! on_every_runtime {
    ($($name:ident),* $(,)?) => {
        mod bubblewrap {
            use super::super::house::House;
            $(#[tokio::test] async fn $name() { super::$name(House::bubblewrap().await).await })*
        }
        mod docker {
            use super::super::house::House;
            use crate::support::Door;
            $(#[tokio::test] async fn $name() { super::$name(House::docker(Door::Direct).await).await })*
        }
        mod docker_proxy {
            use super::super::house::House;
            use crate::support::Door;
            $(#[tokio::test] async fn $name() { super::$name(House::docker(Door::Proxied).await).await })*
        }
    };
}
pub(crate) use on_every_runtime;
