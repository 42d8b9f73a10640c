//! Messages for people come in the language of the envelope's locale; codes, keys and evidence do not change with
//! it.

use std::sync::Arc;
use std::time::Duration;

use countersign::authorize::Rules;
use countersign::contract::tool::KeyRule;
use countersign::contract::{Input, Language, Parameter, ToolName, ValueKind, Wording};
use countersign::limit::{LimitRules, Limits, Rate};
use countersign::{Principal, Reply, ToolError};
use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::world::{Probe, World};

const CHINESE: &str = "zh-CN";

/// The envelope of a caller who reads Chinese.
fn chinese(more: &Value) -> Value {
    let mut envelope = json!({ "locale": CHINESE });
    let members = more.as_object().into_iter().flatten();
    for (name, value) in members {
        envelope[name] = value.clone();
    }
    envelope
}

/// The texts of a reply for people: the error, then the warnings.
fn said(reply: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let error = &reply["error"];
    let mut lines = Vec::new();
    if !error.is_null() {
        let details = &error["details"];
        lines.push(format!(
            "{}: {}",
            text(&error["code"]),
            text(&error["message"])
        ));
        lines.push(format!("hint: {}", text(&details["hint"])));
        for issue in details["issues"].as_array().into_iter().flatten() {
            let (code, message) = (text(&issue["code"]), text(&issue["message"]));
            lines.push(format!(
                "{code}: {message} | {}",
                text(&issue["suggestion"])
            ));
        }
    }
    for warning in reply["warnings"].as_array().into_iter().flatten() {
        let (code, message) = (text(&warning["code"]), text(&warning["message"]));
        lines.push(format!("{code}: {message}"));
    }
    lines.join("\n")
}

/// The texts for a caller whose envelope has locale `zh-CN`.
async fn told(world: &World, tool: &str, arguments: Value, envelope: Value) -> String {
    said(&world.send(tool, &arguments, &chinese(&envelope)).await)
}

fn limited(name: &str) -> Probe {
    let limit = Parameter::new("limit", ValueKind::Integer, "How many.");
    Probe::write(name).input(Input::parameters([limit]))
}

