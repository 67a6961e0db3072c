//! Fuzzes what directories send: filters, bodies and patches. What is read is written and read again to the same,
//! and what a patch leaves is in the form of the schema.

use serde_json::{Map, Value};

use super::filter::{Filter, PatchPath};
use super::patch::apply;
use super::schema::{GROUP, USER};

#[test]
fn scim_requests() {
    sepal_fuzz::check("scim_requests", |input| {
        let Ok(text) = std::str::from_utf8(input) else {
            return;
        };
        let (line, body) = text.split_once('\n').unwrap_or((text, ""));
        let body: Value = serde_json::from_str(body).unwrap_or_default();
        if let Ok(filter) = Filter::parse(line) {
            check_filter(&filter, &body);
        }
        let _ = PatchPath::parse(line);
        for schema in [&USER, &GROUP] {
            let Ok(mut resource) = schema.read(&body) else {
                continue;
            };
            let read = Value::Object(resource.clone());
            let again = schema.read(&read);
            assert_eq!(again.ok().map(Value::Object), Some(read));
            if apply(schema, &mut resource, &body).is_ok() {
                let left = Value::Object(resource);
                let again = schema.read(&left);
                assert!(again.is_ok(), "a patch leaves what the schema allows");
            }
        }
    });
}

fn check_filter(filter: &Filter, body: &Value) {
    let written = filter.to_string();
    // Parentheses are written where none were needed.
    if let Ok(read) = Filter::parse(&written) {
        assert_eq!(&read, filter, "{written}");
    }
    let none = Map::new();
    let resource = body.as_object().unwrap_or(&none);
    let fits = filter.fits(resource);
    let not = Filter::Not(Box::new(filter.clone()));
    assert_ne!(not.fits(resource), fits, "{written}");
}
