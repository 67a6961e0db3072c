//! The system prompt: a Jinja2-style template (S0.4, C17).

use minijinja::{Environment, context};

use crate::domain::Tool;

/// Work that a template may cost; a runaway loop is an error, not a hang.
const FUEL: u64 = 100_000;

/// A system prompt template that renders.
#[derive(Debug, Clone)]
pub struct SystemPrompt {
    template: String,
}

/// A template does not render.
#[derive(Debug, thiserror::Error)]
#[error("the system prompt template does not render")]
pub struct PromptError(#[from] minijinja::Error);

impl SystemPrompt {
    /// Tries the template once, so that a mistake stops the start and not a turn.
    pub fn new(template: &str) -> Result<Self, PromptError> {
        let prompt = Self {
            template: template.to_owned(),
        };
        prompt.render(&[])?;
        Ok(prompt)
    }

    /// The prompt with `{{tools}}` filled in. A web chat's input is a message of its own, so
    /// `{{input}}` is empty here (C17).
    pub fn render(&self, tools: &[Tool]) -> Result<String, PromptError> {
        let mut environment = Environment::new();
        environment.set_fuel(Some(FUEL));
        let tools: Vec<String> = tools
            .iter()
            .map(|tool| format!("- {}: {}", tool.name, tool.description))
            .collect();
        let text = environment.render_str(
            &self.template,
            context! { tools => tools.join("\n"), input => "" },
        )?;
        Ok(text.trim().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::SystemPrompt;
    use crate::domain::{Tool, ToolAnnotations};

    #[test]
    fn placeholders_are_filled_and_mistakes_are_found_at_once() {
        let tool = Tool {
            name: "read_file".into(),
            title: None,
            description: "Read a file.".into(),
            input_schema: json!({}),
            annotations: ToolAnnotations::default(),
        };
        let prompt = SystemPrompt::new("Be brief. {{input}}\n{{tools}}").unwrap();
        assert_eq!(
            prompt.render(&[tool]).unwrap(),
            "Be brief. \n- read_file: Read a file."
        );
        assert!(SystemPrompt::new("{{ unclosed").is_err());
        assert!(SystemPrompt::new("{% for i in range(9999999) %}x{% endfor %}").is_err());
    }
}