/// B9: the issues for which the binder refuses, its changes, and missing members beside the arguments.
#[tokio::test]
async fn arguments() {
    let world = World::new(limited("notes.add").key(KeyRule::Required));
    let keyed = json!({"idempotency_key": "k1"});
    let send = async |arguments, envelope| told(&world, "notes.add", arguments, envelope).await;
    assert_snapshot!(send(json!({"limt": 2}), keyed.clone()).await, @r#"
    INVALID_ARGUMENT: 未知参数 "limt"：可用的参数有 limit
    hint: 请逐项更正问题后，重新发送调用
    UNKNOWN_KEY: 未知参数 "limt"：可用的参数有 limit | 您是否想写 "limit"？
    MISSING_REQUIRED: 缺少必填参数，应为：整数 | 请提供 "limit"
    "#);
    assert_snapshot!(send(json!({"limit": "2"}), keyed).await, @"TEXT_TO_INTEGER: 字符串已按整数读取");
    assert_snapshot!(send(json!({"limit": 2}), json!({})).await, @r"
    INVALID_ARGUMENT: 调用 notes.add 需要提供 idempotency_key
    hint: 每个新的意图请使用新的键，重试时请使用同一个键
    ");
    assert_snapshot!(send(json!({}), json!({"timezone": "Mars/Base"})).await, @r"
    INVALID_ARGUMENT: 信封中的 timezone 不是 IANA 时区名称，例如 Europe/Berlin
    hint: 请更正该项；若没有，请省略或填 null
    ");
}

/// A tool that is not there, that the policy does not allow, or that is asked too often.
#[tokio::test]
async fn refusals() {
    let world = World::new(Probe::read("notes.list"));
    assert_snapshot!(told(&world, "notes.lst", json!({}), json!({})).await, @r#"
    NOT_FOUND: 没有名为 "notes.lst" 的工具
    hint: 请先列出工具，查看有哪些可用
    TOOL_DEFINITION_MISSING: tool_definition_missing：该工具没有参数声明
    "#);

    let name = ToolName::new("notes.list").unwrap();
    let rules = Rules::new("r_1").allow(name.clone(), "a").allow(name, "b");
    let world = World::of([Probe::read("notes.list")], |builder| {
        builder.authorizer(Arc::new(rules))
    });
    assert_snapshot!(told(&world, "notes.list", json!({}), json!({})).await, @r"
    FORBIDDEN: 当前凭证无权调用工具 notes.list
    hint: 请使用具有以下任一权限范围的凭证：a, b
    ");
    let other = json!({"user_id": "u_2"});
    assert_snapshot!(told(&world, "notes.list", json!({}), other).await, @r"
    FORBIDDEN: 信封中的 user_id 与凭证不一致
    hint: 请省略该项，或使用可代他人操作的凭证
    ");

    let limits = Limits::new(LimitRules {
        user: vec![Rate::new(1, Duration::from_secs(10)).into()],
        ..LimitRules::default()
    });
    let world = World::of([Probe::read("notes.list")], |builder| {
        builder.limiter(Arc::new(limits))
    });
    told(&world, "notes.list", json!({}), json!({})).await;
    assert_snapshot!(told(&world, "notes.list", json!({}), json!({})).await, @r"
    RATE_LIMITED: 该用户的调用额度已用完
    hint: 请等待 retry_after_ms 毫秒后，重新发送同一调用
    ");
}

/// A13: the caller gets the hint to let the user confirm; the approver gets the reason why an answer does not count.
#[tokio::test]
async fn confirmation() {
    let world = World::new(Probe::write("pay.send").confirmed());
    let send = async |envelope| told(&world, "pay.send", json!({}), envelope).await;
    assert_snapshot!(send(json!({"dry_run": true})).await, @r"
    NEEDS_USER_CONFIRMATION: 在用户确认之前，实际调用会返回 NEEDS_USER_CONFIRMATION
    VALIDATED_ONLY: 该调用会被接受；工具没有实际运行
    ");
    assert_snapshot!(send(json!({})).await, @r"
    NEEDS_USER_CONFIRMATION: 对 pay.send 的本次调用须经用户确认
    hint: 请让用户确认，然后重新发送同一调用
    ");
    let by = Principal::user("u_1");
    world.approvals().deny("ap_1", &by, None).await.unwrap();
    assert_snapshot!(send(json!({})).await, @r"
    FORBIDDEN: 用户已拒绝对 pay.send 的本次调用
    hint: 除非用户要求，请勿再次发送
    ");

    let late = world.approvals().approve("ap_1", &by, None).await;
    let body = late.unwrap_err().into_body();
    let body = body.in_language(Language::Chinese);
    assert_snapshot!(said(&json!({ "error": body })), @r#"
    CONFLICT: 确认请求 "ap_1" 已被拒绝
    hint: 请重新发送调用，需要时会再次询问
    "#);
}

/// A17, A18: a conflict is in the caller's language; a stored answer keeps its first language.
#[tokio::test]
async fn keys() {
    let world = World::new(
        limited("notes.add")
            .with(|behaviour| behaviour.ttl_seconds = Some(60))
            .body(|ctx, _| {
                Box::pin(async {
                    ctx.remark("KEPT", Wording::new("it is kept", "已保存"));
                    Ok(Reply::from(json!({})))
                })
            }),
    );
    let keyed = json!({"idempotency_key": "k1"});
    let send = async |arguments: Value, envelope: &Value| {
        said(&world.send("notes.add", &arguments, envelope).await)
    };
    assert_snapshot!(send(json!({"limit": "1"}), &keyed).await, @r"
    TEXT_TO_INTEGER: a string was read as the integer it spells
    KEPT: it is kept
    ");
    assert_snapshot!(send(json!({"limit": 2}), &chinese(&keyed)).await, @r"
    CONFLICT: 该 idempotency_key 已用于其他参数，不同之处：/limit
    hint: 新的调用请使用新的 idempotency_key，重试请使用最初的参数
    ");
    world.advance_seconds(61);
    assert_snapshot!(send(json!({"limit": 1}), &chinese(&keyed)).await, @r"
    TEXT_TO_INTEGER: a string was read as the integer it spells
    KEPT: it is kept
    STALE_REPLAY: 这是首次调用的结果，其有效期已过
    ");
}

/// A tool's text in both languages is shown in the caller's; a text in one language is shown as it is.
#[tokio::test(start_paused = true)]
async fn tools() {
    let probe = Probe::read("shop.ask").body(|_, arguments| {
        Box::pin(async move {
            Err(match arguments["how"].as_str() {
                Some("both") => ToolError::not_found(Wording::new("no cart", "没有购物车"))
                    .hint(Wording::new("make one", "请先创建")),
                Some("one") => ToolError::not_found("E_CART"),
                _ => return std::future::pending().await,
            })
        })
    });
    let world = World::new(probe.with(|behaviour| behaviour.deadline_ms = 5_000));
    let send = async |how| told(&world, "shop.ask", json!({ "how": how }), json!({})).await;
    assert_snapshot!(send("both").await, @r"
    NOT_FOUND: 没有购物车
    hint: 请先创建
    ");
    assert_snapshot!(send("one").await, @r"
    NOT_FOUND: E_CART
    hint: -
    ");
    assert_snapshot!(send("never").await, @r"
    TIMEOUT: 工具在 5000 毫秒内没有答复
    hint: 请重新发送同一调用；如有 idempotency_key，请保持不变
    ");
}

/// A14, A15: the log of a call is the same in every language: codes, and no sentence. The sealed payload has the reply
/// as it was given, so its commitment differs.
#[tokio::test]
async fn records_have_no_language() {
    let leaf = async |locale: &str| {
        let world = World::logging([limited("notes.add")]);
        let envelope = json!({"locale": locale, "idempotency_key": "k1"});
        let arguments = json!({"limt": 2});
        let reply = world.send("notes.add", &arguments, &envelope).await;
        let (mut leaf, _) = world.log().await.pop().unwrap();
        let payload = leaf.as_object_mut().unwrap().remove("payload");
        assert!(payload.is_some(), "{leaf}");
        (reply["error"]["code"].clone(), leaf)
    };
    assert_eq!(leaf("en-US").await, leaf(CHINESE).await);
}
