//! The counter of one model: its encoding, and what its provider's reports made of that.

use super::calibration::scaled;
use super::{CALL_OVERHEAD, Calibration, MESSAGE_OVERHEAD, RESULT_OVERHEAD, TOOL_OVERHEAD};
use super::{CHARACTERS_PER_TOKEN, exact, of_characters, of_json};
use crate::Vendor;
use sepal_core::domain::{
    Attachment, Encoding, Entry, MediaType, ModelCall, Native, Tool, Weighed,
};

/// Pixels of one token, as Anthropic counts them; others count fewer tokens.
const PIXELS_PER_TOKEN: u64 = 750;
/// Bytes of a PDF for one token: nobody has counted its pages.
const PDF_BYTES_PER_TOKEN: u64 = 40;
/// Vendors count about 32 tokens of a second, which has 8,000 bytes and more.
const AUDIO_BYTES_PER_TOKEN: u64 = 125;
/// Tokens that a PDF is taken for at most, because most of a large one is pictures.
const MAX_PDF: u64 = 100_000;
/// Text that is counted where it stands, in bytes; more is counted beside the async threads.
const LITTLE: usize = 64 * 1024;

/// Counts the tokens of a model. Cheap to copy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counter {
    encoding: Encoding,
    /// What a count is multiplied by, in thousandths; none = it is taken as it is.
    ratio: Option<u64>,
    /// How far counts were off, in thousandths.
    error: Option<u64>,
}

/// How sure a count is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Method {
    /// By the model's own vocabulary.
    Exact,
    /// Four characters a token, corrected by what the provider reports.
    Calibrated,
    /// Four characters a token.
    #[default]
    Estimated,
}

impl Method {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Calibrated => "calibrated",
            Self::Estimated => "estimated",
        }
    }
}

/// Tokens of an entry that are not of its text, before they are corrected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BesideText {
    pub attachments: u64,
    /// Of what only the vendor reads.
    pub native: u64,
}

impl Counter {
    /// That of a model, with what was learned of it.
    pub fn new(vendor: Vendor, model: &str, learned: Option<&Calibration>) -> Self {
        let encoding = exact::encoding(vendor, model);
        let ratio = learned.and_then(Calibration::ratio);
        Self {
            encoding,
            // What the vocabulary says needs no correction.
            ratio: ratio.filter(|_| encoding == Encoding::FourCharacters),
            error: learned.and_then(Calibration::error),
        }
    }

    /// How sure its counts are.
    pub fn method(self) -> Method {
        match (self.encoding, self.ratio) {
            (Encoding::O200k | Encoding::Cl100k, _) => Method::Exact,
            (Encoding::FourCharacters, Some(_)) => Method::Calibrated,
            (Encoding::FourCharacters, None) => Method::Estimated,
        }
    }

    /// How far calibrated counts were off, in thousandths: half of them less.
    pub fn error(self) -> Option<u64> {
        self.error.filter(|_| self.method() == Method::Calibrated)
    }

    /// The tokens of a text.
    pub fn of_text(self, text: &str) -> u64 {
        self.corrected(self.text(text))
    }

    /// The tokens of an entry, counted once for each encoding.
    pub fn of_entry(self, entry: &Weighed) -> u64 {
        self.corrected(self.counted(entry))
    }

    /// What the provider's reports make of a count.
    pub fn corrected(self, counted: u64) -> u64 {
        self.ratio.map_or(counted, |ratio| scaled(counted, ratio))
    }

    /// How texts are cut.
    pub fn encoding(self) -> Encoding {
        self.encoding
    }

    /// The tokens of an entry before they are corrected.
    pub fn counted(self, entry: &Weighed) -> u64 {
        entry.weight(self.encoding, |entry| self.entry(entry))
    }

    /// What of an entry's count is not its text: attachments, and what only the vendor reads.
    pub fn beside_text(entry: &Weighed) -> BesideText {
        match &**entry {
            Entry::User { attachments, .. } | Entry::ToolResult { attachments, .. } => BesideText {
                attachments: of_attachments(attachments),
                native: 0,
            },
            Entry::Assistant { .. } => BesideText {
                attachments: 0,
                native: entry.native_weight(|entry| match entry {
                    Entry::Assistant { native, .. } => of_native(native.as_ref()),
                    Entry::User { .. } | Entry::ToolResult { .. } | Entry::Note { .. } => 0,
                }),
            },
            Entry::Note { .. } => BesideText::default(),
        }
    }

