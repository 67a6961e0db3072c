//! The request itself: nothing else makes one, and nothing else can be asked.

use std::ops::Deref;
use std::sync::Arc;

use super::arranged::{Arranged, SystemText};
use crate::context::Context;
use crate::domain::{Effort, Entry, Tool, Weighed};
use crate::llm::{
    self, Answer, Compacting, Contents, Deferral, Failed, Progress, Provider, Request, RetryConfig,
};

/// How a model is asked, beside what it reads.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Manner {
    /// The model's name at the provider.
    pub model: String,
    /// The tools that the model may ask for.
    pub tools: Arc<[Tool]>,
    /// What a vendor that searches tools by itself is told instead of them.
    pub deferral: Option<Deferral>,
    /// Sent only when set (S0.45).
    pub temperature: Option<f64>,
    /// How much the model may think; none = as much as it does by itself.
    pub effort: Option<Effort>,
    /// The longest answer; sent only when set and not 0 (S0.67).
    pub max_tokens: Option<u32>,
    /// What somebody said of the longest answer that the model can give.
    pub max_output: Option<u32>,
    /// That the vendor may compact what it is sent.
    pub compacting: Option<Compacting>,
}

/// A model request that was built of contexts: there is no other way to one. It can be read like the
/// request that it is.
#[derive(Debug, Clone)]
pub struct Assembled {
    request: Request,
    before: Vec<Arc<Weighed>>,
    after: Vec<Arc<Weighed>>,
}

impl Assembled {
    /// A request that shows these entries of a history, of which the last `turn` are the newest turn.
    pub fn new(
        system: &SystemText,
        (shown, turn): (&[Arc<Weighed>], usize),
        manner: Manner,
    ) -> Self {
        let made = Self {
            request: Request {
                model: manner.model,
                system: (!system.text.is_empty()).then(|| Arc::clone(&system.text)),
                tools: manner.tools,
                deferral: manner.deferral,
                temperature: manner.temperature,
                effort: manner.effort,
                max_tokens: manner.max_tokens,
                max_output: manner.max_output,
                compacting: manner.compacting,
                ..Request::default()
            },
            before: system.before.clone(),
            after: system.after.clone(),
        };
        made.showing(shown, turn)
    }

    /// A request about something, such as a title: of these contexts alone, the newest first.
    pub fn of(contexts: impl IntoIterator<Item = Context>, manner: Manner) -> Self {
        let arranged = Arranged::of(contexts);
        // Without a template nothing is filled in, and so nothing fails.
        let system = arranged.system(&manner.tools, "").unwrap_or_default();
        Self::new(&system, (&[], 0), manner)
    }

    /// The same with other entries of the history. What stands before what a vendor compacted is not read:
    /// where the request goes on from there, everything else stands behind it.
    #[must_use]
    pub fn showing(mut self, shown: &[Arc<Weighed>], turn: usize) -> Self {
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

    /// The same with an answer of at most so many tokens, because no more is paid for.
    #[must_use]
    pub fn with_affordable(mut self, tokens: Option<u32>) -> Self {
        self.request.affordable = tokens;
        self
    }

    /// The same with what is attached to its entries.
    #[must_use]
    pub fn with_contents(mut self, contents: Contents) -> Self {
        self.request.contents = contents;
        self
    }
}

/// How many of the first entries there are up to the newest answer with a vendor's block, and its results.
fn behind_block(shown: &[Arc<Weighed>]) -> usize {
    let has_block = |entry: &Arc<Weighed>| {
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

impl Deref for Assembled {
    type Target = Request;

    fn deref(&self) -> &Request {
        &self.request
    }
}

/// Asks a model; the only way to one. `on` is told what happens on the way, and dropping it ends the
/// request ([`llm::ask`]).
pub async fn ask(
    provider: Arc<dyn Provider>,
    request: Assembled,
    retry: RetryConfig,
    on: impl FnMut(Progress) + Send,
) -> Result<Answer, Failed> {
    llm::ask(provider, request.request, retry, on).await
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::{Assembled, Manner};
    use crate::context::assembler::arranged::SystemText;
    use crate::domain::{Entry, Native, Weighed};
    use crate::llm::Compacting;

    /// `u` a question, `a` an answer, `b` an answer with a block of the vendor's, `r` a result.
    fn entries(said: &str) -> Vec<Arc<Weighed>> {
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
                call_id: crate::domain::CallId::new(1, 0),
                provider_id: String::new(),
                name: String::new(),
                text: "r".to_owned(),
                is_error: false,
                attachments: vec![],
            },
            'a' => Entry::message("assistant", "a"),
            kind => Entry::message("user", kind),
        });
        entries.map(Weighed::new).collect()
    }

    fn check(shown: &str, turn: usize, resumes: bool, expected: &str) {
        let mut system = SystemText::default();
        (system.before, system.after) = (entries("<"), entries(">"));
        let manner = Manner {
            compacting: Some(Compacting {
                threshold: 1,
                resumes,
            }),
            ..Manner::default()
        };
        let body = Assembled::new(&system, (&entries(shown), turn), manner);
        let told = body.entries.iter().map(|entry| match entry {
            Entry::User { text, .. }
            | Entry::Assistant { text, .. }
            | Entry::ToolResult { text, .. }
            | Entry::Note { text } => text.as_str(),
        });
        assert_eq!(told.collect::<String>(), expected, "{shown} {resumes}");
    }

    /// Nothing stands before the block but what it stands for: the vendor would read past it.
    #[test]
    fn what_stands_beside_the_conversation_is_behind_what_was_compacted() {
        check("uau", 1, false, "<ua>u");
        check("bu", 1, true, "b<>u");
        check("bauau", 1, true, "baua<>u");
        check("ubrrar", 6, true, "ubrr<>ar");
    }
}
