//! Tells the model which file changes a person undid, because what it remembers of those files is outdated.

use std::sync::Arc;

use async_trait::async_trait;

use crate::agent::effects::tool_call::SessionTools;
use crate::context::{Context, ContextError, ContextProvider, ContextSession};

/// The kind of this context.
const KIND: &str = "undone_changes";
/// The most paths named.
const MOST_PATHS: usize = 50;

/// Provides the paths undone since the last call that could change files. Starts nothing for that.
pub(in crate::agent) struct UndoneChanges {
    tools: Arc<SessionTools>,
}

impl UndoneChanges {
    pub(in crate::agent) fn new(tools: Arc<SessionTools>) -> Self {
        Self { tools }
    }
}

#[async_trait]
impl ContextProvider for UndoneChanges {
    fn name(&self) -> &'static str {
        "undone-changes"
    }

    async fn provide(&self, session: &ContextSession<'_>) -> Result<Vec<Context>, ContextError> {
        if !session.has_files() || !self.tools.checkpoints.is_on() {
            return Ok(Vec::new());
        }
        let undone = self.tools.checkpoints.undone_since_calls().await;
        let paths = undone.map_err(ContextError::new)?;
        Ok(context(&paths).into_iter().collect())
    }
}

/// Makes the context; `None` if nothing was undone. The paths were chosen inside the sandbox, so they are
/// untrusted.
fn context(paths: &[String]) -> Option<Context> {
    let (named, more) = paths.split_at(paths.len().min(MOST_PATHS));
    let last = named.last()?;
    let mut lines: Vec<String> = named.iter().map(|path| format!("- `{path}`")).collect();
    if !more.is_empty() {
        lines.push(format!("- and {} more", more.len()));
    }
    let all = lines.join("\n");
    let text = format!(
        "Since your last call a person undid changes to files of the workspace. These paths are as they \
         were before those changes, or gone again; look at them before you rely on what you remember:\n\
         {all}"
    );
    let id = format!("undone:{}:{last}", paths.len());
    Some(Context::new(KIND, text).with_metadata("entry_id", id))
}

#[cfg(test)]
mod tests {
    use super::context;

    #[test]
    fn what_was_undone_is_named_up_to_a_number() {
        assert!(context(&[]).is_none());
        let paths: Vec<String> = (0..60).map(|number| format!("f{number}")).collect();
        let told = context(&paths).unwrap();
        let text = told.content();
        assert!(text.contains("- `f49`\n- and 10 more"), "{text}");
    }
}
