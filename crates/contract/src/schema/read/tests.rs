//! Schemas that are made from parameters are read back exactly; foreign schemas are read as far as possible.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::schema::of_parameters;

fn cardinality() -> impl Strategy<Value = Cardinality> {
    (0..4, any::<bool>()).prop_map(|(which, required)| match which {
        0 => Cardinality::One,
        1 => Cardinality::Optional,
        2 => Cardinality::List { required },
        _ => Cardinality::Map { required },
    })
}

/// A kind with what only this kind has.
fn typed() -> impl Strategy<Value = Parameter> {
    let kinds = prop::sample::select(ValueKind::ALL.to_vec());
    (kinds, any::<bool>(), 0..9_u64).prop_map(|(kind, bounded, limit)| {
        let mut parameter = Parameter::new("", kind, "");
        let bounds = &mut parameter.bounds;
        match kind {
            ValueKind::Integer | ValueKind::Number if bounded => {
                bounds.minimum = Some(limit.into());
                bounds.maximum = Some((limit + 9).into());
            }
            ValueKind::String if bounded => {
                bounds.min_length = Some(limit);
                bounds.max_length = Some(limit + 9);
                bounds.pattern = Some("^a".into());
            }
            ValueKind::EnumToken => {
                parameter.allowed = Some(AllowedValues {
                    values: vec!["red".into(), "green".into()],
                    case: if bounded {
                        CaseRule::Exact
                    } else {
                        CaseRule::Fold
                    },
                    aliases: if bounded {
                        vec![("red".into(), "r".into())]
                    } else {
                        vec![]
                    },
                });
            }
            _ => parameter.truncate = bounded && kind == ValueKind::Integer,
        }
        parameter
    })
}

fn parameter() -> impl Strategy<Value = Parameter> {
    let sensitivity = prop::sample::select(vec![
        Sensitivity::Public,
        Sensitivity::Personal,
        Sensitivity::Secret,
    ]);
    let leniency =
        prop::sample::select(vec![None, Some(Leniency::Lenient), Some(Leniency::Strict)]);
    let value = prop::option::of((0..9_i64).prop_map(Value::from));
    let names = prop::collection::vec("[a-z]{1,3}", 0..2);
    let rest = (
        cardinality(),
        "[a-z ]{0,9}",
        value.clone(),
        value,
        names,
        sensitivity,
        leniency,
        prop::option::of(Just(OnOptionalError::Tell)),
    );
    (typed(), rest).prop_map(|(mut parameter, rest)| {
        let (cardinality, description, default, example, aliases, sensitivity, leniency, told) =
            rest;
        if matches!(cardinality, Cardinality::List { .. }) {
            parameter.bounds.max_items = Some(7);
        }
        Parameter {
            cardinality,
            description,
            default,
            example,
            aliases,
            sensitivity,
            leniency,
            on_optional_error: told.filter(|_| !cardinality.is_required()),
            ..parameter
        }
    })
}

/// Parameters with different names, in the order that a map of them has.
fn named(parameters: Vec<Parameter>) -> Vec<Parameter> {
    let name = |(at, parameter)| Parameter {
        name: format!("p{at}"),
        ..parameter
    };
    parameters.into_iter().enumerate().map(name).collect()
}

fn parameters() -> impl Strategy<Value = Vec<Parameter>> {
    let flat = || prop::collection::vec(parameter(), 0..4).prop_map(named);
    prop::collection::vec((parameter(), flat()), 0..4).prop_map(|list| {
        let nested = list
            .into_iter()
            .map(|(parameter, fields)| match parameter.kind {
                ValueKind::Object => parameter.fields(fields),
                _ => parameter,
            });
        named(nested.collect())
    })
}

proptest! {
    /// B18: the schema says all that the declaration says.
    #[test]
    fn the_schema_of_parameters_is_read_back(parameters in parameters()) {
        prop_assert_eq!(to_parameters(&of_parameters(&parameters)), parameters);
    }
}

#[track_caller]
fn check(node: &Value, expected: &Parameter) {
    let schema = json!({
        "type": "object",
        "properties": {"p": node},
        "required": ["p"],
        "$defs": {"Money": {"type": "string", "pattern": "^[0-9.]+$", "description": "an amount"}},
    });
    assert_eq!(to_parameters(&schema), std::slice::from_ref(expected));
}

#[test]
fn foreign_schemas_are_read_as_far_as_they_go() {
    let p = |kind| Parameter::new("p", kind, "");
    check(
        &json!({"type": ["null", "integer"]}),
        &p(ValueKind::Integer),
    );
    check(
        &json!({"type": "string", "format": "date-time"}),
        &p(ValueKind::Timestamp),
    );
    check(
        &json!({"type": "string", "format": "uri"}),
        &p(ValueKind::Uri),
    );
    check(&json!({"type": "array"}), &p(ValueKind::Array));
    check(&json!({"type": "object"}), &p(ValueKind::Object));
    check(&json!({}), &p(ValueKind::String));
    check(&json!(true), &p(ValueKind::String));
    check(
        &json!({"anyOf": [{"type": "number"}, {"type": "null"}]}),
        &p(ValueKind::Number),
    );
    check(
        &json!({"type": "object", "additionalProperties": {"type": "boolean"}}),
        &p(ValueKind::Boolean).map(),
    );
    check(
        &json!({"enum": ["a", "b"]}),
        &Parameter::one_of("p", ["a", "b"], ""),
    );
    check(&json!({"type": "string", "const": "a"}), &{
        let mut parameter = Parameter::one_of("p", ["a"], "");
        parameter.kind = ValueKind::String;
        parameter
    });
}

/// Keywords beside a reference take precedence over those of the schema that it refers to.
#[test]
fn references_are_followed() {
    let mut money = Parameter::new("p", ValueKind::String, "the total");
    money.bounds.pattern = Some("^[0-9.]+$".into());
    check(
        &json!({"$ref": "#/$defs/Money", "description": "the total"}),
        &money,
    );
    check(
        &json!({"allOf": [{"$ref": "#/$defs/Money"}], "description": "the total"}),
        &money,
    );
    check(
        &json!({"type": "array", "items": {"$ref": "#/$defs/Money"}, "description": "the total"}),
        &money.list(),
    );
}

/// A schema may refer to itself; the reading ends.
#[test]
fn a_schema_that_refers_to_itself_ends() {
    let tree = json!({
        "type": "object",
        "properties": {
            "child": {"$ref": "#"},
            "loop": {"$ref": "#/properties/loop"},
            "gone": {"$ref": "#/nowhere"},
        },
    });
    let mut parameters = to_parameters(&tree);
    let mut levels = 0;
    while let Some(child) = parameters.into_iter().find(|p| p.name == "child") {
        levels += 1;
        parameters = child.fields;
    }
    assert_eq!(levels, DEPTH_MAX + 1);
}
