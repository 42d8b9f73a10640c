//! Rule files: each operator with all three results, and the files that are refused before anything is decided.

use super::super::answer::Severity;
use super::super::policy::{Mitigation, Policy, fact_names};
use super::{BEFORE, IN_FORCE, case, policy};

/// A small file with one rule, whose lines are `rule`.
fn file(rule: &str) -> String {
    format!(
        r#"
label = "t"
date = "2026-01-01"
title = {{ en = "t", zh = "t" }}
notice = {{ en = "n", zh = "n" }}
countries = ["AA", "AB", "BA", "BB"]
categories = ["a/b/c", "a/d"]

[certificates]
CE = "a mark"

[attributes]
text = "text"
number = "number"
flag = "flag"

[families]
ALL = ["a"]

[groups]
A = ["AA", "AB"]
B = ["BA", "BB"]
BOTH = ["A", "B"]

[[rules]]
id = "r"
source = "s"
date = "2026-01-01"
message = {{ en = "m", zh = "m" }}
{rule}
"#
    )
}

fn rule(condition: &str) -> String {
    file(&format!(
        "severity = \"info\"\ndestinations = [\"*\"]\nwhen = {condition}"
    ))
}

/// Evaluates a condition for an item that has `text = "abc"`, `number = 5` and `flag = true`, has CE, and is sent from
/// AA to AB; `None` if the result is unknown.
#[track_caller]
fn check(condition: &str, expected: Option<bool>) {
    let thing = case("a/b/c", "AA>AB")
        .certified("C E")
        .certified("ce")
        .with("text", "abc")
        .with("number", 5)
        .with("flag", true);
    let (_, found) = thing.judged_by(&policy(&rule(condition)));
    let holds = match found.get("r") {
        None => Some(false),
        Some(Severity::Info) => Some(true),
        Some(Severity::Block) => None,
        Some(Severity::Warning) => panic!("the rule informs"),
    };
    assert_eq!(holds, expected, "{condition}");
}

