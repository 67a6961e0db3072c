//! Cuts short lists into pages. Their order is stable, and each item has a name of its own; a cursor is the name
//! of the last item of the page before.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use utoipa::IntoParams;

use super::error::ApiError;
use crate::domain::Code;

/// The part of a list to read.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct PageQuery {
    /// The `nextCursor` of the page before; if absent, the list begins.
    cursor: Option<String>,
    /// The maximum number of items; if absent, all that are left.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
}

/// A page of a list.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Page<T> {
    pub(super) items: Vec<T>,
    /// The cursor of the next page; `None` at the end.
    pub(super) next_cursor: Option<String>,
}

impl PageQuery {
    /// Returns the page of a list. `name` is unique among its items.
    pub(super) fn page<T>(
        &self,
        items: Vec<T>,
        name: impl Fn(&T) -> String,
    ) -> Result<Page<T>, ApiError> {
        let first = match self.cursor.as_deref().filter(|cursor| !cursor.is_empty()) {
            None => 0,
            Some(cursor) => {
                let last = read(cursor);
                let at = last.and_then(|last| items.iter().position(|item| name(item) == last));
                at.ok_or_else(gone)? + 1
            }
        };
        let left = items.len().saturating_sub(first);
        let count = self.limit.unwrap_or(left).min(left);
        let page: Vec<T> = items.into_iter().skip(first).take(count).collect();
        let last = page.last().filter(|_| count < left);
        Ok(Page {
            next_cursor: last.map(|item| URL_SAFE_NO_PAD.encode(name(item))),
            items: page,
        })
    }
}

fn read(cursor: &str) -> Option<String> {
    String::from_utf8(URL_SAFE_NO_PAD.decode(cursor).ok()?).ok()
}

fn gone() -> ApiError {
    let text =
        "`cursor` is not of this list, or its item is gone: read the list from its beginning";
    ApiError::of_field(Code::InvalidArguments, "cursor", text)
}

#[cfg(test)]
mod tests {
    use super::{Page, PageQuery};

    fn page(cursor: Option<String>, limit: Option<usize>) -> Result<Page<&'static str>, String> {
        let query = PageQuery { cursor, limit };
        let page = query.page(vec!["a", "b", "c"], |item| (*item).to_owned());
        page.map_err(|error| error.into_refusal().message)
    }

    #[test]
    fn the_pages_of_a_list_are_the_list() {
        for limit in 1..=4 {
            let (mut all, mut cursor) = (Vec::new(), None);
            loop {
                let Page { items, next_cursor } = page(cursor, Some(limit)).unwrap();
                assert!(items.len() <= limit);
                all.extend(items);
                cursor = next_cursor;
                if cursor.is_none() {
                    break;
                }
            }
            assert_eq!(all, ["a", "b", "c"], "by {limit}");
        }
        assert_eq!(page(None, None).unwrap().items.len(), 3);
    }

    #[test]
    fn a_cursor_of_an_item_that_is_gone_is_refused() {
        for cursor in ["eA", "not a cursor"] {
            let refused = page(Some(cursor.to_owned()), None).unwrap_err();
            assert!(refused.contains("from its beginning"), "{refused}");
        }
    }
}
