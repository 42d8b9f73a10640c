//! Stamps by which the record of a call names what its commit has spent, so that `verify` names a pot that was refilled behind the back of the program.

use countersign_contract::EvidenceRecord;
use countersign_evidence::seal::UserKey;
use serde_json::{Map, Value, json};

use crate::ledger::PotKey;

/// Members of `act` with the amounts that a commit has spent from pots of its user, and from pots of no user.
const SPENDS: &str = "spends";
const SPENDS_SHARED: &str = "spends_shared";

/// An amount that a commit spends from a pot, as its record names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Spent {
    /// Pseudonym of the pot, under the key of its owner.
    pub(crate) pot: String,
    /// Length of the pot's window in seconds; 0 if there is only one.
    pub(crate) window_seconds: u64,
    /// Least amount by which the pot is charged; below zero it is a refund.
    pub(crate) amount: i64,
    /// True if the pot belongs to no user.
    pub(crate) is_shared: bool,
}

/// Derives the pseudonym of a pot from the key of its owner.
pub(crate) fn pseudonym(keys: &UserKey, pot: &PotKey) -> String {
    let PotKey {
        user_id: _,
        name,
        holder,
        currency,
        window_seconds,
    } = pot;
    let window = window_seconds.to_string();
    let id = [name, holder, currency, &window].map(String::as_str);
    keys.document("$pot", &id.join("\0"))
}

/// Adds stamps to the member `act` of a record.
pub(crate) fn stamped(act: Value, spent: &[Spent]) -> Value {
    if spent.is_empty() {
        return act;
    }
    let mut members = match act {
        Value::Object(members) => members,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Map::new()
        }
    };
    for (name, is_shared) in [(SPENDS, false), (SPENDS_SHARED, true)] {
        let named = spent.iter().filter(|spent| spent.is_shared == is_shared);
        let named = named.map(|spent| {
            let charged = json!([spent.amount, spent.window_seconds]);
            (spent.pot.clone(), charged)
        });
        let named: Map<String, Value> = named.collect();
        if !named.is_empty() {
            members.insert(name.to_owned(), Value::Object(named));
        }
    }
    Value::Object(members)
}

/// Reads the stamps of a record.
pub(crate) fn stamps(record: &EvidenceRecord) -> Vec<Spent> {
    let mut stamps = Vec::new();
    for (member, is_shared) in [(SPENDS, false), (SPENDS_SHARED, true)] {
        let Some(Value::Object(named)) = record.act.get(member) else {
            continue;
        };
        stamps.extend(named.iter().filter_map(|(pot, charged)| {
            Some(Spent {
                pot: pot.clone(),
                amount: charged.get(0)?.as_i64()?,
                window_seconds: charged.get(1)?.as_u64()?,
                is_shared,
            })
        }));
    }
    stamps
}
