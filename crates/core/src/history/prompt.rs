//! Renders the system prompt from a Jinja2-style template (S0.4, D17).

use std::collections::BTreeMap;
use std::sync::Arc;

use minijinja::{Environment, UndefinedBehavior};

use crate::domain::{CountedEntry, Entry, Tool, ToolAnnotations};

/// Maximum work of a template, so that a runaway loop is an error instead of a hang.
const FUEL: u64 = 100_000;

/// The template's name in its environment.
const NAME: &str = "system prompt";
/// The name of the variant for prompts without an input.
const BARE: &str = "system prompt without an input";

/// The way in which a template gets the input (D17).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input<'a> {
    /// The template does not read the input, which is a message of its own, as in a web chat. `{{input}}`
    /// and the placeholder with this name, the argument of the agent's tool, are empty, so that one
    /// template serves both ways.
    Apart(&'a str),
    /// The template reads the input as `{{input}}` and under this name, the argument of the agent's tool
    /// (S0.4).
    Named(&'a str),
}

/// A system prompt template that renders.
#[derive(Debug, Clone, Default)]
pub struct SystemPrompt {
    /// The compiled template and its variant without the input's placeholders; `None` = the prompt is
    /// empty.
    environment: Option<Environment<'static>>,
    template: String,
    /// The other name of the input.
    name: String,
    /// True if the input is filled in.
    reads_input: bool,
}

/// The template does not render.
#[derive(Debug, thiserror::Error)]
#[error("the system prompt template does not render")]
pub struct PromptError(#[from] minijinja::Error);

impl SystemPrompt {
    /// Compiles and test-renders the template, so that a mistake prevents the start instead of failing a
    /// turn: an unknown placeholder, or endless work.
    pub fn new(template: &str, input: Input<'_>) -> Result<Self, PromptError> {
        let (name, reads_input) = match input {
            Input::Apart(name) => (name, false),
            Input::Named(name) => (name, true),
        };
        let mut environment = Environment::new();
        environment.set_fuel(Some(FUEL));
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.add_template_owned(NAME, template.to_owned())?;
        environment.add_template_owned(BARE, without_input(template, name))?;
        let prompt = Self {
            environment: Some(environment),
            template: template.to_owned(),
            name: name.to_owned(),
            reads_input,
        };
        prompt.render(&[], "")?;
        prompt.render(&[sample()], "sample")?;
        Ok(prompt)
    }

    /// Returns true if the prompt depends on the input.
    pub fn reads_input(&self) -> bool {
        self.reads_input
    }

    /// The source of the template.
    pub fn template(&self) -> &str {
        &self.template
    }

    /// Renders the prompt with `{{tools}}`, and with `{{input}}` if the template reads it. Without an
    /// input, its placeholder is removed together with the punctuation that follows.
    pub fn render(&self, tools: &[Tool], input: &str) -> Result<String, PromptError> {
        let Some(environment) = &self.environment else {
            return Ok(String::new());
        };
        let tools: Vec<String> = tools
            .iter()
            .map(|tool| format!("- {}: {}", tool.name, tool.description))
            .collect();
        let tools = tools.join("\n");
        let input = if self.reads_input { input } else { "" };
        // The built-in names take precedence.
        let values = BTreeMap::from([
            (self.name.clone(), input.to_owned()),
            ("input".to_owned(), input.to_owned()),
            ("tools".to_owned(), tools),
        ]);
        let name = if input.trim().is_empty() { BARE } else { NAME };
        let text = environment.get_template(name)?.render(values)?;
        Ok(text.trim().to_owned())
    }
}

/// A tool for test-rendering.
fn sample() -> Tool {
    Tool {
        name: "sample".to_owned(),
        title: None,
        description: "A sample.".to_owned(),
        input_schema: serde_json::Value::Null,
        output_schema: None,
        annotations: ToolAnnotations::default(),
        needs_tasks: false,
        view: None,
        runs_as_task: false,
    }
}

/// Removes `{{input}}` and the placeholder with the other name, together with a following full stop,
/// exclamation or question mark, and one of the spaces around it, so that "Be kind. {{input}}. Tools: …"
/// does not become "Be kind. . Tools: …". Other uses of the input stay.
fn without_input(template: &str, named: &str) -> String {
    let mut bare = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, inner, after)) = placeholder(rest) {
        bare.push_str(before);
        if inner == "input" || inner == named {
            rest = after.strip_prefix(['.', '!', '?']).unwrap_or(after);
            if bare.ends_with(' ') || bare.is_empty() {
                rest = rest.strip_prefix(' ').unwrap_or(rest);
            }
        } else {
            let whole = rest.len() - before.len() - after.len();
            let kept = rest.get(before.len()..before.len() + whole);
            bare.push_str(kept.unwrap_or_default());
            rest = after;
        }
    }
    bare.push_str(rest);
    bare
}

