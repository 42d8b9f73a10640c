//! What became of what models wrote, by tool, client and model.
//!
//! The names of a model and of a client are the caller's text, so the number of names is bounded, and what does not look
//! like one is `other`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use countersign::contract::BindStatus;
use countersign::observe::Answered;

/// Maximum number of models with counters of their own.
const MODELS_MAX: usize = 64;

/// Maximum number of clients with counters of their own.
const CLIENTS_MAX: usize = 16;

/// Maximum length of a name.
const NAME_MAX: usize = 64;

/// Label of what is not known.
const UNKNOWN: &str = "unknown";

/// Label of what has no counters of its own.
const OTHER: &str = "other";

/// Number of calls by outcome, in the order of [`OUTCOMES`].
type Counts = [u64; 4];

/// Names of the outcomes.
const OUTCOMES: [&str; 4] = ["exact", "repaired", "refused", "incomplete"];

/// Tool, client and model.
type Key = (Arc<str>, Arc<str>, Arc<str>);

/// One counter: tool, client, model, outcome and number.
pub(super) type Line = (Key, &'static str, u64);

/// The counters of one model, by client and tool.
type Counters = BTreeMap<Arc<str>, BTreeMap<Arc<str>, Counts>>;

/// All counters.
#[derive(Debug, Default)]
struct All {
    clients: BTreeSet<Arc<str>>,
    models: BTreeMap<Arc<str>, Counters>,
}

/// All counters, by model.
#[derive(Debug, Default)]
pub(super) struct Bindings(Mutex<All>);

impl Bindings {
    /// Counts a call that was bound. One whose arguments were never looked at is not counted.
    pub(super) fn count(&self, answered: &Answered) {
        let (Some(status), Some(entry)) = (answered.binding.status, &answered.tool) else {
            return;
        };
        let client = answered.writer.client.as_deref().map_or(UNKNOWN, known);
        let model = answered.writer.model.as_deref().map_or(UNKNOWN, known);
        self.add(entry.name().as_str(), client, model, status);
    }

    /// Counts a text that ends inside thinking, or inside a call without a name.
    pub(super) fn count_unfinished(&self, model: Option<&str>) {
        let model = model.map_or(UNKNOWN, known);
        self.add(UNKNOWN, UNKNOWN, model, BindStatus::Incomplete);
    }

    /// Counts an outcome. Every call comes here, so nothing is searched and, for a known counter, nothing allocated.
    fn add(&self, tool: &str, client: &str, model: &str, status: BindStatus) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let All { clients, models } = &mut *all;
        let client = if let Some(client) = clients.get(client) {
            client.clone()
        } else {
            let is_full = clients.len() >= CLIENTS_MAX;
            let client: Arc<str> = Arc::from(if is_full { OTHER } else { client });
            clients.insert(client.clone());
            client
        };
        let is_full = models.len() >= MODELS_MAX && !models.contains_key(model);
        let model = if is_full { OTHER } else { model };
        if !models.contains_key(model) {
            models.insert(Arc::from(model), Counters::default());
        }
        let Some(tools) = models
            .get_mut(model)
            .map(|clients| clients.entry(client).or_default())
        else {
            return;
        };
        let place = match status {
            BindStatus::Exact => 0,
            BindStatus::Repaired => 1,
            BindStatus::Refused => 2,
            BindStatus::Incomplete => 3,
        };
        let counts = match tools.get_mut(tool) {
            Some(counts) => counts,
            None => tools.entry(Arc::from(tool)).or_default(),
        };
        if let Some(count) = counts.get_mut(place) {
            *count += 1;
        }
    }

    pub(super) fn lines(&self) -> Vec<Line> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let models = &all.models;
        let mut lines = Vec::new();
        for (model, clients) in models {
            for (client, tools) in clients {
                for (tool, counts) in tools {
                    let key = (tool.clone(), client.clone(), model.clone());
                    let outcomes = OUTCOMES.into_iter().zip(counts);
                    lines.extend(outcomes.map(|(outcome, count)| (key.clone(), outcome, *count)));
                }
            }
        }
        lines
    }
}

/// Returns a model's name, if it looks like one.
fn known(name: &str) -> &str {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "._:/@-".contains(c);
    let is_name = name.len() <= NAME_MAX && !name.is_empty() && name.chars().all(is_part);
    if is_name { name } else { OTHER }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// B19: each outcome is counted by tool, client and model.
    #[test]
    fn outcomes_are_counted_by_who_wrote_them() {
        let bindings = Bindings::default();
        bindings.add("a", "web", "m-1", BindStatus::Exact);
        bindings.add("a", "web", "m-1", BindStatus::Repaired);
        bindings.add("a", "web", "m-1", BindStatus::Repaired);
        bindings.add("a", UNKNOWN, "m-2", BindStatus::Incomplete);
        let lines = bindings.lines();
        let count = |client: &str, model: &str, outcome: &str| {
            let fits = |((_, c, m), o, _): &&Line| **c == *client && **m == *model && *o == outcome;
            lines.iter().find(fits).map(|(_, _, count)| *count)
        };
        assert_eq!(count("web", "m-1", "exact"), Some(1));
        assert_eq!(count("web", "m-1", "repaired"), Some(2));
        assert_eq!(count("web", "m-1", "refused"), Some(0));
        assert_eq!(count(UNKNOWN, "m-2", "incomplete"), Some(1));
        assert_eq!(lines.len(), 8);
    }

    /// A caller cannot fill the memory, or a label, with names that it makes up.
    #[test]
    fn names_are_bounded() {
        let bindings = Bindings::default();
        for number in 0..1_000 {
            bindings.add("a", "web", &format!("m-{number}"), BindStatus::Exact);
        }
        assert!(bindings.lines().len() <= 4 * (MODELS_MAX + 1));
        let bindings = Bindings::default();
        for number in 0..1_000 {
            bindings.add("a", &format!("c-{number}"), "m", BindStatus::Exact);
        }
        assert!(bindings.lines().len() <= 4 * (CLIENTS_MAX + 1));
        assert_eq!(known("gpt-5.1:free"), "gpt-5.1:free");
        assert_eq!(known("a \"b\""), OTHER);
        assert_eq!(known(&"x".repeat(65)), OTHER);
    }
}
