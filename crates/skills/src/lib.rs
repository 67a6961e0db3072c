//! Manages skills: folders with a `SKILL.md` that describe how to do a certain task (the public Agent Skills
//! format). They are checked when uploaded, stored by their hash, and read step by step; nothing of a skill
//! runs here.

mod access;
mod archive;
mod bundle;
mod document;
#[cfg(test)]
mod fuzz;
mod offer;
mod path;
mod problem;
#[cfg(test)]
mod tests;
mod tool;

pub use access::{Error, SkillFile, SkillScope, SkillSettings, SkillSwitch, SkillView, Skills};
pub use archive::{Limits, read_upload, repeated};
pub use bundle::{Bundle, BundleFile, FileFacts, SKILL_FILE};
pub use document::{Document, Manifest, read_document, write_document};
pub use offer::{KeptSkill, Offer, SkillSource, WorkspaceSkill};
pub use path::is_skill_name;
pub use problem::Problem;
pub use tool::{FileQuestion, asked_skill, definitions};
