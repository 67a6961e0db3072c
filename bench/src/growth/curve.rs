//! Curves: a value for each size, with a bound.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::Result;
use serde_json::json;

/// The bound of a curve.
#[derive(Debug, Clone, Copy)]
pub(crate) enum CurveBound {
    /// The last value is at most this many times the first.
    Times(f64),
    /// The last value is at most this much above the first.
    Above(f64),
    /// Every value is at most this.
    AtMost(f64),
    /// No bound: the curve is only reported.
    None,
}

/// One curve.
struct Curve {
    /// The measured figure, with its unit.
    name: &'static str,
    /// The things whose number grows.
    of: &'static str,
    points: Vec<(usize, f64)>,
    bound: CurveBound,
}

/// All curves of a run.
#[derive(Default)]
pub(crate) struct Curves(Vec<Curve>);

impl Curve {
    /// Returns the value that is compared with the bound, and the bound.
    fn verdict(&self) -> Option<(f64, f64)> {
        let (first, last) = (self.points.first()?.1, self.points.last()?.1);
        match self.bound {
            CurveBound::Times(most) => Some((last / first, most)),
            CurveBound::Above(most) => Some((last - first, most)),
            CurveBound::AtMost(most) => {
                let values = self.points.iter().map(|(_, value)| *value);
                Some((values.fold(f64::MIN, f64::max), most))
            }
            CurveBound::None => None,
        }
    }

    fn holds(&self) -> bool {
        self.verdict().is_none_or(|(is, most)| is <= most)
    }
}

impl Curves {
    /// Adds one curve, with the smallest size first.
    pub(crate) fn take(
        &mut self,
        (name, of): (&'static str, &'static str),
        points: Vec<(usize, f64)>,
        bound: CurveBound,
    ) {
        for (size, value) in &points {
            eprintln!("{name} at {size} {of}: {value:.3}");
        }
        self.0.push(Curve {
            name,
            of,
            points,
            bound,
        });
    }

    /// Returns true if every bound holds.
    pub(crate) fn hold(&self) -> bool {
        self.0.iter().all(Curve::holds)
    }

    /// Returns the report for people: a line for each curve.
    pub(crate) fn text(&self) -> String {
        let mut text =
            String::from("| curve | values | is | must be at most | |\n|---|---|---|---|---|\n");
        for curve in &self.0 {
            let points = curve.points.iter();
            let points = points.map(|(size, value)| format!("{value:.3} at {size}"));
            let points = points.collect::<Vec<_>>().join(", ");
            let _ = write!(text, "| {} | {points} {} |", curve.name, curve.of);
            match (curve.verdict(), curve.bound) {
                (Some((is, most)), bound) => {
                    let of = match bound {
                        CurveBound::Times(_) => " × the first",
                        CurveBound::Above(_) => " above the first",
                        CurveBound::AtMost(_) | CurveBound::None => "",
                    };
                    let word = if is <= most { "holds" } else { "FAILS" };
                    let _ = writeln!(text, " {is:.2}{of} | {most} | {word} |");
                }
                (None, _) => text.push_str(" | | told |\n"),
            }
        }
        text
    }

    /// Writes every value.
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        let curves = self.0.iter().map(|curve| {
            json!({
                "curve": curve.name, "of": curve.of, "points": curve.points,
                "verdict": curve.verdict(), "holds": curve.holds(),
            })
        });
        let whole = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "cores": std::thread::available_parallelism()?.get(),
            "curves": curves.collect::<Vec<_>>(),
        });
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(path, serde_json::to_string_pretty(&whole)? + "\n")?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{CurveBound, Curves};

    #[test]
    fn a_curve_is_held_against_its_bound() {
        for (bound, last, holds) in [
            (CurveBound::Times(1.3), 1.2, true),
            (CurveBound::Times(1.3), 1.4, false),
            (CurveBound::Above(0.3), 1.2, true),
            (CurveBound::Above(0.3), 1.4, false),
            (CurveBound::AtMost(5.0), 1.4, false),
            (CurveBound::AtMost(7.0), 1.4, true),
            (CurveBound::None, 90.0, true),
        ] {
            let mut curves = Curves::default();
            let points = vec![(1, 1.0), (2, 6.0), (3, last)];
            curves.take(("a figure", "things"), points, bound);
            assert_eq!(curves.hold(), holds, "{bound:?} {last}");
        }
    }
}
