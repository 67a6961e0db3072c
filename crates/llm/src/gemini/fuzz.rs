//! Fuzzes the streams of `generateContent` servers, and the tool schemas that are sent to them.

use serde_json::Value;

use super::assembler::Assembler;
use super::{fault, listing, schema};
use crate::request::names::Names;
use crate::stream::cutting::{self, owner};
use crate::transport::Refused;
use crate::transport::endpoint::Origin;
use crate::{Error, ModelListing};

#[test]
fn gemini_stream() {
    sepal_fuzz::check("gemini_stream", |input| {
        cutting::check(
            input,
            || Assembler::new(owner(), Names::default(), "f".to_owned()),
            |_| {},
        );
    });
}

/// Schemas come from MCP servers. Whatever they contain, Gemini gets a bounded schema in its own form.
#[test]
fn tool_schemas() {
    sepal_fuzz::check("tool_schemas", |input| {
        let Ok(schema) = serde_json::from_slice::<Value>(input) else {
            return;
        };
        if let Some(lowered) = schema::lower(&schema) {
            schema::tests::assert_taken(&lowered);
            assert!(lowered.to_string().len() < 4 * 1024 * 1024);
        }
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
