//! Checks requests against their own API description: the server enforces the lengths, patterns and numbers
//! that a type's `#[schema(…)]` or `#[param(…)]` tells clients.
//!
//! A type's bounds are compiled at its first request, because compiling all of them would cost each start
//! time and memory.

use std::any::TypeId;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use sepal_schema::{Formats, Schema};
use serde_json::{Map, Value, json};
use utoipa::{IntoParams, ToSchema};

use super::error::ApiError;
use crate::domain::Code;

/// The compiled bounds of one type.
#[derive(Debug)]
pub(super) struct Bounds {
    /// `None` if the description cannot be compiled, which a test detects.
    schema: Option<Schema>,
    /// The JSON type of each query parameter.
    types: HashMap<String, String>,
}

static KNOWN: LazyLock<RwLock<HashMap<TypeId, Arc<Bounds>>>> = LazyLock::new(RwLock::default);

/// Returns the bounds of a type, compiled once for all requests.
fn known<T: 'static>(compile: fn() -> Bounds) -> Arc<Bounds> {
    let id = TypeId::of::<T>();
    let known = KNOWN.read().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = known.get(&id) {
        return Arc::clone(found);
    }
    drop(known);
    let compiled = Arc::new(compile());
    let mut known = KNOWN.write().unwrap_or_else(PoisonError::into_inner);
    Arc::clone(known.entry(id).or_insert(compiled))
}

impl Bounds {
    /// Returns the bounds of a JSON body.
    pub(super) fn of_body<T: ToSchema + 'static>() -> Arc<Self> {
        known::<T>(|| {
            let mut parts = Vec::new();
            T::schemas(&mut parts);
            let parts: Map<String, Value> = parts
                .into_iter()
                .filter_map(|(name, part)| Some((name, serde_json::to_value(part).ok()?)))
                .collect();
            let mut schema = serde_json::to_value(T::schema()).unwrap_or_default();
            if let Value::Object(schema) = &mut schema {
                schema.insert("$defs".to_owned(), Value::Object(parts));
            }
            refer_to_definitions(&mut schema);
            Self::compile(&schema, HashMap::new())
        })
    }

    /// Returns the bounds of the parameters of a query.
    pub(super) fn of_query<T: IntoParams + 'static>() -> Arc<Self> {
        known::<T>(|| {
            let mut properties = Map::new();
            let mut types = HashMap::new();
            for parameter in T::into_params(|| None) {
                let schema = parameter
                    .schema
                    .and_then(|schema| serde_json::to_value(schema).ok());
                // A value of a closed list refers to its own schema, and deserializing it has checked it
                // already.
                let Some(schema) = schema.filter(|schema| schema.get("$ref").is_none()) else {
                    continue;
                };
                if let Some(name) = type_of(&schema) {
                    types.insert(parameter.name.clone(), name);
                }
                properties.insert(parameter.name, schema);
            }
            Self::compile(&json!({ "properties": properties }), types)
        })
    }

    fn compile(schema: &Value, types: HashMap<String, String>) -> Self {
        let schema = Schema::compile(schema, Formats::Remarks).inspect_err(|error| {
            tracing::error!(%error, "The description of a request cannot be compiled");
        });
        Self {
            schema: schema.ok(),
            types,
        }
    }

    /// Refuses a body that breaks a bound. The error names up to [`MOST_ERRORS`] broken bounds.
    pub(super) fn check(&self, value: &Value) -> Result<(), ApiError> {
        let Some(schema) = &self.schema else {
            return Ok(());
        };
        let broken = schema.broken_bounds(value, MOST_ERRORS);
        let broken = broken.map_err(|error| {
            ApiError::new(Code::InvalidArguments, format!("the body is {error}"))
        })?;
        let broken: Vec<(String, String)> = broken
            .into_iter()
            .map(|broken| (field_of(&broken.at), broken.words))
            .collect();
        match broken.as_slice() {
            [] => Ok(()),
            [(field, words)] => Err(ApiError::of_field(
                Code::InvalidArguments,
                field.clone(),
                format!("`{field}`: {words}"),
            )),
            _ => Err(ApiError::of_fields(broken)),
        }
    }

    /// Refuses a query that breaks a bound.
    pub(super) fn check_query<'a>(
        &self,
        pairs: impl Iterator<Item = (std::borrow::Cow<'a, str>, std::borrow::Cow<'a, str>)>,
    ) -> Result<(), ApiError> {
        let values = pairs.map(|(name, text)| {
            let value = match self.types.get(name.as_ref()).map(String::as_str) {
                Some("integer" | "number" | "boolean") => serde_json::from_str(&text).ok(),
                _ => None,
            };
            let value = value.unwrap_or_else(|| Value::String(text.into_owned()));
            (name.into_owned(), value)
        });
        self.check(&Value::Object(values.collect()))
    }
}

