//! The way to a value in the arguments of a call, as a key of `[tool.arguments]` names it.

/// Steps from the arguments of a call to a value: the name of an argument, and behind it members, if the value lies deeper.
///
/// A key that starts with `/` is a JSON pointer; any other key is the name of an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Way(Vec<String>);

/// The step that stands for every item of a list.
pub(crate) const EVERY_ITEM: &str = "*";

impl Way {
    /// The way that a key names.
    pub(crate) fn of(key: &str) -> Self {
        let Some(pointer) = key.strip_prefix('/') else {
            return Self(vec![key.to_owned()]);
        };
        let steps = pointer.split('/');
        Self(
            steps
                .map(|step| step.replace("~1", "/").replace("~0", "~"))
                .collect(),
        )
    }

    /// The steps; there is at least one.
    pub(crate) fn steps(&self) -> &[String] {
        &self.0
    }

    /// Name of the argument; `None` if the way leads to a member inside one.
    pub(crate) fn argument(&self) -> Option<&str> {
        match self.0.as_slice() {
            [name] => Some(name),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_a_name_or_a_pointer() {
        let check = |key: &str, expected: &[&str], argument: Option<&str>| {
            let way = Way::of(key);
            assert_eq!(way.steps(), expected, "{key}");
            assert_eq!(way.argument(), argument, "{key}");
        };
        check("sku", &["sku"], Some("sku"));
        check("a/b", &["a/b"], Some("a/b"));
        check("/sku", &["sku"], Some("sku"));
        check("/~1sku", &["/sku"], Some("/sku"));
        check("/body/ssn", &["body", "ssn"], None);
        check("/lines/*/a~0b~1c", &["lines", "*", "a~b/c"], None);
    }
}