/// The text before the first placeholder, its name, and the text after it.
fn placeholder(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once("{{")?;
    let (inner, after) = rest.split_once("}}")?;
    Some((before, inner.trim_matches('-').trim(), after))
}

/// The text of the newest user message; empty before the first one.
pub fn last_input(entries: &[Arc<CountedEntry>]) -> &str {
    let texts = entries.iter().rev().filter_map(|entry| match &***entry {
        Entry::User { text, .. } => Some(text.as_str()),
        Entry::Assistant { .. } | Entry::ToolResult { .. } | Entry::Note { .. } => None,
    });
    texts.into_iter().next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Input, SystemPrompt};
    use crate::domain::{Tool, ToolAnnotations};

    /// S0.4.
    #[test]
    fn without_an_input_its_placeholder_leaves_no_trace() {
        let usual = "You are a helpful assistant. {{input}}. Available tools: {{tools}}";
        let check = |template: &str, input: Input<'_>, asked: &str, expected: &str| {
            let prompt = SystemPrompt::new(template, input).unwrap();
            assert_eq!(prompt.render(&[], asked).unwrap(), expected, "{template}");
        };
        let bare = "You are a helpful assistant. Available tools:";
        let named = Input::Named("query");
        check(usual, Input::Apart("query"), "why", bare);
        check(usual, named, "", bare);
        check(usual, named, " ", bare);
        let whole = "You are a helpful assistant. why. Available tools:";
        check(usual, named, "why", whole);
        check("{{ input }}! Go.", Input::Apart("query"), "", "Go.");
        check("Now {{- input -}}.", Input::Apart("query"), "", "Now");
        check("Answer {{query}}", named, "", "Answer");
        check("Say {{ input|upper }}.", Input::Apart("query"), "", "Say .");
        check("{% if input %}Q: {{input}}{% endif %}A", named, "", "A");
        check(
            "{% raw %}{{x}}{% endraw %} {{input}}.",
            Input::Apart("query"),
            "",
            "{{x}}",
        );
    }

    /// Asserts S0.3, S0.4, S0.5.
    #[test]
    fn placeholders_are_filled_and_mistakes_are_found_at_once() {
        let tool = Tool {
            name: "read_file".into(),
            title: None,
            description: "Read a file.".into(),
            input_schema: json!({}),
            output_schema: None,
            annotations: ToolAnnotations::default(),
            needs_tasks: false,
            view: None,
            runs_as_task: false,
        };
        let text = "Be brief. {{input}}|{{query}}\n{{tools}}";
        let render = |input| {
            let prompt = SystemPrompt::new(text, input).unwrap();
            prompt.render(std::slice::from_ref(&tool), "why?").unwrap()
        };
        assert_eq!(
            render(Input::Apart("query")),
            "Be brief. |\n- read_file: Read a file."
        );
        let named = render(Input::Named("query"));
        assert_eq!(named, "Be brief. why?|why?\n- read_file: Read a file.");
        let new = |text| SystemPrompt::new(text, Input::Apart("query"));
        assert!(new("{{ unclosed").is_err());
        assert!(new("{% for i in range(9999999) %}x{% endfor %}").is_err());
    }

    /// Asserts S0.4: an unknown placeholder is an error, wherever it is.
    #[test]
    fn a_template_is_strict() {
        let check = |template, is_right| {
            for input in [Input::Apart("query"), Input::Named("query")] {
                let made = SystemPrompt::new(template, input);
                assert_eq!(made.is_ok(), is_right, "{template}: {made:?}");
            }
        };
        check("{{ inputs }}", false);
        check("{{ question }}", false);
        check("{% if tools %}{{ tool }}{% endif %}", false);
        check("{{ tools.first }}", false);
        check("{{ query }} {{ input }} {{ tools }}", true);
        check("{% if query %}{{ query|upper }}{% endif %}", true);
        check("{{ other|default('none') }}", true);
    }
}
