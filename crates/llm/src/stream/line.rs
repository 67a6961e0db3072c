//! Formats events as one line, for the tables of the assemblers.

use crate::ModelEvent;
use sepal_core::domain::TokenUsage;

/// Formats events: `text`, `(thought)`, `<(` where the text so far was reasoning, `0:id/name` for a new call, `0+json` for its arguments, `#usage`,
/// native blocks as JSON, `~summary~before>after` for a compaction, `-left out`, `!detail`, `.finish`. Only
/// the last usage is shown.
pub(crate) fn one_line<'a>(
    events: impl IntoIterator<Item = &'a ModelEvent>,
    usage: fn(&TokenUsage) -> String,
) -> String {
    let events: Vec<&ModelEvent> = events.into_iter().collect();
    let is_usage = |event: &&ModelEvent| matches!(event, ModelEvent::Usage(_));
    let last = events.iter().rposition(is_usage);
    let shown = events.iter().copied().enumerate();
    let shown = shown.filter(|(at, event)| !is_usage(event) || Some(*at) == last);
    let shown = shown.map(|(_, event)| match event {
        ModelEvent::Text(text) => text.clone(),
        ModelEvent::Reasoning(text) => format!("({text})"),
        ModelEvent::TextWasReasoning => "<(".to_owned(),
        ModelEvent::CallStarted {
            index,
            provider_id,
            name,
        } => format!("{index}:{provider_id}/{name}"),
        ModelEvent::CallArguments { index, json } => format!("{index}+{json}"),
        ModelEvent::Usage(used) => format!("#{}", usage(used)),
        ModelEvent::Native(native) => native.blocks.to_string(),
        ModelEvent::Compacted(it) => {
            let summary = it.summary.as_deref().unwrap_or("?");
            let size = [it.before, it.after].map(Option::unwrap_or_default);
            format!("~{summary}~{}>{}", size[0], size[1])
        }
        ModelEvent::LeftOut(text) => format!("-{text}"),
        ModelEvent::StopDetail(words) => format!("!{words}"),
        ModelEvent::Finished(finish) => format!(".{}", finish.as_str()),
    });
    shown.collect::<Vec<_>>().join(" ")
}

/// Formats usage as `in/out`.
pub(crate) fn in_and_out(usage: &TokenUsage) -> String {
    format!("{}/{}", usage.input_tokens, usage.output_tokens)
}
