//! `compliance.policy_ruleset_version`: the rules in force, and the other versions with which a record can be computed
//! again.

use countersign::contract::Behaviour;
use countersign::rules::RuleSet;
use countersign::{CallContext, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::answer::Severity;
use super::policy::Policy;
use crate::behaviour;
use crate::rulebook::RuleData;
use crate::shop::is_chinese;

pub(super) struct PolicyRulesetVersion;

/// The compliance rules in force, and all loaded versions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
pub struct RulesetVersion {
    /// Name of the rule set.
    pub name: String,
    /// Digest of the file in force: the `ruleset_version` of a report, and the output of `sha256sum`.
    pub version: String,
    /// Name of the file.
    pub label: String,
    /// Date from which the version is in force.
    pub date: String,
    /// Title.
    pub title: String,
    /// Notice of cases that the rules do not cover.
    pub notice: String,
    /// Counts.
    pub counts: PolicyCounts,
    /// All loaded versions, oldest first. A recorded check can be recomputed with each.
    pub versions: Vec<PolicyVersion>,
}

/// Counts of a version.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
pub struct PolicyCounts {
    /// Number of rules.
    pub rules: usize,
    /// Number of rules that block.
    pub block: usize,
    /// Number of rules that set a condition.
    pub warning: usize,
    /// Number of rules that only inform.
    pub info: usize,
    /// Number of known categories.
    pub categories: usize,
    /// Number of known countries.
    pub countries: usize,
    /// Number of country groups.
    pub groups: usize,
}

/// A loaded version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
pub struct PolicyVersion {
    /// Digest of the file.
    pub version: String,
    /// Name of the file.
    pub label: String,
    /// Date from which the version is in force.
    pub date: String,
    /// Number of rules.
    pub rules: usize,
    /// True if it is in force.
    pub in_force: bool,
}

impl Tool for PolicyRulesetVersion {
    const NAME: &'static str = "compliance.policy_ruleset_version";
    const DESCRIPTION: &'static str =
        "Shows the compliance rules in force, and the other versions that are loaded.";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    type Args = ();
    type Output = RulesetVersion;

    fn behaviour() -> Behaviour {
        behaviour::read()
    }

    async fn call(&self, ctx: &CallContext, (): ()) -> Result<RulesetVersion, ToolError> {
        let policy = Policy::of(ctx)?;
        let set = ctx.rules(Policy::NAME)?;
        let loaded = ctx.rule_versions(Policy::NAME);
        let mut versions: Vec<PolicyVersion> = loaded
            .iter()
            .map(|loaded| PolicyVersion::of(loaded, loaded.version == set.version))
            .collect();
        versions.sort_by(|left, right| {
            let key = |version: &PolicyVersion| (version.date.clone(), version.version.clone());
            key(left).cmp(&key(right))
        });
        let text = is_chinese(ctx.request().locale.as_deref());
        Ok(RulesetVersion {
            name: Policy::NAME.to_owned(),
            version: set.version.to_string(),
            label: policy.label.clone(),
            date: policy.date.clone(),
            title: policy.title.in_language(text).to_owned(),
            notice: policy.notice.in_language(text).to_owned(),
            counts: policy.counts(),
            versions,
        })
    }
}

impl PolicyVersion {
    /// The label, date and size of a version, from its data. The version was checked when it was loaded; that is not
    /// repeated.
    fn of(loaded: &RuleSet, in_force: bool) -> Self {
        let text = |name: &str| {
            let text = loaded.data.get(name).and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        };
        let rules = loaded.data.get("rules").and_then(Value::as_array);
        Self {
            version: loaded.version.to_string(),
            label: text("label"),
            date: text("date"),
            rules: rules.map_or(0, Vec::len),
            in_force,
        }
    }
}

impl Policy {
    /// The numbers of rules, categories, countries and groups.
    pub fn counts(&self) -> PolicyCounts {
        let of = |severity| {
            let rules = self.rules().iter();
            rules.filter(|rule| rule.severity == severity).count()
        };
        PolicyCounts {
            rules: self.rules().len(),
            block: of(Severity::Block),
            warning: of(Severity::Warning),
            info: of(Severity::Info),
            categories: self.categories().count(),
            countries: self.countries(),
            groups: self.groups,
        }
    }
}
