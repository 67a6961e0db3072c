//! Limits the steps of one evaluation.
//!
//! Every schema object contains the keyword [`STEP`] with the cost of its evaluation. `jsonschema` has no
//! way to stop an evaluation, so the keyword unwinds it when this thread's steps are used up. [`within`]
//! catches the unwinding, which does not count as a failure.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use jsonschema::{Keyword, ValidationError};
use serde_json::{Value, json};

/// The keyword that counts steps. A schema's own keyword of this name is overwritten.
pub(crate) const STEP: &str = "x-sepal-step";

/// The number of steps that every evaluation may take.
const BASE: u64 = 20_000;
/// The number of further steps for each part of the value, and for each 16 bytes of its texts.
const PER_PART: u64 = 10;
/// The number of stack bytes that an evaluation may use: a quarter of a thread's stack.
const MAX_STACK: usize = 512 * 1024;
/// The number of bytes that a pattern of weight one reads in one step.
const PATTERN_BYTES: u64 = 64;

/// The evaluation takes too many steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("checking it against the schema takes too long")]
pub struct OverBudget;

thread_local! {
    static LEFT: Cell<u64> = const { Cell::new(0) };
    static STACK: Cell<usize> = const { Cell::new(0) };
}

/// Evaluates within the steps allowed for a value of this size.
pub(crate) fn within<T>(value: &Value, evaluate: impl FnOnce() -> T) -> Result<T, OverBudget> {
    let before = (LEFT.get(), STACK.get());
    LEFT.set(BASE.saturating_add(size(value).saturating_mul(PER_PART)));
    STACK.set(stack_address());
    let evaluated = catch_unwind(AssertUnwindSafe(evaluate));
    LEFT.set(before.0);
    STACK.set(before.1);
    match evaluated {
        Ok(evaluated) => Ok(evaluated),
        Err(cause) if cause.is::<OverBudget>() => Err(OverBudget),
        Err(cause) => resume_unwind(cause),
    }
}

/// Counts the parts of a value, plus one for each 16 bytes of its texts, without recursion.
fn size(value: &Value) -> u64 {
    let mut size = 0_u64;
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        size += 1;
        match value {
            Value::String(text) => size += text.len() as u64 / 16,
            Value::Array(items) => open.extend(items),
            Value::Object(members) => {
                for (name, member) in members {
                    size += name.len() as u64 / 16;
                    open.push(member);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    size
}

/// The rough address of the top of the stack.
#[inline(never)]
fn stack_address() -> usize {
    let here = 0_u8;
    std::ptr::from_ref(std::hint::black_box(&here)).addr()
}

/// The cost of one evaluation of a schema object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cost {
    /// The steps for every value.
    pub(crate) fixed: u64,
    /// The weight of its patterns, for texts and property names.
    pub(crate) patterns: u64,
}

impl Cost {
    pub(crate) fn to_json(self) -> Value {
        json!([self.fixed, self.patterns])
    }

    pub(crate) fn read(value: &Value) -> Self {
        let number = |at: usize| value.get(at).and_then(Value::as_u64).unwrap_or(1);
        Self {
            fixed: number(0),
            patterns: number(1),
        }
    }

    fn of(self, value: &Value) -> u64 {
        let bytes = match value {
            Value::String(text) => text.len(),
            Value::Object(members) => members.keys().map(String::len).sum(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => 0,
        };
        let patterns = (bytes as u64).saturating_mul(self.patterns) / PATTERN_BYTES;
        self.fixed.saturating_add(patterns)
    }

    fn take(self, value: &Value) {
        let left = LEFT.get().checked_sub(self.of(value));
        let used = STACK.get().abs_diff(stack_address());
        match left {
            Some(left) if used < MAX_STACK => LEFT.set(left),
            Some(_) | None => {
                let cause: Box<dyn Any + Send> = Box::new(OverBudget);
                resume_unwind(cause)
            }
        }
    }
}

impl<'i> Keyword<'i> for Cost {
    fn validate(&self, value: &'i Value) -> Result<(), ValidationError<'i>> {
        self.take(value);
        Ok(())
    }

    fn is_valid(&self, value: &'i Value) -> bool {
        self.take(value);
        true
    }
}
