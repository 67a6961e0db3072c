//! Carries a question to the person, and the answer back to the server.

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

/// The subject of a question.
#[derive(Debug, Clone, PartialEq)]
pub enum Asked {
    /// A form to fill in.
    Form(Form),
    /// A page to open.
    Address(Address),
    /// A completion of a model.
    Sampling(SamplingRequest),
}

/// The outcome of a question.
#[derive(Debug, Clone, PartialEq)]
pub enum FormAnswer {
    /// Accepted: the valid values of a form, the model's completion, or `None` for a page.
    Accept(Option<Value>),
    /// The model gave no answer; the code is the reason.
    Failed(&'static str),
    /// The person declined to answer.
    Decline,
    /// The question was closed.
    Cancel,
}

/// A question of a server. Its call's time stands still meanwhile. Dropping the question tells the server
/// that nobody answered.
#[derive(Debug)]
pub struct Question {
    pub asked: Asked,
    /// The channel of the answer; `None` once the server has its answer.
    reply: Option<oneshot::Sender<FormAnswer>>,
    /// True if the server is told as soon as its page was opened; false if only once the page is completed.
    hears_of_opening: bool,
    /// Cancelled when the question ends, or when the server no longer waits for the answer.
    withdrawn: CancellationToken,
    _ends: DropGuard,
    /// Cancelled when the server reports the page as completed.
    completed: Option<CancellationToken>,
    _waits: Waits,
}

impl Question {
    /// Creates a question and the receiver of its answer. With `hears_of_opening` the server is told that its
    /// page was opened, while the question stays open.
    pub(super) fn new(
        open: &Arc<OpenQuestions>,
        asked: BackgroundRequest,
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

    /// Records that the person opens the page; the question stays open until the page is completed.
    pub fn open(&mut self) {
        if self.hears_of_opening
            && let Some(reply) = self.reply.take()
        {
            // The server may be gone.
            let _ = reply.send(FormAnswer::Accept(None));
        }
    }

    /// Sends the answer to the server.
    pub fn answer(mut self, answer: FormAnswer) {
        if let Some(reply) = self.reply.take() {
            // The server may be gone or may no longer wait.
            let _ = reply.send(answer);
        }
    }

    /// Returns a token that is cancelled when the question ends, or when the server no longer waits for the
    /// answer.
    pub fn withdrawn(&self) -> CancellationToken {
        self.withdrawn.clone()
    }

    /// Resolves when the server reports the page as completed.
    pub fn completed(&self) -> impl Future<Output = ()> + Send + 'static {
        let completed = self.completed.clone();
        async move {
            match completed {
                Some(completed) => completed.cancelled().await,
                None => pending().await,
            }
        }
    }

    /// Returns the question with the server's secrets masked; `None` if its address contains one.
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