/// The maximum number of broken bounds that one response names.
const MOST_ERRORS: usize = 8;

/// Returns the first JSON type of a parameter other than `null`.
fn type_of(schema: &Value) -> Option<String> {
    let all = schema.get("type")?;
    let all = all
        .as_array()
        .map_or(std::slice::from_ref(all), Vec::as_slice);
    let mut names = all.iter().filter_map(Value::as_str);
    names.find(|name| *name != "null").map(str::to_owned)
}

/// Rewrites references from OpenAPI's `#/components/schemas/` to JSON Schema's `#/$defs/`.
fn refer_to_definitions(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            for (name, member) in members {
                match member {
                    Value::String(target) if name == "$ref" => {
                        *target = target.replace("#/components/schemas/", "#/$defs/");
                    }
                    Value::String(_)
                    | Value::Null
                    | Value::Bool(_)
                    | Value::Number(_)
                    | Value::Array(_)
                    | Value::Object(_) => refer_to_definitions(member),
                }
            }
        }
        Value::Array(entries) => entries.iter_mut().for_each(refer_to_definitions),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Converts a JSON pointer to the notation that other errors use for a field: `ids[3].name`.
fn field_of(pointer: &str) -> String {
    let mut field = String::new();
    for part in pointer.split('/').skip(1) {
        if part.bytes().all(|byte| byte.is_ascii_digit()) {
            let _ = write!(field, "[{part}]");
        } else {
            if !field.is_empty() {
                field.push('.');
            }
            field.push_str(&part.replace("~1", "/").replace("~0", "~"));
        }
    }
    field
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use utoipa::{IntoParams, ToSchema};

    use super::Bounds;

    /// A part.
    #[derive(ToSchema)]
    #[expect(dead_code, reason = "only its description is looked at")]
    struct Part {
        #[schema(max_length = 3, pattern = "^[a-z]*$")]
        name: String,
    }

    /// A body.
    #[derive(ToSchema)]
    #[expect(dead_code, reason = "only its description is looked at")]
    struct BoundedBody {
        #[schema(min_items = 1, max_items = 2)]
        parts: Vec<Part>,
        #[schema(minimum = 1, maximum = 5)]
        limit: Option<u32>,
    }

    /// A query.
    #[derive(IntoParams)]
    #[expect(dead_code, reason = "only its description is looked at")]
    struct BoundedQuery {
        #[param(minimum = 1, maximum = 50)]
        limit: Option<usize>,
        #[param(min_length = 1, max_length = 4)]
        q: Option<String>,
    }

    #[test]
    fn a_body_is_held_to_its_description_at_every_depth() {
        let bounds = Bounds::of_body::<BoundedBody>();
        let told = |body| {
            bounds
                .check(&body)
                .err()
                .map(|error| error.into_refusal().message)
        };
        assert_eq!(
            told(json!({ "parts": [{ "name": "abc" }], "limit": 5 })),
            None
        );
        for (body, words) in [
            (json!({ "parts": [] }), "`parts`: has no entry"),
            (
                json!({ "parts": [{ "name": "a" }], "limit": 6 }),
                "`limit`: is more than 5",
            ),
            (
                json!({ "parts": [{ "name": "abcd" }] }),
                "`parts[0].name`: has more than 3 characters",
            ),
            (
                json!({ "parts": [{ "name": "A" }] }),
                "`parts[0].name`: does not match `^[a-z]*$`",
            ),
        ] {
            let told = told(body.clone()).unwrap_or_default();
            assert!(told.contains(words), "{body}: {told}");
        }
    }

    #[test]
    fn a_query_is_held_to_its_description() {
        let bounds = Bounds::of_query::<BoundedQuery>();
        let told = |query: &str| {
            let pairs = url::form_urlencoded::parse(query.as_bytes());
            bounds
                .check_query(pairs)
                .err()
                .map(|error| error.into_refusal().message)
        };
        for fine in [
            "",
            "limit=50&q=1234",
            "q=%C3%A4%C3%A4%C3%A4%C3%A4",
            "other=x",
        ] {
            assert_eq!(told(fine), None, "{fine}");
        }
        for (query, words) in [
            ("limit=0", "`limit`: is less than 1"),
            ("limit=51", "`limit`: is more than 50"),
            ("q=", "`q`: is empty"),
            ("q=12345", "`q`: has more than 4 characters"),
        ] {
            let told = told(query).unwrap_or_default();
            assert!(told.contains(words), "{query}: {told}");
        }
    }
}
