//! What happened, for whoever reads it: events become issues with a path, an excerpt of what came,
//! what it became, what was expected and one sentence.

use countersign_contract::parameter::Sensitivity;
use countersign_contract::{Issue, IssueCode, Severity};
use serde_json::Value;

use crate::coerce::trail::{Event, Step, Trail, TrailId};
use crate::limits::Limits;
use crate::schema::{Schema, SchemaId};
use crate::tolerant::SyntaxEvent;
use crate::tree::{Kind, NodeId, Span, Tree};

/// The longest excerpt of the raw text.
const EXCERPT_BYTES_MAX: usize = 200;

/// Collects issues up to the limit, then counts.
pub(crate) struct Report<'p> {
    raw: &'p str,
    limits: &'p Limits,
    issues: Vec<Issue>,
    left_out: usize,
    /// Whether the excerpts may quote the text: not where a declared parameter is sensitive.
    quotes: bool,
}

impl<'p> Report<'p> {
    pub(crate) fn new(raw: &'p str, schema: &Schema, limits: &'p Limits) -> Self {
        // Syntax events stand anywhere in the text, so one sensitive parameter silences them all.
        Self {
            raw,
            limits,
            issues: Vec::new(),
            left_out: 0,
            quotes: !schema.has_sensitive(),
        }
    }

    /// Lists an issue; where the list is full, it takes the place of a lesser one. The gravest is
    /// therefore always listed.
    pub(crate) fn add(&mut self, issue: Issue) {
        if self.makes_room(issue.severity) {
            self.push(issue);
        }
    }

    fn push(&mut self, mut issue: Issue) {
        if issue.severity == Severity::Error {
            self.complete(&mut issue);
        }
        self.issues.push(issue);
    }

    /// A refusal always says what was expected, what came and what to send instead.
    fn complete(&self, issue: &mut Issue) {
        let expected = issue
            .expected
            .get_or_insert_with(|| "one whole JSON object".to_owned());
        if issue.suggestion.is_none() {
            issue.suggestion = Some(format!("send {expected}"));
        }
        let came = issue
            .span
            .map(|[start, end]| start..end)
            .filter(|range| !range.is_empty());
        if let (None, Some(range)) = (&issue.before, came) {
            issue.before = if self.quotes {
                self.raw.get(range).map(excerpt)
            } else {
                Some("[redacted]".to_owned())
            };
        }
    }

    /// Whether an issue of this severity is listed; a lesser one goes if it must.
    fn makes_room(&mut self, severity: Severity) -> bool {
        if self.issues.len() < self.limits.issues() {
            return true;
        }
        self.left_out += 1;
        let least = self.issues.iter().map(|issue| issue.severity).min();
        let lesser = least.filter(|least| *least < severity);
        let at = lesser.and_then(|lesser| self.issues.iter().rposition(|i| i.severity == lesser));
        at.map(|at| self.issues.remove(at)).is_some()
    }

    pub(crate) fn syntax(&mut self, events: &[SyntaxEvent]) {
        for event in events {
            let message = match event.count {
                1 => sentence(event.code).to_owned(),
                count => format!("{}, {count} times", sentence(event.code)),
            };
            let mut issue = Issue::new(event.code, event.path.clone(), message);
            self.place(&mut issue, event.span, !self.quotes);
            self.add(issue);
        }
    }

    /// All events of an outcome, in order.
    pub(crate) fn trail(&mut self, tree: &Tree<'_>, schema: &Schema, trail: &Trail, from: TrailId) {
        trail.visit(from, |path, event| {
            // Writing an issue takes its whole path, so those that are only counted are not written.
            if !self.makes_room(event.code.severity()) {
                return;
            }
            let sensitive = schema.sensitivity_at(tree, path) != Sensitivity::Public;
            let issue = self.issue(tree, schema, path, event, sensitive);
            self.push(issue);
        });
    }

    /// The issues, refusals first, with a count of those that were left out.
    pub(crate) fn finish(mut self) -> Vec<Issue> {
        self.issues
            .sort_by_key(|issue| issue.severity != Severity::Error);
        if self.left_out > 0 {
            let message = format!("{} more issues are not listed", self.left_out);
            self.issues
                .push(Issue::new(IssueCode::MoreIssues, "", message));
        }
        self.issues
    }

