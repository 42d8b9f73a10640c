//! Questions and answers: only the person who is asked decides, about exactly the call that then runs, once
//! (A13).

use std::sync::atomic::Ordering;
use std::time::Duration;

use countersign::contract::ActorType;
use serde_json::{Value, json};

use crate::case::{
    ASKED, CONFLICT, Case, Expected, FORBIDDEN, INVALID, NOT_FOUND, Request, Tally, case, message,
};
use crate::world::NOW;
use crate::world::{Backing, World};

const HARM: &str = "a disk that is wiped";

/// A13: only the person answers for themselves, and an answer counts for one call.
pub(crate) async fn attack(backing: Backing) -> Tally {
    let world = World::start(backing).await;
    let mut tally = Tally::new("approvals");
    let id = ask(&world, "sda").await;
    tally
        .run(&world, "answers of others", answers(&world, &id))
        .await;
    tally
        .run(&world, "malformed answers", malformed(&world, &id))
        .await;
    let still = world.honest(&wipe(&world.cast.shopper, "sda")).await;
    tally.check("the question is still open", still.status, 428);
    another_call(&world, &id, &mut tally).await;
    no_means_no(&world, &mut tally).await;
    too_late(&world, &mut tally).await;
    ceilings(&world, &mut tally).await;
    shown(&world, &mut tally).await;
    renderings(&world, &mut tally).await;
    pauses(&world, &mut tally).await;
    four_eyes(&world, &mut tally).await;
    floods(&world, &mut tally).await;
    at_once(&world, &mut tally).await;
    tally
}

/// A call that has to be confirmed.
pub(crate) fn wipe(by: &str, disk: &str) -> Request {
    Request::call("disk.wipe", &json!({"arguments": {"disk": disk}})).by(by)
}

fn keyed(by: &str, disk: &str, key: &str) -> Request {
    let body = json!({"arguments": {"disk": disk}, "idempotency_key": key});
    Request::call("disk.wipe", &body).by(by)
}

fn answer(id: &str, by: &str, decision: &str) -> Request {
    let body = json!({"decision": decision}).to_string();
    Request::post(format!("/v1/approvals/{id}"), body).by(by)
}

/// Makes a call of the agent and returns its question.
pub(crate) async fn ask(world: &World, disk: &str) -> String {
    asked(world, &wipe(&world.cast.shopper, disk)).await
}

pub(crate) async fn asked(world: &World, request: &Request) -> String {
    let reply = message(&world.honest(request).await);
    let id = reply["error"]["details"]["approval_id"].as_str();
    id.unwrap_or_else(|| unreachable!("{reply}")).to_owned()
}

/// Answers as the user.
pub(crate) async fn say(world: &World, id: &str, decision: &str) {
    let answered = world.honest(&answer(id, &world.cast.ann, decision)).await;
    assert_eq!(answered.status, 200, "{answered:?}");
    if decision == "deny" {
        pause(world);
    }
}

/// Advances the clock past the cool-down after a denial.
fn pause(world: &World) {
    world.parts.clock.advance(Duration::from_mins(3));
}

