//! Builds the request: nothing else makes one, and only such a request can be sent.

use std::ops::Deref;
use std::sync::Arc;

use super::arranged::{ArrangedContexts, SystemText};
use crate::Context;
use sepal_core::domain::{CountedEntry, Effort, Entry, Tool};
use sepal_llm::{
    Answer, Compacting, Contents, Deferral, Failed, Progress, Provider, Request, RetryConfig,
};

/// The parameters of a request besides its contexts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RequestOptions {
    /// The model's name at the provider.
    pub model: String,
    /// The tools that the model may call.
    pub tools: Arc<[Tool]>,
    /// The tools that are deferred to a search instead of sent.
    pub deferral: Option<Deferral>,
    /// Sent only when set (S0.45).
    pub temperature: Option<f64>,
    /// The effort of the model; `None` = its own default.
    pub effort: Option<Effort>,
    /// The longest answer; sent only when set and not 0 (S0.67).
    pub max_tokens: Option<u32>,
    /// The configured limit of the model's answers.
    pub max_output: Option<u32>,
    /// The compaction that the vendor may make.
    pub compacting: Option<Compacting>,
}

/// A model request that was built of contexts, which is the only way to make one. It derefs to the request.
#[derive(Debug, Clone)]
pub struct AssembledRequest {
    request: Request,
    before: Vec<Arc<CountedEntry>>,
    after: Vec<Arc<CountedEntry>>,
}

impl AssembledRequest {
    /// Makes a request that shows these entries of a history, of which the last `turn` are the newest turn.
    pub fn new(
        system: &SystemText,
        shown: &[Arc<CountedEntry>],
        turn: usize,
        options: RequestOptions,
    ) -> Self {
        let made = Self {
            request: Request {
                model: options.model,
                system: (!system.text.is_empty()).then(|| Arc::clone(&system.text)),
                tools: options.tools,
                deferral: options.deferral,
                temperature: options.temperature,
                effort: options.effort,
                max_tokens: options.max_tokens,
                max_output: options.max_output,
                compacting: options.compacting,
                ..Request::default()
            },
            before: system.before.clone(),
            after: system.after.clone(),
        };
        made.showing(shown, turn)
    }

    /// Makes a request about something, such as a title, from only these contexts, newest first.
    pub fn of(contexts: impl IntoIterator<Item = Context>, options: RequestOptions) -> Self {
        let arranged = ArrangedContexts::of(contexts);
        // Without a template nothing is rendered, so this cannot fail.
        let system = arranged.system(&options.tools, "").unwrap_or_default();
        Self::new(&system, &[], 0, options)
    }

    /// Replaces the entries of the history. A vendor ignores everything before its compacted block: in a
    /// request that resumes from a block, all other contexts stand after it.
    #[must_use]
    pub fn showing(mut self, shown: &[Arc<CountedEntry>], turn: usize) -> Self {
        let turn = shown.len().saturating_sub(turn);
        let resumes = self.request.compacting.is_some_and(|it| it.resumes);
        let parts = if resumes {
            let (earlier, newest) = shown.split_at(turn.max(behind_block(shown)));
            [earlier, &self.before, &self.after, newest]
        } else {
            let (earlier, newest) = shown.split_at(turn);
            [&self.before, earlier, &self.after, newest]
        };
        let mut entries = Vec::with_capacity(parts.iter().map(|part| part.len()).sum());
        for part in parts {
            entries.extend_from_slice(part);
        }
        self.request.entries = entries.into();
        self
    }

    /// Limits the answer to `tokens`, because no more is paid for.
    #[must_use]
    pub fn with_affordable(mut self, tokens: Option<u32>) -> Self {
        self.request.affordable = tokens;
        self
    }

    /// Adds the contents of the attachments.
    #[must_use]
    pub fn with_contents(mut self, contents: Contents) -> Self {
        self.request.contents = contents;
        self
    }
}

/// Returns the number of entries up to the newest answer with a vendor's block, including its results.
fn behind_block(shown: &[Arc<CountedEntry>]) -> usize {
    let has_block = |entry: &Arc<CountedEntry>| {
        let Entry::Assistant { native, .. } = &***entry else {
            return false;
        };
        native.as_ref().is_some_and(|native| native.compacts)
    };
    let from = shown.iter().rposition(has_block).map_or(0, |at| at + 1);
    let results = shown.iter().skip(from);
    let results = results.take_while(|entry| matches!(&****entry, Entry::ToolResult { .. }));
    from + results.count()
}

impl Deref for AssembledRequest {
    type Target = Request;

    fn deref(&self) -> &Request {
        &self.request
    }
}

/// Sends a request to a model; the only way to one. `on` receives the progress, and dropping the future ends
/// the request ([`sepal_llm::ask`]).
pub async fn ask(
    provider: Arc<dyn Provider>,
    request: AssembledRequest,
    retry: RetryConfig,
    on: impl FnMut(Progress) + Send,
) -> Result<Answer, Failed> {
    sepal_llm::ask(provider, request.request, retry, on).await
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::{AssembledRequest, RequestOptions};
    use crate::assembler::arranged::SystemText;
    use sepal_core::domain::{CountedEntry, Entry, Native};
    use sepal_llm::Compacting;

    /// `u` a question, `a` an answer, `b` an answer with a block of the vendor's, `r` a result.
    fn entries(said: &str) -> Vec<Arc<CountedEntry>> {
        let entries = said.chars().map(|kind| match kind {
            'b' => Entry::Assistant {
                text: "b".to_owned(),
                calls: vec![],
                native: Some(Native {
                    family: "f".to_owned(),
                    blocks: json!([]),
                    compacts: true,
                }),
            },
            'r' => Entry::ToolResult {
                call_id: sepal_core::domain::CallId::new(1, 0),
                provider_id: String::new(),
                name: String::new(),
                text: "r".to_owned(),
                is_error: false,
                attachments: vec![],
            },
            'a' => Entry::message("assistant", "a"),
            kind => Entry::message("user", kind),
        });
        entries.map(CountedEntry::new).collect()
    }

    fn check(shown: &str, turn: usize, resumes: bool, expected: &str) {
        let mut system = SystemText::default();
        (system.before, system.after) = (entries("<"), entries(">"));
        let options = RequestOptions {
            compacting: Some(Compacting {
                threshold: 1,
                resumes,
            }),
            ..RequestOptions::default()
        };
        let body = AssembledRequest::new(&system, &entries(shown), turn, options);
        let told = body.entries.iter().map(|entry| match entry {
            Entry::User { text, .. }
            | Entry::Assistant { text, .. }
            | Entry::ToolResult { text, .. }
            | Entry::Note { text } => text.as_str(),
        });
        assert_eq!(told.collect::<String>(), expected, "{shown} {resumes}");
    }

    /// Only entries that the block replaces stand before it: the vendor would ignore anything else there.
    #[test]
    fn what_stands_beside_the_conversation_is_behind_what_was_compacted() {
        check("uau", 1, false, "<ua>u");
        check("bu", 1, true, "b<>u");
        check("bauau", 1, true, "baua<>u");
        check("ubrrar", 6, true, "ubrr<>ar");
    }
}
