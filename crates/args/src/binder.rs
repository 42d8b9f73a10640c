//! The binder: reads a text strictly first, tolerantly if that fails, and checks the result against the
//! declaration.

use std::sync::Arc;

use countersign_contract::parameter::Leniency;
use countersign_contract::tool::{BindPolicy, UnknownKeys};
use countersign_contract::{
    BindStatus, Effect, Input, Issue, IssueCode, Language, Severity, ToolSpec,
};
use serde_json::Value;

use crate::arguments::Arguments;
use crate::bound::Bound;
use crate::candidates::{self, Candidate};
use crate::coerce::trail::Trail;
use crate::coerce::{Coercer, Lossy, Outcome};
use crate::duplicates;
use crate::limits::Limits;
use crate::reading::Reading;
use crate::report::{Finding, Report};
use crate::schema::{Schema, SchemaError, SchemaId, Shown};
use crate::strict::{self, Document, Stop};
use crate::tolerant::{SyntaxLog, WRAPPERS};
use crate::tree::{NodeId, Tree};
use crate::validate::{Memo, Validator};
use crate::words::Say;

/// A tool's declaration, prepared for binding. It is built once, used for every call, and cheap to clone.
///
/// # Example
///
/// ```
/// use countersign_args::Binder;
/// use countersign_contract::{BindStatus, IssueCode};
/// use serde_json::json;
///
/// let schema = json!({
///     "type": "object",
///     "properties": { "city": { "type": "string" }, "days": { "type": "integer" } },
///     "required": ["city"],
/// });
/// let binder = Binder::from_schema(&schema, Default::default())?;
///
/// let bound = binder.bind(r#"Sure! {city: 'Paris', "days": "3",}"#);
/// assert_eq!(bound.status, BindStatus::Repaired);
/// assert_eq!(bound.arguments.unwrap().to_value(), json!({ "city": "Paris", "days": 3 }));
/// assert!(bound.issues.iter().any(|issue| issue.code == IssueCode::TextToInteger));
///
/// // What has no safe reading is refused, with the place and what to do.
/// let bound = binder.bind(r#"{"city": "Paris", "days": 3.7}"#);
/// assert_eq!(bound.status, BindStatus::Refused);
/// assert_eq!(bound.issues[0].path, "/days");
/// # Ok::<(), countersign_args::SchemaError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Binder {
    schema: Arc<Schema>,
    policy: BindPolicy,
    limits: Limits,
    declared: bool,
    lossy: Lossy,
}

impl Binder {
    /// Prepares a tool's declaration.
    pub fn new(spec: &ToolSpec) -> Result<Self, SchemaError> {
        match &spec.input {
            Input::Undeclared => Ok(Self::undeclared()),
            input @ (Input::Parameters(_) | Input::Schema(_)) => {
                let mut binder = Self::from_schema(&input.json_schema(), spec.behaviour.binding)?;
                // A read may lose something, with a warning; what changes something may not.
                binder.lossy = match spec.behaviour.effect {
                    Effect::Read => Lossy::Taken,
                    Effect::Write | Effect::External => Lossy::Refused,
                };
                Ok(binder)
            }
        }
    }

    /// Prepares a JSON Schema 2020-12.
    pub fn from_schema(schema: &Value, policy: BindPolicy) -> Result<Self, SchemaError> {
        let schema = Arc::new(Schema::compile(schema)?);
        Ok(Self {
            schema,
            policy,
            limits: Limits::default(),
            declared: true,
            lossy: Lossy::Bare,
        })
    }

    /// A binder for a tool without a declaration: the text is only parsed, with an issue that says so (B8).
    pub fn undeclared() -> Self {
        Self {
            schema: Arc::new(Schema::anything()),
            policy: BindPolicy::default(),
            limits: Limits::default(),
            declared: false,
            lossy: Lossy::Bare,
        }
    }

    /// Sets other limits.
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Checks that the declaration accepts every default and every example in it; the error names the path of
    /// the first that it does not accept.
    ///
    /// Not a part of [`from_schema`](Binder::from_schema): a third party's schema can be used even if it shows
    /// a wrong value.
    pub fn check_shown(&self) -> Result<(), SchemaError> {
        let wrong = |shown: &&Shown| !self.accepts_json(&shown.json, shown.schema);
        let Some(shown) = self.schema.shown().iter().find(wrong) else {
            return Ok(());
        };
        let expected = self.schema.rules(shown.schema).describe(Language::English);
        Err(SchemaError {
            path: shown.path.clone(),
            message: format!("the declaration does not accept it: expected {expected}"),
        })
    }

