//! Describes the attributes of users and groups once, for the schemas that clients read, for bodies and for
//! patches.
//!
//! Attributes that are not listed here are not kept.

use serde_json::{Map, Value, json};

use super::{ScimType, invalid};
use crate::gateway::error::ApiError;

/// The longest text of an attribute, in characters.
const MAX_CHARS: usize = 255;

/// The most values of a person's attribute.
const MOST_VALUES: usize = 20;

const URN_USER: &str = "urn:ietf:params:scim:schemas:core:2.0:User";
const URN_GROUP: &str = "urn:ietf:params:scim:schemas:core:2.0:Group";

/// The kind of an attribute's value.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Text,
    Flag,
    /// An address of this door.
    Reference,
    Complex(&'static [Attribute]),
}

/// An attribute of a user or group.
#[derive(Debug, Clone, Copy)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "the characteristics of the standard"
)]
pub(super) struct Attribute {
    pub(super) name: &'static str,
    about: &'static str,
    pub(super) kind: Kind,
    pub(super) is_many: bool,
    pub(super) is_required: bool,
    /// True if upper and lower case differ.
    is_exact: bool,
    pub(super) is_read_only: bool,
}

const fn text(name: &'static str, about: &'static str) -> Attribute {
    Attribute {
        name,
        about,
        kind: Kind::Text,
        is_many: false,
        is_required: false,
        is_exact: false,
        is_read_only: false,
    }
}

const fn required(attribute: Attribute) -> Attribute {
    Attribute {
        is_required: true,
        ..attribute
    }
}

const fn exact(attribute: Attribute) -> Attribute {
    Attribute {
        is_exact: true,
        ..attribute
    }
}

const fn read_only(attribute: Attribute) -> Attribute {
    Attribute {
        is_read_only: true,
        ..attribute
    }
}

const fn of_kind(kind: Kind, attribute: Attribute) -> Attribute {
    Attribute { kind, ..attribute }
}

const fn many(parts: &'static [Attribute], attribute: Attribute) -> Attribute {
    Attribute {
        kind: Kind::Complex(parts),
        is_many: true,
        ..attribute
    }
}

/// A kind of resource.
pub(super) struct Schema {
    pub(super) id: &'static str,
    pub(super) name: &'static str,
    about: &'static str,
    pub(super) endpoint: &'static str,
    pub(super) attributes: &'static [Attribute],
    /// Attributes of the standard that are not kept: clients may send them.
    ignored: &'static [&'static str],
    /// The most values of an attribute.
    most_values: usize,
}

/// The directory's own id, which every resource has.
const EXTERNAL_ID: Attribute = exact(text("externalId", "The directory's own id of it."));

pub(super) static USER: Schema = Schema {
    id: URN_USER,
    name: "User",
    about: "A person of the tenant.",
    endpoint: "/Users",
    attributes: &[
        EXTERNAL_ID,
        required(text(
            "userName",
            "The name in the directory, unique in the tenant.",
        )),
        of_kind(
            Kind::Complex(&[
                text("formatted", "The whole name."),
                text("familyName", "The family name."),
                text("givenName", "The given name."),
            ]),
            text("name", "The parts of the person's name."),
        ),
        text("displayName", "The name for display."),
        // It always has a value; a client that names none makes an active person.
        required(of_kind(
            Kind::Flag,
            text("active", "Whether the person may enter."),
        )),
        many(
            &[
                text("value", "The address."),
                text("type", "The use of the address, such as `work`."),
                of_kind(
                    Kind::Flag,
                    text("primary", "Whether it is the preferred one."),
                ),
            ],
            text("emails", "The person's mail addresses."),
        ),
        read_only(many(
            &[
                read_only(exact(text("value", "The id of the group."))),
                read_only(exact(of_kind(
                    Kind::Reference,
                    text("$ref", "The address of the group."),
                ))),
                read_only(text("display", "The name of the group.")),
            ],
            text("groups", "The groups of which the person is a member."),
        )),
    ],
    ignored: &[
        "addresses",
        "entitlements",
        "ims",
        "locale",
        "nickName",
        "password",
        "phoneNumbers",
        "photos",
        "preferredLanguage",
        "profileUrl",
        "roles",
        "timezone",
        "title",
        "userType",
        "x509Certificates",
    ],
    most_values: MOST_VALUES,
};

pub(super) static GROUP: Schema = Schema {
    id: URN_GROUP,
    name: "Group",
    about: "A group of people of the tenant.",
    endpoint: "/Groups",
    attributes: &[
        EXTERNAL_ID,
        required(text(
            "displayName",
            "The name of the group, unique in the tenant.",
        )),
        many(
            &[
                exact(text("value", "The id of the person.")),
                // Clients may say it beside the id, which alone counts.
                exact(of_kind(
                    Kind::Reference,
                    text("$ref", "The address of the person."),
                )),
            ],
            text("members", "The members of the group."),
        ),
    ],
    ignored: &[],
    most_values: 100_000,
};

