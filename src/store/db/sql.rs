//! Texts of SQL, and one text for many rows: each statement is a way to the database and back, and on a
//! server that way costs more than the row.

use std::sync::Arc;

use sqlx::{AssertSqlSafe, SqlSafeStr, SqlStr};

use super::{Arg, Statement};

/// Rows of one statement. Only these, because each text is prepared once by every connection.
const SIZES: [usize; 4] = [16, 4, 2, 1];

/// A text that stands in this program, or is made of such ones; never of what anybody said.
#[derive(Debug, Clone)]
pub(in crate::store) struct Sql(Text);

#[derive(Debug, Clone)]
enum Text {
    Written(&'static str),
    Made(Arc<str>),
}

impl From<&'static str> for Sql {
    fn from(text: &'static str) -> Self {
        Self(Text::Written(text))
    }
}

impl From<String> for Sql {
    fn from(text: String) -> Self {
        Self(Text::Made(text.into()))
    }
}

impl SqlSafeStr for Sql {
    fn into_sql_str(self) -> SqlStr {
        match self.0 {
            Text::Written(text) => text.into_sql_str(),
            Text::Made(text) => AssertSqlSafe(text).into_sql_str(),
        }
    }
}

/// A text with a part that is said once for each row.
#[derive(Debug, Clone, Copy)]
pub(in crate::store) struct PerRow {
    pub(in crate::store) before: &'static str,
    /// With a `?` for each value of the row, in their order.
    pub(in crate::store) row: &'static str,
    pub(in crate::store) between: &'static str,
    pub(in crate::store) after: &'static str,
}

impl PerRow {
    /// Statements that together say it for all rows, in their order.
    pub(in crate::store) fn statements(
        &self,
        rows: impl IntoIterator<Item = Vec<Arg>>,
    ) -> impl Iterator<Item = Statement> {
        let queries = self.queries(rows);
        queries.map(|(sql, args)| Statement::new(sql, args))
    }

    /// The same as texts with their values.
    pub(in crate::store) fn queries(
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
            Some((this.text(size), args))
        })
    }

    fn text(&self, rows: usize) -> Sql {
        let mut text = String::from(self.before);
        let mut values = 0_usize;
        for row in 0..rows {
            if row > 0 {
                text.push_str(self.between);
            }
            for piece in self.row.split_inclusive('?') {
                match piece.strip_suffix('?') {
                    Some(piece) => {
                        values += 1;
                        text.push_str(piece);
                        text.push('$');
                        text.push_str(&values.to_string());
                    }
                    None => text.push_str(piece),
                }
            }
        }
        text.push_str(self.after);
        Sql(Text::Made(text.into()))
    }
}

#[cfg(test)]
mod tests {
    use sqlx::SqlSafeStr as _;

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
                let sql = sql.into_sql_str().as_str().to_owned();
                let places =
                    (1..=args.len() / 2).map(|row| format!("(${}, ${})", row * 2 - 1, row * 2));
                let places = places.collect::<Vec<_>>().join(", ");
                assert_eq!(sql, format!("{}{places}{}", KEEP.before, KEEP.after));
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
    fn there_are_few_texts() {
        let texts: std::collections::BTreeSet<String> = (0..500_i64)
            .flat_map(|count| KEEP.queries((0..count).map(|row| vec![Arg::from(row); 2])))
            .map(|(sql, _)| sql.into_sql_str().as_str().to_owned())
            .collect();
        assert_eq!(texts.len(), super::SIZES.len());
    }
}
