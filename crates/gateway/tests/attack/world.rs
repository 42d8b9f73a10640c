//! A gateway on a real store with its keys, issuers and users, and the invariants that must hold whatever is
//! sent to it.

use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use countersign::archive::SCOPE_ERASE;
use countersign::archive::verify::Verification;
use countersign::clock::ManualClock;
use countersign::contract::Effect;
use countersign::contract::{Actor, ActorType};
use countersign::ids::RandomIds;
use countersign::ledger::LogQuery;
use countersign::sequencer::{LastStop, Sequencer, Tick};
use countersign::{Effects, Principal};
use countersign_evidence::note::SigningKey;
use countersign_gateway::Settings;
use countersign_gateway::identity::{ApiKeys, Identity, NewKey, SCOPE_KEYS};
use countersign_gateway::policy::{LivePolicy, Policy};
use countersign_testkit::patience::until;
use countersign_testkit::postgres::shared_postgres;
use serde_json::{Value, json};

use crate::captured::CAPTURED;
use crate::case::{Request, message};
use crate::http_client::{Answer, raw};
use crate::issuers::Issuers;
use crate::parts::{Parts, Server};
use crate::tools::{Deeds, catalog};

/// The store of a world.
#[derive(Clone, Copy)]
pub(crate) enum Backing {
    Sqlite,
    Postgres,
}

/// Notes of two users: another caller that sees one has broken in.
pub(crate) const CANARIES: [&str; 2] = ["canary-of-ann-5f2c81", "canary-of-bob-a07e44"];

pub(crate) struct World {
    pub(crate) address: SocketAddr,
    pub(crate) parts: Parts,
    pub(crate) server: Server,
    pub(crate) keys: ApiKeys,
    pub(crate) cast: Cast,
    pub(crate) issuers: Issuers,
    pub(crate) deeds: Arc<Deeds>,
    /// Record and request id of a call of Ann's.
    pub(crate) record: String,
    pub(crate) request: String,
    /// One for all groups: the process that has signed once keeps the lease of the log for a while.
    sequencer: tokio::sync::Mutex<Sequencer>,
    /// URL for a second database connection.
    url: Option<String>,
    folder: tempfile::TempDir,
    /// Answers to attackers since the last check, and the credentials they sent.
    answered: Mutex<Vec<(String, Vec<u8>)>>,
    /// Effects of legitimate calls.
    done: Mutex<Vec<String>>,
}

/// A credential for each role.
#[derive(Default)]
pub(crate) struct Cast {
    pub(crate) ann: String,
    pub(crate) bob: String,
    /// A person who creates keys.
    pub(crate) root: String,
    /// An agent of Ann's that may write.
    pub(crate) shopper: String,
    /// The same agent with a credential that may not.
    pub(crate) reader: String,
    /// An agent of Ann's with every built-in scope that an agent can hold.
    pub(crate) greedy: String,
    /// An agent to which the policy denies everything.
    pub(crate) blocked: String,
    /// A backend that acts for its users, and an agent that does.
    pub(crate) shop: String,
    pub(crate) broker: String,
    /// A support desk that may answer for all users.
    pub(crate) desk: String,
    /// A program that acts for no user.
    pub(crate) job: String,
    /// A person who may open their own records.
    pub(crate) opener: String,
    /// A key that has expired, one that was revoked, one whose user was erased.
    pub(crate) expired: String,
    pub(crate) revoked: String,
    pub(crate) erased: String,
    /// Ids of some of them.
    pub(crate) root_id: String,
    pub(crate) desk_id: String,
}

fn actor(kind: ActorType, id: &str) -> Actor {
    Actor {
        kind,
        id: id.to_owned(),
    }
}

/// The operator: the owner of the data folder.
pub(crate) fn operator() -> Principal {
    let actor = actor(ActorType::System, "operator/ann");
    let principal = Principal::new(actor, "").scope(SCOPE_KEYS);
    principal.scope(SCOPE_ERASE)
}

const RULES: &str = r#"
    revision = "attack"
    [defaults]
    unlisted = "allow"
    [[tools]]
    match = "notes.add"
    scopes = ["notes:write"]
    [[tools]]
    match = "disk.launch"
    confirm = "always"
    four_eyes = true
    [[agents]]
    id = "blocked-*"
    deny = ["*"]
