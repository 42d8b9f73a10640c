//! A compiled JSON Schema: an arena of rules for validation, coercion and the tolerant reader.

mod compile;
mod keyword;
mod reference;

use std::collections::HashMap;

use countersign_contract::parameter::{OnOptionalError, Sensitivity};
use countersign_contract::tool::BindPolicy;
use countersign_contract::{Language, Message, ValueKind};
use regex::Regex;

use crate::fold::fold;
use crate::format::Format;
use crate::number::Decimal;
use crate::tree::Kind;
use crate::words::Say;

pub use compile::SchemaError;
pub(crate) use keyword::escape;

/// Index of a rule set.
pub(crate) type SchemaId = u32;

/// A set of JSON types. Whole numbers and other numbers are told apart by their spelling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Types(u8);

impl Types {
    pub(crate) const NULL: Self = Self(1);
    pub(crate) const BOOLEAN: Self = Self(2);
    pub(crate) const INTEGER: Self = Self(4);
    pub(crate) const FRACTION: Self = Self(8);
    pub(crate) const NUMBER: Self = Self(4 | 8);
    pub(crate) const TEXT: Self = Self(16);
    pub(crate) const ARRAY: Self = Self(32);
    pub(crate) const OBJECT: Self = Self(64);
    pub(crate) const ANY: Self = Self(127);
    pub(crate) const NEVER: Self = Self(0);

    /// Single types in the order in which a union tries them.
    pub(crate) const SINGLE: [Self; 7] = [
        Self::NULL,
        Self::BOOLEAN,
        Self::INTEGER,
        Self::NUMBER,
        Self::TEXT,
        Self::ARRAY,
        Self::OBJECT,
    ];

    pub(crate) const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0 && other.0 != 0
    }

    /// True if the two have a type in common.
    const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(crate) const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// True if more than one kind of value is allowed.
    pub(crate) const fn is_union(self) -> bool {
        let numbers_as_one = if self.has(Self::NUMBER) {
            self.0 & !Self::FRACTION.0
        } else {
            self.0
        };
        numbers_as_one.count_ones() > 1
    }

    /// Describes the types for a message.
    pub(crate) fn describe(self, language: Language) -> String {
        if self == Self::ANY {
            return Say::AnyValue.text(language);
        }
        let named = [
            (Self::TEXT, Say::Text),
            (Self::NUMBER, Say::Number),
            (Self::INTEGER, Say::Integer),
            (Self::BOOLEAN, Say::Boolean),
            (Self::ARRAY, Say::List),
            (Self::OBJECT, Say::Object),
            (Self::NULL, Say::Null),
        ];
        let listed = named.into_iter().filter_map(|(single, name)| {
            let is_meant = self.has(single) && !(single == Self::INTEGER && self.has(Self::NUMBER));
            is_meant.then(|| name.text(language))
        });
        listed
            .reduce(|first, second| Say::Or { first, second }.text(language))
            .unwrap_or_else(|| Say::NoValue.text(language))
    }
}

/// A compiled schema.
#[derive(Debug)]
pub(crate) struct Schema {
    rules: Vec<Rules>,
    pub(crate) root: SchemaId,
    sensitive: bool,
    remarks: bool,
    branches: bool,
    shown: Vec<Shown>,
}

/// A default or an example in a declaration.
#[derive(Debug)]
pub(crate) struct Shown {
    /// JSON pointer into the schema.
    pub(crate) path: String,
    pub(crate) json: String,
    /// Schema that it is declared for.
    pub(crate) schema: SchemaId,
}

