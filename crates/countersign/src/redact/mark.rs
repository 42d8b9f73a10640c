//! Marks: texts in the place of values that are not shown.

use serde_json::Value;

/// Chooses what stands for a sensitive value.
pub(crate) trait Mark {
    /// Returns the text for a value of this kind. A value may be marked twice: the second time it is the text of the first.
    fn mark(&mut self, kind: &str, value: &Value) -> String;
}

/// The kind alone: equal and different values look alike.
pub(super) struct Label;

impl Mark for Label {
    fn mark(&mut self, kind: &str, _: &Value) -> String {
        format!("[{kind}]")
    }
}