impl Schema {
    /// The attribute of this name, in upper or lower case.
    pub(super) fn find(&self, name: &str) -> Option<&'static Attribute> {
        find(self.attributes, name)
    }

    /// True for attributes that a client may send and that are not kept.
    pub(super) fn is_ignored(&self, name: &str) -> bool {
        let mut names = self.ignored.iter();
        names.any(|known| known.eq_ignore_ascii_case(name))
    }

    /// Reads what a client sent: the attributes that are kept, by their proper names. Leaves out what only the
    /// server sets.
    pub(super) fn read(&self, body: &Value) -> Result<Map<String, Value>, ApiError> {
        let Value::Object(members) = body else {
            return Err(invalid(
                ScimType::InvalidSyntax,
                "the body has to be a JSON object",
            ));
        };
        let mut read = Map::new();
        for (name, value) in members {
            // The names of other schemas have colons.
            let name = strip_urn(self.id, name);
            let Some(attribute) = self.find(name) else {
                continue;
            };
            if attribute.is_read_only {
                continue;
            }
            if let Some(value) = self.value_of(attribute, value)? {
                read.insert(attribute.name.to_owned(), value);
            }
        }
        Ok(read)
    }

    /// Checks that the required attributes are there.
    pub(super) fn check_required(&self, read: &Map<String, Value>) -> Result<(), ApiError> {
        for attribute in self.attributes.iter().filter(|it| it.is_required) {
            let is_optional = attribute.name == "active";
            if !is_optional && !read.contains_key(attribute.name) {
                let text = format!("`{}` is missing", attribute.name);
                return Err(invalid(ScimType::InvalidValue, text));
            }
        }
        Ok(())
    }

    /// Reads the value of an attribute; `None` if it is unassigned.
    pub(super) fn value_of(
        &self,
        attribute: &'static Attribute,
        value: &Value,
    ) -> Result<Option<Value>, ApiError> {
        if !attribute.is_many {
            return one_of(attribute, value);
        }
        if value.is_null() {
            return Ok(None);
        }
        let values = value.as_array();
        let values = values.map_or(std::slice::from_ref(value), Vec::as_slice);
        if values.len() > self.most_values {
            let text = format!(
                "`{}` has more than {} values",
                attribute.name, self.most_values
            );
            return Err(invalid(ScimType::TooMany, text));
        }
        let mut read = Vec::with_capacity(values.len());
        for value in values {
            // Some clients send the bare value.
            let bare = value.as_str().map(|text| json!({ "value": text }));
            read.extend(one_of(attribute, bare.as_ref().unwrap_or(value))?);
        }
        if read.is_empty() {
            return Ok(None);
        }
        Ok(Some(Value::Array(read)))
    }

    /// The schema as clients read it.
    pub(super) fn to_json(&self, base: &str) -> Value {
        let described = self
            .attributes
            .iter()
            .filter(|it| it.name != EXTERNAL_ID.name);
        json!({
            "schemas": ["urn:ietf:params:scim:schemas:core:2.0:Schema"],
            "id": self.id,
            "name": self.name,
            "description": self.about,
            "attributes": described.map(|it| describe(it, self)).collect::<Vec<_>>(),
            "meta": { "resourceType": "Schema", "location": format!("{base}/Schemas/{}", self.id) },
        })
    }

    /// The type of resource as clients read it.
    pub(super) fn resource_type(&self, base: &str) -> Value {
        json!({
            "schemas": ["urn:ietf:params:scim:schemas:core:2.0:ResourceType"],
            "id": self.name,
            "name": self.name,
            "description": self.about,
            "endpoint": self.endpoint,
            "schema": self.id,
            "meta": {
                "resourceType": "ResourceType",
                "location": format!("{base}/ResourceTypes/{}", self.name),
            },
        })
    }
}

/// The part of an attribute's name after the schema's own.
pub(super) fn strip_urn<'t>(urn: &str, name: &'t str) -> &'t str {
    match name.split_at_checked(urn.len()) {
        Some((start, rest)) if start.eq_ignore_ascii_case(urn) => {
            rest.strip_prefix(':').unwrap_or(name)
        }
        _ => name,
    }
}

