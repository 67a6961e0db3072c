//! Renders a system prompt once for all sessions with the same tools, and counts its tokens with theirs.

use std::sync::Arc;

use sepal_core::domain::{ByEncoding, Tool};
use sepal_core::history::{PromptError, SystemPrompt};
use sepal_llm::RequestCache;
use sepal_llm::tokens::Counter;

/// A system prompt with its cached renderings.
#[derive(Debug)]
pub struct Prompts {
    prompt: SystemPrompt,
    kept: RequestCache<RenderedPrompt>,
}

/// The prompt for one set of tools.
#[derive(Debug, Clone, Default)]
pub(super) struct RenderedPrompt {
    pub(super) system: Arc<str>,
    weights: Arc<ByEncoding<Arc<PromptWeights>>>,
}

/// Tokens of a prompt and of the tools that it was rendered for, before correction by the provider's reports.
#[derive(Debug)]
pub struct PromptWeights {
    /// The tokens of the rendered template.
    pub system: u64,
    /// The tokens of each tool, in their order.
    pub tools: Vec<u64>,
}

impl RenderedPrompt {
    /// Counts its tokens and those of the tools that it was rendered for.
    pub(super) fn weights(&self, tools: &[Tool], counter: Counter) -> Arc<PromptWeights> {
        self.weights.get(counter.encoding(), || {
            let tools = tools.iter().map(|tool| counter.tool(tool));
            Arc::new(PromptWeights {
                tools: tools.collect(),
                system: counter.text(&self.system),
            })
        })
    }
}

impl Prompts {
    /// Makes a prompt with no renderings yet.
    pub fn new(prompt: SystemPrompt) -> Self {
        Self {
            prompt,
            kept: RequestCache::default(),
        }
    }

    /// The unrendered template.
    pub fn template(&self) -> &str {
        self.prompt.template()
    }

    /// Renders the prompt with these tools and the question.
    pub(super) fn with(
        &self,
        tools: &Arc<[Tool]>,
        input: &str,
    ) -> Result<RenderedPrompt, PromptError> {
        if self.prompt.reads_input() {
            return self.render(tools, input);
        }
        self.kept.get(tools, |tools| self.render(tools, input))
    }

    fn render(&self, tools: &[Tool], input: &str) -> Result<RenderedPrompt, PromptError> {
        let system = self.prompt.render(tools, input)?;
        Ok(RenderedPrompt {
            system: system.into(),
            weights: Arc::default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::Prompts;
    use sepal_core::domain::{Tool, ToolAnnotations};
    use sepal_core::history::{Input, SystemPrompt};

    fn tools(name: &str) -> Arc<[Tool]> {
        Arc::new([Tool {
            name: name.to_owned(),
            title: None,
            description: String::new(),
            input_schema: json!({}),
            output_schema: None,
            annotations: ToolAnnotations::default(),
            needs_tasks: false,
            view: None,
            runs_as_task: false,
        }])
    }

    #[test]
    fn a_prompt_is_rendered_once_for_an_offer_and_anew_for_another() {
        let prompts = Prompts::new(SystemPrompt::new("{{tools}}", Input::Apart("query")).unwrap());
        let (one, two) = (tools("one"), tools("two"));
        let first = prompts.with(&one, "").unwrap();
        assert_eq!(&*first.system, "- one:");
        assert!(Arc::ptr_eq(
            &first.system,
            &prompts.with(&one, "x").unwrap().system
        ));
        assert_eq!(&*prompts.with(&two, "").unwrap().system, "- two:");
    }

    #[test]
    fn what_was_asked_is_never_taken_from_another_question() {
        let prompts = Prompts::new(SystemPrompt::new("{{q}}", Input::Named("q")).unwrap());
        let tools = tools("one");
        assert_eq!(&*prompts.with(&tools, "why").unwrap().system, "why");
        assert_eq!(&*prompts.with(&tools, "how").unwrap().system, "how");
    }
}