#[test]
fn every_operator_has_three_answers() {
    for (condition, expected) in TESTS {
        check(condition, expected);
    }
    for (op, at_4, at_5, at_6) in [
        ("gt", YES, NO, NO),
        ("gte", YES, YES, NO),
        ("lt", NO, NO, YES),
        ("lte", NO, YES, YES),
    ] {
        let test = |fact: &str, value: u32| {
            format!(r#"{{ fact = "{fact}", op = "{op}", value = {value} }}"#)
        };
        check(&test("attributes.number", 4), at_4);
        check(&test("attributes.number", 5), at_5);
        check(&test("attributes.number", 6), at_6);
        check(&test("battery.watt_hours", 1), UNKNOWN);
    }
}

const YES: Option<bool> = Some(true);
const NO: Option<bool> = Some(false);
const UNKNOWN: Option<bool> = None;

const TESTS: [(&str, Option<bool>); 28] = [
    (
        r#"{ fact = "attributes.text", op = "eq", value = "abc" }"#,
        YES,
    ),
    (
        r#"{ fact = "attributes.text", op = "eq", value = "ab" }"#,
        NO,
    ),
    (
        r#"{ fact = "attributes.number", op = "eq", value = "5.0" }"#,
        YES,
    ),
    (
        r#"{ fact = "attributes.flag", op = "eq", value = false }"#,
        NO,
    ),
    (
        r#"{ fact = "destination.region", op = "eq", value = "X" }"#,
        UNKNOWN,
    ),
    (
        r#"{ fact = "attributes.number", op = "ne", value = 4 }"#,
        YES,
    ),
    (
        r#"{ fact = "attributes.number", op = "ne", value = 5 }"#,
        NO,
    ),
    (
        r#"{ fact = "destination.region", op = "ne", value = "X" }"#,
        UNKNOWN,
    ),
    (
        r#"{ fact = "attributes.number", op = "in", value = [4, 5] }"#,
        YES,
    ),
    (
        r#"{ fact = "ships_from", op = "in", value = ["AB", "BA"] }"#,
        NO,
    ),
    (
        r#"{ fact = "destination.region", op = "in", value = ["X"] }"#,
        UNKNOWN,
    ),
    (
        r#"{ fact = "ships_from", op = "not_in", value = ["AB"] }"#,
        YES,
    ),
    (
        r#"{ fact = "ships_from", op = "not_in", value = ["AA"] }"#,
        NO,
    ),
    (
        r#"{ fact = "destination.region", op = "not_in", value = ["X"] }"#,
        UNKNOWN,
    ),
    (r#"{ fact = "attributes.text", op = "exists" }"#, YES),
    (r#"{ fact = "battery.chemistry", op = "exists" }"#, NO),
    (r#"{ fact = "battery.chemistry", op = "missing" }"#, YES),
    (r#"{ fact = "attributes.text", op = "missing" }"#, NO),
    (
        r#"{ fact = "attributes.text", op = "contains", value = "b" }"#,
        YES,
    ),
    (
        r#"{ fact = "attributes.text", op = "contains", value = "d" }"#,
        NO,
    ),
    (
        r#"{ fact = "destination.region", op = "contains", value = "d" }"#,
        UNKNOWN,
    ),
    (
        r#"{ fact = "category", op = "starts_with", value = "a/b" }"#,
        YES,
    ),
    (
        r#"{ fact = "category", op = "starts_with", value = "b" }"#,
        NO,
    ),
    (
        r#"{ fact = "destination.postal_code", op = "starts_with", value = "b" }"#,
        UNKNOWN,
    ),
    (r#"{ op = "has_certificate", value = "CE" }"#, YES),
    (r#"{ fact = "origin", op = "in_group", value = "A" }"#, YES),
    (
        r#"{ fact = "destination.country", op = "in_group", value = ["B"] }"#,
        NO,
    ),
    (r#"{ fact = "cross_border", op = "eq", value = true }"#, YES),
];

/// Unknown stays unknown, unless the other parts decide: nothing is true together with something false.
#[test]
fn all_any_and_not() {
    let t = r#"{ fact = "attributes.flag", op = "eq", value = true }"#;
    let f = r#"{ fact = "attributes.number", op = "gt", value = 9 }"#;
    let u = r#"{ fact = "destination.region", op = "eq", value = "X" }"#;
    for (parts, all, any) in [
        ([t, t], YES, YES),
        ([t, f], NO, YES),
        ([t, u], UNKNOWN, YES),
        ([f, f], NO, NO),
        ([f, u], NO, UNKNOWN),
        ([u, u], UNKNOWN, UNKNOWN),
    ] {
        let [left, right] = parts;
        for list in [[left, right].join(", "), [right, left].join(", ")] {
            check(&format!("{{ all = [{list}] }}"), all);
            check(&format!("{{ any = [{list}] }}"), any);
        }
    }
    check(&format!("{{ not = {t} }}"), NO);
    check(&format!("{{ not = {f} }}"), YES);
    check(&format!("{{ not = {u} }}"), UNKNOWN);
}

/// A rule on a category applies below it, and not to one whose name only begins the same.
#[test]
fn rules_are_inherited() {
    let of = |categories: &str| {
        let lines =
            format!("severity = \"info\"\ndestinations = [\"A\"]\ncategories = {categories}");
        policy(&file(&lines))
    };
    let speaks = |policy: &Policy, category, way| {
        let (_, found) = case(category, way).judged_by(policy);
        found.contains_key("r")
    };
    for categories in [r#"["a"]"#, r#"["a/b"]"#, r#"["a/b/c"]"#, r#"["ALL"]"#] {
        assert!(speaks(&of(categories), "a/b/c", "BB>AA"), "{categories}");
    }
    assert!(!speaks(&of(r#"["a/b"]"#), "a/d", "BB>AA"));
    // In the group A are AA and AB.
    assert!(!speaks(&of(r#"["a"]"#), "a/b/c", "AA>BB"));
}

#[track_caller]
fn refused(text: &str, expected: &str) {
    let error = toml::from_str::<Policy>(text).unwrap_err().to_string();
    assert!(error.contains(expected), "{error}");
}

#[test]
fn a_condition_that_says_nothing_is_refused() {
    let refused = |condition: &str, expected: &str| refused(&rule(condition), expected);
    refused(
        r#"{ fact = "attributes.text", op = "like", value = "a" }"#,
        "unknown variant `like`",
    );
    refused(
        r#"{ fact = "attributes.colour", op = "exists" }"#,
        "the rule r: the attribute \"colour\" is not declared",
    );
    refused(
        r#"{ fact = "weather", op = "exists" }"#,
        "there is no fact \"weather\"",
    );
    refused(
        r#"{ op = "has_certificate", value = "CEE" }"#,
        "the certificate \"CEE\" is not declared",
    );
    refused(
        r#"{ fact = "origin", op = "in_group", value = "EU" }"#,
        "EU: no country and no group",
    );
    refused(
        r#"{ fact = "origin", op = "eq", value = "BOTH" }"#,
        "BOTH is a group: use in_group",
    );
    refused(
        r#"{ fact = "attributes.text", op = "gt", value = 3 }"#,
        "this operator compares numbers",
    );
    refused(
        r#"{ fact = "attributes.number", op = "contains", value = "3" }"#,
        "this operator compares texts",
    );
    refused(
        r#"{ fact = "attributes.flag", op = "eq", value = "yes" }"#,
        "the value does not fit the fact",
    );
    refused(
        r#"{ fact = "attributes.text", op = "exists", value = true }"#,
        "take no value",
    );
    refused(r#"{ fact = "attributes.text" }"#, "a condition is one of");
    refused("{ all = [], any = [] }", "a condition is one of");
    refused("{ all = [] }", "an empty all or any says nothing");
    refused(
        r#"{ fact = "attributes.text", op = "in", value = [] }"#,
        "an empty list says nothing",
    );
    refused(
        r#"{ fact = "attributes.text", ops = "eq", value = "a" }"#,
        "unknown field `ops`",
    );
}

/// A rule that can never have a finding looks like protection and is none.
#[test]
fn a_rule_that_contradicts_itself_is_refused() {
    let number = |op: &str, value: u32| {
        format!(r#"{{ fact = "attributes.number", op = "{op}", value = {value} }}"#)
    };
    let text = |op: &str, value: &str| {
        format!(r#"{{ fact = "attributes.text", op = "{op}", value = {value} }}"#)
    };
    let exists = r#"{ fact = "attributes.text", op = "exists" }"#.to_owned();
    let missing = r#"{ fact = "attributes.text", op = "missing" }"#.to_owned();
    let ce = r#"{ op = "has_certificate", value = "CE" }"#.to_owned();
    let not_ce = format!("{{ not = {ce} }}");
    for (left, right) in [
        (number("gt", 5), number("lt", 5)),
        (number("gte", 6), number("lte", 5)),
        (number("gt", 5), number("lte", 5)),
        (number("gte", 5), number("lt", 5)),
        (number("eq", 5), number("gt", 5)),
        (number("eq", 5), number("eq", 6)),
        (number("eq", 5), number("ne", 5)),
        (text("eq", "\"a\""), text("starts_with", "\"b\"")),
        (
            text("in", "[\"a\", \"b\"]"),
            text("not_in", "[\"b\", \"a\"]"),
        ),
        (text("eq", "\"a\""), missing.clone()),
        (exists.clone(), missing.clone()),
        (ce.clone(), not_ce.clone()),
        (
            format!("{{ any = [{{ all = [{ce}, {not_ce}] }}] }}"),
            exists.clone(),
        ),
    ] {
        let both = rule(&format!("{{ all = [{left}, {right}] }}"));
        refused(&both, "it can never say anything");
        let either = rule(&format!("{{ any = [{left}, {right}] }}"));
        toml::from_str::<Policy>(&either).unwrap();
    }
    // Those that are not, are not.
    policy(&rule(&format!(
        "{{ all = [{}, {}] }}",
        number("gte", 5),
        number("lte", 5)
    )));
    let requires = |when: &str, requires: &str| {
        let lines = "severity = \"block\"\ndestinations = [\"*\"]";
        file(&format!("{lines}\nwhen = {when}\nrequires = {requires}"))
    };
    refused(&requires(&ce, &ce), "it can never say anything");
    refused(
        &requires(&exists, &format!("{{ all = [{ce}, {not_ce}] }}")),
        "what it requires cannot be given",
    );
    let excepted =
        format!("severity = \"block\"\ndestinations = [\"*\"]\nwhen = {ce}\nexceptions = [{ce}]");
    refused(&file(&excepted), "it can never say anything");
    let never = excepted.replace(
        &format!("[{ce}]"),
        &format!("[{{ all = [{ce}, {not_ce}] }}]"),
    );
    refused(&file(&never), "an exception can never hold");
}

#[test]
fn what_leads_nowhere_is_refused() {
    let lines = |lines: &str| file(&format!("severity = \"info\"\n{lines}"));
    refused(
        &lines("destinations = [\"A\"]\ncategories = [\"b\"]"),
        "no category is \"b\"",
    );
    refused(
        &lines("destinations = [\"XX\"]"),
        "XX: no country and no group",
    );
    refused(&lines("destinations = []"), "about no country at all");
    refused(
        &lines("destinations = [\"A\"]\nexcept_destinations = [\"A\"]"),
        "about no country at all",
    );
    refused(
        &lines("destinations = [\"A\"]\nexcept_destinations = [\"B\"]"),
        "leaves out BA, which is not in it",
    );
    let good = lines("destinations = [\"A\"]");
    policy(&good);
    let change = |from: &str, to: &str| {
        assert!(good.contains(from));
        good.replacen(from, to, 1)
    };
    refused(
        &change("A = [\"AA\", \"AB\"]", "A = [\"BOTH\"]"),
        "leads back to itself: A > BOTH > A",
    );
    refused(
        &change("A = [\"AA\"", "A = [\"AX\""),
        "the group A names AX",
    );
    refused(
        &change("A = [", "AA = ["),
        "the group AA has the name of a country",
    );
    refused(&change("ALL = [\"a\"]", "ALL = [\"x\"]"), "the family ALL");
    refused(&change("\"a/d\"", "\"a//d\""), "\"a//d\" is not a category");
    refused(
        &change("\"AB\", \"BA\"", "\"AB\", \"AB\""),
        "the country \"AB\" is there twice",
    );
    refused(
        &change("source = \"s\"", "source = \"\""),
        "it needs a source and its date",
    );
    refused(
        &change("severity = \"info\"", "severity = \"fatal\""),
        "unknown variant `fatal`",
    );
    let twice = format!(
        "{good}\n[[rules]]{}",
        good.split("[[rules]]").nth(1).unwrap()
    );
    refused(&twice, "the rule r: there is another one of this name");
}

/// The two files of the program: each has its own label, and they differ in the rules that changed between them.
#[test]
fn the_files_of_the_program() {
    let (before, now) = (policy(BEFORE), policy(IN_FORCE));
    assert_eq!(
        (before.label.as_str(), now.label.as_str()),
        ("2025-06-01", "2026-11-01")
    );
    let ids = |policy: &Policy| -> Vec<String> {
        policy.rules().iter().map(|rule| rule.id.clone()).collect()
    };
    let (old, new) = (ids(&before), ids(&now));
    let added: Vec<&String> = new.iter().filter(|id| !old.contains(id)).collect();
    let expected = [
        "sanctions.syria",
        "eu.battery.epr",
        "us.toys.efiling",
        "eu.cultural_goods",
    ];
    assert_eq!(added, expected);
    assert!(old.iter().all(|id| new.contains(id)));
    for rule in now.rules() {
        // Every block or warning has a remedy.
        let is_info = rule.severity == Severity::Info;
        assert!(is_info || !rule.mitigations.is_empty(), "{}", rule.id);
        let is_date = rule.date.parse::<jiff::civil::Date>().is_ok();
        assert!(
            is_date && rule.date <= now.date,
            "{} of {}",
            rule.date,
            rule.id
        );
    }
    for rule in before.rules() {
        assert!(rule.date <= before.date, "{} was not in force", rule.id);
    }
}

/// The page names every fact and every operator.
#[test]
fn the_page_is_complete() {
    let page = include_str!("../../../../../docs/compliance-rules.md");
    let unknown = rule(r#"{ fact = "origin", op = "like" }"#);
    let error = toml::from_str::<Policy>(&unknown).unwrap_err().to_string();
    let (_, operators) = error.split_once("expected one of ").unwrap();
    let operators: Vec<&str> = operators.trim().split(", ").collect();
    assert_eq!(operators.len(), 14);
    let facts = fact_names().into_iter().map(|name| format!("`{name}`"));
    for name in facts.chain(operators.iter().map(|name| (*name).to_owned())) {
        let is_row = |line: &str| line.starts_with("| `") && line.contains(&name);
        assert!(page.lines().any(is_row), "{name} has no row");
    }
}

/// Every text that a buyer reads or agrees to exists in both languages, in every version of the rules.
#[test]
fn what_people_read_is_in_both_languages() {
    let is_chinese = |text: &str| {
        text.chars()
            .any(|letter| ('\u{4e00}'..='\u{9fff}').contains(&letter))
    };
    for file in [BEFORE, IN_FORCE] {
        let mut asked_of_buyers = 0;
        for rule in policy(file).rules() {
            let mut texts = vec![rule.message.clone()];
            texts.extend(rule.mitigations.iter().filter_map(Mitigation::of_buyer));
            asked_of_buyers += texts.len() - 1;
            for text in texts {
                let languages = [&text.en, &text.zh].map(|text| is_chinese(text));
                assert_eq!(languages, [false, true], "{}: {text:?}", rule.id);
            }
        }
        assert!(asked_of_buyers > 20, "{asked_of_buyers}");
    }
}
