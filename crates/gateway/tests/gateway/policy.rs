//! The policy file: rights to call tools, and the reports about mistakes in it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use countersign::authorize::{Authorizer as _, Verdict};
use countersign::contract::{Actor, ActorType, Digest, ToolSpec};
use countersign::sample::{AddNote, MemorySearch};
use countersign::{Catalog, Principal};
use countersign_gateway::policy::limits::BudgetScope;
use countersign_gateway::policy::{Keeper, LivePolicy, Policy, Reloaded};
use insta::assert_snapshot;

use crate::parts::Parts;

fn agent(id: &str) -> Actor {
    Actor {
        kind: ActorType::Agent,
        id: id.to_owned(),
    }
}

/// `notes.add` and `memory.search`.
fn specs() -> [ToolSpec; 2] {
    let builder = Catalog::builder()
        .tool(AddNote)
        .tool(MemorySearch::new(["milk"]));
    let catalog = builder.build().unwrap();
    ["notes.add", "memory.search"].map(|name| {
        let mut entries = catalog.list().into_iter();
        let entry = entries.find(|entry| entry.name().as_str() == name).unwrap();
        entry.spec().clone()
    })
}

/// Returns the decision about `notes.add`, which changes something, and about `memory.search`, which does not.
async fn check(policy: &str, principal: &Principal) -> String {
    let policy = Policy::parse(policy).unwrap();
    let mut said = Vec::new();
    for tool in &specs() {
        let decision = policy.decide(principal, tool).await.unwrap();
        let verdict = match decision.verdict {
            Verdict::Allow => "yes".to_owned(),
            Verdict::Forbid { hint } => hint.to_string(),
            Verdict::Unauthorized { hint } => format!("unauthorized: {hint}"),
        };
        said.push(format!("{}: {verdict}", tool.name));
    }
    said.join("\n")
}

