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

/// The rules in force, and all that can be loaded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
pub struct RulesetVersion {
    /// The rule set.
    pub name: String,
    /// The digest of the file in force, as `ruleset_version` of a report and `sha256sum` say it.
    pub version: String,
    /// The name of the file.
    pub label: String,
    /// The day from which it holds.
    pub date: String,
    /// Title.
    pub title: String,
    /// Notice of what it does not cover.
    pub notice: String,
    /// Counts.
    pub counts: PolicyCounts,
    /// Every version that is loaded, oldest first: a recorded check can be computed again with each.
    pub versions: Vec<PolicyVersion>,
}

/// Counts of a version.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
pub struct PolicyCounts {
    /// All rules.
    pub rules: usize,
    /// Of them, those that block.
    pub block: usize,
    /// Those that set a condition.
    pub warning: usize,
    /// Those that inform.
    pub info: usize,
    /// Known categories.
    pub categories: usize,
    /// Known countries.
    pub countries: usize,
    /// Groups of countries.
    pub groups: usize,
}

/// One version that is loaded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
pub struct PolicyVersion {
    /// Its digest.
    pub version: String,
    /// The name of its file.
    pub label: String,
    /// The day from which it holds.
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
