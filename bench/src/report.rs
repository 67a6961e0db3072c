//! Reports medians, ratios and gates.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::Result;
use serde_json::{Value, json};

use crate::measure::Figure;
use crate::subject::Kind;

/// All figures of a run.
#[derive(Default)]
pub(crate) struct Report {
    figures: BTreeMap<&'static str, BTreeMap<Kind, Vec<f64>>>,
}

/// The limit of a figure.
enum Limit {
    /// A multiple of the relay's figure.
    TimesRelay(f64),
    /// A difference to the relay's figure.
    AboveRelay(f64),
    /// An absolute value.
    AtMost(f64),
}

/// A figure with its required limit and its aim.
struct Gate {
    figure: &'static str,
    kinds: &'static [Kind],
    limit: Limit,
    aim: f64,
}

const BOTH: &[Kind] = &[Kind::Sqlite, Kind::Redis];

const GATES: &[Gate] = &[
    Gate {
        figure: "CPU per million tokens, burst (s)",
        kinds: BOTH,
        limit: Limit::TimesRelay(1.8),
        aim: 1.2,
    },
    Gate {
        figure: "CPU per million tokens, paced (s)",
        kinds: BOTH,
        limit: Limit::TimesRelay(1.5),
        aim: 1.2,
    },
    Gate {
        figure: "CPU per turn (ms)",
        kinds: BOTH,
        limit: Limit::AboveRelay(0.55),
        aim: 0.35,
    },
    Gate {
        figure: "CPU per five-call round (ms)",
        kinds: &[Kind::Sqlite],
        limit: Limit::AtMost(2.0),
        aim: 1.0,
    },
    Gate {
        figure: "CPU per five-call round (ms)",
        kinds: &[Kind::Redis],
        limit: Limit::AtMost(1.3),
        aim: 0.7,
    },
    Gate {
        figure: "memory at 5,000 sockets (MiB)",
        kinds: BOTH,
        limit: Limit::TimesRelay(2.5),
        aim: 1.5,
    },
    Gate {
        figure: "start to listening (ms)",
        kinds: BOTH,
        limit: Limit::AtMost(80.0),
        aim: 50.0,
    },
];

impl Report {
    /// Adds the figures of one subject in one round.
    pub(crate) fn take(&mut self, kind: Kind, figures: Vec<Figure>) {
        for (name, value) in figures {
            let by_kind = self.figures.entry(name).or_default();
            by_kind.entry(kind).or_default().push(value);
        }
    }

    fn median(&self, figure: &str, kind: Kind) -> Option<f64> {
        let mut values = self.figures.get(figure)?.get(&kind)?.clone();
        values.sort_by(f64::total_cmp);
        let middle = values.len() / 2;
        let upper = *values.get(middle)?;
        if values.len() % 2 == 1 {
            return Some(upper);
        }
        Some(f64::midpoint(*values.get(middle.checked_sub(1)?)?, upper))
    }

    /// Returns the report for people: medians side by side, then the gates.
    pub(crate) fn text(&self) -> String {
        let mut text = String::from("| median |");
        for kind in Kind::ALL {
            let _ = write!(text, " {} |", kind.name());
        }
        text.push_str("\n|---|---|---|---|---|\n");
        for figure in self.figures.keys() {
            let _ = write!(text, "| {figure} |");
            for kind in Kind::ALL {
                match self.median(figure, kind) {
                    Some(value) => {
                        let _ = write!(text, " {value:.3} |");
                    }
                    None => text.push_str(" – |"),
                }
            }
            text.push('\n');
        }
        text.push_str(
            "\n| gate | subject | is | must be at most | aim | |\n|---|---|---|---|---|---|\n",
        );
        for verdict in self.verdicts() {
            let Verdict {
                figure,
                kind,
                is,
                most,
                aim,
            } = verdict;
            let word = if is <= most { "holds" } else { "FAILS" };
            let _ = writeln!(
                text,
                "| {figure} | {} | {is:.2} | {most} | {aim} | {word} |",
                kind.name()
            );
        }
        text
    }

    /// Returns true if every measured gate holds.
    pub(crate) fn holds(&self) -> bool {
        self.verdicts()
            .iter()
            .all(|verdict| verdict.is <= verdict.most)
    }

    fn verdicts(&self) -> Vec<Verdict> {
        let mut verdicts = Vec::new();
        for gate in GATES {
            let relay = self.median(gate.figure, Kind::Relay);
            for kind in gate.kinds {
                let own = self.median(gate.figure, *kind);
                let (is, most) = match gate.limit {
                    Limit::TimesRelay(most) => {
                        (own.zip(relay).map(|(own, relay)| own / relay), most)
                    }
                    Limit::AboveRelay(most) => {
                        (own.zip(relay).map(|(own, relay)| own - relay), most)
                    }
                    Limit::AtMost(most) => (own, most),
                };
                let Some(is) = is else { continue };
                let (figure, aim, kind) = (gate.figure, gate.aim, *kind);
                verdicts.push(Verdict {
                    figure,
                    kind,
                    is,
                    most,
                    aim,
                });
            }
        }
        verdicts
    }

    /// Writes all figures of all rounds.
    pub(crate) fn write(&self, path: &Path, rounds: usize) -> Result<()> {
        let figures = self.figures.iter().map(|(figure, by_kind)| {
            let by_kind = by_kind.iter().map(|(kind, values)| {
                let median = self.median(figure, *kind);
                (
                    kind.name().to_owned(),
                    json!({ "median": median, "rounds": values }),
                )
            });
            ((*figure).to_owned(), Value::Object(by_kind.collect()))
        });
        let gates = self.verdicts().into_iter().map(|verdict| {
            json!({
                "figure": verdict.figure, "subject": verdict.kind.name(), "is": verdict.is,
                "atMost": verdict.most, "aim": verdict.aim, "holds": verdict.is <= verdict.most,
            })
        });
        let whole = json!({
            "version": env!("CARGO_PKG_VERSION"), "rounds": rounds,
            "cores": std::thread::available_parallelism()?.get(),
            "figures": Value::Object(figures.collect()), "gates": gates.collect::<Vec<_>>(),
        });
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(path, serde_json::to_string_pretty(&whole)? + "\n")?;
        Ok(())
    }
}

struct Verdict {
    figure: &'static str,
    kind: Kind,
    is: f64,
    most: f64,
    aim: f64,
}

#[cfg(test)]
mod tests {
    use super::Report;
    use crate::subject::Kind;

    #[test]
    fn gates_compare_medians_with_the_relay_of_the_same_run() {
        let mut report = Report::default();
        let figure = "CPU per million tokens, burst (s)";
        for (relay, own) in [(1.0, 1.7), (9.0, 90.0), (2.0, 3.5)] {
            report.take(Kind::Relay, vec![(figure, relay)]);
            report.take(Kind::Sqlite, vec![(figure, own)]);
        }
        let [verdict] = &report.verdicts()[..] else {
            panic!("one subject was measured")
        };
        assert!((verdict.is - 1.75).abs() < 1e-9);
        assert!(report.holds());
        report.take(Kind::Sqlite, vec![(figure, 80.0)]);
        assert!(!report.holds());
    }
}
