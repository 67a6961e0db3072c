//! Converts a JSON Schema to the subset that Gemini accepts: one type per value, no references, no
//! `additionalProperties`, only texts in `enum`. Other constraints are described in words. Pure.

use serde_json::{Map, Value, json};

use self::flat::Flattener;
use self::word::{
    anything, describe, inferred, is_null, keep, number, of_type, short, tell_choices, tell_keys,
    text,
};

mod flat;
mod word;

/// The deepest nesting below a tool's arguments; deeper values become free-form.
const MAX_DEPTH: usize = 24;
/// The most schemas of one tool, counting each use of a reference; further values become free-form.
const MAX_NODES: usize = 2_000;

/// Converts the schema of a tool's arguments; `None` if the tool has no arguments.
pub(super) fn lower(schema: &Value) -> Option<Value> {
    let mut lowering = Lowering {
        flattener: Flattener::new(schema),
        nodes: 0,
    };
    let mut root = lowering.flattener.flatten(schema.as_object()?);
    lowering.join_variants(&mut root);
    let object = lowering.object(&root, 0);
    object.contains_key("properties").then(|| {
        let mut object = object;
        describe(&mut object, &root, Vec::new());
        Value::Object(object)
    })
}

struct Lowering<'a> {
    flattener: Flattener<'a>,
    nodes: usize,
}

