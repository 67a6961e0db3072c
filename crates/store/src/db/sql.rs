//! Builds SQL texts, including one text for many rows: each statement is a round trip, and a round trip to a
//! server costs more than a row.

use std::fmt::Write as _;

use sqlx::{AssertSqlSafe, SqlSafeStr, SqlStr};

use super::{Arg, Statement};

/// The numbers of rows in one statement. The set is small because every connection prepares each text once.
const SIZES: [usize; 4] = [16, 4, 2, 1];

/// An SQL text written in this program or assembled from such texts, never from user input.
#[derive(Debug, Clone)]
pub(crate) struct Sql(Text);

#[derive(Debug, Clone)]
enum Text {
    Written(&'static str),
    Made(String),
    Rows(PerRow, usize),
}

/// The placeholder style of a text.
#[derive(Debug, Clone, Copy)]
enum Values {
    /// `?`, in the order of the values.
    InOrder,
    /// `$1`, `$2` and so on.
    Numbered,
}

impl From<&'static str> for Sql {
    fn from(text: &'static str) -> Self {
        Self(Text::Written(text))
    }
}

impl From<String> for Sql {
    fn from(text: String) -> Self {
        Self(Text::Made(text))
    }
}

impl Sql {
    /// The beginning of the text, before the values of many rows.
    pub(super) fn start(&self) -> &str {
        match &self.0 {
            Text::Written(text) => text,
            Text::Made(text) => text,
            Text::Rows(per_row, _) => per_row.before,
        }
    }

    /// The text for SQLite. A statement for many rows has no numbered placeholders: SQLite stores them as
    /// names, and sqlx searches all names for each value.
    pub(super) fn for_sqlite(self) -> SqlStr {
        self.with(Values::InOrder)
    }

    /// The text for PostgreSQL.
    pub(super) fn for_postgres(self) -> SqlStr {
        self.with(Values::Numbered)
    }

    fn with(self, values: Values) -> SqlStr {
        match self.0 {
            Text::Written(text) => text.into_sql_str(),
            Text::Made(text) => AssertSqlSafe(text).into_sql_str(),
            Text::Rows(per_row, rows) => AssertSqlSafe(per_row.text(rows, values)).into_sql_str(),
        }
    }
}

/// An SQL text with a part that is repeated for each row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PerRow {
    pub(crate) before: &'static str,
    /// Contains a `?` for each value of the row, in their order.
    pub(crate) row: &'static str,
    pub(crate) between: &'static str,
    pub(crate) after: &'static str,
}

impl PerRow {
    /// Returns statements that together cover all rows, in their order.
    pub(crate) fn statements(
        &self,
        rows: impl IntoIterator<Item = Vec<Arg>>,
    ) -> impl Iterator<Item = Statement> {
        let queries = self.queries(rows);
        queries.map(|(sql, args)| Statement::new(sql, args))
    }

    /// Returns the statements of [`PerRow::statements`] as texts with their values.
    pub(crate) fn queries(
        &self,
        rows: impl IntoIterator<Item = Vec<Arg>>,
    ) -> impl Iterator<Item = (Sql, Vec<Arg>)> {
        let this = *self;
        let mut rows: std::vec::IntoIter<Vec<Arg>> =
            rows.into_iter().collect::<Vec<_>>().into_iter();
        std::iter::from_fn(move || {
            let left = rows.len();
            let size = SIZES.into_iter().find(|size| *size <= left)?;
            let args = rows.by_ref().take(size).flatten().collect();
            Some((Sql(Text::Rows(this, size)), args))
        })
    }

    /// Returns one text for all rows with its values; `None` without rows. For a few rows: each number of rows
    /// is a text of its own, and no database takes more than some ten thousand values.
    pub(crate) fn query(
        &self,
        rows: impl IntoIterator<Item = Vec<Arg>>,
    ) -> Option<(Sql, Vec<Arg>)> {
        let rows: Vec<Vec<Arg>> = rows.into_iter().collect();
        let text = Sql(Text::Rows(*self, rows.len()));
        (!rows.is_empty()).then(|| (text, rows.into_iter().flatten().collect()))
    }

    fn text(&self, rows: usize, values: Values) -> String {
        let mut text = String::from(self.before);
        let mut number = 0_usize;
        for row in 0..rows {
            if row > 0 {
                text.push_str(self.between);
            }
            match values {
                Values::InOrder => text.push_str(self.row),
                Values::Numbered => {
                    for (place, piece) in self.row.split('?').enumerate() {
                        if place > 0 {
                            number += 1;
                            // Writing to a `String` cannot fail.
                            let _ = write!(text, "${number}");
                        }
                        text.push_str(piece);
                    }
                }
            }
        }
        text.push_str(self.after);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::{Arg, PerRow};

    const KEEP: PerRow = PerRow {
        before: "INSERT INTO t (a, b) VALUES ",
        row: "(?, ?)",
        between: ", ",
        after: " ON CONFLICT DO NOTHING",
    };

    #[test]
    fn every_row_is_said_once_and_in_its_place() {
        for count in 0..70_i64 {
            let rows = (0..count).map(|row| vec![Arg::from(row), Arg::from(-row)]);
            let mut numbers = Vec::new();
            for (sql, args) in KEEP.queries(rows) {
                let rows = 1..=args.len() / 2;
                let numbered = rows.clone();
                let numbered = numbered.map(|row| format!("(${}, ${})", row * 2 - 1, row * 2));
                let in_order = rows.map(|_| "(?, ?)".to_owned());
                let whole = |places: Vec<String>| {
                    format!("{}{}{}", KEEP.before, places.join(", "), KEEP.after)
                };
                let for_postgres = sql.clone().for_postgres();
                assert_eq!(for_postgres.as_str(), whole(numbered.collect()));
                assert_eq!(sql.for_sqlite().as_str(), whole(in_order.collect()));
                for arg in args {
                    let Arg::Int(Some(number)) = arg else {
                        panic!("{arg:?}");
                    };
                    numbers.push(number);
                }
            }
            let expected: Vec<i64> = (0..count).flat_map(|row| [row, -row]).collect();
            assert_eq!(numbers, expected, "{count} rows");
        }
    }

    #[test]
    fn one_text_takes_all_rows() {
        let rows = |count: i64| (0..count).map(|row| vec![Arg::from(row); 2]);
        assert!(KEEP.query(rows(0)).is_none());
        for count in 1..=40 {
            let (sql, args) = KEEP.query(rows(count)).unwrap();
            let text = sql.for_sqlite();
            let places = text.as_str().matches("(?, ?)").count();
            assert_eq!(places * 2, args.len(), "{count} rows");
            assert_eq!(args.len(), usize::try_from(count * 2).unwrap());
        }
    }

    #[test]
    fn there_are_few_texts() {
        let texts: std::collections::BTreeSet<String> = (0..500_i64)
            .flat_map(|count| KEEP.queries((0..count).map(|row| vec![Arg::from(row); 2])))
            .map(|(sql, _)| sql.for_sqlite().as_str().to_owned())
            .collect();
        assert_eq!(texts.len(), super::SIZES.len());
    }
}