"#;

/// The time of the parts' clock, in seconds since 1970: 2060-11-16T12:00:00Z.
pub(crate) const NOW: i64 = crate::signer::NOW + 12_419 * 86_400;

/// The same parts with a clock that is ahead of the machine's: the time that a durable store has believed counts where it is later.
fn ahead(parts: Parts) -> Parts {
    let start = "2060-11-16T12:00:00Z".parse().unwrap();
    let clock = Arc::new(ManualClock::starting_at(start));
    let ids = Arc::new(RandomIds::new(clock.clone()));
    Parts::on(parts.store, clock, ids)
}

impl World {
    pub(crate) async fn start(backing: Backing) -> Self {
        LazyLock::force(&CAPTURED);
        let folder = tempfile::tempdir().unwrap();
        let (parts, url) = match backing {
            Backing::Sqlite => (ahead(Parts::on_sqlite(folder.path())), None),
            Backing::Postgres => {
                let url = shared_postgres().fresh_database();
                (ahead(Parts::on_postgres(&url).await), Some(url))
            }
        };
        let issuers = Issuers::in_folder(folder.path());
        let keys = parts.api_keys();
        let identity = identity(&parts, &keys, folder.path());
        let deeds = Arc::new(Deeds::default());
        let settings = Settings::default();
        let server = parts.serve_tools(identity, settings, catalog(&deeds)).await;
        let log = SigningKey::from_seed("example.com/log", &[7; 32]).unwrap();
        let sequencer = Sequencer::builder(parts.store.clone(), log);
        let sequencer = sequencer.start(LastStop::default()).await.unwrap();
        let mut world = Self {
            address: server.address,
            sequencer: tokio::sync::Mutex::new(sequencer),
            parts,
            server,
            keys,
            cast: Cast::default(),
            issuers,
            deeds,
            record: String::new(),
            request: String::new(),
            url,
            folder,
            answered: Mutex::default(),
            done: Mutex::default(),
        };
        world.furnish().await;
        world
    }

    /// Starts another server on the same store, with the same clock and issuers.
    pub(crate) async fn beside(&self, settings: Settings) -> Server {
        let parts = match &self.url {
            Some(url) => Parts::on_postgres(url).await.store,
            None => self.parts.store.clone(),
        };
        let parts = Parts::on(parts, self.parts.clock.clone(), self.parts.ids.clone());
        let keys = parts.api_keys();
        let identity = identity(&parts, &keys, self.folder.path());
        let catalog = catalog(&self.deeds);
        parts.serve_tools(identity, settings, catalog).await
    }

    /// Creates the keys, and a note of each user.
    async fn furnish(&mut self) {
        use ActorType::{Agent, System, User};

        let write = &["notes:write"][..];
        let own = async |id: &str, scopes: &[&str]| self.key(User, id, None, scopes).await;
        let agent =
            async |id: &str, scopes: &[&str]| self.key(Agent, id, Some("ann"), scopes).await;
        let system = async |id: &str, scopes: &[&str]| self.key(System, id, Some(id), scopes).await;
        let greedy = [
            "notes:write",
            "evidence:open",
            "calls:read",
            "evidence:erase",
        ];
        let (root, root_id) = own("root", &["notes:write", "keys:manage"]).await;
        let (desk, desk_id) = system("desk", &["approvals:answer"]).await;
        let cast = Cast {
            ann: own("ann", write).await.0,
            bob: own("bob", write).await.0,
            root,
            shopper: agent("shopper", write).await.0,
            reader: agent("shopper", &[]).await.0,
            greedy: agent("greedy", &greedy).await.0,
            blocked: agent("blocked-1", write).await.0,
            shop: self.key(System, "shop", None, write).await.0,
            broker: self.key(Agent, "broker", None, write).await.0,
            desk,
            job: self.nobodys("nightly").await,
            opener: own("opener", &["evidence:open", "notes:write"]).await.0,
            expired: self.key_until("ann", write, "2060-11-16T12:00:01Z").await.0,
            revoked: own("rex", write).await.0,
            erased: own("eve", write).await.0,
            root_id,
            desk_id,
        };
        for (key, text) in [
            (&cast.ann, CANARIES[0]),
            (&cast.bob, CANARIES[1]),
            (&cast.erased, "a note of eve"),
        ] {
            let call = Request::call("notes.add", &json!({"arguments": {"text": text}}));
            let reply = message(&self.honest(&call.by(key)).await);
            assert_eq!(reply["ok"], true, "{reply}");
            if text == CANARIES[0] {
                let text = |value: &Value| value.as_str().unwrap().to_owned();
                self.record = text(&reply["evidence"]["snapshot_id"]);
                self.request = text(&reply["request_id"]);
            }
        }
        let id_of = |token: &str| token.split('_').nth(1).unwrap().to_owned();
        self.keys
            .revoke(&id_of(&cast.revoked), &operator())
            .await
            .unwrap();
        let archive = self.server.gateway.archive();
        archive
            .erase("eve", &operator(), "she asked")
            .await
            .unwrap();
        self.parts.clock.advance(Duration::from_secs(2));
        self.cast = cast;
        self.rebase().await;
    }

