//! Fuzzes the streams of OpenAI-compatible servers.

use super::chat::assembler::{Assembler, Context};
use super::models;
use super::{fault, responses};
use crate::request::names::Names;
use crate::stream::cutting::{self, owner};
use crate::transport::Refused;
use crate::transport::endpoint::Origin;
use crate::{Error, ModelListing};

#[test]
fn openai_stream() {
    sepal_fuzz::check("openai_stream", |input| {
        cutting::check(
            input,
            || {
                Assembler::new(Context {
                    owner: owner(),
                    names: Names::default(),
                    family: Some("f".to_owned()),
                })
            },
            Assembler::forget_envelope,
        );
    });
}

#[test]
fn openai_responses_stream() {
    sepal_fuzz::check("openai_responses_stream", |input| {
        cutting::check(
            input,
            || responses::assembler::Assembler::new(owner(), Names::default(), "f".to_owned()),
            // This assembler remembers nothing of the previous event.
            |_| {},
        );
    });
}

/// Classifies one body as an error response and as an error in the middle of a stream.
pub(crate) fn errors(origin: Origin<'_>, refused: &Refused) -> [Error; 2] {
    [
        fault::refused(origin, refused),
        fault::in_stream(origin, &refused.body),
    ]
}

/// Parses a list of models.
pub(crate) fn models(body: &[u8]) -> Option<ModelListing> {
    models::listed(body).ok()
}
