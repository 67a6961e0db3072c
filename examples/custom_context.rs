//! A context provider of one's own: opening hours that an assistant of a shop has to know, and how a
//! request is built with it.
//!
//! `cargo run --example custom_context`
#![expect(clippy::print_stdout, reason = "it prints what a model would read")]

use std::sync::Arc;

use async_trait::async_trait;
use sepal::context::{
    AssembledRequest, Context, ContextBuilder, ContextError, ContextFilter, ContextProvider,
    ContextSession, FilteredProvider, HistoryProvider, Relevance, RequestOptions,
    SystemPromptProvider,
};
use sepal::domain::{Entry, SessionId, SessionKey, TenantId, Timestamp};
use sepal::history::Input;

/// Knows when the shops of a tenant are open.
struct OpeningHours {
    hours: Vec<(&'static str, &'static str)>,
}

#[async_trait]
impl ContextProvider for OpeningHours {
    fn name(&self) -> &'static str {
        "opening-hours"
    }

    // A real one asks a service here, and says in an error why it cannot.
    async fn provide(&self, session: &ContextSession<'_>) -> Result<Vec<Context>, ContextError> {
        if self.hours.is_empty() {
            let why = format!("no shop of `{}` has opening hours", session.tenant());
            return Err(ContextError::new(why));
        }
        // The newest first: here the one that was added last.
        let newest_first = self.hours.iter().rev();
        let contexts = newest_first.map(|(shop, hours)| {
            Context::new("opening_hours", format!("{shop}: {hours}")).with_metadata("shop", *shop)
        });
        Ok(contexts.collect())
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let key = SessionKey {
        tenant: TenantId::from_bits(1),
        session: SessionId::from_bits(1),
    };
    let mut session = ContextSession::create(key);
    session.add_entry(Entry::message("user", "Hello"), Timestamp(1_000));
    session.add_entry(
        Entry::message("assistant", "How can I help?"),
        Timestamp(2_000),
    );
    let question = Entry::message("user", "When is the shop in Bonn open?");
    session.add_entry(question, Timestamp(3_000));

    let hours = OpeningHours {
        hours: vec![("Ulm", "9 to 17"), ("Bonn", "10 to 18"), ("Jena", "closed")],
    };
    let relevant = ContextFilter::default().relevance(Relevance { most: 1 });
    let assembler = ContextBuilder::default()
        .with_system_prompt(SystemPromptProvider::new(
            "You answer for a shop.",
            Input::Apart("query"),
        )?)
        .with_context_providers([
            Arc::new(HistoryProvider::new(20)) as Arc<dyn ContextProvider>,
            Arc::new(FilteredProvider::new(Arc::new(hours), relevant)),
        ])
        .build();

    let gathered = assembler.gather(&session).await;
    for (provider, error) in &gathered.failures {
        println!("{provider} gave nothing: {error}");
    }
    let arranged = gathered.arranged(&session);
    let options = RequestOptions {
        model: "any".to_owned(),
        ..RequestOptions::default()
    };
    let system = arranged.system(&options.tools, session.input())?;
    // The newest turn is the question alone.
    let request = AssembledRequest::new(&system, arranged.history(), 1, options);
    println!("system: {}", request.system.as_deref().unwrap_or_default());
    for entry in request.entries.iter() {
        println!("{entry:?}");
    }
    Ok(())
}