fn answers(world: &World, id: &str) -> Vec<Case> {
    let (cast, issuers) = (&world.cast, &world.issuers);
    let all = "approvals:answer keys:manage";
    let yes = |by: &str| answer(id, by, "approve");
    let refused = |name: &str, by: &str| case(name, yes(by), FORBIDDEN, HARM);
    let hidden = |name: &str, by: &str| case(name, yes(by), NOT_FOUND, HARM);
    let agent = issuers.by_home(&json!({"client_id": "bot", "scope": all}));
    let delegated =
        issuers.by_home(&json!({"client_id": "console", "act": {"sub": "bot"}, "scope": all}));
    let unnamed = issuers.by_home(&json!({"azp": "other", "client_id": "console", "scope": all}));
    let mut cases = vec![
        refused("the agent that asks", &cast.shopper),
        refused("the agent, with another credential", &cast.reader),
        refused("an agent with every scope", &cast.greedy),
        refused("an agent that is denied", &cast.blocked),
        refused("an application with the scope", &agent),
        refused("an agent that the user sent", &delegated),
        refused("an application behind the console", &unnamed),
        hidden("another user", &cast.bob),
        hidden("who makes keys", &cast.root),
        hidden("a backend", &cast.shop),
        hidden("an agent that acts for others", &cast.broker),
        hidden("a program that acts for nobody", &cast.job),
        hidden(
            "the same name of another issuer",
            &issuers.by_corp(&json!({"sub": "ann", "scope": all})),
        ),
        hidden(
            "an agent of another issuer",
            &issuers.by_corp(&json!({"sub": "ann", "client_id": "bot"})),
        ),
        hidden(
            "an ann in capitals",
            &issuers.by_home(&json!({"sub": "ANN"})),
        ),
        case(
            "another user looks",
            Request::get(format!("/v1/approvals/{id}")).by(&cast.bob),
            NOT_FOUND,
            HARM,
        ),
        case(
            "another user lists",
            Request::get("/v1/approvals").by(&cast.bob),
            Expected::Harmless(200),
            HARM,
        ),
        case(
            "an agent says no",
            answer(id, &cast.shopper, "deny"),
            FORBIDDEN,
            HARM,
        ),
        case(
            "another user says no",
            answer(id, &cast.bob, "deny"),
            NOT_FOUND,
            HARM,
        ),
    ];
    let short = &id[..id.len() - 1];
    let upper = id.to_uppercase();
    for forged in [
        "ap_0",
        "ap_00000000000000000000000000000000",
        short,
        &upper,
        "%20",
        "*",
        "ap_%00",
        "..%2f",
    ] {
        cases.push(case(
            format!("a made up question {forged}"),
            answer(forged, &cast.ann, "approve"),
            NOT_FOUND,
            HARM,
        ));
    }
    cases
}

/// Answers of the user herself that are incomplete, or have unknown members.
fn malformed(world: &World, id: &str) -> Vec<Case> {
    let long = json!({"decision": "approve", "reason": "r".repeat(501)}).to_string();
    let deep = format!(
        r#"{{"decision": {}"approve"{}}}"#,
        "[".repeat(500),
        "]".repeat(500)
    );
    let bodies = [
        "",
        "{}",
        "[]",
        "null",
        "\"approve\"",
        r#"{"decision": "APPROVE"}"#,
        r#"{"decision": "yes"}"#,
        r#"{"decision": true}"#,
        r#"{"decision": ["approve"]}"#,
        r#"{"decision": {"approve": null}}"#,
        r#"["approve", null]"#,
        r#"{"decision": "deny", "decision": "approve"}"#,
        r#"{"decision": "approve", "user_id": "bob"}"#,
        r#"{"decision": "approve", "actor": {"type": "user", "id": "ann"}}"#,
        r#"{"decision": "approve", "arguments": {"disk": "sdb"}}"#,
        r#"{"decision": "approve", "expires_at": "2099-01-01T00:00:00Z"}"#,
        r#"{"decision": "approve", "reason": 7}"#,
        r#"{"decision": "approve", "reason": "a\u0000b"}"#,
        r#"{"decision": "approve", "reason": "a\u001b[2Kb"}"#,
        &long,
        &deep,
        "{\"decision\": \"approve\"",
        "{\"decision\": \"approve\"} {}",
        "decision=approve",
    ];
    let mut cases: Vec<Case> = bodies
        .map(|body| {
            let request = Request::post(format!("/v1/approvals/{id}"), body).by(&world.cast.ann);
            let shown: String = body.chars().take(60).collect();
            case(format!("the answer {shown}"), request, INVALID, HARM)
        })
        .into();
    let latin = Request::post(
        format!("/v1/approvals/{id}"),
        b"{\"decision\": \"approve\", \"reason\": \"\xe9\"}".to_vec(),
    );
    cases.push(case(
        "an answer in Latin-1",
        latin.by(&world.cast.ann),
        INVALID,
        HARM,
    ));
    cases
}

