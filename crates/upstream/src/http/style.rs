//! Serialization of values by the styles of OpenAPI.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::node::Node;
use crate::manifest::Style;

/// Everything but the unreserved characters of RFC 3986.
const STRICT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Reserved characters stay, but those that would end the query or the value (`#`, `&`, `;`), and those that look like an escape
/// (`%`, `+`): a value is never another pair.
const RESERVED: &AsciiSet = &STRICT
    .remove(b':')
    .remove(b'/')
    .remove(b'?')
    .remove(b'@')
    .remove(b'!')
    .remove(b'$')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b',')
    .remove(b'[')
    .remove(b']')
    .remove(b'=');

/// Escapes a text for a path, a query or a form.
pub(crate) fn escape(text: &str) -> String {
    utf8_percent_encode(text, STRICT).to_string()
}

/// Style in which one value is written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Writing {
    pub(crate) style: Style,
    pub(crate) explode: bool,
    pub(crate) allow_reserved: bool,
}

impl Writing {
    fn escape(self, text: &str) -> String {
        let set = if self.allow_reserved {
            RESERVED
        } else {
            STRICT
        };
        utf8_percent_encode(text, set).to_string()
    }

    /// The pairs of a query or a form, escaped. A null and an empty list have none.
    pub(crate) fn pairs(self, name: &str, node: &Node) -> Vec<(String, String)> {
        let key = escape(name);
        match node {
            Node::Null => Vec::new(),
            Node::Scalar(text) => vec![(key, self.escape(text))],
            Node::List(items) if items.is_empty() => Vec::new(),
            Node::Object(members) if members.is_empty() => Vec::new(),
            Node::List(_) | Node::Object(_) if self.style == Style::DeepObject => {
                let mut pairs = Vec::new();
                self.deep(&key, node, &mut pairs);
                pairs
            }
            Node::List(items) if self.explode => {
                let pair = |item: &Node| (key.clone(), self.escape(&item.text()));
                items.iter().map(pair).collect()
            }
            Node::Object(members) if self.explode => {
                let pair =
                    |(name, value): &(String, Node)| (escape(name), self.escape(&value.text()));
                members.iter().map(pair).collect()
            }
            Node::List(_) | Node::Object(_) => {
                vec![(key, self.flat(node, self.separator()))]
            }
        }
    }