impl Lowering<'_> {
    fn value(&mut self, schema: &Value, depth: usize) -> Map<String, Value> {
        self.nodes += 1;
        let Value::Object(schema) = schema else {
            return anything();
        };
        if depth > MAX_DEPTH || self.nodes > MAX_NODES {
            return of_type("object");
        }
        let references = self.flattener.depth();
        let flat = self.flattener.flatten(schema);
        let lowered = self.flat(flat, depth);
        self.flattener.leave(references);
        lowered
    }

    fn flat(&mut self, mut schema: Map<String, Value>, depth: usize) -> Map<String, Value> {
        let mut is_nullable = schema.get("nullable") == Some(&json!(true));
        let variants = self.variants(&mut schema, &mut is_nullable);
        let mut lowered = match variants {
            Some(variants) if schema.contains_key("properties") => {
                // Usually these are lists of properties that are required together.
                let told = vec![format!("One of: {}", short(&Value::Array(variants)))];
                let mut object = self.object(&schema, depth);
                describe(&mut object, &schema, told);
                object
            }
            Some(variants) => self.any_of(&variants, &schema, depth),
            None => self.typed(&schema, &mut is_nullable, depth),
        };
        if is_nullable && !lowered.contains_key("anyOf") {
            lowered.insert("nullable".to_owned(), json!(true));
        }
        lowered
    }

    /// The alternatives without `null`. A single alternative is merged into the schema around it.
    fn variants(
        &mut self,
        schema: &mut Map<String, Value>,
        is_nullable: &mut bool,
    ) -> Option<Vec<Value>> {
        let of_any = schema.remove("anyOf");
        let of_one = schema.remove("oneOf");
        let Some(Value::Array(mut variants)) = of_any.or(of_one) else {
            return None;
        };
        let before = variants.len();
        variants.retain(|variant| !is_null(variant));
        *is_nullable |= variants.len() < before;
        match variants.as_slice() {
            [] => None,
            [Value::Object(only)] => {
                let only = self.flattener.flatten(only);
                for (name, value) in only {
                    schema.entry(name).or_insert(value);
                }
                // The merged schema may have alternatives of its own.
                self.variants(schema, is_nullable)
            }
            _ => Some(variants),
        }
    }

    /// Gemini accepts no keywords beside `anyOf`, so the description goes to the first alternative.
    fn any_of(
        &mut self,
        variants: &[Value],
        schema: &Map<String, Value>,
        depth: usize,
    ) -> Map<String, Value> {
        let mut lowered: Vec<Value> = Vec::with_capacity(variants.len());
        for variant in variants {
            let variant = self.value(variant, depth + 1);
            match variant.get("anyOf") {
                Some(Value::Array(inner)) => lowered.extend(inner.iter().cloned()),
                Some(_) | None => lowered.push(Value::Object(variant)),
            }
        }
        if let Some(Value::Object(first)) = lowered.first_mut()
            && !first.contains_key("description")
        {
            describe(first, schema, Vec::new());
        }
        Map::from_iter([("anyOf".to_owned(), Value::Array(lowered))])
    }

    fn typed(
        &mut self,
        schema: &Map<String, Value>,
        is_nullable: &mut bool,
        depth: usize,
    ) -> Map<String, Value> {
        let names: Vec<&str> = match schema.get("type") {
            Some(Value::String(name)) => vec![name],
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            Some(_) | None => inferred(schema).into_iter().collect(),
        };
        let types: Vec<&str> = names.iter().copied().filter(|&n| n != "null").collect();
        *is_nullable |= types.len() < names.len();
        match types.as_slice() {
            [] => {
                let mut free = anything();
                if let Some(Value::Array(types)) = free.get_mut("anyOf")
                    && let Some(Value::Object(first)) = types.first_mut()
                {
                    describe(first, schema, Vec::new());
                }
                free
            }
            [only] => self.of_one_type(only, schema, depth),
            several => {
                let variants = several.iter().map(|name| {
                    let mut variant = schema.clone();
                    variant.insert("type".to_owned(), json!(name));
                    variant
                });
                let variants = variants.map(|variant| {
                    let name = variant.get("type").and_then(Value::as_str);
                    let name = name.unwrap_or_default().to_owned();
                    Value::Object(self.of_one_type(&name, &variant, depth))
                });
                let variants = Value::Array(variants.collect());
                Map::from_iter([("anyOf".to_owned(), variants)])
            }
        }
    }

    fn of_one_type(
        &mut self,
        name: &str,
        schema: &Map<String, Value>,
        depth: usize,
    ) -> Map<String, Value> {
        let mut told = Vec::new();
        let mut lowered = match name {
            "object" => self.object(schema, depth),
            "array" => self.array(schema, depth),
            "string" => text(schema, &mut told),
            "integer" | "number" => number(name, schema, &mut told),
            "boolean" => of_type("boolean"),
            _ => anything(),
        };
        if name != "string" {
            tell_choices(schema, &mut told);
        }
        if name == "object" && !lowered.contains_key("properties") {
            tell_keys(schema, &mut told);
        }
        if !lowered.contains_key("anyOf") {
            describe(&mut lowered, schema, told);
        }
        lowered
    }

    fn object(&mut self, schema: &Map<String, Value>, depth: usize) -> Map<String, Value> {
        let mut lowered = of_type("object");
        let Some(Value::Object(properties)) = schema.get("properties") else {
            return lowered;
        };
        let properties: Map<String, Value> = properties
            .iter()
            .filter(|(name, _)| !name.is_empty())
            .map(|(name, schema)| (name.clone(), Value::Object(self.value(schema, depth + 1))))
            .collect();
        if properties.is_empty() {
            return lowered;
        }
        let required = schema.get("required").and_then(Value::as_array);
        let required = required.into_iter().flatten().filter(|name| {
            let name = name.as_str().unwrap_or_default();
            properties.contains_key(name)
        });
        let required: Vec<Value> = required.cloned().collect();
        if !required.is_empty() {
            lowered.insert("required".to_owned(), Value::Array(required));
        }
        lowered.insert("properties".to_owned(), Value::Object(properties));
        lowered
    }

    fn array(&mut self, schema: &Map<String, Value>, depth: usize) -> Map<String, Value> {
        let mut lowered = of_type("array");
        let tuple = schema.get("prefixItems").or(schema.get("items"));
        let items = match (tuple, schema.get("items")) {
            (Some(Value::Array(tuple)), _) if !tuple.is_empty() => {
                self.value(&json!({"anyOf": tuple}), depth + 1)
            }
            (_, Some(items @ Value::Object(_))) => self.value(items, depth + 1),
            // Gemini refuses an array without an item type.
            _ => of_type("string"),
        };
        lowered.insert("items".to_owned(), Value::Object(items));
        keep(
            &mut lowered,
            schema,
            &["minItems", "maxItems"],
            Value::is_u64,
        );
        lowered
    }

    /// Joins alternatives of the arguments themselves into one object with the properties of all.
    fn join_variants(&mut self, root: &mut Map<String, Value>) {
        let mut is_nullable = false;
        let Some(variants) = self.variants(root, &mut is_nullable) else {
            return;
        };
        let mut properties = match root.remove("properties") {
            Some(Value::Object(properties)) => properties,
            Some(_) | None => Map::new(),
        };
        for variant in variants.iter().filter_map(Value::as_object) {
            let references = self.flattener.depth();
            let flat = self.flattener.flatten(variant);
            self.flattener.leave(references);
            if let Some(Value::Object(more)) = flat.get("properties") {
                for (name, schema) in more {
                    properties.entry(name.clone()).or_insert(schema.clone());
                }
            }
        }
        root.insert("properties".to_owned(), Value::Object(properties));
    }
}

#[cfg(test)]
pub(super) mod tests;