    /// Creates a key; returns it and its id.
    pub(crate) async fn key(
        &self,
        kind: ActorType,
        id: &str,
        user: Option<&str>,
        scopes: &[&str],
    ) -> (String, String) {
        let is_program = kind != ActorType::User;
        let new = NewKey {
            label: String::new(),
            actor: actor(kind, id),
            user_id: user.map(str::to_owned),
            acts_for_others: is_program && user.is_none(),
            scopes: scopes.iter().map(ToString::to_string).collect(),
            expires_at: None,
            effects: None,
        };
        self.made(new).await
    }

    /// Creates a person's key that only reads.
    pub(crate) async fn reading_key(&self, user: &str, scopes: &[&str]) -> String {
        let new = NewKey {
            actor: actor(ActorType::User, user),
            effects: Effects::of([Effect::Read]),
            ..new_agent(user, scopes)
        };
        self.made(new).await.0
    }

    async fn made(&self, new: NewKey) -> (String, String) {
        let issued = self.keys.create(new, &operator()).await.unwrap();
        (issued.token.to_string(), issued.key.id)
    }

    async fn nobodys(&self, id: &str) -> String {
        let new = NewKey {
            acts_for_others: false,
            ..new_agent(id, &["notes:write"])
        };
        self.made(new).await.0
    }

    /// Creates a person's key that expires; returns it and its id.
    pub(crate) async fn key_until(
        &self,
        user: &str,
        scopes: &[&str],
        end: &str,
    ) -> (String, String) {
        let new = NewKey {
            actor: actor(ActorType::User, user),
            expires_at: Some(end.parse().unwrap()),
            ..new_agent(user, scopes)
        };
        self.made(new).await
    }

    /// Removes all public keys of an issuer.
    pub(crate) fn withdraw_keys(&self, issuer: &str) {
        let none = json!({"keys": []}).to_string();
        std::fs::write(self.folder.path().join(issuer), none).unwrap();
    }

    /// Sends an attacker's request.
    pub(crate) async fn send(&self, name: &str, request: &Request) -> Option<Answer> {
        let answer = raw(self, request.wire()).await;
        if let Some(answer) = &answer {
            let bytes = format!("{}\n{}", answer.head, answer.body).into_bytes();
            let mut answered = self.answered.lock().unwrap();
            answered.push((name.to_owned(), bytes));
        }
        answer
    }

    /// Sends a legitimate request.
    pub(crate) async fn honest(&self, request: &Request) -> Answer {
        let answer = raw(self, request.wire()).await;
        answer.expect("an answer")
    }

    /// Accepts all effects until now as legitimate.
    pub(crate) async fn rebase(&self) {
        let effects = self.effects().await;
        *self.done.lock().unwrap() = effects;
    }

