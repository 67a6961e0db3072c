//! Assembles model requests: providers give [`Context`]s, the assembler makes an [`AssembledRequest`] request of
//! them, and only an assembled request can be sent.

mod assembler;
mod conversion;
mod filter;
mod history;
mod kind;
mod prompts;
mod provider;
mod record;
pub mod sources;
mod system_prompt;
mod value;

pub use assembler::{
    ArrangedContexts, AssembledRequest, Assembler, ContextBuilder, GatheredContexts,
    RequestOptions, SystemText, ask,
};
pub use conversion::Metadata;
pub use filter::{ContextFilter, FilteredProvider, Relevance};
pub use history::HistoryProvider;
pub use kind::ContextKind;
pub use prompts::{PromptWeights, Prompts};
pub use provider::{ContextError, ContextProvider, ContextSession};
pub use system_prompt::SystemPromptProvider;
pub use value::Context;
