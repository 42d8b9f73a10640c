//! `countersign keys list`.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::shelf::in_store;
use crate::answer::write_table;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::operations::Operation;
use crate::place::Place;
use crate::table::Table;
use crate::terminal::Terminal;

/// List API keys, without their secrets
#[derive(Debug, clap::Args, Serialize, Deserialize)]
pub(crate) struct List {}

impl Operation for List {
    const NAME: &'static str = "keys.list";

    fn perform(&self, place: &Place, terminal: &mut Terminal) -> Result<Exit, Failure> {
        let listed = in_store(place, async |keys, by| {
            let listed = keys.list(&by).await?;
            let state = |key| json!({"state": keys.state_of(key)});
            let with_state = listed.iter().map(|key| merged(json!(key), state(key)));
            Ok(json!({"keys": with_state.collect::<Vec<Value>>()}))
        })?;
        let keys = listed.get("keys").and_then(Value::as_array);
        let keys = keys.cloned().unwrap_or_default();
        let mut table = Table::new([
            "KEY", "STATE", "HOLDER", "FOR", "SCOPES", "EFFECTS", "EXPIRES", "LABEL",
        ]);
        for key in &keys {
            let text = |pointer: &str| key.pointer(pointer).and_then(Value::as_str);
            let (scopes, effects) = (texts(key, "scopes"), texts(key, "effects"));
            let effects = if effects.is_empty() {
                "any".to_owned()
            } else {
                effects.join(" ")
            };
            let kind = text("/actor/type").unwrap_or_default();
            let holder = format!("{kind} {}", text("/actor/id").unwrap_or_default());
            let may_others = key.get("acts_for_others") == Some(&Value::Bool(true));
            let nobody = if may_others {
                "(each call names one)"
            } else {
                ""
            };
            table.row([
                text("/id").unwrap_or_default(),
                text("/state").unwrap_or_default(),
                &holder,
                text("/user_id").unwrap_or(nobody),
                &scopes.join(" "),
                &effects,
                text("/expires_at").unwrap_or_default(),
                text("/label").unwrap_or_default(),
            ]);
        }
        write_table(terminal, &keys, table, "no API keys")?;
        Ok(Exit::Ok)
    }
}

/// The texts in a member that is a list of them.
fn texts<'a>(key: &'a Value, member: &str) -> Vec<&'a str> {
    let list = key.get(member).and_then(Value::as_array);
    list.into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

/// An object with the members of another.
fn merged(mut object: Value, more: Value) -> Value {
    if let (Some(members), Value::Object(more)) = (object.as_object_mut(), more) {
        members.extend(more);
    }
    object
}
