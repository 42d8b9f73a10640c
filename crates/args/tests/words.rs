//! The binder's messages in the language of the caller's locale. Codes, places and values do not depend on it.

#![expect(clippy::unwrap_used, reason = "tests")]

use countersign_args::{Binder, Bound, Reading, StopReason};
use countersign_contract::Issue;
use countersign_contract::tool::{BindPolicy, UnknownKeys};
use insta::assert_snapshot;
use serde_json::{Value, json};

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "city": { "type": "string", "maxLength": 5 },
            "days": { "type": "integer", "minimum": 1, "maximum": 9 },
            "price": { "type": "number", "exclusiveMinimum": 0, "multipleOf": 5 },
            "unit": { "enum": ["celsius", "fahrenheit"] },
            "order": { "type": "string", "pattern": "^ord_[0-9]+$" },
            "day": { "type": "string", "format": "date" },
            "tags": { "type": "array", "items": { "type": "string" }, "maxItems": 2, "uniqueItems": true },
            "either": { "type": ["integer", "object", "null"] },
        },
        "required": ["city"],
        "additionalProperties": false,
    })
}

fn bind(raw: &str, locale: Option<&str>) -> Bound {
    let binder = Binder::from_schema(&schema(), BindPolicy::default()).unwrap();
    binder.bind_with(raw, &Reading::new(locale, None))
}

fn line(issue: &Issue) -> String {
    let Issue { code, message, .. } = issue;
    let suggestion = issue.suggestion.as_deref().unwrap_or("-");
    format!("{code} {}: {message} | {suggestion}\n", issue.path)
}

/// Binds every text below once and lists their issues.
fn said(locale: Option<&str>) -> String {
    let texts = [
        r#"{"city": "Rome", "dayz": 1}"#,
        r#"{"days": 1}"#,
        r#"{"city": "Constantinople"}"#,
        r#"{"city": "Rome", "days": 0}"#,
        r#"{"city": "Rome", "days": true}"#,
        r#"{"city": "Rome", "days": 2.5}"#,
        r#"{"city": "Rome", "price": 7}"#,
        r#"{"city": "Rome", "unit": "kelvin"}"#,
        r#"{"city": "Rome", "unit": "celcius"}"#,
        r#"{"city": "Rome", "order": "12"}"#,
        r#"{"city": "Rome", "day": "tomorrow"}"#,
        r#"{"city": "Rome", "tags": ["a", "b", "c"]}"#,
        r#"{"city": "Rome", "tags": ["a", "a"]}"#,
        r#"{"city": "Rome", "either": "x"}"#,
        r#"{"city": "Rome", "city": "Oslo"}"#,
        r#"{"city": "Rome""#,
        r#"{"city": "Rome"} {"city": "Oslo"}"#,
        r#"[{"city": "Rome"}, {"city": "Oslo"}]"#,
        "no arguments at all",
        "Sure: {city: 'Rome', days: '3', tags: 'a',}",
    ];
    let lines = texts.map(|raw| {
        let bound = bind(raw, locale);
        let issues: String = bound.issues.iter().map(line).collect();
        format!("{raw}\n{issues}")
    });
    lines.concat()
}