    fn issue(
        &self,
        tree: &Tree<'_>,
        schema: &Schema,
        path: &[Step],
        event: &Event,
        sensitive: bool,
    ) -> Issue {
        let expected = match (&event.expected, event.schema) {
            (Some(expected), _) => Some(expected.clone()),
            (None, Some(id)) => Some(schema.rules(id).describe()),
            (None, None) => None,
        };
        let mut message = sentence(event.code).to_owned();
        if event.code.severity() == Severity::Error {
            if let Some(expected) = &expected {
                message = format!("{message}: expected {expected}");
            }
            if let Some(came) = event.came {
                message = format!("{message}, got {came}");
            }
        }
        let mut issue = Issue::new(event.code, pointer(tree, path), message);
        issue.expected = expected;
        issue.suggestion.clone_from(&event.suggestion);
        self.place(&mut issue, event.span, sensitive);
        if let Some(name) = event.name {
            issue.before = Some(excerpt(tree.str(name)));
            issue.after = match path.last() {
                Some(Step::Key(key)) => Some(Value::from(tree.str(*key))),
                Some(Step::Index(_)) | None => None,
            };
        }
        if let Some(after) = event.after
            && !sensitive
        {
            issue.after = shown(tree, after);
        }
        if sensitive && event.code == IssueCode::EnumNoMatch {
            issue.suggestion = None;
        }
        issue
    }

    fn place(&self, issue: &mut Issue, span: Span, sensitive: bool) {
        let range = span.range();
        issue.span = Some([range.start, range.end]);
        if range.is_empty() {
            return;
        }
        issue.before = if sensitive {
            Some("[redacted]".to_owned())
        } else {
            self.raw.get(range).map(excerpt)
        };
    }
}

/// The value an event made, unless it is long.
fn shown(tree: &Tree<'_>, node: NodeId) -> Option<Value> {
    match tree.kind(node) {
        Kind::Null => Some(Value::Null),
        Kind::False => Some(Value::Bool(false)),
        Kind::True => Some(Value::Bool(true)),
        Kind::Text => {
            let text = tree.text(node);
            (text.len() <= EXCERPT_BYTES_MAX).then(|| Value::from(text))
        }
        Kind::Number => serde_json::from_str(tree.text(node)).ok(),
        Kind::Array | Kind::Object => {
            let mut json = String::new();
            crate::render::json(tree, node, &mut json);
            (json.len() <= EXCERPT_BYTES_MAX)
                .then(|| serde_json::from_str(&json).ok())
                .flatten()
        }
    }
}

/// The start of a text, cut at a character.
fn excerpt(text: &str) -> String {
    if text.len() <= EXCERPT_BYTES_MAX {
        return text.to_owned();
    }
    let mut end = EXCERPT_BYTES_MAX;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", text.get(..end).unwrap_or_default())
}

fn pointer(tree: &Tree<'_>, path: &[Step]) -> String {
    let mut pointer = String::new();
    for step in path {
        pointer.push('/');
        match step {
            Step::Key(key) => pointer.push_str(&crate::schema::escape(tree.str(*key))),
            Step::Index(index) => pointer.push_str(&index.to_string()),
        }
    }
    pointer
}

impl Schema {
    /// The highest sensitivity on the way down a path.
    fn sensitivity_at(&self, tree: &Tree<'_>, path: &[Step]) -> Sensitivity {
        if !self.has_sensitive() {
            return Sensitivity::Public;
        }
        let mut here: Option<SchemaId> = Some(self.root);
        let mut found = self.rules(self.root).sensitivity;
        for step in path {
            let Some(rules) = here.map(|id| self.rules(id)) else {
                break;
            };
            here = match step {
                Step::Key(key) => {
                    let object = rules.object.as_ref();
                    object.and_then(|object| object.member_schema(tree.str(*key)))
                }
                Step::Index(index) => rules.list.as_ref().and_then(|list| list.item(*index)),
            };
            found = found.max(here.map_or(Sensitivity::Public, |id| self.rules(id).sensitivity));
        }
        // An excerpt of a container quotes what is inside it, and below a union the way is not
        // known: then what is sensitive anywhere is sensitive here.
        let scalar = here.is_some_and(|id| self.rules(id).is_scalar());
        if scalar {
            found
        } else {
            found.max(Sensitivity::Personal)
        }
    }
}