    /// Between the items of a list that is one value.
    fn separator(self) -> &'static str {
        match self.style {
            Style::SpaceDelimited => "%20",
            Style::PipeDelimited => "%7C",
            Style::Form | Style::Simple | Style::Label | Style::Matrix | Style::DeepObject => ",",
        }
    }

    /// Items, or names and values in turn, with a separator between them.
    fn flat(self, node: &Node, separator: &str) -> String {
        let parts: Vec<String> = match node {
            Node::Null => Vec::new(),
            Node::Scalar(text) => vec![self.escape(text)],
            Node::List(items) => items.iter().map(|item| self.escape(&item.text())).collect(),
            Node::Object(members) => members
                .iter()
                .flat_map(|(name, value)| [self.escape(name), self.escape(&value.text())])
                .collect(),
        };
        parts.join(separator)
    }

    /// `name=value` for each member, with a separator between them.
    fn assigned(self, members: &[(String, Node)], separator: &str) -> String {
        let pair = |(name, value): &(String, Node)| {
            format!("{}={}", self.escape(name), self.escape(&value.text()))
        };
        members.iter().map(pair).collect::<Vec<_>>().join(separator)
    }

    fn deep(self, key: &str, node: &Node, pairs: &mut Vec<(String, String)>) {
        match node {
            Node::Null => {}
            Node::Scalar(text) => pairs.push((key.to_owned(), self.escape(text))),
            Node::List(items) => {
                for (at, item) in items.iter().enumerate() {
                    self.deep(&format!("{key}%5B{at}%5D"), item, pairs);
                }
            }
            Node::Object(members) => {
                for (name, value) in members {
                    self.deep(&format!("{key}%5B{}%5D", escape(name)), value, pairs);
                }
            }
        }
    }

    /// A value in a path.
    pub(crate) fn path(self, name: &str, node: &Node) -> String {
        match (self.style, node) {
            (Style::Label, Node::List(_)) if self.explode => format!(".{}", self.flat(node, ".")),
            (Style::Label, Node::Object(members)) if self.explode => {
                format!(".{}", self.assigned(members, "."))
            }
            (Style::Label, _) => format!(".{}", self.flat(node, ",")),
            (Style::Matrix, Node::List(items)) if self.explode => {
                let one = |item: &Node| format!(";{}={}", escape(name), self.escape(&item.text()));
                items.iter().map(one).collect()
            }
            (Style::Matrix, Node::Object(members)) if self.explode => {
                format!(";{}", self.assigned(members, ";"))
            }
            (Style::Matrix, Node::Scalar(text)) if text.is_empty() => format!(";{}", escape(name)),
            (Style::Matrix, _) => format!(";{}={}", escape(name), self.flat(node, ",")),
            (_, Node::Object(members)) if self.explode => self.assigned(members, ","),
            _ => self.flat(node, ","),
        }
    }

    /// A value in a header: not escaped, because headers are not.
    pub(crate) fn header(self, node: &Node) -> String {
        match node {
            Node::Object(members) if self.explode => {
                let pair = |(name, value): &(String, Node)| format!("{name}={}", value.text());
                members.iter().map(pair).collect::<Vec<_>>().join(",")
            }
            _ => node.text(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = r#"["blue","black","a b"]"#;
    const OBJECT: &str = r#"{"R":100,"G":200}"#;

    fn query(style: Style, explode: bool, json: &str) -> String {
        let writing = Writing {
            style,
            explode,
            allow_reserved: false,
        };
        let pairs = writing.pairs("color", &Node::read(json));
        let pairs: Vec<_> = pairs.iter().map(|(k, v)| format!("{k}={v}")).collect();
        pairs.join("&")
    }

    fn path(style: Style, explode: bool, json: &str) -> String {
        let writing = Writing {
            style,
            explode,
            allow_reserved: false,
        };
        writing.path("color", &Node::read(json))
    }

    /// B15: the table of the OpenAPI specification, section "Style Examples".
    #[test]
    fn values_are_written_as_openapi_says() {
        use Style::{DeepObject, Form, Label, Matrix, PipeDelimited, Simple, SpaceDelimited};
        let check = |made: &str, expected: &str| assert_eq!(made, expected);
        check(
            &query(Form, true, LIST),
            "color=blue&color=black&color=a%20b",
        );
        check(&query(Form, false, LIST), "color=blue,black,a%20b");
        check(&query(Form, true, OBJECT), "R=100&G=200");
        check(&query(Form, false, OBJECT), "color=R,100,G,200");
        check(&query(Form, true, "\"a&b=c,d\""), "color=a%26b%3Dc%2Cd");
        check(&query(Form, true, "[]"), "");
        check(&query(Form, true, "null"), "");
        check(
            &query(SpaceDelimited, false, LIST),
            "color=blue%20black%20a%20b",
        );
        check(
            &query(PipeDelimited, false, LIST),
            "color=blue%7Cblack%7Ca%20b",
        );
        check(
            &query(DeepObject, true, OBJECT),
            "color%5BR%5D=100&color%5BG%5D=200",
        );
        check(
            &query(DeepObject, true, r#"{"a":{"b":[1,{"c":"x y"}]}}"#),
            "color%5Ba%5D%5Bb%5D%5B0%5D=1&color%5Ba%5D%5Bb%5D%5B1%5D%5Bc%5D=x%20y",
        );
        check(&path(Simple, false, LIST), "blue,black,a%20b");
        check(&path(Simple, false, OBJECT), "R,100,G,200");
        check(&path(Simple, true, OBJECT), "R=100,G=200");
        check(&path(Simple, false, "\"../x?y\""), "..%2Fx%3Fy");
        check(&path(Label, false, LIST), ".blue,black,a%20b");
        check(&path(Label, true, LIST), ".blue.black.a%20b");
        check(&path(Label, true, OBJECT), ".R=100.G=200");
        check(&path(Label, false, "1"), ".1");
        check(&path(Matrix, false, LIST), ";color=blue,black,a%20b");
        check(
            &path(Matrix, true, LIST),
            ";color=blue;color=black;color=a%20b",
        );
        check(&path(Matrix, true, OBJECT), ";R=100;G=200");
        check(&path(Matrix, false, OBJECT), ";color=R,100,G,200");
    }

    /// B15: every style with every shape that OpenAPI defines for it: an empty text, a scalar, a list, an object.
    #[test]
    fn every_style_writes_every_shape() {
        use Style::{DeepObject, Form, Label, Matrix, PipeDelimited, Simple, SpaceDelimited};
        let all = |write: &dyn Fn(&str) -> String| {
            ["\"\"", "\"blue\"", r#"["blue","black"]"#, OBJECT]
                .map(write)
                .join(" | ")
        };
        let color = |texts: &str| texts.replace('~', "color");
        for (style, explode, expected) in [
            (
                Matrix,
                false,
                ";~ | ;~=blue | ;~=blue,black | ;~=R,100,G,200",
            ),
            (
                Matrix,
                true,
                ";~ | ;~=blue | ;~=blue;~=black | ;R=100;G=200",
            ),
            (Label, false, ". | .blue | .blue,black | .R,100,G,200"),
            (Label, true, ". | .blue | .blue.black | .R=100.G=200"),
            (Simple, false, " | blue | blue,black | R,100,G,200"),
            (Simple, true, " | blue | blue,black | R=100,G=200"),
        ] {
            let made = all(&|json| path(style, explode, json));
            assert_eq!(made, color(expected), "{style:?} {explode}");
        }
        for (style, explode, expected) in [
            (Form, false, "~= | ~=blue | ~=blue,black | ~=R,100,G,200"),
            (Form, true, "~= | ~=blue | ~=blue&~=black | R=100&G=200"),
            (
                SpaceDelimited,
                false,
                "~= | ~=blue | ~=blue%20black | ~=R%20100%20G%20200",
            ),
            (
                PipeDelimited,
                false,
                "~= | ~=blue | ~=blue%7Cblack | ~=R%7C100%7CG%7C200",
            ),
            (
                DeepObject,
                true,
                "~= | ~=blue | ~%5B0%5D=blue&~%5B1%5D=black | ~%5BR%5D=100&~%5BG%5D=200",
            ),
        ] {
            let made = all(&|json| query(style, explode, json));
            assert_eq!(made, color(expected), "{style:?} {explode}");
        }
        let header = |explode: bool, json: &str| {
            let writing = Writing {
                style: Simple,
                explode,
                allow_reserved: false,
            };
            writing.header(&Node::read(json))
        };
        assert_eq!(
            all(&|json| header(false, json)),
            " | blue | blue,black | R,100,G,200"
        );
        assert_eq!(
            all(&|json| header(true, json)),
            " | blue | blue,black | R=100,G=200"
        );
    }

    /// B15: reserved characters stay where the parameter says so, but never those that would end the query or the value.
    #[test]
    fn reserved_characters_stay_if_they_may() {
        let writing = |allow_reserved| Writing {
            style: Style::Form,
            explode: true,
            allow_reserved,
        };
        let node = Node::read(r#""a/b?c=d&e;h#f%20 g+""#);
        let text = |allow| writing(allow).pairs("q", &node).remove(0).1;
        assert_eq!(text(false), "a%2Fb%3Fc%3Dd%26e%3Bh%23f%2520%20g%2B");
        assert_eq!(text(true), "a/b?c=d%26e%3Bh%23f%2520%20g%2B");
    }
}