impl Schema {
    #[expect(
        clippy::indexing_slicing,
        reason = "ids are made by the compiler of this very schema"
    )]
    pub(crate) fn rules(&self, id: SchemaId) -> &Rules {
        &self.rules[id as usize]
    }

    /// True if a value of this schema may have a member of this name, in any spelling.
    pub(crate) fn knows(&self, id: SchemaId, name: &str) -> bool {
        self.some_object(id, &|object| {
            object.knows(name) || object.respelt(name).is_some()
        })
    }

    /// True if a value of this schema has a property of this very name.
    pub(crate) fn has_property(&self, id: SchemaId, name: &str) -> bool {
        self.some_object(id, &|object| object.property(name).is_some())
    }

    /// True if some value of this type fits a schema, as far as types go.
    pub(crate) fn takes(&self, id: SchemaId, types: Types) -> bool {
        let rules = self.rules(id);
        let some = |parts: &[SchemaId]| {
            parts.is_empty() || parts.iter().any(|part| self.takes(*part, types))
        };
        rules.types.has(types)
            && rules.all_of().iter().all(|part| self.takes(*part, types))
            && some(rules.any_of())
            && some(rules.one_of())
    }

    fn some_object(&self, id: SchemaId, fits: &dyn Fn(&ObjectRules) -> bool) -> bool {
        let rules = self.rules(id);
        let mut parts = rules.parts();
        rules.object.as_deref().is_some_and(fits) || parts.any(|part| self.some_object(*part, fits))
    }

    pub(crate) fn shown(&self) -> &[Shown] {
        &self.shown
    }

    /// True if an accepted value may still need an issue.
    pub(crate) fn has_remarks(&self) -> bool {
        self.remarks
    }

    /// True if one value may be checked against the same schema more than once.
    pub(crate) fn has_branches(&self) -> bool {
        self.branches
    }

    /// True if any parameter is personal data or a secret.
    pub(crate) fn has_sensitive(&self) -> bool {
        self.sensitive
    }
}

/// All rules of one schema object. What most schemas do not have is behind a pointer, so that a parameter's rules fit one
/// line of the processor's cache.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    pub(crate) types: Types,
    pub(crate) kind: Option<ValueKind>,
    pub(crate) allowed: Option<Box<Allowed>>,
    pub(crate) number: Option<Box<NumberRules>>,
    pub(crate) text: Option<Box<TextRules>>,
    pub(crate) list: Option<Box<ListRules>>,
    pub(crate) object: Option<Box<ObjectRules>>,
    /// `None` if no other schema applies to the same value.
    pub(crate) composed: Option<Box<Composed>>,
    /// Overrides the tool's strictness: true if the value must already be of its own type. `None` if the tool
    /// decides.
    pub(crate) strict: Option<bool>,
    pub(crate) truncate: bool,
    pub(crate) sensitivity: Sensitivity,
}

impl Default for Types {
    fn default() -> Self {
        Self::ANY
    }
}

impl Rules {
    /// True if other schemas apply to the same value.
    pub(crate) fn is_composed(&self) -> bool {
        self.composed.is_some()
    }

    /// Returns the schemas that must all accept the value as well.
    pub(crate) fn all_of(&self) -> &[SchemaId] {
        self.composed.as_ref().map_or(&[], |parts| &parts.all_of)
    }

    /// Returns the schemas of which one or more must accept the value.
    pub(crate) fn any_of(&self) -> &[SchemaId] {
        self.composed.as_ref().map_or(&[], |parts| &parts.any_of)
    }

    /// Returns the schemas of which exactly one must accept the value.
    pub(crate) fn one_of(&self) -> &[SchemaId] {
        self.composed.as_ref().map_or(&[], |parts| &parts.one_of)
    }

    /// Returns all of these schemas.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &SchemaId> {
        let parts = self.all_of().iter().chain(self.any_of());
        parts.chain(self.one_of())
    }

    /// True if only strings, numbers, booleans and null are allowed.
    pub(crate) fn is_scalar(&self) -> bool {
        !self.is_composed() && !self.types.meets(Types::ARRAY.with(Types::OBJECT))
    }

    /// Describes the expected value.
    pub(crate) fn describe(&self, language: Language) -> String {
        if let Some(allowed) = &self.allowed {
            return allowed.expected().text(language);
        }
        let kind = match self.text.as_ref().and_then(|text| text.format) {
            Some(format) if self.types == Types::TEXT => format.expected().text(language),
            _ => self.types.describe(language),
        };
        let bounds = self.number.as_deref().map(NumberRules::expected);
        let bounds = bounds.into_iter().flatten();
        bounds.fold(kind, |first, bound| {
            let second = bound.text(language);
            Say::And { first, second }.text(language)
        })
    }
}

