//! Tests the invariants of every row of the table.

use std::collections::BTreeMap;

use super::forms::FORMS;
use super::{Class, Value};

#[test]
fn each_command_stands_once_and_each_option_in_one_class() {
    let mut seen = Vec::new();
    for form in FORMS {
        let key = (form.command, form.is_global);
        assert!(!seen.contains(&key), "{} twice", form.command);
        seen.push(key);
        let mut classes: BTreeMap<&str, Class> = BTreeMap::new();
        for (class, entry) in form.entries() {
            let name = entry.name;
            assert!(
                name.starts_with('-') && name.len() > 1,
                "{} {name}",
                form.command
            );
            let before = classes.insert(name, class);
            assert!(
                before.is_none_or(|before| before == class),
                "{} {name} in two classes",
                form.command
            );
            assert!(
                entry.value == Value::None || name != "-NUM",
                "{} {name}",
                form.command
            );
        }
    }
}

#[test]
fn a_program_whose_options_all_read_has_none_that_do_more() {
    for form in FORMS.iter().filter(|form| form.is_complete) {
        let does_more = form.entries().any(|(class, _)| class != Class::Reads);
        assert!(!does_more && form.needs.is_none(), "{}", form.command);
        assert_eq!(form.operands, super::Operands::Any, "{}", form.command);
    }
}
