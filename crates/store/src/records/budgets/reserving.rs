//! Reserves budget before a model request and each time that it continues, and releases reservations. One
//! transaction reads the standing of all levels and records what was granted.

use std::time::Duration;

use super::super::super::Error;
use super::super::super::db::{PerRow, Statement, args};
use super::Budgets;
use super::payer::Payer;
use super::row::{self, StandingRow};
use sepal_core::domain::{
    Budget, BudgetStanding, Grant, Need, SessionKey, Timestamp, grant, in_force, tightest,
};

/// The outcome of a reservation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReservationOutcome {
    pub grant: Grant,
    /// The budgets about which people have to be warned now; they are warned once in each period.
    pub warnings: Vec<BudgetStanding>,
    /// The hard budget with the least left; `None` if no hard budget applies.
    pub tightest: Option<BudgetStanding>,
}

impl Budgets<'_> {
    /// Grants what a request needs, at every level or at none, and extends the lease of its reservation. If
    /// this grant is refused, an earlier reservation of the request stays in force.
    pub async fn reserve(
        &self,
        payer: &Payer,
        settings: &[Budget],
        need: Need,
        now: Timestamp,
        lease: Duration,
    ) -> Result<ReservationOutcome, Error> {
        let until = Timestamp(now.0.saturating_add(row::int(ms(lease))));
        let values = row::args_of_standings(payer, settings, now);
        let of = payer.clone();
        let follow = move |rows: Vec<StandingRow>| {
            let standings = rows.into_iter().map(StandingRow::into_standing);
            match standings.collect::<Result<Vec<_>, _>>() {
                Ok(standings) => step(&of, in_force(standings), need, now, until),
                Err(error) => (Vec::new(), Err(error)),
            }
        };
        let tenant = payer.key.tenant.as_str();
        self.db
            .change_as_read(tenant, row::STANDINGS, values, follow)
            .await?
    }

    /// Ends the lease of a request's reservation at `until`, or at once without a time, if the request used
    /// nothing.
    pub async fn give_back(&self, payer: &Payer, until: Option<Timestamp>) -> Result<(), Error> {
        let mut values = args![
            payer.key.tenant.as_str(),
            payer.key.session.as_str(),
            payer.turn(),
            payer.iteration()
        ];
        let Some(until) = until else {
            let sql = "DELETE FROM budget_reservations WHERE tenant = $1 AND session = $2 \
                       AND turn = $3 AND iteration = $4";
            self.db.execute(sql, values).await?;
            return Ok(());
        };
        values.extend(args![until.0]);
        let sql = "UPDATE budget_reservations SET until = $5 WHERE tenant = $1 AND session = $2 \
                   AND turn = $3 AND iteration = $4 AND until > $5";
        self.db.execute(sql, values).await?;
        Ok(())
    }
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Decides on a reservation. Returns the statements to write, and the outcome for the request.
fn step(
    payer: &Payer,
    standings: Vec<BudgetStanding>,
    need: Need,
    now: Timestamp,
    until: Timestamp,
) -> (Vec<Statement>, Result<ReservationOutcome, Error>) {
    let grant = grant(&standings, need);
    let tightest = tightest(&standings).cloned();
    let is_due = |standing: &BudgetStanding| !standing.is_warned && standing.is_near(need.least);
    let warnings: Vec<BudgetStanding> = standings.into_iter().filter(is_due).collect();
    let tenant = payer.key.tenant.as_str();
    let mut statements = Vec::new();
    if let Grant::Given(amount) = &grant {
        // Reservations of a crashed gateway expire; nothing else deletes them.
        let expired = "DELETE FROM budget_reservations WHERE tenant = $1 AND until <= $2";
        statements.push(Statement::new(expired, args![tenant, now.0]));
        statements.push(Statement::new(
            "INSERT INTO budget_reservations (tenant, session, turn, iteration, owner, amount, \
             until) VALUES ($1, $2, $3, $4, $5, $6, $7) \
             ON CONFLICT (tenant, session, turn, iteration) DO UPDATE SET \
             amount = excluded.amount, until = excluded.until",
            args![
                tenant,
                payer.key.session.as_str(),
                payer.turn(),
                payer.iteration(),
                payer.owner.as_str(),
                row::int(amount.0),
                until.0
            ],
        ));
    } else {
        // Extends the lease only when half of it is over, because every change costs a sync to disk.
        let half = now.0.saturating_add(until.0.saturating_sub(now.0) / 2);
        statements.push(Statement::new(
            "UPDATE budget_reservations SET until = $5 WHERE tenant = $1 AND session = $2 \
             AND turn = $3 AND iteration = $4 AND until < $6",
            args![
                tenant,
                payer.key.session.as_str(),
                payer.turn(),
                payer.iteration(),
                until.0,
                half
            ],
        ));
    }
    for standing in &warnings {
        let budget = &standing.budget;
        let (subject, since) = row::warned_as(budget, payer, now);
        statements.push(Statement::new(
            "INSERT INTO budget_warnings (tenant, level, subject, period, since) \
             VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING",
            args![
                tenant,
                budget.level.as_str(),
                subject.as_str(),
                budget.period.as_str(),
                since
            ],
        ));
    }
    let reserved = ReservationOutcome {
        grant,
        warnings,
        tightest,
    };
    (statements, Ok(reserved))
}

/// Deletes the reservations that recorded usage replaces: those of each session, up to and including its
/// last recorded request.
pub(in crate::records) fn settle<'k>(
    ended: impl Iterator<Item = (&'k SessionKey, (u64, u64))>,
) -> impl Iterator<Item = Statement> {
    const SETTLE: PerRow = PerRow {
        before: "DELETE FROM budget_reservations WHERE ",
        row: "(tenant = ? AND session = ? AND (turn < ? OR (turn = ? AND iteration <= ?)))",
        between: " OR ",
        after: "",
    };
    SETTLE.statements(ended.map(|(key, (turn, iteration))| {
        let turn = row::int(turn);
        args![
            key.tenant.as_str(),
            key.session.as_str(),
            turn,
            turn,
            row::int(iteration)
        ]
    }))
}