/// One sentence a code, without the particulars. The seeds' own words stand where they have any.
pub(crate) const fn sentence(code: IssueCode) -> &'static str {
    match code {
        IssueCode::ToolDefinitionMissing => "tool_definition_missing",
        IssueCode::FormatKept => "the text is not of the declared form and was kept",
        IssueCode::MoreIssues => "more issues are not listed",
        IssueCode::FenceStripped => "a code fence around the arguments was skipped",
        IssueCode::ProseSkipped => "prose around the arguments was skipped",
        IssueCode::TagStripped => "a tag around the arguments was skipped",
        IssueCode::TrailingComma => "a comma with nothing behind it was ignored",
        IssueCode::MissingComma => "a comma was missing",
        IssueCode::ExtraCloser => "a closing bracket without an opening one was ignored",
        IssueCode::CloserInserted => "a closing bracket was missing",
        IssueCode::QuoteStyle => "another quote than \" was read as one",
        IssueCode::KeyUnquoted => "a name had no quotes",
        IssueCode::ValueUnquoted => "a text had no quotes",
        IssueCode::CommentRemoved => "a comment was skipped",
        IssueCode::PythonLiteral => "a literal of another language was read as JSON's",
        IssueCode::NumberForm => "a number was not written as JSON writes it",
        IssueCode::EscapeRepaired => "an escape that JSON does not have was kept as text",
        IssueCode::ControlChar => "a control character inside a text was not escaped",
        IssueCode::InnerQuoteEscaped => "a quote inside a text was not escaped",
        IssueCode::QuoteInserted => "a quote was missing",
        IssueCode::BracesAdded => "the braces around the arguments were missing",
        IssueCode::CallSyntax => "the arguments were written as a function call",
        IssueCode::RootDecoded => "the arguments were encoded as a text",
        IssueCode::DuplicateCollapsed => "the same thing stood there more than once",
        IssueCode::StrayText => "stray characters were ignored",
        IssueCode::TextToInteger => "a text was read as the integer it spells",
        IssueCode::TextToNumber => "a text was read as the number it spells",
        IssueCode::GroupedNumber => "digit grouping was removed",
        IssueCode::NumberToInteger => "an integral number was written as an integer",
        IssueCode::TextToBoolean => "a text was read as a boolean",
        IssueCode::NumberToBoolean => "number coerced to boolean",
        IssueCode::NumberToText | IssueCode::BooleanToText => "non-string literal retained",
        IssueCode::ContainerDecoded => "a text was decoded into what it holds",
        IssueCode::ScalarWrapped => "a lone value was made a list of one",
        IssueCode::SingletonUnwrapped => "a list of one was read as its item",
        IssueCode::ListSplit => "a text was split into a list",
        IssueCode::DateNormalised => "a text was brought to its declared form",
        IssueCode::KeyFolded => "a name was brought to its declared spelling",
        IssueCode::KeyAlias => "an alias of a name was read as the name",
        IssueCode::EnumFolded => "a value was brought to its declared spelling",
        IssueCode::EnumAlias => "an alias of a value was read as the value",
        IssueCode::ArgumentsUnwrapped => "a wrapper around the arguments was removed",
        IssueCode::RootListUnwrapped => "a list around the arguments was removed",
        IssueCode::NullDropped => "null for an optional parameter counts as absent",
        IssueCode::EmptyDropped => "an empty text for an optional parameter counts as absent",
        IssueCode::UnknownKeyDropped => "the declaration does not know this name; it was left out",
        IssueCode::IntegerTruncated => "a decimal was cut to an integer",
        IssueCode::NotFound => "no arguments were found in the text",
        IssueCode::Ambiguous => "more than one reading fits",
        IssueCode::Incomplete => "the text ends inside something",
        IssueCode::MissingRequired => "a required parameter is missing",
        IssueCode::TypeMismatch => "the value is of another type",
        IssueCode::Lossy => "the value cannot be converted without loss",
        IssueCode::EnumNoMatch => "the value is none of those allowed",
        IssueCode::UnknownKey => "the declaration does not know this name",
        IssueCode::DuplicateKey => "the same name has two different values",
        IssueCode::Constraint => "the value is not allowed",
        IssueCode::PolicyExceeded => "the tool does not allow a change as far as this one",
        IssueCode::LimitExceeded => "the text goes beyond what is read",
    }
}