/// Other schemas that apply to the same value.
#[derive(Debug, Default)]
pub(crate) struct Composed {
    pub(crate) all_of: Vec<SchemaId>,
    pub(crate) any_of: Vec<SchemaId>,
    pub(crate) one_of: Vec<SchemaId>,
    pub(crate) not: Option<SchemaId>,
    pub(crate) condition: Option<Condition>,
}

impl Composed {
    /// True if there is no other schema.
    pub(crate) fn is_empty(&self) -> bool {
        self.all_of.is_empty()
            && self.any_of.is_empty()
            && self.one_of.is_empty()
            && self.not.is_none()
            && self.condition.is_none()
    }
}

/// `if`, `then`, `else`.
#[derive(Debug)]
pub(crate) struct Condition {
    pub(crate) test: SchemaId,
    pub(crate) then: Option<SchemaId>,
    pub(crate) otherwise: Option<SchemaId>,
}

/// `enum` or `const`.
#[derive(Debug)]
pub(crate) struct Allowed {
    pub(crate) members: Vec<Member>,
    /// Folded aliases, each with the index of its member.
    pub(crate) aliases: Vec<(String, usize)>,
    /// True if another spelling is changed to the declared one.
    pub(crate) folds: bool,
}

/// One allowed value.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) kind: Kind,
    /// The string, or the number as it is spelt in the schema.
    pub(crate) text: String,
    pub(crate) number: Option<Decimal>,
    pub(crate) folded: String,
    /// The string with only its case folded, and with only its letters and digits.
    pub(crate) cased: String,
    pub(crate) letters: String,
    /// Canonical text of a container.
    pub(crate) json: Option<String>,
}

impl Allowed {
    pub(crate) fn expected(&self) -> Say {
        let shown: Vec<String> = self.members.iter().take(12).map(Member::describe).collect();
        let more = self.members.len().saturating_sub(shown.len());
        let values = shown.join(", ");
        match (self.members.len(), more) {
            (1, _) => Say::Exactly { value: values },
            (_, 0) => Say::OneOf { values },
            (_, more) => Say::OneOfMore {
                values,
                more: more.to_string(),
            },
        }
    }
}

impl Member {
    pub(crate) fn describe(&self) -> String {
        match self.kind {
            Kind::Text => format!("{:?}", self.text),
            Kind::Null | Kind::False | Kind::True | Kind::Number => self.text.clone(),
            Kind::Array | Kind::Object => self.json.clone().unwrap_or_default(),
        }
    }
}

/// Bounds on numbers.
#[derive(Debug, Default)]
pub(crate) struct NumberRules {
    /// Smallest and largest 64-bit integer that the other rules accept; `None` if they also ask for a multiple.
    pub(crate) integers: Option<[i64; 2]>,
    pub(crate) minimum: Option<Decimal>,
    pub(crate) maximum: Option<Decimal>,
    pub(crate) exclusive_minimum: Option<Decimal>,
    pub(crate) exclusive_maximum: Option<Decimal>,
    pub(crate) multiple_of: Option<Decimal>,
}

impl NumberRules {
    /// Returns the range of integers that the bounds accept, so that most numbers are compared as machine words.
    pub(crate) fn range_of_integers(&self) -> Option<[i64; 2]> {
        if self.multiple_of.is_some() {
            return None;
        }
        // A bound with a fraction or beyond 64 bits is compared digit by digit.
        let whole = |bound: &Option<Decimal>, other: i64| match bound {
            Some(bound) => bound.to_integer(18)?.parse().ok(),
            None => Some(other),
        };
        let above = whole(&self.exclusive_minimum, i64::MIN)?;
        let below = whole(&self.exclusive_maximum, i64::MAX)?;
        let least = match self.exclusive_minimum {
            Some(_) => above.checked_add(1)?,
            None => above,
        };
        let most = match self.exclusive_maximum {
            Some(_) => below.checked_sub(1)?,
            None => below,
        };
        Some([
            least.max(whole(&self.minimum, i64::MIN)?),
            most.min(whole(&self.maximum, i64::MAX)?),
        ])
    }

