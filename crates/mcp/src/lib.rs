//! Connects to MCP servers, reads their tools and calls them.
//!
//! A connection runs over any byte stream; this crate does not know where the server runs.

pub mod authorization;
mod checkpoint_access;
pub mod config;
mod connection;
mod elicitation;
mod error;
mod file_access;
#[cfg(test)]
mod fuzz;
mod mask;
mod offers;
mod remote;
mod sending;
mod standstill;
#[cfg(test)]
mod stories;
mod tasks;
mod tools;
mod wire;
mod workspace_files;

pub use checkpoint_access::{Found, RestoreStep, Scan, Unrestored};
pub use connection::{CallNews, ClientOffer, Connection, ToolCall, ToolProgress, visit_pages};
pub use elicitation::{Address, Asked, Form, FormAnswer, Question, SamplingRequest};
pub use error::Error;
pub use file_access::{
    EntryKind, FILE_PART, FOLDER_PAGE, FileAccess, FileError, FilePart, FileRefusal, FolderEntry,
    FolderPage, UploadPart, UploadedFile,
};
pub use mask::{Cleaner, MASK};
pub use offers::{Completing, GivenPrompt, GivenView, Offers, PromptMessage, Reference};
pub use remote::{Authorizer, Refused, RefusedRequest, Remote};
pub use standstill::Standstill;
pub use tasks::{NewTask, TaskEnd, TaskTerms};
pub use tools::bundled::{bundled_tools, bundled_tools_with};
pub use tools::content::{AnswerContent, AnswerFile};
pub use tools::filter::is_offered;
pub use tools::result::{AnswerBlock, ToolAnswer};
pub use tools::toolbox::{Naming, Offer, Toolbox, ToolboxError, ToolboxTool};
pub use wire::oversized::Size;
pub use workspace_files::{FoundSkill, InstructionsFile, SkillFile, SkillsQuestion};