/// An approval counts for this call, once.
async fn another_call(world: &World, id: &str, tally: &mut Tally) {
    let cast = &world.cast;
    say(world, id, "approve").await;
    let of = |by: &str, more: Value| {
        let mut body = json!({"arguments": {"disk": "sda"}});
        for (name, value) in more.as_object().unwrap() {
            body[name] = value.clone();
        }
        Request::call("disk.wipe", &body).by(by)
    };
    let text = |arguments: &str| Request::post("/v1/tools/disk.wipe", arguments).by(&cast.shopper);
    let cases = vec![
        case("another disk", wipe(&cast.shopper, "sdb"), ASKED, HARM),
        case(
            "a disk that looks alike",
            wipe(&cast.shopper, "sd\u{430}"),
            ASKED,
            HARM,
        ),
        case(
            "a disk with a space",
            wipe(&cast.shopper, "sda "),
            ASKED,
            HARM,
        ),
        case("another agent", wipe(&cast.greedy, "sda"), ASKED, HARM),
        case("the user herself", wipe(&cast.ann, "sda"), ASKED, HARM),
        case("another user", wipe(&cast.bob, "sda"), ASKED, HARM),
        case(
            "another currency",
            of(&cast.shopper, json!({"currency": "JPY"})),
            ASKED,
            HARM,
        ),
        case(
            "another time zone",
            of(&cast.shopper, json!({"timezone": "Asia/Tokyo"})),
            ASKED,
            HARM,
        ),
        case(
            "a denied agent",
            wipe(&cast.blocked, "sda"),
            FORBIDDEN,
            HARM,
        ),
        case(
            "two disks",
            text(r#"{"arguments": {"disk": "sda", "disk": "sdb"}}"#),
            INVALID,
            HARM,
        ),
        case(
            "a disk too many",
            text(r#"{"arguments": {"disk": "sda", "also": "sdb"}}"#),
            INVALID,
            HARM,
        ),
        case(
            "an answer again",
            answer(id, &cast.ann, "approve"),
            CONFLICT,
            HARM,
        ),
        case(
            "a no after the yes",
            answer(id, &cast.ann, "deny"),
            CONFLICT,
            HARM,
        ),
        case(
            "a yes of the desk after it",
            answer(id, &cast.desk, "approve"),
            CONFLICT,
            HARM,
        ),
    ];
    tally
        .run(world, "other calls than the one that was confirmed", cases)
        .await;
    let made = world.honest(&keyed(&cast.shopper, "sda", "k_made")).await;
    tally.check("the call that was confirmed", made.status, 200);
    world.rebase().await;
    let cases = vec![
        case(
            "an answer that is used",
            answer(id, &cast.ann, "approve"),
            CONFLICT,
            HARM,
        ),
        case(
            "the same call under another key",
            keyed(&cast.shopper, "sda", "k_again"),
            ASKED,
            HARM,
        ),
        case(
            "the same key for another disk",
            keyed(&cast.shopper, "sdc", "k_made"),
            CONFLICT,
            HARM,
        ),
        case(
            "the same key of another agent",
            keyed(&cast.greedy, "sda", "k_made"),
            Expected::Harmless(200),
            HARM,
        ),
        case(
            "the same key of another user",
            keyed(&cast.bob, "sda", "k_made"),
            ASKED,
            HARM,
        ),
    ];
    tally.run(world, "an answer that is used", cases).await;
}

async fn no_means_no(world: &World, tally: &mut Tally) {
    let cast = &world.cast;
    let id = ask(world, "no").await;
    say(world, &id, "deny").await;
    let with = |more: Value| {
        let mut body = json!({"arguments": {"disk": "no"}});
        for (name, value) in more.as_object().unwrap() {
            body[name] = value.clone();
        }
        Request::call("disk.wipe", &body).by(&cast.shopper)
    };
    let cases = vec![
        case("the same call", wipe(&cast.shopper, "no"), FORBIDDEN, HARM),
        case(
            "the same call of another agent",
            wipe(&cast.greedy, "no"),
            FORBIDDEN,
            HARM,
        ),
        case(
            "the same call in another currency",
            with(json!({"currency": "JPY"})),
            FORBIDDEN,
            HARM,
        ),
        case(
            "the same call under a key",
            with(json!({"idempotency_key": "k_no"})),
            FORBIDDEN,
            HARM,
        ),
        case(
            "the same call that waits",
            wipe(&cast.shopper, "no").with("prefer", "wait=60"),
            FORBIDDEN,
            HARM,
        ),
        case(
            "a dry run of it",
            with(json!({"dry_run": true})),
            FORBIDDEN,
            HARM,
        ),
        case(
            "a yes after the no",
            answer(&id, &cast.ann, "approve"),
            CONFLICT,
            HARM,
        ),
        case(
            "a yes of the desk after it",
            answer(&id, &cast.desk, "approve"),
            CONFLICT,
            HARM,
        ),
    ];
    tally.run(world, "a no", cases).await;
}

async fn too_late(world: &World, tally: &mut Tally) {
    let cast = &world.cast;
    let unanswered = ask(world, "late").await;
    let answered = ask(world, "later").await;
    say(world, &answered, "approve").await;
    world.parts.clock.advance(Duration::from_mins(16));
    let cases = vec![
        case(
            "an answer to a question that is over",
            answer(&unanswered, &cast.ann, "approve"),
            CONFLICT,
            HARM,
        ),
        case(
            "a call whose answer is over",
            wipe(&cast.shopper, "later"),
            ASKED,
            HARM,
        ),
        case(
            "a call whose question is over",
            wipe(&cast.shopper, "late"),
            ASKED,
            HARM,
        ),
    ];
    tally.run(world, "too late", cases).await;
}

fn buy(by: &str, shop: &str, amount: &Value, currency: &str) -> Request {
    let arguments = json!({"shop": shop, "amount": amount, "currency": currency});
    Request::call("shop.buy", &json!({"arguments": arguments})).by(by)
}

/// A price may fall, but not rise by a cent.
async fn ceilings(world: &World, tally: &mut Tally) {
    let (by, harm) = (&world.cast.shopper, "money that nobody agreed to");
    let id = asked(world, &buy(by, "tea", &json!(1000), "EUR")).await;
    say(world, &id, "approve").await;
    let cases = vec![
        case(
            "a cent more",
            buy(by, "tea", &json!(1001), "EUR"),
            ASKED,
            harm,
        ),
        case(
            "a cent more, as text",
            buy(by, "tea", &json!("1001"), "EUR"),
            ASKED,
            harm,
        ),
        case(
            "the largest number",
            buy(by, "tea", &json!(u32::MAX), "EUR"),
            ASKED,
            harm,
        ),
        case(
            "a number that wraps around",
            buy(by, "tea", &json!(4_294_968_296_u64), "EUR"),
            INVALID,
            harm,
        ),
        case(
            "a number below zero",
            buy(by, "tea", &json!(-1000), "EUR"),
            INVALID,
            harm,
        ),
        case(
            "a fraction of a cent",
            buy(by, "tea", &json!(999.5), "EUR"),
            INVALID,
            harm,
        ),
        case(
            "another currency",
            buy(by, "tea", &json!(1000), "KWD"),
            ASKED,
            harm,
        ),
        case(
            "the currency in small letters",
            buy(by, "tea", &json!(1000), "eur"),
            ASKED,
            harm,
        ),
        case(
            "another shop",
            buy(by, "coffee", &json!(1000), "EUR"),
            ASKED,
            harm,
        ),
    ];
    tally.run(world, "a ceiling", cases).await;
    // A higher price was asked about again; the earlier approval does not answer it.
    let id = asked(world, &buy(by, "cocoa", &json!(1000), "EUR")).await;
    say(world, &id, "approve").await;
    let bought = world.honest(&buy(by, "cocoa", &json!(999), "EUR")).await;
    tally.check("a cent less", bought.status, 200);
    let cents = world.deeds.cents.load(Ordering::SeqCst);
    tally.check("what was spent", cents, 999);
    world.rebase().await;
    let again = buy(by, "cocoa", &json!(998), "EUR");
    let cases = vec![case("a second purchase", again, ASKED, harm)];
    tally.run(world, "a ceiling that is used", cases).await;
}

/// The approver sees hidden characters, and is not asked about unreadable text.
async fn shown(world: &World, tally: &mut Tally) {
    let by = &world.cast.shopper;
    for (name, disk, hidden) in [
        ("bidi", "sd\u{202e}a", '\u{202e}'),
        ("an isolate", "\u{2066}sda\u{2069}", '\u{2066}'),
        ("zero width", "sd\u{200b}a", '\u{200b}'),
        ("an escape sequence", "\u{1b}[2Ksda", '\u{1b}'),
    ] {
        let id = asked(world, &wipe(by, disk)).await;
        let look = Request::get(format!("/v1/approvals/{id}")).by(&world.cast.ann);
        let question = message(&world.honest(&look).await);
        let disk = question["arguments"]["disk"].as_str().unwrap_or_default();
        let is_seen = !disk.contains(hidden) && disk.contains(r"\u{");
        tally.check(&format!("{name} is made visible"), is_seen, true);
        say(world, &id, "deny").await;
    }
    let huge = "d".repeat(70 << 10);
    let cases = vec![
        case(
            "arguments that nobody can read",
            wipe(by, &huge),
            INVALID,
            HARM,
        ),
        case(
            "the same as a dry run",
            Request::call(
                "disk.wipe",
                &json!({"dry_run": true, "arguments": {"disk": huge}}),
            )
            .by(by),
            INVALID,
            HARM,
        ),
    ];
    tally.run(world, "questions", cases).await;
}

/// An answer to another rendering than the current one does not count.
async fn renderings(world: &World, tally: &mut Tally) {
    let cast = &world.cast;
    let id = ask(world, "rendered").await;
    let with = |digest: Value| {
        let body = json!({"decision": "approve", "shown_digest": digest}).to_string();
        Request::post(format!("/v1/approvals/{id}"), body).by(&cast.ann)
    };
    let zeros = format!("sha256:{}", "0".repeat(64));
    let cases = vec![
        case("a digest of nothing", with(json!(zeros)), CONFLICT, HARM),
        case(
            "a digest that is none",
            with(json!("sha256:0")),
            INVALID,
            HARM,
        ),
        case("a digest as a number", with(json!(7)), INVALID, HARM),
        case("a digest as a list", with(json!([zeros])), INVALID, HARM),
        case(
            "the call meanwhile",
            wipe(&cast.shopper, "rendered"),
            ASKED,
            HARM,
        ),
    ];
    tally.run(world, "renderings", cases).await;
}

/// After a denial, other arguments, another agent and another key cannot ask again at once.
async fn pauses(world: &World, tally: &mut Tally) {
    let cast = &world.cast;
    let id = ask(world, "pause").await;
    let no = world.honest(&answer(&id, &cast.ann, "deny")).await;
    tally.check("a no", no.status, 200);
    let cases = vec![
        case(
            "another disk",
            wipe(&cast.shopper, "pause 2"),
            FORBIDDEN,
            HARM,
        ),
        case(
            "another disk of another agent",
            wipe(&cast.greedy, "pause 3"),
            FORBIDDEN,
            HARM,
        ),
        case(
            "another disk under a key",
            keyed(&cast.shopper, "pause 4", "k_pause"),
            FORBIDDEN,
            HARM,
        ),
        case(
            "another user's disk",
            wipe(&cast.bob, "pause 5"),
            ASKED,
            HARM,
        ),
    ];
    tally.run(world, "a pause", cases).await;
    pause(world);
    let after = world.honest(&wipe(&cast.shopper, "pause 2")).await;
    tally.check("after the pause", after.status, 428);
}

/// Two approvers are two people, and neither is the caller.
async fn four_eyes(world: &World, tally: &mut Tally) {
    let cast = &world.cast;
    let launch = |by: &str, key: &str| {
        let body = json!({"arguments": {"disk": "moon"}, "idempotency_key": key});
        Request::call("disk.launch", &body).by(by)
    };
    let id = asked(world, &launch(&cast.shopper, "k_1")).await;
    let harm = "a launch with one yes";
    say(world, &id, "approve").await;
    let again = world
        .issuers
        .by_home(&json!({"exp": NOW + 3_600, "client_id": "console"}));
    let cases = vec![
        case(
            "the call after one yes",
            launch(&cast.shopper, "k_1"),
            ASKED,
            harm,
        ),
        case(
            "the same person again",
            answer(&id, &cast.ann, "approve"),
            FORBIDDEN,
            harm,
        ),
        case(
            "the same person by another credential",
            answer(&id, &again, "approve"),
            FORBIDDEN,
            harm,
        ),
        case(
            "the agent as the second",
            answer(&id, &cast.shopper, "approve"),
            FORBIDDEN,
            harm,
        ),
        case(
            "another agent as the second",
            answer(&id, &cast.greedy, "approve"),
            FORBIDDEN,
            harm,
        ),
        case(
            "somebody without the scope",
            answer(&id, &cast.bob, "approve"),
            NOT_FOUND,
            harm,
        ),
    ];
    tally.run(world, "four eyes", cases).await;
    let second = world.honest(&answer(&id, &cast.desk, "approve")).await;
    tally.check("the second yes", second.status, 200);
    let made = world.honest(&launch(&cast.shopper, "k_1")).await;
    tally.check("the call after two", made.status, 200);
    world.rebase().await;
}

/// One agent cannot flood a user with questions.
async fn floods(world: &World, tally: &mut Tally) {
    let (agent, _) = world.key(ActorType::Agent, "pest", Some("carl"), &[]).await;
    world.rebase().await;
    for n in 0..20 {
        asked(world, &wipe(&agent, &format!("flood {n}"))).await;
    }
    let limited = || Expected::Code(429, "RATE_LIMITED");
    let cases = vec![
        case(
            "a question too many",
            wipe(&agent, "flood 20"),
            limited(),
            HARM,
        ),
        case(
            "a purchase too many",
            buy(&agent, "tea", &json!(1), "EUR"),
            limited(),
            HARM,
        ),
        case(
            "the questions of others",
            wipe(&world.cast.bob, "flood"),
            ASKED,
            HARM,
        ),
    ];
    tally.run(world, "a flood", cases).await;
}

/// Eight concurrent requests for one answer, and for one question.
async fn at_once(world: &World, tally: &mut Tally) {
    let id = ask(world, "race").await;
    let requests: Vec<Request> = ["approve", "deny"]
        .iter()
        .cycle()
        .take(8)
        .map(|decision| answer(&id, &world.cast.ann, decision))
        .collect();
    let answers = futures_util::future::join_all(requests.iter().map(|it| world.honest(it))).await;
    let statuses = sorted(answers.iter().map(|answer| answer.status));
    let mut expected = vec![409; 7];
    expected.insert(0, 200);
    tally.check("eight answers at once", statuses, expected);
    pause(world);

    let id = ask(world, "race once").await;
    say(world, &id, "approve").await;
    let before = world.deeds.wiped.load(Ordering::SeqCst);
    let by = &world.cast.shopper;
    let calls: Vec<Request> = (0..8)
        .map(|n| keyed(by, "race once", &format!("k_{n}")))
        .collect();
    let replies = futures_util::future::join_all(calls.iter().map(|it| world.honest(it))).await;
    let made = replies.iter().filter(|reply| reply.status == 200).count();
    tally.check("eight calls for one answer", made, 1);
    let others = replies
        .iter()
        .all(|reply| [200, 428].contains(&reply.status));
    tally.check("the others are asked about", others, true);
    let wiped = world.deeds.wiped.load(Ordering::SeqCst) - before;
    tally.check("one disk", wiped, 1);
    world.rebase().await;
    tally.stands(world, "races").await;
}

fn sorted(statuses: impl Iterator<Item = u16>) -> Vec<u16> {
    let mut statuses: Vec<u16> = statuses.collect();
    statuses.sort_unstable();
    statuses
}