    /// True if the bounds surely accept a number: a short integer in their range.
    pub(crate) fn surely_accept(&self, json: &str) -> bool {
        let short = json.len() <= 18;
        self.integers.is_some_and(|[least, most]| {
            short
                && json
                    .parse()
                    .is_ok_and(|number| (least..=most).contains(&number))
        })
    }

    /// True if a bound lies beyond 64 bits.
    pub(crate) fn goes_beyond_64_bits(&self) -> bool {
        let bounds = [
            &self.minimum,
            &self.maximum,
            &self.exclusive_minimum,
            &self.exclusive_maximum,
        ];
        bounds
            .into_iter()
            .flatten()
            .any(|bound| bound.to_string().parse::<i64>().is_err())
    }

    fn expected(&self) -> impl Iterator<Item = Say> {
        let shown = |bound: &Option<Decimal>| bound.as_ref().map(Decimal::to_string);
        [
            shown(&self.minimum).map(|bound| Say::AtLeast { bound }),
            shown(&self.maximum).map(|bound| Say::AtMost { bound }),
            shown(&self.exclusive_minimum).map(|bound| Say::Above { bound }),
            shown(&self.exclusive_maximum).map(|bound| Say::Below { bound }),
            shown(&self.multiple_of).map(|step| Say::MultipleOf { step }),
        ]
        .into_iter()
        .flatten()
    }
}

/// Bounds on strings.
#[derive(Debug, Default)]
pub(crate) struct TextRules {
    pub(crate) min_length: Option<usize>,
    pub(crate) max_length: Option<usize>,
    pub(crate) pattern: Option<Pattern>,
    pub(crate) format: Option<Format>,
}

/// A regular expression with its source in the schema.
#[derive(Debug)]
pub(crate) struct Pattern {
    pub(crate) source: String,
    pub(crate) regex: Regex,
}

/// Bounds on lists.
#[derive(Debug, Default)]
pub(crate) struct ListRules {
    pub(crate) prefix: Vec<SchemaId>,
    pub(crate) items: Option<SchemaId>,
    pub(crate) min_items: usize,
    pub(crate) max_items: Option<usize>,
    pub(crate) unique: bool,
    pub(crate) contains: Option<Contains>,
}

/// `contains` with its bounds.
#[derive(Debug)]
pub(crate) struct Contains {
    pub(crate) schema: SchemaId,
    pub(crate) min: usize,
    pub(crate) max: Option<usize>,
}

impl ListRules {
    /// Returns the schema of the item at an index.
    pub(crate) fn item(&self, index: usize) -> Option<SchemaId> {
        self.prefix.get(index).copied().or(self.items)
    }
}

/// Rules for objects.
#[derive(Debug, Default)]
pub(crate) struct ObjectRules {
    pub(crate) properties: Vec<Property>,
    /// Number of required properties.
    pub(crate) required_count: usize,
    /// Indexes by name, if there are too many properties to compare one by one.
    pub(crate) by_name: HashMap<String, usize>,
    /// The same by alias and by folded name; no index if several names fold alike.
    pub(crate) by_alias: HashMap<String, usize>,
    pub(crate) by_fold: HashMap<String, Option<usize>>,
    pub(crate) patterns: Vec<(Pattern, SchemaId)>,
    pub(crate) additional: Additional,
    /// Required names that are not declared properties.
    pub(crate) also_required: Vec<String>,
    pub(crate) names: Option<SchemaId>,
    pub(crate) min_members: usize,
    pub(crate) max_members: Option<usize>,
    pub(crate) dependent_required: Vec<(String, Vec<String>)>,
    pub(crate) dependent_schemas: Vec<(String, SchemaId)>,
    /// Names that other schemas declare for the same object.
    pub(crate) known_beside: Vec<String>,
}

/// One declared property.
#[derive(Debug)]
pub(crate) struct Property {
    pub(crate) name: String,
    pub(crate) folded: String,
    pub(crate) schema: SchemaId,
    pub(crate) required: bool,
    pub(crate) aliases: Vec<String>,
    /// Overrides the tool's rule; `None` if the tool decides.
    pub(crate) on_optional_error: Option<OnOptionalError>,
}

