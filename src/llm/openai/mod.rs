//! OpenAI, and every server that speaks like it (Ollama, vLLM, llama.cpp, …).

mod chat;
mod fault;
#[cfg(test)]
pub(super) mod fuzz;

pub use chat::ChatCompletions;

/// The vendor's own address.
const VENDOR_URL: &str = "https://api.openai.com/v1";
/// The vendor's host.
const VENDOR_HOST: &str = "api.openai.com";
