//! What the contexts of sessions come from, put in the order of a request.

use std::sync::Arc;

use super::skills::SessionSkills;
use super::tool_call::SessionTools;
use super::tool_call::workspace::instructions::WorkspaceInstructions;
use super::tool_call::workspace::undone::UndoneChanges;
use crate::context::{
    Assembler, ContextBuilder, ContextProvider, HistoryProvider, SystemPromptProvider,
};

/// What the contexts of an installation's sessions come from, beside each session's own history.
#[derive(Clone, Default)]
pub struct ContextSources {
    pub system_prompt: SystemPromptProvider,
    /// Bytes that are read of each file of instructions in a workspace; `None` = they are not read.
    pub workspace_instructions: Option<u64>,
    /// Shown before the history: what seldom changes.
    pub before: Vec<Arc<dyn ContextProvider>>,
    /// Shown right before the newest question: what changes from turn to turn.
    pub after: Vec<Arc<dyn ContextProvider>>,
}

impl ContextSources {
    /// The assembler of the session with those tools and skills.
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
