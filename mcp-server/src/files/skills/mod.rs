//! Skills in the workspace: those that lie there, for the gateway to tell a model of, and those that the
//! gateway puts there when a model uses them.

mod found;
mod place;

pub(crate) use self::{
    found::{SkillsParams, skills},
    place::{SkillPart, place_skill},
};
