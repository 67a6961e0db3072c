//! Answers a server's elicitation while the agent answers a question.

use super::{Door, News, Question};
use crate::agent::SessionRequest;
use crate::config::ApprovalWay;
use crate::domain::KeyScope;
use crate::session::{
    Command, Elicitation, ElicitationAction, ElicitationAnswer, ElicitationReply, SamplingReply,
};

impl Question<'_> {
    /// Returns the answer to a server's elicitation; `None` if a person in the page answers it.
    pub(super) async fn answer(
        &self,
        door: &dyn Door,
        asked: &Elicitation,
    ) -> Option<SessionRequest> {
        let mut answer = None;
        for way in self.ways {
            match way {
                ApprovalWay::Elicit if !self.caller.has_scope(KeyScope::Decide) => {}
                ApprovalWay::Elicit => answer = door.fill_in(asked).await,
                ApprovalWay::Web if self.has_page => return None,
                ApprovalWay::Deny => break,
                ApprovalWay::Web | ApprovalWay::Auto => {}
            }
            if answer.is_some() {
                break;
            }
        }
        if answer.is_none() {
            door.report(News::Declined(&asked.server)).await;
        }
        let reply = ElicitationReply {
            id: asked.id.clone(),
            answer: answer.unwrap_or(ElicitationAnswer {
                action: ElicitationAction::Decline,
                content: None,
            }),
            by: self.caller.actor(),
            invalid: None,
            sampling: SamplingReply::default(),
        };
        Some(Command::AnswerElicitation(reply).into())
    }
}