    /// Returns all effects of calls.
    async fn effects(&self) -> Vec<String> {
        let mut effects = Vec::new();
        for key in [&self.cast.ann, &self.cast.bob, &self.cast.root] {
            let list = Request::call("notes.list", &json!({"arguments": {}})).by(key);
            let reply = message(&self.honest(&list).await);
            effects.push(reply["data"].to_string());
        }
        let keys = self.keys.list(&operator()).await.unwrap();
        let keys: Vec<_> = keys.iter().map(|key| (&key.id, key.revoked_at)).collect();
        effects.push(format!("{keys:?}"));
        for count in [&self.deeds.wiped, &self.deeds.paid, &self.deeds.cents] {
            effects.push(count.load(Ordering::SeqCst).to_string());
        }
        effects
    }

    /// Returns broken invariants: an effect happened, the log is incomplete, a caller or the log got another
    /// user's data, or requests are not answered.
    pub(crate) async fn complaints(&self) -> Vec<String> {
        let mut complaints = Vec::new();
        let health = self.honest(&Request::get("/healthz")).await;
        if health.status != 200 {
            complaints.push(format!("the server answers {health:?}"));
        }
        let effects = self.effects().await;
        let done = self.done.lock().unwrap().clone();
        if effects != done {
            complaints.push(format!("something was done: {done:?} became {effects:?}"));
        }
        complaints.extend(self.faults_of_the_log().await);
        let needles = self.needles();
        let answered = std::mem::take(&mut *self.answered.lock().unwrap());
        for (name, bytes) in answered {
            if let Some(needle) = found(&bytes, &needles) {
                complaints.push(format!("{name} was told {needle:?}"));
            }
        }
        for (sink, bytes) in [
            ("the log", CAPTURED.written().await),
            ("our own events", CAPTURED.plain()),
        ] {
            if let Some(needle) = found(&bytes, &needles) {
                complaints.push(format!("{needle:?} is in {sink}"));
            }
        }
        complaints
    }

    async fn faults_of_the_log(&self) -> Vec<String> {
        self.parts.store.flush().await.unwrap();
        let mut sequencer = self.sequencer.lock().await;
        until(async || !matches!(sequencer.tick().await.unwrap(), Tick::Grown { .. })).await;
        let newest = LogQuery {
            limit: 1,
            ..LogQuery::default()
        };
        let newest = self.parts.store.records(&newest).await.unwrap();
        let newest = self.parts.store.record(&newest[0].id).await.unwrap();
        assert!(newest.unwrap().index.is_some(), "all is in the tree");
        let archive = self.server.gateway.archive();
        let whole = Verification::default();
        let report = archive.verify_all(&whole, |_, _| {}).await.unwrap();
        assert!(report.checked > 0 && report.signed == Some(report.size));
        let findings = report.findings.into_iter();
        findings.map(|it| format!("the log: {it:?}")).collect()
    }

    /// Returns strings that no caller may see: other users' notes, and secrets.
    fn needles(&self) -> Vec<String> {
        let cast = &self.cast;
        let keys = [
            &cast.ann,
            &cast.bob,
            &cast.root,
            &cast.shopper,
            &cast.greedy,
            &cast.shop,
            &cast.desk,
            &cast.revoked,
            &cast.erased,
        ];
        let secret = |token: &&String| token.splitn(3, '_').nth(2).unwrap().to_owned();
        let mut needles: Vec<String> = keys.iter().map(secret).collect();
        needles.extend(CANARIES.map(str::to_owned));
        needles
    }
}

fn identity(parts: &Parts, keys: &ApiKeys, folder: &std::path::Path) -> Identity {
    let policy = Policy::parse(&format!("{RULES}\n{}", Issuers::rules(folder))).unwrap();
    let policy = Arc::new(LivePolicy::fixed(policy));
    Identity::new(parts.clock(), policy).api_keys(keys.clone())
}

fn new_agent(id: &str, scopes: &[&str]) -> NewKey {
    NewKey {
        label: String::new(),
        actor: actor(ActorType::Agent, id),
        user_id: None,
        acts_for_others: false,
        scopes: scopes.iter().map(ToString::to_string).collect(),
        expires_at: None,
        effects: None,
    }
}

fn found<'a>(bytes: &[u8], needles: &'a [String]) -> Option<&'a String> {
    let text = String::from_utf8_lossy(bytes);
    needles.iter().find(|needle| text.contains(needle.as_str()))
}
