//! Values that the operator sets: no caller sends them, and they are filled in before a call is made.

use std::collections::BTreeMap;

use countersign::{CallContext, ToolError};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::http::node::Members;
use crate::http::owned::is_same_name;
use crate::manifest::{ArgumentEntry, CallMember, EVERY_ITEM, Way};
use crate::words::Say;

/// The arguments of a tool, and members of them, that only the operator sets.
#[derive(Debug, Default)]
pub(crate) struct Presets(Vec<Preset>);

#[derive(Debug)]
struct Preset {
    way: Way,
    value: Option<Value>,
    from_call: Option<CallMember>,
}

impl Presets {
    /// Presets of an entry's arguments: whole arguments first, because members are set inside them.
    pub(crate) fn of(arguments: &BTreeMap<String, ArgumentEntry>) -> Self {
        let hidden = arguments.iter().filter(|(_, own)| own.is_hidden());
        let presets = hidden.map(|(key, own)| Preset {
            way: Way::of(key),
            value: own.preset.clone(),
            from_call: own.from_call,
        });
        let (whole, members): (Vec<_>, Vec<_>) =
            presets.partition(|own| own.way.argument().is_some());
        Self(whole.into_iter().chain(members).collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Fills the values in. A call that sends one of them is refused: the binder knows no such argument, but a schema that takes any member
    /// would let it pass.
    pub(crate) fn fill(
        &self,
        ctx: &CallContext,
        values: &mut Vec<(String, Box<RawValue>)>,
    ) -> Result<(), ToolError> {
        for Preset {
            way,
            value,
            from_call,
        } in &self.0
        {
            let value = value.as_ref().map(ToString::to_string);
            let of_call = from_call.and_then(|member| of_call(ctx, member));
            let of_call = of_call.map(|text| Value::from(text).to_string());
            let value = value
                .or(of_call)
                .and_then(|text| RawValue::from_string(text).ok());
            let filling = Filling {
                value: value.as_deref(),
                name: way.steps().last().map_or("", String::as_str),
            };
            filling.set(values, way.steps(), "")?;
        }
        Ok(())
    }
}

/// The members of an object, as JSON text.
pub(crate) fn object(members: &[(String, Box<RawValue>)]) -> String {
    let member = |(name, value): &(String, Box<RawValue>)| {
        format!("{}:{}", Value::from(name.as_str()), value.get())
    };
    let members: Vec<_> = members.iter().map(member).collect();
    format!("{{{}}}", members.join(","))
}

/// One value on its way to its place. The text of everything beside it stays as it is: no number goes through a double.
struct Filling<'v> {
    /// `None` if nothing is set, and the member only must not be sent.
    value: Option<&'v RawValue>,
    /// Last step of the way.
    name: &'v str,
}

impl Filling<'_> {
    /// Sets the value below an object, whose pointer is `at`. Objects on the way that the call leaves out are made.
    fn set(
        &self,
        members: &mut Vec<(String, Box<RawValue>)>,
        steps: &[String],
        at: &str,
    ) -> Result<(), ToolError> {
        let Some((step, rest)) = steps.split_first() else {
            return Ok(());
        };
        let is_argument = at.is_empty();
        for (sent, _) in members.iter() {
            // Services ignore case. Whole arguments are compared where their names in the request are known.
            let is_taken = sent != step && !is_argument && is_same_name(sent, step);
            if (sent == step && rest.is_empty()) || is_taken {
                return Err(refused(&below(at, sent), sent));
            }
        }
        let place = below(at, step);
        match members.iter_mut().find(|(sent, _)| sent == step) {
            Some((_, value)) => *value = self.inside(value, rest, &place)?,
            None => {
                if let Some(made) = self.made(rest) {
                    members.push((step.clone(), made));
                }
            }
        }
        Ok(())
    }

    /// A value with the preset inside it.
    fn inside(
        &self,
        value: &RawValue,
        steps: &[String],
        at: &str,
    ) -> Result<Box<RawValue>, ToolError> {
        let text = value.get();
        let first = text.trim_ascii_start().as_bytes().first();
        let is_of_items = steps.first().is_some_and(|step| step == EVERY_ITEM);
        match first {
            Some(b'{') => {
                let Members(mut members) = serde_json::from_str(text).unwrap_or_default();
                self.set(&mut members, steps, at)?;
                Ok(raw(object(&members)).unwrap_or_else(|| value.to_owned()))
            }
            Some(b'[') if is_of_items => {
                let items: Vec<&RawValue> = serde_json::from_str(text).unwrap_or_default();
                let rest = steps.get(1..).unwrap_or_default();
                let items = items.iter().enumerate().map(|(index, item)| {
                    let item = self.inside(item, rest, &below(at, &index.to_string()))?;
                    Ok(item.get().to_owned())
                });
                let items = items.collect::<Result<Vec<_>, ToolError>>()?;
                let written = raw(format!("[{}]", items.join(",")));
                Ok(written.unwrap_or_else(|| value.to_owned()))
            }
            // Null is an object that was left out.
            Some(b'n') => Ok(self.made(steps).unwrap_or_else(|| value.to_owned())),
            // There is no such member in it, and the operator sets none.
            Some(_) | None if self.value.is_none() => Ok(value.to_owned()),
            Some(_) | None => {
                let say = Say::NotAnObject {
                    argument: at.to_owned(),
                    name: self.name.to_owned(),
                };
                Err(ToolError::invalid(at, say).without_effect())
            }
        }
    }