    /// This counter, or the rough one while this one would hold up its thread: where its table is not
    /// made, or much was never counted.
    #[must_use]
    pub fn at_hand<'a>(self, entries: impl Iterator<Item = &'a Weighed>) -> Self {
        if self.is_quick(entries) {
            self
        } else {
            Self::default()
        }
    }

    /// Whether it counts these without holding up its thread.
    pub fn is_quick<'a>(self, entries: impl Iterator<Item = &'a Weighed>) -> bool {
        if self.encoding == Encoding::FourCharacters {
            return true;
        }
        let unknown = entries.filter(|entry| !entry.is_weighed(self.encoding));
        let bytes = unknown.map(|entry| bytes(entry)).sum::<usize>();
        exact::is_ready(self.encoding) && bytes <= LITTLE
    }

    /// The tokens of an entry, each kind with its own overhead (S0.7-S0.9).
    pub(super) fn entry(self, entry: &Entry) -> u64 {
        match entry {
            Entry::Note { text } => self.text(text) + MESSAGE_OVERHEAD,
            Entry::User {
                text, attachments, ..
            } => self.text(text) + of_attachments(attachments) + MESSAGE_OVERHEAD,
            Entry::Assistant {
                text,
                calls,
                native,
            } => {
                let calls: u64 = calls.iter().map(|call| self.call(call)).sum();
                let native = of_native(native.as_ref());
                self.text(text) + calls + native + MESSAGE_OVERHEAD
            }
            Entry::ToolResult {
                text, attachments, ..
            } => {
                let attached = of_attachments(attachments);
                self.text(text) + attached + RESULT_OVERHEAD + MESSAGE_OVERHEAD
            }
        }
    }

    /// The tokens of a tool's definition, before they are corrected.
    pub fn tool(self, tool: &Tool) -> u64 {
        let texts = self.text(&tool.name) + self.text(&tool.description);
        texts + self.json(&tool.input_schema) + TOOL_OVERHEAD
    }

    /// The tokens of a text, before they are corrected.
    pub fn text(self, text: &str) -> u64 {
        exact::count(self.encoding, text).unwrap_or_else(|| of_characters(text))
    }

    fn call(self, call: &ModelCall) -> u64 {
        self.text(&call.name) + self.json(&call.args) + CALL_OVERHEAD
    }

    fn json(self, value: &impl serde::Serialize) -> u64 {
        if self.encoding == Encoding::FourCharacters {
            return of_json(value);
        }
        serde_json::to_string(value).map_or(0, |json| self.text(&json))
    }
}

/// What only the vendor reads is no text.
fn of_native(native: Option<&Native>) -> u64 {
    native.map_or(0, |native| of_json(&native.blocks))
}

/// What is attached: a guess that is never far too small, because each vendor counts otherwise.
pub fn of_attachment(attachment: &Attachment) -> u64 {
    match attachment.media_type {
        MediaType::Png | MediaType::Jpeg => {
            let edge = |pixels: Option<u32>| u64::from(pixels.unwrap_or(1));
            let pixels = edge(attachment.width) * edge(attachment.height);
            pixels.div_ceil(PIXELS_PER_TOKEN)
        }
        MediaType::Pdf => attachment.bytes.div_ceil(PDF_BYTES_PER_TOKEN).min(MAX_PDF),
        MediaType::Text => attachment.bytes.div_ceil(CHARACTERS_PER_TOKEN),
        MediaType::Wav | MediaType::Mp3 | MediaType::Ogg | MediaType::Flac => {
            attachment.bytes.div_ceil(AUDIO_BYTES_PER_TOKEN)
        }
        // Only its name is sent.
        MediaType::Binary => 0,
    }
}

fn of_attachments(attachments: &[Attachment]) -> u64 {
    attachments.iter().map(of_attachment).sum()
}

/// The bytes of an entry's texts, roughly.
fn bytes(entry: &Entry) -> usize {
    match entry {
        Entry::User { text, .. } | Entry::Note { text } | Entry::ToolResult { text, .. } => {
            text.len()
        }
        Entry::Assistant { text, calls, .. } => {
            let calls = calls.iter().map(|call| of_json(&call.args));
            let calls = usize::try_from(calls.sum::<u64>()).unwrap_or(usize::MAX);
            text.len().saturating_add(calls.saturating_mul(4))
        }
    }
}