    /// Binds a text.
    pub fn bind(&self, raw: &str) -> Bound {
        self.bind_with(raw, &Reading::default())
    }

    /// Binds a text whose author has a locale and a time zone.
    pub fn bind_with(&self, raw: &str, reading: &Reading) -> Bound {
        if raw.len() > self.limits.raw_bytes() {
            return self.refused(raw, reading, self.beyond(raw, "raw_bytes_max"));
        }
        match strict::parse(raw, &self.limits) {
            Ok(document) => self.bind_document(document, reading),
            Err(Stop::Limit(limit)) => self.refused(raw, reading, self.beyond(raw, limit)),
            Err(Stop::Reserved) => self.refused(raw, reading, reserved()),
            Err(Stop::NotJson(at) | Stop::Behind(at))
                if self.policy.leniency == Leniency::Strict =>
            {
                self.refused(raw, reading, not_json(raw, at))
            }
            Err(Stop::NotJson(at)) => self.bind_tolerantly(raw, Some(at), reading),
            Err(Stop::Behind(_)) => self.bind_tolerantly(raw, None, reading),
        }
    }

    /// The limits in force.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(crate) fn policy(&self) -> &BindPolicy {
        &self.policy
    }

    pub(crate) fn schema(&self) -> &Schema {
        &self.schema
    }

    /// True if a schema accepts a JSON text as it is.
    pub(crate) fn accepts_json(&self, json: &str, id: SchemaId) -> bool {
        strict::parse(json, &self.limits).is_ok_and(|document| {
            let Document {
                tree,
                root,
                duplicates,
            } = document;
            let memo = Memo::default();
            !duplicates && self.validator(&tree, &memo).accepts(root, id)
        })
    }

    /// Binds a document of strict JSON: exact if the declaration accepts it as it is.
    fn bind_document(&self, document: Document<'_>, reading: &Reading) -> Bound {
        let Document {
            mut tree,
            root,
            duplicates,
        } = document;
        let memo = Memo::default();
        let validator = self.validator(&tree, &memo);
        let accepted = !duplicates
            && validator.accepts(root, self.schema.root)
            && !self.may_wrap(&tree, root, validator.keeps_unknown);
        if accepted && self.declared && !self.schema.has_remarks() {
            let arguments = Arguments::from_checked(tree.raw().trim());
            return Bound {
                status: BindStatus::Exact,
                arguments: Some(arguments),
                issues: Vec::new(),
                unreadable: Vec::new(),
                repairs: Vec::new(),
            };
        }
        let mut log = SyntaxLog::default();
        if duplicates && let Err(conflict) = duplicates::collapse(&mut tree, root, &mut log) {
            let finding = conflict.finding(&tree, root);
            return self.refused(tree.raw(), reading, finding);
        }
        let mut coercer = self.coercer(&mut tree, reading);
        let outcome = coercer.bind_root(root);
        log.merge(std::mem::take(&mut coercer.log));
        let trail = std::mem::take(&mut coercer.trail);
        self.conclude(&tree, &trail, outcome, &log, (true, reading))
    }

    /// True if a document that is accepted as it is has a member with a wrapper's name, which nothing declares or next
    /// to which unknown names are kept.
    fn may_wrap(&self, tree: &Tree<'_>, root: NodeId, keeps_unknown: bool) -> bool {
        let undeclared = |name: &str| keeps_unknown || !self.schema.knows(self.schema.root, name);
        self.declared
            && tree
                .children(root)
                .map(|member| tree.key(member))
                .any(|name| WRAPPERS.has(name) && undeclared(name))
    }

    /// Binds text as models write it: every document in the text is bound, and exactly one must fit. `damage` is the byte at
    /// which the document that the text starts with is not JSON.
    fn bind_tolerantly(&self, raw: &str, damage: Option<usize>, reading: &Reading) -> Bound {
        let mut tree = Tree::for_repair(raw);
        let found = candidates::find(&mut tree, (raw, damage), &self.schema, &self.limits);
        if let Some(limit) = found.limit {
            return self.refused(raw, reading, self.beyond(raw, limit));
        }
        if found.reserved {
            return self.refused(raw, reading, reserved());
        }
        if found.unfinished.is_some() {
            return self.unfinished(raw, reading);
        }
        if let Some((at, fault)) = found.broken {
            return self.refused(raw, reading, fault.finding(raw, at));
        }
        if found.elided {
            return self.refused(raw, reading, elided());
        }
        let mut bound = Vec::with_capacity(found.candidates.len());
        let mut coercer = self.coercer(&mut tree, reading);
        for mut candidate in found.candidates {
            if let Err(conflict) =
                duplicates::collapse(coercer.tree, candidate.node, &mut candidate.log)
            {
                let finding = conflict.finding(coercer.tree, candidate.node);
                return self.refused(raw, reading, finding);
            }
            let outcome = if candidate.marked {
                coercer.bind_marked(candidate.node)
            } else {
                coercer.bind_root(candidate.node)
            };
            candidate.log.merge(std::mem::take(&mut coercer.log));
            // Strict JSON would have been exact; something here is not strict, even if it is only a space.
            if candidate.complete && candidate.log.events().is_empty() {
                candidate.log.whole(IssueCode::StrayText, candidate.span);
            }
            bound.push((candidate, outcome));
        }
        let trail = std::mem::take(&mut coercer.trail);
        // A document that shares no name with the declaration is prose with braces.
        if bound.iter().any(|(candidate, _)| candidate.known) {
            bound.retain(|(candidate, _)| candidate.known);
        }
        match Self::only_fit(&tree, &bound) {
            Ok(Some((at, outcome))) => {
                let several = bound.len() > 1;
                let (mut candidate, _) = bound.swap_remove(at);
                let mut log = std::mem::take(&mut candidate.log);
                if several && outcome.node.is_some() {
                    log.whole(IssueCode::DuplicateCollapsed, candidate.span);
                }
                let bound =
                    self.conclude(&tree, &trail, outcome, &log, (candidate.complete, reading));
                if bound.arguments.is_none() && !candidate.complete && !candidate.dangling {
                    Self::cut(bound.issues)
                } else {
                    bound
                }
            }
            Ok(None) => self.refused(raw, reading, nothing_found(raw)),
            Err(finding) => self.refused(raw, reading, *finding),
        }
    }

    /// Returns the index of the one document that fits; if none does, of the one to report.
    fn only_fit(
        tree: &Tree<'_>,
        bound: &[(Candidate, Outcome)],
    ) -> Result<Option<(usize, Outcome)>, Box<Finding>> {
        let at = |at: usize| bound.get(at).map(|(_, outcome)| (at, *outcome));
        let fits = bound.iter().position(|(_, outcome)| outcome.node.is_some());
        let Some((first, outcome)) = fits.and_then(at) else {
            let complete = bound.iter().position(|(candidate, _)| candidate.complete);
            return Ok(at(complete.unwrap_or(0)));
        };
        // All other documents with names of this call must have the same value. One that does not fit cannot be
        // dismissed as an example, so the call is refused.
        let value = |node: NodeId| {
            let mut json = String::new();
            crate::render::comparable(tree, node, &mut json);
            json
        };
        if bound.len() > 1 {
            let wanted = outcome.node.map(value);
            let differs = |(candidate, outcome): &&(Candidate, Outcome)| {
                !candidate.complete || outcome.node.map(value) != wanted
            };
            if let Some((other, _)) = bound.iter().find(differs) {
                return Err(Box::new(two_documents(other)));
            }
        }
        Ok(Some((first, outcome)))
    }

    /// Builds the result: reports all changes, and refuses those that the policy does not allow.
    fn conclude(
        &self,
        tree: &Tree<'_>,
        trail: &Trail,
        outcome: Outcome,
        log: &SyntaxLog,
        (complete, reading): (bool, &Reading),
    ) -> Bound {
        let language = reading.language();
        let mut report = Report::new(tree.raw(), &self.schema, &self.limits, language);
        if !self.declared {
            report.add(Finding::new(IssueCode::ToolDefinitionMissing));
        }
        if !complete {
            report.add(incomplete(tree.raw()));
        }
        report.syntax(log.events());
        report.trail(tree, &self.schema, trail, outcome.trail);
        let Some(node) = outcome.node else {
            return Bound {
                repairs: log.places(),
                ..Bound::refused(report.finish())
            };
        };
        let unreadable = report.take_unreadable();
        let issues = report.finish();
        if complete && let Some(issue) = self.beyond_policy(&issues, language) {
            let mut all = vec![issue];
            all.extend(issues);
            return Bound {
                repairs: log.places(),
                ..Bound::refused(all)
            };
        }
        let mut json = String::with_capacity(tree.raw().len() + 16);
        crate::render::json(tree, node, &mut json);
        let status = match (complete, issues.is_empty()) {
            (false, _) => BindStatus::Incomplete,
            (true, true) => BindStatus::Exact,
            (true, false) => BindStatus::Repaired,
        };
        Bound {
            status,
            arguments: Some(Arguments::from_checked(json)),
            issues,
            unreadable,
            repairs: log.places(),
        }
    }

    /// Builds the result of a text that ends too early: what is missing or wrong in it may have been still to come.
    fn cut(mut issues: Vec<Issue>) -> Bound {
        issues.retain(|issue| {
            issue.code == IssueCode::Incomplete || issue.severity != Severity::Error
        });
        Bound {
            status: BindStatus::Incomplete,
            ..Bound::refused(issues)
        }
    }

    /// Returns the refusal of a change that goes further than the tool allows.
    fn beyond_policy(&self, issues: &[Issue], language: Language) -> Option<Issue> {
        let most = match self.policy.leniency {
            Leniency::Strict => Severity::Note,
            Leniency::Lenient => self.policy.max_severity,
        };
        let worst = issues
            .iter()
            // The declaration of the parameter itself allows this change.
            .filter(|issue| issue.code != IssueCode::OptionalUnreadable)
            .filter(|issue| issue.severity > most)
            .max_by_key(|i| i.severity)?;
        let finding = Finding {
            path: worst.path.clone(),
            span: worst.span,
            suggestion: Some(Say::SendWithout {
                code: worst.code.to_string(),
            }),
            ..Finding::new(IssueCode::PolicyExceeded)
        };
        let mut issue = finding.issue(language);
        issue.expected.clone_from(&worst.expected);
        Some(issue)
    }

    fn validator<'v, 'r>(&'v self, tree: &'v Tree<'r>, memo: &'v Memo) -> Validator<'v, 'r> {
        let keeps_unknown = self.policy.unknown_keys == UnknownKeys::Keep;
        Validator {
            tree,
            schema: &self.schema,
            memo,
            keeps_unknown,
            by_value: false,
        }
    }

    fn coercer<'c, 'r>(&'c self, tree: &'c mut Tree<'r>, reading: &'c Reading) -> Coercer<'c, 'r> {
        let reading = (reading, self.lossy);
        Coercer::new(tree, &self.schema, &self.policy, &self.limits, reading)
    }

    fn beyond(&self, raw: &str, limit: &'static str) -> Finding {
        let most = self.limits.named(limit);
        Finding {
            span: Some([0, raw.len()]),
            message: most.map(|most| Say::BeyondLimit {
                limit: limit.to_owned(),
                most: most.to_string(),
            }),
            expected: Some(Say::WithinLimit {
                limit: limit.to_owned(),
            }),
            suggestion: Some(Say::SendLess),
            ..Finding::new(IssueCode::LimitExceeded)
        }
    }

    /// Refuses a text that ends inside a thinking block: nothing of the call has arrived.
    fn unfinished(&self, raw: &str, reading: &Reading) -> Bound {
        let mut bound = self.refused(raw, reading, incomplete(raw));
        bound.status = BindStatus::Incomplete;
        bound
    }

    fn refused(&self, raw: &str, reading: &Reading, finding: Finding) -> Bound {
        let mut report = Report::new(raw, &self.schema, &self.limits, reading.language());
        report.add(finding);
        Bound::refused(report.finish())
    }
}

