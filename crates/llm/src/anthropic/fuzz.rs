//! Fuzzes the streams of Messages servers.

use super::assembler::Assembler;
use super::{fault, listing};
use crate::request::names::Names;
use crate::stream::cutting::{self, owner};
use crate::transport::Refused;
use crate::transport::endpoint::Origin;
use crate::{Error, ModelListing};

#[test]
fn anthropic_stream() {
    sepal_fuzz::check("anthropic_stream", |input| {
        cutting::check(
            input,
            || Assembler::new(owner(), Names::default(), "f".to_owned()),
            Assembler::forget_envelope,
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
    let mut listing = ModelListing::default();
    listing::read(body, &mut listing).ok()?;
    Some(listing)
}
