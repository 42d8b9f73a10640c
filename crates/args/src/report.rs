//! Reports: turns events into issues with a path, an excerpt, the new value, the expected value and one
//! sentence.

use countersign_contract::parameter::Sensitivity;
use countersign_contract::{Issue, IssueCode, Language, Message, Severity};
use serde_json::Value;

use crate::bound::Unreadable;
use crate::coerce::trail::{Event, Step, Trail, TrailId, Unread};
use crate::limits::Limits;
use crate::schema::{Schema, SchemaId};
use crate::tolerant::SyntaxEvent;
use crate::tree::{Kind, NodeId, Span, Tree};
use crate::words::{Say, sentence};

/// Maximum length of an excerpt of the raw text, in bytes.
const EXCERPT_BYTES_MAX: usize = 200;

/// A fact about the text as a whole.
#[derive(Debug)]
pub(crate) struct Finding {
    pub(crate) code: IssueCode,
    pub(crate) path: String,
    pub(crate) span: Option<[usize; 2]>,
    /// `None` if the sentence of the code says it all.
    pub(crate) message: Option<Say>,
    pub(crate) expected: Option<Say>,
    pub(crate) suggestion: Option<Say>,
}

impl Finding {
    pub(crate) fn new(code: IssueCode) -> Self {
        Self {
            code,
            path: String::new(),
            span: None,
            message: None,
            expected: None,
            suggestion: None,
        }
    }

    /// Turns the facts into an issue in a language.
    pub(crate) fn issue(self, language: Language) -> Issue {
        let message = match self.message {
            Some(message) => message.text(language),
            None => sentence(self.code, language).to_owned(),
        };
        let mut issue = Issue::new(self.code, self.path, message);
        issue.span = self.span;
        issue.expected = self.expected.map(|expected| expected.text(language));
        issue.suggestion = self.suggestion.map(|suggestion| suggestion.text(language));
        issue
    }
}

/// Collects issues up to the limit, then counts.
pub(crate) struct Report<'p> {
    raw: &'p str,
    limits: &'p Limits,
    language: Language,
    issues: Vec<Issue>,
    left_out: usize,
    /// Optional parameters that are reported to the tool.
    unreadable: Vec<Unreadable>,
    /// True if excerpts may quote the text: no declared parameter is sensitive.
    quotes: bool,
}

impl<'p> Report<'p> {
    pub(crate) fn new(
        raw: &'p str,
        schema: &Schema,
        limits: &'p Limits,
        language: Language,
    ) -> Self {
        // Syntax events can be anywhere in the text, so one sensitive parameter suppresses the excerpts of all
        // of them.
        Self {
            raw,
            limits,
            language,
            issues: Vec::with_capacity(4),
            left_out: 0,
            unreadable: Vec::new(),
            quotes: !schema.has_sensitive(),
        }
    }

    /// Lists a finding. If the list is full, it replaces a lesser one, so that the gravest is always listed.
    pub(crate) fn add(&mut self, finding: Finding) {
        if self.makes_room(finding.code.severity()) {
            self.push(finding.issue(self.language));
        }
    }

    fn push(&mut self, mut issue: Issue) {
        if issue.severity == Severity::Error {
            self.complete(&mut issue);
        }
        self.issues.push(issue);
    }

    /// Completes a refusal: it always says what was expected, what came and what to send instead.
    fn complete(&self, issue: &mut Issue) {
        let expected = issue
            .expected
            .get_or_insert_with(|| Say::WholeObject.text(self.language));
        if issue.suggestion.is_none() {
            let what = expected.clone();
            issue.suggestion = Some(Say::Send { what }.text(self.language));
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

    /// True if an issue of this severity can be listed; removes a lesser one if the list is full.
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
            if !self.makes_room(event.code.severity()) {
                continue;
            }
            let what = sentence(event.code, self.language).to_owned();
            let message = match event.count {
                1 => what,
                count => {
                    let count = count.to_string();
                    Say::Times { what, count }.text(self.language)
                }
            };
            let mut issue = Issue::new(event.code, event.path.clone(), message);
            self.place(&mut issue, event.span, !self.quotes);
            self.push(issue);
        }
    }

    /// Adds all events of an outcome, in order.
    pub(crate) fn trail(&mut self, tree: &Tree<'_>, schema: &Schema, trail: &Trail, from: TrailId) {
        trail.visit(from, |path, event| {
            if let Some(unread) = event.unread {
                let unreadable = self.unreadable(tree, schema, trail, path, unread);
                self.unreadable.push(unreadable);
            }
            // An issue needs its whole path, so events that are only counted get none.
            if !self.makes_room(event.code.severity()) {
                return;
            }
            let sensitive = schema.sensitivity_at(tree, path) != Sensitivity::Public;
            let mut issue = self.issue(tree, schema, path, event, sensitive);
            if event.unread.is_some()
                && let Some(first) = self.unreadable.last().and_then(|it| it.errors.first())
            {
                issue.message = format!("{}: {}", issue.message, first.message);
                issue.expected.clone_from(&first.expected);
                issue.suggestion.clone_from(&first.suggestion);
            }
            self.push(issue);
        });
    }

