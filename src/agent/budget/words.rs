//! Words the notices and refusals about budgets: which budget, how much, and who may raise it.

use crate::domain::{
    BudgetLevel, BudgetPeriod, BudgetSource, BudgetStanding, Code, MicroUsd, Need,
};
use crate::session::Refusal;

/// The refusal for an exhausted budget, which stops a request or cuts its answer.
pub(super) fn exhausted(standing: &BudgetStanding, need: Need) -> Refusal {
    let (limit, used) = (usd(standing.budget.limit), usd(standing.used));
    let more = usd(need.least);
    let mut spent = format!(": {used} USD are spent, and going on takes {more} USD");
    if standing.budget.level.is_shared() {
        // The spending of other people is not shown.
        spent.clear();
    }
    let text = format!(
        "the budget {} of {limit} USD is used up{spent}; {}",
        whose(standing),
        who_raises(standing)
    );
    Refusal::new(Code::BudgetExhausted, text)
}

/// The notice that an answer is limited in length.
pub(super) fn covers(standing: &BudgetStanding, tokens: u32) -> String {
    let how = if standing.budget.level.is_shared() {
        // What other people left of the budget is not shown.
        "this answer has to be a short one".to_owned()
    } else {
        format!("this answer may take {tokens} tokens at most")
    };
    format!(
        "{how}: no more is left of the budget {} of {} USD",
        whose(standing),
        usd(standing.budget.limit)
    )
}

/// The refusal that explains why an answer ended at its limit.
pub(super) fn limited(standing: &BudgetStanding, tokens: u32) -> Refusal {
    let much = if standing.budget.level.is_shared() {
        "no more of this answer".to_owned()
    } else {
        format!("{tokens} tokens of this answer and no more")
    };
    let text = format!(
        "the budget {} of {} USD covered {much}; {}",
        whose(standing),
        usd(standing.budget.limit),
        who_raises(standing)
    );
    Refusal::new(Code::BudgetExhausted, text)
}

/// The refusal when other requests hold the rest of the budget.
pub(super) fn held(standing: &BudgetStanding) -> Refusal {
    let text = format!(
        "other requests hold the rest of the budget {} of {} USD; try again when they are answered; {}",
        whose(standing),
        usd(standing.budget.limit),
        who_raises(standing)
    );
    Refusal::new(Code::BudgetExhausted, text)
}

/// The refusal for a model without a price.
pub(super) fn unpriced(model: &str) -> Refusal {
    let text = format!(
        "a budget is set, and nobody knows what the model `{model}` costs; an administrator can say \
         its price with the provider, or what each such request counts \
         (`agent.llm.unpriced_request_usd`)"
    );
    Refusal::new(Code::BudgetExhausted, text)
}

/// The warning before a budget runs out.
pub(super) fn warning(standing: &BudgetStanding) -> String {
    let limit = usd(standing.budget.limit);
    let then = if standing.budget.is_hard {
        "what goes beyond is refused"
    } else {
        "nothing is refused"
    };
    format!(
        "{} % of the budget {} of {limit} USD are spent; {then}",
        standing.budget.warn_percent,
        whose(standing)
    )
}

fn whose(standing: &BudgetStanding) -> String {
    let period = match standing.budget.period {
        BudgetPeriod::Day => "day",
        BudgetPeriod::Month | BudgetPeriod::Whole => "month",
    };
    let group = standing.group.as_deref().unwrap_or("your group");
    let whose = match (standing.budget.level, standing.budget.period) {
        (BudgetLevel::GroupEach, _) => {
            return format!("that the group `{group}` gives each member for a {period} (UTC)");
        }
        (BudgetLevel::GroupPooled, _) => {
            return format!("of the group `{group}` for a {period} (UTC)");
        }
        (BudgetLevel::Turn, _) => "of this turn",
        (BudgetLevel::Own, _) => "that you set for this session",
        (BudgetLevel::Assistant, _) => "that the assistant gives each session",
        (BudgetLevel::Session, _) => "of this session",
        (BudgetLevel::Person, BudgetPeriod::Day) => "of your day (UTC)",
        (BudgetLevel::Person, _) => "of your month (UTC)",
        (BudgetLevel::Tenant, BudgetPeriod::Day) => "of your tenant's day (UTC)",
        (BudgetLevel::Tenant, _) => "of your tenant's month (UTC)",
    };
    whose.to_owned()
}

