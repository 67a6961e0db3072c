//! Puts the context sources of a session into the order of a request.

use std::sync::Arc;

use super::skills::SessionSkills;
use super::tool_call::SessionTools;
use super::tool_call::workspace::instructions::WorkspaceInstructions;
use super::tool_call::workspace::undone::UndoneChanges;
use crate::context::{
    Assembler, ContextBuilder, ContextProvider, HistoryProvider, SystemPromptProvider,
};

/// The sources of context for an installation's sessions, besides each session's own history.
#[derive(Clone, Default)]
pub struct ContextSources {
    pub system_prompt: SystemPromptProvider,
    /// The most bytes read of each instruction file in a workspace; `None` = instruction files are not read.
    pub workspace_instructions: Option<u64>,
    /// Providers whose context is shown before the history, because it seldom changes.
    pub before: Vec<Arc<dyn ContextProvider>>,
    /// Providers whose context is shown right before the newest question, because it changes from turn to
    /// turn.
    pub after: Vec<Arc<dyn ContextProvider>>,
}

impl ContextSources {
    /// Makes the assembler of the session with these tools and skills.
    pub(super) fn of_session(
        &self,
        tools: &Arc<SessionTools>,
        skills: &Arc<SessionSkills>,
    ) -> Assembler {
        let skills: Arc<dyn ContextProvider> = Arc::<SessionSkills>::clone(skills);
        let instructions = self.workspace_instructions.map(|most| {
            let instructions = WorkspaceInstructions::new(Arc::clone(tools), most);
            Arc::new(instructions) as Arc<dyn ContextProvider>
        });
        let history: Arc<dyn ContextProvider> = Arc::new(HistoryProvider::whole());
        let undone: Arc<dyn ContextProvider> = Arc::new(UndoneChanges::new(Arc::clone(tools)));
        ContextBuilder::default()
            .with_system_prompt(self.system_prompt.clone())
            .with_context_providers(self.before.iter().cloned())
            .with_context_providers([skills])
            .with_context_providers(instructions)
            .with_context_providers([history])
            .with_context_providers([undone])
            .with_context_providers(self.after.iter().cloned())
            .build()
    }
}
