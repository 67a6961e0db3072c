//! What every kind of sandbox must do, held against each of them: real bubblewrap, real Docker.
//! What only one of them has is tested beside its code.

mod capacity;
mod containers;
mod endings;
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
            $(#[tokio::test] async fn $name() { super::$name(House::docker().await).await })*
        }
    };
}
pub(crate) use on_every_runtime;
