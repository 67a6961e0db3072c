//! Resolves `$ref` and `allOf` in a schema by inserting their targets. Pure.

use serde_json::{Map, Value, json};

/// The deepest nesting of references and `allOf`.
const MAX_STEPS: usize = 32;

/// Resolves the references of one document.
pub(super) struct Flattener<'a> {
    root: &'a Value,
    /// The references on the path to the current schema. A repeated one counts as a cycle.
    followed: Vec<String>,
}

impl<'a> Flattener<'a> {
    pub(super) fn new(root: &'a Value) -> Self {
        Self {
            root,
            followed: Vec::new(),
        }
    }

    /// The number of references on the path.
    pub(super) fn depth(&self) -> usize {
        self.followed.len()
    }

    /// Shortens the path to the given number of references.
    pub(super) fn leave(&mut self, depth: usize) {
        self.followed.truncate(depth);
    }

    /// The schema with all referenced schemas merged in; its own keywords take precedence.
    pub(super) fn flatten(&mut self, schema: &Map<String, Value>) -> Map<String, Value> {
        self.step(schema, 0)
    }

    fn step(&mut self, schema: &Map<String, Value>, steps: usize) -> Map<String, Value> {
        let mut flat = schema.clone();
        let reference = flat.remove("$ref").or_else(|| flat.remove("$dynamicRef"));
        let all = flat.remove("allOf");
        if steps >= MAX_STEPS {
            return flat;
        }
        if let Some(Value::String(reference)) = reference {
            let target = self.target(&reference);
            let target = self.step(&target, steps + 1);
            merge(&mut flat, target);
        }
        if let Some(Value::Array(all)) = all {
            for part in all.iter().filter_map(Value::as_object) {
                let part = self.step(part, steps + 1);
                merge(&mut flat, part);
            }
        }
        flat
    }

    fn target(&mut self, reference: &str) -> Map<String, Value> {
        if self.followed.iter().any(|known| known == reference) {
            let words = "The same form as the value that holds it";
            return Map::from_iter([
                ("type".to_owned(), json!("object")),
                ("description".to_owned(), json!(words)),
            ]);
        }
        self.followed.push(reference.to_owned());
        let pointer = reference.strip_prefix('#');
        let target = pointer.and_then(|pointer| self.root.pointer(pointer));
        match target {
            Some(Value::Object(target)) => target.clone(),
            Some(_) | None => Map::new(),
        }
    }
}

/// Merges the keywords of another schema; existing keywords take precedence.
fn merge(flat: &mut Map<String, Value>, other: Map<String, Value>) {
    for (name, value) in other {
        match (name.as_str(), flat.get_mut(&name), value) {
            ("properties", Some(Value::Object(own)), Value::Object(more)) => {
                for (name, schema) in more {
                    own.entry(name).or_insert(schema);
                }
            }
            ("required", Some(Value::Array(own)), Value::Array(more)) => {
                for name in more {
                    if !own.contains(&name) {
                        own.push(name);
                    }
                }
            }
            (_, Some(_), _) => {}
            (_, None, value) => {
                flat.insert(name, value);
            }
        }
    }
}
