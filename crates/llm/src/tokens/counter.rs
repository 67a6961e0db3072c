//! Counts the tokens of one model: by its encoding, corrected by the provider's reports.

use super::calibration::scaled;
use super::{CALL_OVERHEAD, Calibration, MESSAGE_OVERHEAD, RESULT_OVERHEAD, TOOL_OVERHEAD};
use super::{CHARACTERS_PER_TOKEN, exact, of_characters, of_json};
use crate::Vendor;
use sepal_core::domain::{
    Attachment, Encoding, Entry, MediaType, ModelCall, Native, Tool, Weighed,
};

/// Pixels per token, as Anthropic counts them; other vendors count fewer tokens.
const PIXELS_PER_TOKEN: u64 = 750;
/// Bytes of a PDF per token, because its pages are not counted.
const PDF_BYTES_PER_TOKEN: u64 = 40;
/// Bytes of audio per token: vendors count about 32 tokens per second, and a second has at least 8,000 bytes.
const AUDIO_BYTES_PER_TOKEN: u64 = 125;
/// The most tokens that are assumed for a PDF, because most of a large one is pictures.
const MAX_PDF: u64 = 100_000;
/// The most bytes of text that are counted inline; more is counted outside of the async threads.
const LITTLE: usize = 64 * 1024;

/// A token counter for one model. Cheap to copy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counter {
    encoding: Encoding,
    /// The correction factor of counts, in thousandths; `None` = no correction.
    ratio: Option<u64>,
    /// The median error of counts, in thousandths.
    error: Option<u64>,
}

/// The accuracy of a count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Method {
    /// By the model's own tokenizer.
    Exact,
    /// Four characters per token, corrected by the provider's reports.
    Calibrated,
    /// Four characters per token.
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

/// Tokens of an entry beside its text, before the correction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BesideText {
    pub attachments: u64,
    /// Tokens of native blocks.
    pub native: u64,
}

impl Counter {
    /// The counter of a model, with its calibration.
    pub fn new(vendor: Vendor, model: &str, learned: Option<&Calibration>) -> Self {
        let encoding = exact::encoding(vendor, model);
        let ratio = learned.and_then(Calibration::ratio);
        Self {
            encoding,
            // The tokenizer's counts need no correction.
            ratio: ratio.filter(|_| encoding == Encoding::FourCharacters),
            error: learned.and_then(Calibration::error),
        }
    }

    /// The accuracy of this counter.
    pub fn method(self) -> Method {
        match (self.encoding, self.ratio) {
            (Encoding::O200k | Encoding::Cl100k, _) => Method::Exact,
            (Encoding::FourCharacters, Some(_)) => Method::Calibrated,
            (Encoding::FourCharacters, None) => Method::Estimated,
        }
    }

    /// The median error of calibrated counts, in thousandths; `None` for other counters.
    pub fn error(self) -> Option<u64> {
        self.error.filter(|_| self.method() == Method::Calibrated)
    }

    /// The tokens of a text.
    pub fn of_text(self, text: &str) -> u64 {
        self.corrected(self.text(text))
    }

    /// The tokens of an entry, computed once per encoding.
    pub fn of_entry(self, entry: &Weighed) -> u64 {
        self.corrected(self.counted(entry))
    }

    /// The count corrected by the provider's reports.
    pub fn corrected(self, counted: u64) -> u64 {
        self.ratio.map_or(counted, |ratio| scaled(counted, ratio))
    }

    /// The encoding that this counter uses.
    pub fn encoding(self) -> Encoding {
        self.encoding
    }

    /// The tokens of an entry before the correction.
    pub fn counted(self, entry: &Weighed) -> u64 {
        entry.weight(self.encoding, |entry| {
            tracing::trace!("Counting the tokens of an entry");
            self.entry(entry)
        })
    }

    /// The tokens of an entry beside its text: attachments and native blocks.
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

    /// This counter, or the rough one if this one would block its thread: its table is not built yet, or too
    /// much text was never counted.
    #[must_use]
    pub fn at_hand<'a>(self, entries: impl Iterator<Item = &'a Weighed>) -> Self {
        if self.is_quick(entries) {
            self
        } else {
            Self::default()
        }
    }

    /// Returns true if these entries can be counted without blocking the thread.
    pub fn is_quick<'a>(self, entries: impl Iterator<Item = &'a Weighed>) -> bool {
        if self.encoding == Encoding::FourCharacters {
            return true;
        }
        let unknown = entries.filter(|entry| !entry.is_weighed(self.encoding));
        let bytes = unknown.map(|entry| bytes(entry)).sum::<usize>();
        exact::is_ready(self.encoding) && bytes <= LITTLE
    }

    /// The tokens of an entry; each kind has its own overhead (S0.7-S0.9).
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

    /// The tokens of a tool's definition, before the correction.
    pub fn tool(self, tool: &Tool) -> u64 {
        let texts = self.text(&tool.name) + self.text(&tool.description);
        texts + self.json(&tool.input_schema) + TOOL_OVERHEAD
    }

    /// The tokens of a text, before the correction.
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

/// Native blocks are always estimated by characters, because they are not text.
fn of_native(native: Option<&Native>) -> u64 {
    native.map_or(0, |native| of_json(&native.blocks))
}

/// Estimates the tokens of an attachment, on the high side, because each vendor counts differently.
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
        // Only the file's name is sent.
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