    /// The value, in objects of its own; `None` if nothing is set, or only in items of a list, of which there are none.
    fn made(&self, steps: &[String]) -> Option<Box<RawValue>> {
        let value = self.value?.get().to_owned();
        if steps.iter().any(|step| step == EVERY_ITEM) {
            return None;
        }
        let written = steps.iter().rev().fold(value, |inner, step| {
            format!("{{{}:{inner}}}", Value::from(step.as_str()))
        });
        raw(written)
    }
}

fn refused(at: &str, sent: &str) -> ToolError {
    let argument = sent.to_owned();
    ToolError::invalid(at, Say::HiddenArgument { argument }).without_effect()
}

fn raw(json: String) -> Option<Box<RawValue>> {
    RawValue::from_string(json).ok()
}

/// The JSON pointer of a member.
fn below(at: &str, name: &str) -> String {
    format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"))
}

fn of_call(ctx: &CallContext, member: CallMember) -> Option<String> {
    let request = ctx.request();
    match member {
        CallMember::UserId => Some(request.user_id.clone()),
        CallMember::ActorId => Some(request.actor.id.clone()),
        CallMember::RequestId => Some(request.request_id.to_string()),
        CallMember::SessionId => request.session_id.clone(),
        CallMember::Locale => request.locale.clone(),
        CallMember::Currency => request.currency.clone(),
        CallMember::Timezone => request.timezone.clone(),
        CallMember::IdempotencyKey => ctx.downstream_key().map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Arguments with a value at a key; the error names the place.
    fn filled(arguments: &str, key: &str, value: Option<&str>) -> Result<String, String> {
        let Members(mut members) = serde_json::from_str(arguments).unwrap();
        let value = value.map(|text| RawValue::from_string(text.to_owned()).unwrap());
        let way = Way::of(key);
        let filling = Filling {
            value: value.as_deref(),
            name: "it",
        };
        let set = filling.set(&mut members, way.steps(), "");
        match set {
            Ok(()) => Ok(object(&members)),
            Err(error) => Err(error.body().details.field.clone().unwrap_or_default()),
        }
    }

    /// B14: a value of the operator's is set wherever its way leads, and what a caller writes there is refused.
    #[test]
    fn values_are_set_inside_arguments() {
        let check = |arguments: &str, key: &str, expected: &str| {
            let made = filled(arguments, key, Some("1"));
            assert_eq!(made.as_deref(), Ok(expected), "{arguments} {key}");
        };
        check("{}", "a", r#"{"a":1}"#);
        check("{}", "/a/b", r#"{"a":{"b":1}}"#);
        check(r#"{"a":null}"#, "/a/b", r#"{"a":{"b":1}}"#);
        check(r#"{"a":{"c":1.10}}"#, "/a/b", r#"{"a":{"c":1.10,"b":1}}"#);
        check(r#"{"a":{"b":{}}}"#, "/a/b/c", r#"{"a":{"b":{"c":1}}}"#);
        check(
            r#"{"a":[{},{"c":2}]}"#,
            "/a/*/b",
            r#"{"a":[{"b":1},{"c":2,"b":1}]}"#,
        );
        check("{}", "/a/*/b", "{}");
        check(r#"{"A":1}"#, "a", r#"{"A":1,"a":1}"#);
    }

    #[test]
    fn a_caller_sets_none_of_them() {
        let check = |arguments: &str, key: &str, value: Option<&str>, at: &str| {
            let refused = filled(arguments, key, value);
            assert_eq!(refused, Err(at.to_owned()), "{arguments} {key}");
        };
        for value in [Some("1"), None] {
            check(r#"{"a":2}"#, "a", value, "/a");
            check(r#"{"a":{"b":2}}"#, "/a/b", value, "/a/b");
            check(r#"{"a":{"b":null}}"#, "/a/b", value, "/a/b");
            check(r#"{"a":{"B":2}}"#, "/a/b", value, "/a/B");
            check(r#"{"a":{"B":{}}}"#, "/a/b/c", value, "/a/B");
            check(r#"{"a":[{},{"b":2}]}"#, "/a/*/b", value, "/a/1/b");
        }
        check(r#"{"a":"text"}"#, "/a/b", Some("1"), "/a");
        check(r#"{"a":[1]}"#, "/a/*/b", Some("1"), "/a/0");
        for untouched in [r#"{"a":"text"}"#, r#"{"a":[1]}"#, r#"{"a":null}"#, "{}"] {
            let made = filled(untouched, "/a/b", None);
            assert_eq!(made.as_deref(), Ok(untouched));
        }
    }
}