/// Users' item 16: tools that no rule names are denied, and every rule that matches counts.
#[tokio::test]
async fn scopes_decide_who_may_call_a_tool() {
    let policy = r#"
        [[tools]]
        match = "*.search"
        [[tools]]
        match = "notes.*"
        scopes = ["notes:write", "admin"]
        [[tools]]
        match = "*.add"
        scopes = ["admin", "add"]
    "#;
    let user = Principal::user("u_1");
    assert_snapshot!(check(policy, &user).await, @r"
    notes.add: use a credential with one of the scopes notes:write, admin
    memory.search: yes
    ");
    let half = user.clone().scope("notes:write");
    assert_snapshot!(check(policy, &half).await, @r"
    notes.add: use a credential with one of the scopes admin, add
    memory.search: yes
    ");
    assert_snapshot!(check(policy, &user.clone().scope("admin")).await, @r"
    notes.add: yes
    memory.search: yes
    ");
    assert_snapshot!(check("revision = \"none\"", &user).await, @r"
    notes.add: no rule of the policy names this tool; add a [[tools]] entry for it
    memory.search: no rule of the policy names this tool; add a [[tools]] entry for it
    ");
    assert_snapshot!(check("[defaults]\nunlisted = \"allow\"", &user).await, @r"
    notes.add: yes
    memory.search: yes
    ");
}

/// An agent is limited to its list, also if it delegates its right to another.
#[tokio::test]
async fn agents_are_held_to_their_list() {
    let policy = r#"
        defaults = { unlisted = "allow" }
        [[agents]]
        id = "reader-*"
        allow = ["memory.*", "notes.*"]
        deny = ["notes.add"]
    "#;
    let reader = Principal::new(agent("reader-7"), "u_1");
    let expected =
        "notes.add: the policy does not let this agent call this tool\nmemory.search: yes";
    assert_eq!(check(policy, &reader).await, expected);
    let free = Principal::new(agent("writer"), "u_1");
    assert_eq!(
        check(policy, &free).await,
        "notes.add: yes\nmemory.search: yes"
    );
    let behind = free.delegated_by(vec![agent("reader-7")]);
    assert_eq!(check(policy, &behind).await, expected);
    let closed = format!("{policy}\n[[agents]]\nid = \"other\"").replace(
        "unlisted = \"allow\"",
        "unlisted = \"allow\", unlisted_agents = \"deny\"",
    );
    let stranger = Principal::new(agent("writer"), "u_1");
    assert!(!check(&closed, &stranger).await.contains("yes"));
    assert!(
        check(&closed, &Principal::user("writer"))
            .await
            .contains("yes")
    );
}

#[tokio::test]
async fn what_changes_something_needs_a_user() {
    let open = "[defaults]\nunlisted = \"allow\"\n";
    let job = Principal::without_user(agent("nightly"));
    assert_snapshot!(check(open, &job).await, @r"
    notes.add: this tool changes something: use a credential that names a user
    memory.search: yes
    ");
    let off = format!("{open}writes_need_user = false");
    assert_eq!(
        check(&off, &job).await,
        "notes.add: yes\nmemory.search: yes"
    );
    // A caller that acts for others names the user with each call.
    let backend = job.acting_for_others();
    assert_eq!(
        check(open, &backend).await,
        "notes.add: yes\nmemory.search: yes"
    );
}

/// Every mistake is reported with its place.
#[test]
fn a_bad_file_is_refused_with_its_line() {
    let check = |text: &str| Policy::parse(text).unwrap_err().to_string();
    let told = [
        check("revision = \"a b\""),
        check("\n[defaults]\nunlisted = \"maybe\""),
        check("[[tools]]\nmatch = \"notes.*\"\nscope = [\"a\"]"),
        check("[[tools]]\nmatch = \"no tes\""),
        check("[[tools]]\nmatch = \"a\"\nscopes = [\"fine\", \"not\\\"fine\"]"),
        check("[[tools]]\nscopes = []"),
        check("[limits.user]\ncalls = 0\nper = \"1m\""),
        check("[limits.user]\ncalls = 1\nper = \"1 minute\""),
        check("[[issuers]]\nissuer = \"i\"\naudience = \"a\""),
        check("[[issuers]]\nissuer = \"i\"\naudience = \"a\"\njwks_url = \"http://example.com/k\""),
        check(
            "[[budgets]]\nname = \"b\"\nscope = \"user\"\nlimit = \"0.00\"\ncurrency = \"USD\"\nper = \"1d\"",
        ),
        check(
            "[[budgets]]\nname = \"b\"\nscope = \"user\"\nlimit = \"1\"\ncurrency = \"usd\"\nper = \"1d\"",
        ),
        check(
            "[[budgets]]\nname = \"b\"\nscope = \"user\"\nlimit = \"1.5\"\ncurrency = \"JPY\"\nper = \"1d\"",
        ),
        check("defaults = 1 2"),
        check(""),
        check(" \n# nothing yet\n"),
    ];
    assert_snapshot!(told.join("\n"), @r#"
    line 1, column 12: "a b" is not a name: 1 to 64 letters, digits and _ . -
    line 3, column 12: unknown variant `maybe`, expected `allow` or `deny`
    line 3, column 1: unknown field `scope`, expected one of `match`, `scopes`, `confirm`, `four_eyes`, `valid_for`
    line 2, column 9: "no tes" is not a pattern: 1 to 128 letters, digits and _ . - / : @, with * for any characters
    line 3, column 10: "not\"fine" is not a scope: 1 to 128 visible ASCII characters, no quotes, no backslash
    line 1, column 1: missing field `match`
    line 2, column 9: invalid value: integer `0`, expected a nonzero u32
    line 3, column 7: "1 minute" is not a duration: a whole number with s, m, h or d, such as 10m, up to 366d
    line 1, column 1: an issuer that is not an https address needs jwks_url or jwks_file
    line 1, column 1: jwks_url "http://example.com/k" must be https, or http on this very machine
    line 4, column 9: "0.00" is not a valid amount: a number above zero in quotes, such as 500.00
    line 5, column 12: "usd" is not a valid currency: an ISO 4217 code such as USD
    line 1, column 1: the budget "b": the currency has 0 decimals at most
    line 1, column 12: string values must be quoted, expected literal string
    line 1, column 1: the file says nothing
    line 1, column 1: the file says nothing
    "#);
}

/// The example in the documentation has every section, and each is parsed.
#[test]
fn the_example_is_read() {
    let example = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/examples/policy.toml"
    );
    let policy = Policy::read(example.as_ref()).unwrap();
    assert!(policy.revision().starts_with("2026-11-16@"));
    assert!(policy.demands_confirmation("checkout.compute_total"));
    assert!(!policy.demands_confirmation("notes.add"));
    let scopes = ["tools:call", "notes:write", "admin", "orders:draft"];
    assert_eq!(policy.scopes(), scopes);
    let file = policy.file();
    assert_eq!(file.limits.user[0].calls.get(), 600);
    assert_eq!(
        file.limits.tools["notes.add"][0].per.duration().as_secs(),
        60
    );
    assert!(file.limits.user[0].shared && !file.limits.agent[0].shared);
    assert_eq!(file.breaker.as_ref().unwrap().identical.get(), 5);
    let budget = &file.budgets[0];
    assert_eq!((&*budget.limit, &*budget.currency), ("500.00", "USD"));
    assert_eq!(
        (budget.scope, budget.per.unwrap().duration().as_secs()),
        (BudgetScope::User, 86_400)
    );
    assert_eq!(&*budget.tools[0].amount, "/total/amount");
    assert_eq!(file.issuers[0].user_clients, ["web-console"]);
    assert_eq!(file.issuers[0].client_claims, ["client_id"]);
    assert!(!file.issuers[0].is_user_without_client);
    assert_eq!(file.approvals.valid_for.unwrap().duration().as_secs(), 900);
}

/// A new file comes into force with its record; a bad one changes nothing and is reported.
#[tokio::test]
async fn a_changed_file_is_read_again() {
    let parts = Parts::new();
    let recorder = parts.recorder();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("policy.toml");
    std::fs::write(&path, "revision = \"one\"").unwrap();
    let live = Arc::new(LivePolicy::open(&path).unwrap());
    live.announce(&recorder).await.unwrap();
    assert!(matches!(live.reload(&recorder).await, Reloaded::Unchanged));
    parts.clock.advance(Duration::from_secs(2));

    std::fs::write(&path, "revision = \"two\"\n[[tols]]").unwrap();
    let Reloaded::Refused(error) = live.reload(&recorder).await else {
        unreachable!("a bad file is refused");
    };
    assert_eq!((error.line, error.column), (2, 3));
    assert!(live.current().revision().starts_with("one@"));
    assert_eq!(live.fault().as_deref(), Some(&error));

    std::fs::write(&path, "revision = \"two\"\n[[tools]]\nmatch = \"*\"").unwrap();
    assert!(matches!(
        live.reload(&recorder).await,
        Reloaded::Accepted(_)
    ));
    assert_eq!(live.fault(), None);
    let decision = live
        .decide(&Principal::user("u_1"), &specs()[0])
        .await
        .unwrap();
    assert!(decision.is_allowed() && decision.policy_revision.starts_with("two@"));

    std::fs::remove_file(&path).unwrap();
    assert!(matches!(live.reload(&recorder).await, Reloaded::Refused(_)));
    assert!(live.current().revision().starts_with("two@"));

    let records = parts.config_records().await;
    let acts: Vec<String> = records
        .iter()
        .map(|record| record["act"].to_string())
        .collect();
    assert_snapshot!(acts.join("\n"), @r#"
    {"digest":"sha256:a7f2dc20da99eadcf9a3b152ddbbfe3338bbea488eda5394293c432579d7ec03","event":"policy_loaded","revision":"one@a7f2dc20da99"}
    {"digest":"sha256:50cdb1354e46468f29ac3ba937866d2dcaaadd8306c83520fdbf06d79eea1943","event":"policy_changed","revision":"two@50cdb1354e46"}
    "#);
}

/// A15: records name a policy by its digest, so its text is stored before it is in force, at the start and
/// after a change. A policy whose text cannot be stored does not come into force.
#[tokio::test]
async fn the_text_of_a_policy_is_kept_before_it_is_in_force() {
    let parts = Parts::new();
    let recorder = parts.recorder();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("policy.toml");
    let (one, two) = ("revision = \"one\"", "revision = \"two\"");
    std::fs::write(&path, one).unwrap();
    let live = LivePolicy::open(&path).unwrap();
    let kept: Arc<Mutex<Vec<(Digest, String)>>> = Arc::default();
    let is_full = Arc::new(AtomicBool::new(false));
    let (shelf, full) = (kept.clone(), is_full.clone());
    let keeper = Keeper::new(move |digest, text| {
        if full.load(Ordering::Relaxed) {
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        shelf.lock().unwrap().push((digest, text.to_owned()));
        Ok(())
    });
    live.keep_with(keeper).unwrap();
    let by_digest = |text: &str| (Digest::of_bytes(text.as_bytes()), text.to_owned());
    assert_eq!(*kept.lock().unwrap(), [by_digest(one)]);

    std::fs::write(&path, two).unwrap();
    is_full.store(true, Ordering::Relaxed);
    let Reloaded::Refused(error) = live.reload(&recorder).await else {
        unreachable!("what cannot be kept is refused");
    };
    assert!(error.message.contains("cannot be kept"), "{error}");
    assert!(live.current().revision().starts_with("one@"));
    assert_eq!(parts.config_records().await.len(), 0);

    is_full.store(false, Ordering::Relaxed);
    let reloaded = live.reload(&recorder).await;
    assert!(matches!(reloaded, Reloaded::Accepted(_)), "{reloaded:?}");
    assert_eq!(*kept.lock().unwrap(), [by_digest(one), by_digest(two)]);
    let digest = live.current().digest().unwrap().to_string();
    let records = parts.config_records().await;
    assert_eq!(records[0]["act"]["digest"], digest);
    assert_eq!(digest, by_digest(two).0.to_string());
}

/// A mistake in a file is no longer reported when the file is again the one in force.
#[tokio::test]
async fn a_fault_ends_with_the_file_that_had_it() {
    let parts = Parts::new();
    let recorder = parts.recorder();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("policy.toml");
    let good = "revision = \"one\"";
    std::fs::write(&path, good).unwrap();
    let live = LivePolicy::open(&path).unwrap();
    for bad in [None, Some("[[tols]]"), Some("")] {
        match bad {
            None => std::fs::remove_file(&path).unwrap(),
            Some(bad) => std::fs::write(&path, bad).unwrap(),
        }
        let reloaded = live.reload(&recorder).await;
        assert!(matches!(reloaded, Reloaded::Refused(_)), "{bad:?}");
        assert!(live.fault().is_some(), "{bad:?}");
        std::fs::write(&path, good).unwrap();
        assert!(matches!(live.reload(&recorder).await, Reloaded::Unchanged));
        assert_eq!(live.fault(), None, "{bad:?}");
    }
}

/// A file that is being written is not read: half of a policy may be a valid one.
#[tokio::test(start_paused = true)]
async fn a_file_that_is_being_written_is_not_taken() {
    let parts = Parts::new();
    let recorder = parts.recorder();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("policy.toml");
    std::fs::write(&path, "revision = \"one\"").unwrap();
    let live = LivePolicy::open(&path).unwrap();
    std::fs::write(&path, "revision = \"half\"").unwrap();
    // The clock of this test is paused until both wait: the second half comes while the first settles.
    let second_half = async {
        tokio::time::sleep(Duration::from_millis(49)).await;
        std::fs::write(&path, "revision = \"half\"\n[[tools]]\nmatch = \"*\"").unwrap();
    };
    let (reloaded, ()) = tokio::join!(live.reload(&recorder), second_half);
    assert!(matches!(reloaded, Reloaded::Changing), "{reloaded:?}");
    assert!(live.current().revision().starts_with("one@"));
    let reloaded = live.reload(&recorder).await;
    assert!(matches!(reloaded, Reloaded::Accepted(_)), "{reloaded:?}");
    assert_eq!(live.current().file().tools.len(), 1);
}

/// A pipe in place of the file is refused without waiting: the next file is read as usual.
#[tokio::test]
async fn a_pipe_is_no_policy() {
    let parts = Parts::new();
    let recorder = parts.recorder();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("policy.toml");
    std::fs::write(&path, "revision = \"one\"").unwrap();
    let live = LivePolicy::open(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&path).status();
    assert!(made.unwrap().success());
    let Reloaded::Refused(error) = live.reload(&recorder).await else {
        unreachable!("a pipe is refused");
    };
    assert!(
        error.message.ends_with("it is not a regular file"),
        "{error}"
    );
    assert!(LivePolicy::open(&path).is_err());
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, "revision = \"two\"").unwrap();
    assert!(matches!(
        live.reload(&recorder).await,
        Reloaded::Accepted(_)
    ));
}

/// A rule that configures confirmations must require them; a pause is limited. A policy that is a table of
/// another file equals one in a file of its own, and mistakes are reported with their place in that file.
#[test]
fn a_policy_within_a_file_is_read_at_its_place() {
    let folder = std::path::Path::new("etc");
    let text =
        "[server]\nlisten = 'x'\n[policy]\nrevision = '7'\n[[policy.tools]]\nmatch = 'notes.*'\n";
    let within = Policy::within(text, folder).unwrap();
    let alone = Policy::parse(within.text()).unwrap();
    assert_eq!(within.revision(), alone.revision());
    let moved = text.replace("'x'", "'y'");
    let moved = Policy::within(&moved, folder).unwrap();
    assert_eq!(moved.digest(), within.digest(), "only the table counts");
    let wrong = Policy::within(&text.replace("match", "matches"), folder).unwrap_err();
    assert_eq!((wrong.line, wrong.column), (6, 1), "{wrong}");
    let empty = Policy::within("[policy]\n", folder).unwrap_err();
    assert_eq!(empty.message, "the file says nothing");
}

#[test]
fn how_a_tool_is_confirmed_is_checked() {
    let told = |text: &str| match Policy::parse(text) {
        Ok(_) => "fine".to_owned(),
        Err(error) => error.to_string(),
    };
    let rule = |members: &str| told(&format!("[[tools]]\nmatch = \"notes.*\"\n{members}"));
    assert_eq!(
        rule("confirm = \"always\"\nfour_eyes = true\nvalid_for = \"5m\""),
        "fine"
    );
    for lost in ["four_eyes = true", "valid_for = \"5m\""] {
        let told = rule(lost);
        assert!(
            told.contains("has four_eyes or valid_for, and no confirm"),
            "{told}"
        );
    }
    let pause = |value: &str| told(&format!("[approvals]\ncool_down = \"{value}\""));
    for fine in ["0s", "2m", "24h"] {
        assert_eq!(pause(fine), "fine");
    }
    for wrong in ["0", "25h", "-1s", ""] {
        assert!(pause(wrong).contains("is not a valid time"), "{wrong}");
    }
}
