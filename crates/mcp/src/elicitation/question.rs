//! A question on its way to the person, and its answer on the way back.

use std::future::pending;
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::oneshot;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::address::Address;
use super::form::Form;
use super::open_questions::{OpenQuestions, Waits};
use super::sampling::SamplingRequest;
use crate::mask::Cleaner;

/// What is asked.
#[derive(Debug, Clone, PartialEq)]
pub enum Asked {
    /// A form to fill in.
    Form(Form),
    /// A page to open.
    Address(Address),
    /// A completion of a model.
    Sampling(SamplingRequest),
}

/// What becomes of a question.
#[derive(Debug, Clone, PartialEq)]
pub enum FormAnswer {
    /// Filled in, with values that fit, or what the model said; of a page `None`.
    Accept(Option<Value>),
    /// The model gave no answer, for a reason of that code.
    Failed(&'static str),
    /// The person does not want to say it.
    Decline,
    /// It was closed.
    Cancel,
}

/// A question of a server, while which its call takes no time. Dropping it tells the server that nobody
/// answered.
#[derive(Debug)]
pub struct Question {
    pub asked: Asked,
    /// `None` = the server has its answer.
    reply: Option<oneshot::Sender<FormAnswer>>,
    /// Whether the server hears at once that its page was opened, or as soon as all is done there.
    hears_of_opening: bool,
    /// Ends with the question, and when the server does not wait for the answer any more.
    withdrawn: CancellationToken,
    _ends: DropGuard,
    /// When the server says that all is done at its page.
    completed: Option<CancellationToken>,
    _waits: Waits,
}

impl Question {
    /// A question, and where its answer arrives. `hears_of_opening` tells the server that its page was
    /// opened, though the question goes on.
    pub(super) fn new(
        open: &Arc<OpenQuestions>,
        asked: Asked,
        hears_of_opening: bool,
    ) -> (Self, oneshot::Receiver<FormAnswer>) {
        let (reply, answer) = oneshot::channel();
        let withdrawn = CancellationToken::new();
        let id = match &asked {
            Asked::Address(address) if !address.id.is_empty() => Some(address.id.clone()),
            Asked::Address(_) | Asked::Form(_) | Asked::Sampling(_) => None,
        };
        let waits = Waits::begin(open, id);
        let question = Self {
            asked,
            reply: Some(reply),
            hears_of_opening,
            _ends: withdrawn.clone().drop_guard(),
            withdrawn,
            completed: waits.completed(),
            _waits: waits,
        };
        (question, answer)
    }

    /// The person goes to the page; the question goes on until all is done there.
    pub fn open(&mut self) {
        if self.hears_of_opening
            && let Some(reply) = self.reply.take()
        {
            // The server may have gone.
            let _ = reply.send(FormAnswer::Accept(None));
        }
    }

    /// Gives the server its answer.
    pub fn answer(mut self, answer: FormAnswer) {
        if let Some(reply) = self.reply.take() {
            // The server may have gone, or asks no more.
            let _ = reply.send(answer);
        }
    }

    /// Ends when the question does, or when the server does not wait for the answer any more.
    pub fn withdrawn(&self) -> CancellationToken {
        self.withdrawn.clone()
    }

    /// Resolves when the server says that all is done at its page.
    pub fn completed(&self) -> impl Future<Output = ()> + Send + 'static {
        let completed = self.completed.clone();
        async move {
            match completed {
                Some(completed) => completed.cancelled().await,
                None => pending().await,
            }
        }
    }

    /// The same without the secrets that its server was given; `None` if its address has one.
    pub(crate) fn cleaned(mut self, cleaner: &Cleaner) -> Option<Self> {
        match &mut self.asked {
            Asked::Form(form) => {
                form.message = cleaner.clean(&form.message);
                form.schema = cleaner.clean_value(std::mem::take(&mut form.schema));
                for name in &mut form.order {
                    *name = cleaner.clean(name);
                }
            }
            Asked::Address(address) => {
                if cleaner.clean(&address.url) != address.url {
                    return None;
                }
                address.message = cleaner.clean(&address.message);
            }
            Asked::Sampling(asked) => asked.clean(cleaner),
        }
        Some(self)
    }
}
