//! The real app on a free port, one file per verb of the stories or server that they talk to, and clients.

mod app;
mod described;
pub(crate) mod docker;
mod engine;
mod hang;
mod log;
pub(crate) mod postgres;
mod proxy;
mod redis;
mod relay;
mod server;
mod smtp;
mod socket;
mod stream;
pub(crate) mod tables;
mod tls;

pub(crate) use self::redis::RedisServer;
pub(crate) use app::{Person, TestApp};
pub(crate) use docker::{beside, until};
pub(crate) use engine::PrivateEngine;
pub(crate) use log::Log;
pub(crate) use proxy::{Door, OpenDoor, behind_each_door};
pub(crate) use relay::Relay;
pub(crate) use server::{Server, colleague, colleague_with, person, sepal};
pub(crate) use smtp::{Relayed, TakenMail};
pub(crate) use socket::{Said, TestSocket};
pub(crate) use stream::TestStream;
pub(crate) use tls::vouched_for;

use std::time::Duration;

/// Longer than anything here takes; reached only when something hangs.
pub(crate) const DEADLINE: Duration = Duration::from_mins(1);