impl Property {
    /// True if a value that cannot be read counts as absent and is reported to the tool with its errors and its
    /// text.
    pub(crate) fn tells(&self, policy: BindPolicy) -> bool {
        let rule = self.on_optional_error.unwrap_or(policy.on_optional_error);
        !self.required && rule == OnOptionalError::Tell
    }
}

/// Handling of members that are not declared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Additional {
    /// Accepted: nothing is declared, or the schema allows them explicitly.
    #[default]
    Welcome,
    /// Decided by another schema for the same object.
    Elsewhere,
    /// Properties are declared and nothing is said about others: the policy keeps, drops or refuses them.
    Unexpected,
    /// `additionalProperties: false`: members that are not declared in this schema are refused, or dropped by policy.
    Refused,
    /// `unevaluatedProperties: false`: the same for members that are declared neither here nor in another schema for
    /// the same object.
    Unevaluated,
    /// Checked against a schema.
    Typed(SchemaId),
}

impl ObjectRules {
    /// Maximum number of properties that are compared one by one; above it a table is used.
    const SCAN_MAX: usize = 12;

    /// Fills the tables by which an alias and another spelling find their property.
    pub(crate) fn index(&mut self) {
        if self.properties.len() <= Self::SCAN_MAX {
            return;
        }
        for (at, property) in self.properties.iter().enumerate() {
            for alias in &property.aliases {
                self.by_alias.entry(alias.clone()).or_insert(at);
            }
            self.by_fold
                .entry(property.folded.clone())
                .and_modify(|found| *found = None)
                .or_insert(Some(at));
        }
    }

    /// Returns the index of the property with exactly this name. `hint` is its likely index: callers send
    /// members in the declared order.
    pub(crate) fn position(&self, name: &str, hint: usize) -> Option<usize> {
        if self
            .properties
            .get(hint)
            .is_some_and(|property| property.name == name)
        {
            return Some(hint);
        }
        if self.properties.len() <= Self::SCAN_MAX {
            self.properties
                .iter()
                .position(|property| property.name == name)
        } else {
            self.by_name.get(name).copied()
        }
    }

    pub(crate) fn property(&self, name: &str) -> Option<&Property> {
        self.position(name, 0)
            .and_then(|at| self.properties.get(at))
    }

    /// Returns the schema of a member: declared, by pattern, or additional.
    pub(crate) fn member_schema(&self, name: &str) -> Option<SchemaId> {
        if let Some(property) = self.property(name) {
            return Some(property.schema);
        }
        if let Some((_, schema)) = self.patterns.iter().find(|(p, _)| p.regex.is_match(name)) {
            return Some(*schema);
        }
        match self.additional {
            Additional::Typed(schema) => Some(schema),
            Additional::Welcome
            | Additional::Elsewhere
            | Additional::Unexpected
            | Additional::Refused
            | Additional::Unevaluated => None,
        }
    }

    /// True if this schema covers a member of this name. JSON Schema decides about additional members in this
    /// schema alone, so names that other schemas declare do not count for those keywords.
    pub(crate) fn knows(&self, name: &str) -> bool {
        let alone = matches!(self.additional, Additional::Refused | Additional::Typed(_));
        self.position(name, 0).is_some()
            || self
                .patterns
                .iter()
                .any(|(pattern, _)| pattern.regex.is_match(name))
            || (!alone && self.known_beside.iter().any(|known| known == name))
    }

    /// Returns the declared property that another spelling of its name means: an alias, or the only one that
    /// folds to the same.
    pub(crate) fn respelt(&self, name: &str) -> Option<(&Property, bool)> {
        if self.properties.len() > Self::SCAN_MAX {
            let alias = self.by_alias.get(name).map(|at| (*at, true));
            let (at, alias) = match alias {
                Some(found) => found,
                None => ((*self.by_fold.get(&fold(name))?)?, false),
            };
            return self.properties.get(at).map(|property| (property, alias));
        }
        if let Some(property) = self
            .properties
            .iter()
            .find(|p| p.aliases.iter().any(|alias| alias == name))
        {
            return Some((property, true));
        }
        let folded = fold(name);
        let mut hits = self
            .properties
            .iter()
            .filter(|property| property.folded == folded);
        match (hits.next(), hits.next()) {
            (Some(property), None) => Some((property, false)),
            _ => None,
        }
    }
}