fn not_json(raw: &str, at: usize) -> Finding {
    Finding {
        span: Some([at, raw.len()]),
        message: Some(Say::NotJson {
            byte: at.to_string(),
        }),
        ..Finding::new(IssueCode::NotFound)
    }
}

fn incomplete(raw: &str) -> Finding {
    Finding {
        span: Some([raw.len(), raw.len()]),
        suggestion: Some(Say::SendAllAgain),
        ..Finding::new(IssueCode::Incomplete)
    }
}

fn two_documents(other: &Candidate) -> Finding {
    let span = other.span.range();
    Finding {
        span: Some([span.start, span.end]),
        message: Some(Say::TwoDocuments),
        suggestion: Some(Say::SendOnlyObject),
        ..Finding::new(IssueCode::Ambiguous)
    }
}

fn elided() -> Finding {
    Finding {
        message: Some(Say::Ellipsis),
        suggestion: Some(Say::SendEveryValue),
        ..Finding::new(IssueCode::Incomplete)
    }
}

fn reserved() -> Finding {
    Finding {
        message: Some(Say::ReservedName),
        suggestion: Some(Say::LeaveOut),
        ..Finding::new(IssueCode::UnknownKey)
    }
}

fn nothing_found(raw: &str) -> Finding {
    Finding {
        span: Some([0, raw.len()]),
        expected: Some(Say::JsonObject),
        suggestion: Some(Say::SendAsObject),
        ..Finding::new(IssueCode::NotFound)
    }
}