/// The attribute of this name, in upper or lower case.
pub(super) fn find(attributes: &'static [Attribute], name: &str) -> Option<&'static Attribute> {
    let mut attributes = attributes.iter();
    attributes.find(|attribute| attribute.name.eq_ignore_ascii_case(name))
}

/// Reads one value.
pub(super) fn one_of(
    attribute: &'static Attribute,
    value: &Value,
) -> Result<Option<Value>, ApiError> {
    let wrong = |what: &str| {
        let text = format!("`{}` has to be {what}", attribute.name);
        invalid(ScimType::InvalidValue, text)
    };
    match (attribute.kind, value) {
        (_, Value::Null) => Ok(None),
        (Kind::Text | Kind::Reference, Value::String(text)) => {
            if text.chars().count() > MAX_CHARS || text.chars().any(char::is_control) {
                return Err(wrong("at most 255 characters without control characters"));
            }
            Ok(Some(value.clone()))
        }
        (Kind::Text | Kind::Reference, _) => Err(wrong("a text")),
        (Kind::Flag, Value::Bool(_)) => Ok(Some(value.clone())),
        // Entra writes booleans as texts.
        (Kind::Flag, Value::String(text)) if text.eq_ignore_ascii_case("true") => {
            Ok(Some(Value::Bool(true)))
        }
        (Kind::Flag, Value::String(text)) if text.eq_ignore_ascii_case("false") => {
            Ok(Some(Value::Bool(false)))
        }
        (Kind::Flag, _) => Err(wrong("`true` or `false`")),
        (Kind::Complex(parts), Value::Object(members)) => {
            let mut read = Map::new();
            for (name, value) in members {
                let Some(part) = find(parts, name) else {
                    continue;
                };
                if part.is_read_only {
                    continue;
                }
                if let Some(value) = one_of(part, value)? {
                    read.insert(part.name.to_owned(), value);
                }
            }
            Ok((!read.is_empty()).then_some(Value::Object(read)))
        }
        (Kind::Complex(_), _) => Err(wrong("an object")),
    }
}

fn describe(attribute: &Attribute, schema: &Schema) -> Value {
    let kind = match attribute.kind {
        Kind::Text => "string",
        Kind::Flag => "boolean",
        Kind::Reference => "reference",
        Kind::Complex(_) => "complex",
    };
    let is_unique = attribute.is_required && matches!(attribute.kind, Kind::Text);
    let mut described = json!({
        "name": attribute.name,
        "type": kind,
        "multiValued": attribute.is_many,
        "description": attribute.about,
        "required": attribute.is_required,
        "caseExact": attribute.is_exact,
        "mutability": if attribute.is_read_only { "readOnly" } else { "readWrite" },
        "returned": "default",
        "uniqueness": if is_unique { "server" } else { "none" },
    });
    let Some(members) = described.as_object_mut() else {
        return described;
    };
    if let Kind::Complex(parts) = attribute.kind {
        let parts: Vec<Value> = parts.iter().map(|part| describe(part, schema)).collect();
        members.insert("subAttributes".to_owned(), Value::Array(parts));
    }
    if matches!(attribute.kind, Kind::Reference) {
        let target = if schema.name == "Group" {
            "User"
        } else {
            "Group"
        };
        members.insert("referenceTypes".to_owned(), json!([target]));
    }
    described
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{GROUP, USER};

    #[test]
    fn a_body_keeps_what_is_known_in_its_proper_form() {
        let body = json!({
            "schemas": ["x"], "id": "mine", "USERNAME": "ann", "Active": "False", "title": "Chief",
            "name": { "GivenName": "Ann", "middleName": "B." }, "displayName": null,
            "emails": [{ "value": "a@b.c", "primary": "True", "display": "x" }],
            "urn:ietf:params:scim:schemas:core:2.0:User:externalId": "7",
            "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User": { "department": "X" },
            "groups": [{ "value": "grp_1" }],
        });
        let read = USER.read(&body).unwrap();
        let expected = json!({
            "userName": "ann", "active": false, "name": { "givenName": "Ann" }, "externalId": "7",
            "emails": [{ "value": "a@b.c", "primary": true }],
        });
        assert_eq!(Value::Object(read), expected);
    }

    #[test]
    fn a_wrong_value_is_refused() {
        for body in [
            json!([]),
            json!({ "userName": 7 }),
            json!({ "active": "perhaps" }),
            json!({ "active": 1 }),
            json!({ "name": "Ann" }),
            json!({ "displayName": "x".repeat(256) }),
            json!({ "displayName": "a\u{0}b" }),
            json!({ "emails": vec![json!({ "value": "x" }); 21] }),
        ] {
            assert!(USER.read(&body).is_err(), "{body}");
        }
        assert!(USER.check_required(&serde_json::Map::new()).is_err());
        assert!(GROUP.read(&json!({ "members": 7 })).is_err());
    }
}