fn who_raises(standing: &BudgetStanding) -> &'static str {
    match (standing.budget.level, standing.source) {
        (BudgetLevel::Turn, _) => {
            "send another message, or ask an operator to raise `agent.chat.request_budget`"
        }
        (BudgetLevel::Own, _) => "you can raise it",
        (BudgetLevel::Assistant, _) => {
            "whoever may edit the assistant can raise it, in a new version"
        }
        (BudgetLevel::Session, BudgetSource::Settings) => {
            "an admin of your tenant can raise it for this session, an operator for each \
             (`agent.chat.session_budget`)"
        }
        (
            BudgetLevel::Session
            | BudgetLevel::Person
            | BudgetLevel::GroupEach
            | BudgetLevel::GroupPooled
            | BudgetLevel::Tenant,
            _,
        ) => "an admin of your tenant can raise it",
    }
}

/// Formats dollars and cents, with six decimals for less than a cent.
fn usd(amount: MicroUsd) -> String {
    let MicroUsd(micro) = amount;
    if micro >= 10_000 || micro == 0 {
        return format!("{}.{:02}", micro / 1_000_000, micro % 1_000_000 / 10_000);
    }
    format!("0.{micro:06}")
}

#[cfg(test)]
mod tests {
    use super::{covers, exhausted, limited, usd, warning};
    use crate::domain::{
        Budget, BudgetLevel, BudgetPeriod, BudgetSource, BudgetStanding, MicroUsd, Need,
    };

    #[test]
    fn words_name_the_budget_how_much_and_who_raises_it() {
        let standing = BudgetStanding {
            budget: Budget {
                period: BudgetPeriod::Month,
                ..Budget::of_settings(BudgetLevel::Person, MicroUsd(5_000_000))
            },
            source: BudgetSource::Subject,
            used: MicroUsd(4_990_000),
            reserved: MicroUsd(0),
            is_warned: false,
            group: None,
        };
        let need = Need {
            least: MicroUsd(20_000),
            usual: MicroUsd(30_000),
            begins: true,
        };
        assert_eq!(
            exhausted(&standing, need).message,
            "the budget of your month (UTC) of 5.00 USD is used up: 4.99 USD are spent, and going on \
             takes 0.02 USD; an admin of your tenant can raise it"
        );
        assert_eq!(
            warning(&standing),
            "80 % of the budget of your month (UTC) of 5.00 USD are spent; what goes beyond is refused"
        );
        assert_eq!(
            covers(&standing, 300),
            "this answer may take 300 tokens at most: no more is left of the budget of your month \
             (UTC) of 5.00 USD"
        );
        assert_eq!(
            limited(&standing, 300).message,
            "the budget of your month (UTC) of 5.00 USD covered 300 tokens of this answer and no more; \
             an admin of your tenant can raise it"
        );
        let of_all = BudgetStanding {
            budget: Budget {
                level: BudgetLevel::Tenant,
                ..standing.budget.clone()
            },
            ..standing.clone()
        };
        let of_group = BudgetStanding {
            budget: Budget {
                level: BudgetLevel::GroupPooled,
                ..standing.budget.clone()
            },
            group: Some("Research".into()),
            ..standing.clone()
        };
        for words in [&of_all, &of_group].map(|of| {
            [
                covers(of, 300),
                limited(of, 300).message,
                exhausted(of, need).message,
            ]
        }) {
            for words in words {
                assert!(!words.contains("300") && !words.contains("4.99"), "{words}");
            }
        }
        assert_eq!(
            exhausted(&of_group, need).message,
            "the budget of the group `Research` for a month (UTC) of 5.00 USD is used up; an admin of \
             your tenant can raise it"
        );
        assert_eq!(
            (usd(MicroUsd(42)), usd(MicroUsd(0))),
            ("0.000042".into(), "0.00".into())
        );
    }
}