    /// Builds the report about a parameter that the tool does not get.
    fn unreadable(
        &self,
        tree: &Tree<'_>,
        schema: &Schema,
        trail: &Trail,
        place: &[Step],
        unread: Unread,
    ) -> Unreadable {
        let span = tree.node(unread.member).span.range();
        let raw = self.raw.get(span).filter(|_| !unread.is_decoded);
        let text = raw.map_or_else(
            || {
                let mut json = String::new();
                crate::render::json(tree, unread.member, &mut json);
                json
            },
            str::to_owned,
        );
        let mut errors = Vec::new();
        trail.visit(unread.why, |inner, event| {
            if event.code.severity() == Severity::Error && errors.len() < self.limits.issues() {
                let path = [place, inner].concat();
                let sensitive = schema.sensitivity_at(tree, &path) != Sensitivity::Public;
                let mut issue = self.issue(tree, schema, &path, event, sensitive);
                self.complete(&mut issue);
                errors.push(issue);
            }
        });
        Unreadable {
            path: pointer(tree, place),
            text,
            errors,
        }
    }

    /// Returns the parameters that are reported to the tool, in the order of the text.
    pub(crate) fn take_unreadable(&mut self) -> Vec<Unreadable> {
        std::mem::take(&mut self.unreadable)
    }

    /// Returns the issues, refusals first, with a count of those that were left out.
    pub(crate) fn finish(mut self) -> Vec<Issue> {
        self.issues
            .sort_by_key(|issue| issue.severity != Severity::Error);
        if self.left_out > 0 {
            let mut more = Finding::new(IssueCode::MoreIssues);
            more.message = Some(Say::MoreIssues {
                count: self.left_out.to_string(),
            });
            self.issues.push(more.issue(self.language));
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
        let language = self.language;
        let expected = match (&event.expected, event.schema) {
            (Some(expected), _) => Some(expected.text(language)),
            (None, Some(id)) => Some(schema.rules(id).describe(language)),
            (None, None) => None,
        };
        let message = self.message(tree, path, event, expected.as_ref());
        let mut issue = Issue::new(event.code, pointer(tree, path), message);
        issue.expected = expected;
        let suggestion = event.suggestion.as_ref();
        issue.suggestion = suggestion.map(|suggestion| suggestion.text(language));
        self.place(&mut issue, event.span, sensitive);
        if let Some(name) = event.name {
            let name = tree.str(name);
            issue.before = Some(excerpt(name));
            issue.span = self
                .name_before(name, event.span.range().start)
                .or(issue.span);
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

    /// Range of a name in the raw text, before its value; `None` if it is spelt otherwise there, as in a string that was decoded.
    fn name_before(&self, name: &str, value: usize) -> Option<[usize; 2]> {
        let is_between = |c: char| {
            c.is_whitespace()
                || matches!(
                    c,
                    ':' | '：' | '=' | '>' | '"' | '\'' | '`' | '“' | '”' | '‘' | '’'
                )
        };
        let before = self.raw.get(..value)?.trim_end_matches(is_between);
        let start = before.strip_suffix(name)?.len();
        Some([start, before.len()])
    }

    /// Builds the sentence of an event; for a refusal with the expected and the actual value.
    fn message(
        &self,
        tree: &Tree<'_>,
        path: &[Step],
        event: &Event,
        expected: Option<&String>,
    ) -> String {
        let what = sentence(event.code, self.language).to_owned();
        if event.code.severity() != Severity::Error {
            return what;
        }
        let came = event.came.as_ref().map(|came| came.text(self.language));
        let written = match path.last() {
            Some(Step::Key(key)) => excerpt(tree.str(*key)),
            Some(Step::Index(_)) | None => String::new(),
        };
        let said = match (event.code, event.expected.as_deref(), expected, came) {
            (IssueCode::UnknownKey, Some(Say::Names { names }), ..) => Say::UnknownArgument {
                name: written,
                allowed: names.clone(),
            },
            (IssueCode::UnknownKey, ..) => Say::UnknownOfNone { name: written },
            (_, _, Some(expected), Some(came)) => Say::ExpectedGot {
                what,
                expected: expected.clone(),
                came,
            },
            (_, _, Some(expected), None) => Say::Expected {
                what,
                expected: expected.clone(),
            },
            (_, _, None, Some(came)) => Say::Got { what, came },
            (_, _, None, None) => return what,
        };
        said.text(self.language)
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

/// Returns the value that an event made, unless it is long.
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

/// Returns the start of a text, cut at a character boundary.
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
    let mut pointer = String::with_capacity(path.len() * 16);
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
    /// Returns the highest sensitivity along a path.
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
        // An excerpt of a container quotes its content, and below a union the schema is not known: then any
        // sensitive parameter makes this one sensitive.
        let scalar = here.is_some_and(|id| self.rules(id).is_scalar());
        if scalar {
            found
        } else {
            found.max(Sensitivity::Personal)
        }
    }
}