/// A refusal names the thing, what is allowed and what to send.
#[test]
fn in_english() {
    assert_snapshot!(said(None), @r#"
    {"city": "Rome", "dayz": 1}
    UNKNOWN_KEY /dayz: unknown argument "dayz": allowed are city, day, days, either, order, price, tags, unit | did you mean "day"?
    {"days": 1}
    MISSING_REQUIRED /city: a required parameter is missing: expected a string | send "city"
    {"city": "Constantinople"}
    CONSTRAINT /city: the value is not allowed: expected at most 5 characters | send at most 5 characters
    {"city": "Rome", "days": 0}
    CONSTRAINT /days: the value is not allowed: expected at least 1 | send at least 1
    {"city": "Rome", "days": true}
    TYPE_MISMATCH /days: the value has the wrong type: expected an integer, at least 1, at most 9, got a boolean | send an integer, at least 1, at most 9
    {"city": "Rome", "days": 2.5}
    LOSSY /days: the value cannot be converted without loss: expected an integer, at least 1, at most 9 | send a whole number
    {"city": "Rome", "price": 7}
    CONSTRAINT /price: the value is not allowed: expected a multiple of 5 | send a multiple of 5
    {"city": "Rome", "unit": "kelvin"}
    ENUM_NO_MATCH /unit: the value is not one of those allowed: expected one of "celsius", "fahrenheit" | send one of "celsius", "fahrenheit"
    {"city": "Rome", "unit": "celcius"}
    ENUM_NO_MATCH /unit: the value is not one of those allowed: expected one of "celsius", "fahrenheit" | did you mean "celsius"?
    {"city": "Rome", "order": "12"}
    CONSTRAINT /order: the value is not allowed: expected a string that matches ^ord_[0-9]+$ | send a string that matches ^ord_[0-9]+$
    {"city": "Rome", "day": "tomorrow"}
    CONSTRAINT /day: the value is not allowed: expected a date, such as 2026-11-15 | send a date, such as 2026-11-15
    {"city": "Rome", "tags": ["a", "b", "c"]}
    CONSTRAINT /tags: the value is not allowed: expected at most 2 items | send at most 2 items
    {"city": "Rome", "tags": ["a", "a"]}
    CONSTRAINT /tags: the value is not allowed: expected each item only once | send each item only once
    {"city": "Rome", "either": "x"}
    TYPE_MISMATCH /either: the value has the wrong type: expected an integer or an object or null, got a string | send an integer or an object or null
    {"city": "Rome", "city": "Oslo"}
    DUPLICATE_KEY /city: the same name has two different values | send "city" only once
    {"city": "Rome"
    INCOMPLETE : the text ends before the arguments are complete | send the whole arguments again
    {"city": "Rome"} {"city": "Oslo"}
    AMBIGUOUS : the text has two different documents, and it is not clear which one is meant | send one JSON object and nothing else
    [{"city": "Rome"}, {"city": "Oslo"}]
    AMBIGUOUS : more than one reading fits, got a list of different documents | send one object for one call
    no arguments at all
    NOT_FOUND : no arguments were found in the text | send the arguments as one JSON object
    Sure: {city: 'Rome', days: '3', tags: 'a',}
    KEY_UNQUOTED : a name had no quotes, 3 times | -
    QUOTE_STYLE : a quote character other than " was read as ", 3 times | -
    TRAILING_COMMA : a trailing comma was ignored | -
    PROSE_SKIPPED : prose around the arguments was skipped | -
    TEXT_TO_INTEGER /days: a string was read as the integer it spells | -
    SCALAR_WRAPPED /tags: a single value was wrapped in a list | -
    "#);
    assert_eq!(said(None), said(Some("de-DE")));
}

/// The same in Chinese.
#[test]
fn in_chinese() {
    assert_snapshot!(said(Some("zh-CN")), @r#"
    {"city": "Rome", "dayz": 1}
    UNKNOWN_KEY /dayz: 未知参数 "dayz"：可用的参数有 city, day, days, either, order, price, tags, unit | 您是否想写 "day"？
    {"days": 1}
    MISSING_REQUIRED /city: 缺少必填参数，应为：字符串 | 请提供 "city"
    {"city": "Constantinople"}
    CONSTRAINT /city: 值不符合要求，应为：最多 5 个字符 | 请提供：最多 5 个字符
    {"city": "Rome", "days": 0}
    CONSTRAINT /days: 值不符合要求，应为：不小于 1 | 请提供：不小于 1
    {"city": "Rome", "days": true}
    TYPE_MISMATCH /days: 值的类型不符，应为：整数，不小于 1，不大于 9，实为：布尔值 | 请提供：整数，不小于 1，不大于 9
    {"city": "Rome", "days": 2.5}
    LOSSY /days: 转换该值会丢失信息，应为：整数，不小于 1，不大于 9 | 请提供整数
    {"city": "Rome", "price": 7}
    CONSTRAINT /price: 值不符合要求，应为：5 的倍数 | 请提供：5 的倍数
    {"city": "Rome", "unit": "kelvin"}
    ENUM_NO_MATCH /unit: 值不在允许的范围内，应为："celsius", "fahrenheit" 之一 | 请提供："celsius", "fahrenheit" 之一
    {"city": "Rome", "unit": "celcius"}
    ENUM_NO_MATCH /unit: 值不在允许的范围内，应为："celsius", "fahrenheit" 之一 | 您是否想写 "celsius"？
    {"city": "Rome", "order": "12"}
    CONSTRAINT /order: 值不符合要求，应为：匹配 ^ord_[0-9]+$ 的字符串 | 请提供：匹配 ^ord_[0-9]+$ 的字符串
    {"city": "Rome", "day": "tomorrow"}
    CONSTRAINT /day: 值不符合要求，应为：日期，例如 2026-11-15 | 请提供：日期，例如 2026-11-15
    {"city": "Rome", "tags": ["a", "b", "c"]}
    CONSTRAINT /tags: 值不符合要求，应为：最多 2 项 | 请提供：最多 2 项
    {"city": "Rome", "tags": ["a", "a"]}
    CONSTRAINT /tags: 值不符合要求，应为：每项只出现一次 | 请提供：每项只出现一次
    {"city": "Rome", "either": "x"}
    TYPE_MISMATCH /either: 值的类型不符，应为：整数或对象或空值 null，实为：字符串 | 请提供：整数或对象或空值 null
    {"city": "Rome", "city": "Oslo"}
    DUPLICATE_KEY /city: 同一名称有两个不同的值 | "city" 请只提供一次，并使用您想要的值
    {"city": "Rome"
    INCOMPLETE : 文本没有写完 | 请重新发送完整的参数
    {"city": "Rome"} {"city": "Oslo"}
    AMBIGUOUS : 文本中有两个不同的文档，无法确定以哪一个为准 | 请只发送一个 JSON 对象，不要附带其他内容
    [{"city": "Rome"}, {"city": "Oslo"}]
    AMBIGUOUS : 存在不止一种解读，实为：包含不同文档的列表 | 每次调用请只提供一个对象
    no arguments at all
    NOT_FOUND : 文本中没有找到参数 | 请将参数作为一个 JSON 对象发送
    Sure: {city: 'Rome', days: '3', tags: 'a',}
    KEY_UNQUOTED : 名称没有加引号，共 3 处 | -
    QUOTE_STYLE : 引号不是 "，已按引号读取，共 3 处 | -
    TRAILING_COMMA : 已忽略多余的逗号 | -
    PROSE_SKIPPED : 已跳过参数前后的说明文字 | -
    TEXT_TO_INTEGER /days: 字符串已按整数读取 | -
    SCALAR_WRAPPED /tags: 单个值已放入列表 | -
    "#);
    assert_eq!(said(Some("zh-CN")), said(Some("zh-Hant-TW")));
}

/// A12: the language changes no code, no place and no value, only the messages.
#[test]
fn only_the_sentences_change() {
    let plain = |bound: Bound| {
        let issues = bound.issues.into_iter().map(|issue| Issue {
            message: String::new(),
            expected: issue.expected.map(|_| String::new()),
            suggestion: issue.suggestion.map(|_| String::new()),
            ..issue
        });
        (bound.status, bound.arguments, issues.collect::<Vec<_>>())
    };
    for raw in [
        r#"{"city": "Rome", "dayz": 1}"#,
        "Sure: {city: 'Rome', days: '3',}",
        r#"{"city": "Rome", "price": 7"#,
        "nothing",
    ] {
        assert_eq!(
            plain(bind(raw, None)),
            plain(bind(raw, Some("zh"))),
            "{raw}"
        );
    }
}

/// Streams and policies report in the same language too.
#[test]
fn streams_and_policies_speak_too() {
    let strict = BindPolicy {
        unknown_keys: UnknownKeys::Drop,
        max_severity: countersign_contract::Severity::Syntax,
        ..BindPolicy::default()
    };
    let binder = Binder::from_schema(&schema(), strict).unwrap();
    let reading = Reading::new(Some("zh-CN"), None);
    let bound = binder.bind_with(r#"{"city": "Rome", "dayz": 1}"#, &reading);
    let issues: String = bound.issues.iter().map(line).collect();
    let mut stream = binder.stream_with(reading);
    stream.push(r#"{"city": "Rome"}"#);
    let cut = stream.finish(StopReason::Truncated);
    let cut: String = cut.issues.iter().map(line).collect();
    assert_snapshot!(issues + &cut, @r#"
    POLICY_EXCEEDED /dayz: 该工具不允许如此程度的修正 | 请修改参数，使其无需 UNKNOWN_KEY_DROPPED 修正
    UNKNOWN_KEY_DROPPED /dayz: 已删除未知参数 | 您是否想写 "day"？
    INCOMPLETE : 模型在写完之前已用尽 token 额度 | 请提高 token 上限后重试
    "#);
}
