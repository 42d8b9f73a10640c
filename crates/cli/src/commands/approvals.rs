//! `countersign approvals`: what users are asked to confirm, and the answers.

use std::sync::Arc;

use clap::ValueEnum;
use countersign::approve::{self, Response, SCOPE_ANSWER, StoredApprovals, Wanted};
use countersign::contract::tool::Narrower;
use countersign::contract::{Approval, ApprovalDecision, ApprovalState};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::answer::{named, write_json, write_lines, write_table};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::journal::Journal;
use crate::operations::Operation;
use crate::place::{Place, PlaceOptions, store_failed};
use crate::table::{Table, visible};
use crate::terminal::Terminal;

/// List approvals that wait for an answer, and approve or deny them
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct Approvals {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Clone, clap::Subcommand, Serialize, Deserialize)]
enum Command {
    List(List),
    Show(Show),
    Approve(Approve),
    Deny(Deny),
}

/// List approvals, newest first: those that wait, or those in another state
#[derive(Debug, Clone, clap::Args, Serialize, Deserialize)]
#[command(after_long_help = "\
Examples:
  countersign approvals list
  countersign approvals list --user u_7 --state all --json")]
struct List {
    /// Only approvals in this state
    #[arg(long, value_enum, value_name = "STATE", default_value = "pending")]
    state: State,

    /// Only approvals of this user
    #[arg(long, value_name = "USER")]
    user: Option<String>,

    /// Maximum number of rows
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: usize,
}

/// Show one approval: who asks, which call, and until when
#[derive(Debug, Clone, clap::Args, Serialize, Deserialize)]
struct Show {
    #[command(flatten)]
    which: Which,
}

/// Approve a call; it may then be made once
#[derive(Debug, Clone, clap::Args, Serialize, Deserialize)]
#[command(after_long_help = "\
Examples:
  countersign approvals approve ap_4f21c09b73de --reason 'asked by phone'")]
struct Approve {
    #[command(flatten)]
    which: Which,

    /// Reduce an argument that the approval lists as narrowable, such as /amount=100
    #[arg(long, value_name = "POINTER=VALUE", value_parser = narrowing)]
    narrow: Vec<(String, Value)>,

    #[command(flatten)]
    why: Why,
}

/// Deny a call; the same call is then refused
#[derive(Debug, Clone, clap::Args, Serialize, Deserialize)]
struct Deny {
    #[command(flatten)]
    which: Which,

    #[command(flatten)]
    why: Why,
}

#[derive(Debug, Clone, clap::Args, Serialize, Deserialize)]
struct Which {
    /// Id from `approvals list`; to answer, at least its first 11 characters
    #[arg(value_name = "ID")]
    id: String,
}

#[derive(Debug, Clone, clap::Args, Serialize, Deserialize)]
struct Why {
    /// Reason for the user; stored encrypted, not in the log
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

/// The states, as the command line spells them.
#[derive(Debug, Clone, Copy, ValueEnum, Serialize, Deserialize)]
enum State {
    /// In any state
    All,
    /// Not answered yet
    Pending,
    /// Approved; the call may be made once
    Approved,
    /// Denied; the call is refused
    Denied,
    /// Approved, and the call was made
    Used,
    /// Not answered or not used in time
    Expired,
}

impl State {
    const fn wanted(self) -> Option<ApprovalState> {
        match self {
            Self::All => None,
            Self::Pending => Some(ApprovalState::Pending),
            Self::Approved => Some(ApprovalState::Approved),
            Self::Denied => Some(ApprovalState::Denied),
            Self::Used => Some(ApprovalState::Used),
            Self::Expired => Some(ApprovalState::Expired),
        }
    }
}

impl Approvals {
    pub(crate) fn run(
        &self,
        options: &PlaceOptions,
        terminal: &mut Terminal,
    ) -> Result<Exit, Failure> {
        options.perform(&Asked(self.command.clone()), terminal)
    }
}

/// One of the commands, as it is sent to the process that has the approvals.
#[derive(Serialize, Deserialize)]
pub(crate) struct Asked(Command);

impl Operation for Asked {
    const NAME: &'static str = "approvals";

    fn perform(&self, place: &Place, terminal: &mut Terminal) -> Result<Exit, Failure> {
        let inbox = Inbox {
            place,
            approvals: place.approvals(),
        };
        match &self.0 {
            Command::List(list) => list.run(&inbox, terminal),
            Command::Show(show) => {
                let approval = inbox.find(&show.which.id)?;
                write_lines(terminal, &approval, &lines(&approval))?;
                Ok(Exit::Ok)
            }
            Command::Approve(Approve { which, narrow, why }) => {
                let response = Response {
                    narrowed: narrow.iter().cloned().collect(),
                    ..Response::approve()
                };
                answer(
                    &inbox,
                    which,
                    response.because(why.reason.as_deref()),
                    terminal,
                )
            }
            Command::Deny(Deny { which, why }) => {
                let response = Response::deny();
                answer(
                    &inbox,
                    which,
                    response.because(why.reason.as_deref()),
                    terminal,
                )
            }
        }
    }
}

impl List {
    fn run(&self, inbox: &Inbox<'_>, terminal: &mut Terminal) -> Result<Exit, Failure> {
        let listed = inbox.list(&Wanted {
            user_id: self.user.clone(),
            state: self.state.wanted(),
            limit: self.limit,
            ..Wanted::default()
        })?;
        let mut table = Table::new([
            "ASKED AT",
            "STATE",
            "USER",
            "TOOL",
            "AT MOST",
            "ARGUMENTS",
            "ID",
        ]);
        for approval in &listed {
            let ceiling = approval.ceiling.as_ref();
            table.row([
                &approval.asked_at,
                approval.state.as_str(),
                &approval.user_id,
                approval.tool.as_str(),
                &ceiling.map_or_else(|| "-".to_owned(), ToString::to_string),
                &approval.arguments.to_string(),
                // Last, because it must not be cut: answering needs it.
                &approval.id,
            ]);
        }
        write_table(terminal, &listed, table, "no approvals match")?;
        Ok(Exit::Ok)
    }
}

fn answer(
    inbox: &Inbox<'_>,
    which: &Which,
    response: Response,
    terminal: &mut Terminal,
) -> Result<Exit, Failure> {
    check_is_meant(&which.id)?;
    let approval = inbox.find(&which.id)?;
    if !terminal.is_for_programs() {
        for (name, value) in asked(&approval) {
            terminal.say(format_args!("{name}: {}", visible(&value)))?;
        }
    }
    // The answer is for what was just shown, and for nothing else.
    let response = response.to(approval.shown_digest);
    let answered = inbox.decide(&approval.id, &response)?;
    if terminal.is_for_programs() {
        write_json(terminal, &answered)?;
        return Ok(Exit::Ok);
    }
    let what = format!("{} of {}", answered.tool, answered.user_id);
    let given = answered.answer.as_ref().or(answered.confirmed.as_ref());
    for change in given.iter().flat_map(|given| &given.narrowed) {
        let (before, after) = (change.before.to_string(), change.after.to_string());
        let what = format!("{} {before} → {after}", change.pointer);
        terminal.say(format_args!("narrowed: {}", visible(&what)))?;
    }
    terminal.say(match response.decision {
        ApprovalDecision::Approve if answered.confirmed.is_some() => format!(
            "confirmed: the call of {what} needs another approver, until {}",
            answered.expires_at
        ),
        ApprovalDecision::Approve => format!(
            "approved: the call of {what} may be made once, until {}",
            answered.expires_at
        ),
        ApprovalDecision::Deny => format!(
            "denied: the call of {what} is refused until {}",
            answered.expires_at
        ),
    })?;
    if let Some(answer) = answered.answer.as_ref().or(answered.confirmed.as_ref()) {
        terminal.say(format_args!("evidence: {}", answer.evidence))?;
    }
    if answered.confirmed.is_some() {
        terminal.say(format_args!(
            "hint: the second approver has to be another person, with a credential of their own: the user {}, or a person with a key of \
             `countersign keys create --user NAME --scope {SCOPE_ANSWER}`",
            visible(&answered.user_id)
        ))?;
    }
    Ok(Exit::Ok)
}

/// Reads `/amount=100`.
fn narrowing(text: &str) -> Result<(String, Value), String> {
    let form = "a JSON pointer, = and a JSON value, such as /amount=100";
    let (pointer, value) = text.split_once('=').ok_or(form)?;
    let value = serde_json::from_str(value).map_err(|_| form)?;
    Ok((pointer.to_owned(), value))
}

/// Refuses an id that is too short: an answer is for the approval that the approver has read, not for the only one that is open.
fn check_is_meant(id: &str) -> Result<(), Failure> {
    let given = id.strip_prefix("ap_").unwrap_or_default();
    if given.chars().count() >= ANSWERED_CHARS_MIN {
        return Ok(());
    }
    let message =
        format!("the id is too short: give ap_ and at least {ANSWERED_CHARS_MIN} more characters");
    Err(Failure::new(message).hint("`countersign approvals list` shows the ids"))
}

/// Minimum number of characters of an id, after `ap_`, that an answer has to name.
const ANSWERED_CHARS_MIN: usize = 8;

/// Lists the call as the approver is asked about it: the tool's question, the answer that it would give, and every argument.
fn asked(approval: &Approval) -> Vec<(&str, String)> {
    let mut lines = Vec::new();
    if let Some(question) = &approval.question {
        lines.push(("question", question.title.clone()));
        let own = question.lines.iter();
        lines.extend(own.map(|line| (&*line.label, line.value.clone())));
        let undone = question.irreversible.iter().cloned();
        lines.extend(undone.map(|what| ("cannot be undone", what)));
    }
    let would_answer = approval.would_answer.as_ref();
    lines.extend(would_answer.map(|data| ("would answer", data.to_string())));
    if let Some(ceiling) = &approval.ceiling {
        lines.push(("costs", format!("at most {ceiling}")));
    }
    lines.push(("arguments", approval.arguments.to_string()));
    for narrowing in &approval.narrowable {
        let way = match narrowing.to {
            Narrower::Lower => "lower",
            Narrower::Fewer => "fewer",
            Narrower::Subset => "subset",
        };
        lines.push(("may be narrowed", format!("{} ({way})", narrowing.pointer)));
    }
    lines
}

fn lines(approval: &Approval) -> Vec<(&str, String)> {
    let mut lines = vec![
        ("approval", approval.id.clone()),
        ("state", approval.state.as_str().to_owned()),
        ("user", approval.user_id.clone()),
        ("asked by", named(&approval.actor)),
    ];
    if let Some(principal) = &approval.principal {
        lines.push(("according to", named(principal)));
    }
    lines.push(("tool", approval.tool.to_string()));
    lines.extend(approval.title.clone().map(|title| ("title", title)));
    lines.push(("does", approval.description.clone()));
    let currency = approval.currency.clone();
    lines.extend(currency.map(|currency| ("currency", currency)));
    let timezone = approval.timezone.clone();
    lines.extend(timezone.map(|timezone| ("time zone", timezone)));
    lines.push(("request", approval.request_id.to_string()));
    lines.push(("policy", approval.policy_revision.clone()));
    lines.push(("asked at", approval.asked_at.clone()));
    lines.push(("until", approval.expires_at.clone()));
    if approval.four_eyes {
        lines.push(("approvers", "two different ones".to_owned()));
    }
    if let Some(first) = &approval.confirmed {
        lines.push(("confirmed by", first.by.id.clone()));
        lines.push(("confirmed at", first.at.clone()));
    }
    if let Some(answer) = &approval.answer {
        lines.push(("answered by", answer.by.id.clone()));
        lines.push(("answered at", answer.at.clone()));
        lines.extend(answer.reason.clone().map(|reason| ("reason", reason)));
        lines.push(("evidence", answer.evidence.to_string()));
    }
    lines.extend(asked(approval));
    let shown = approval.shown_digest;
    lines.extend(shown.map(|digest| ("shown digest", digest.to_string())));
    lines
}

/// Maximum number of approvals that are searched for one.
const LISTED_MAX: usize = 1_000;

/// The approvals of a place.
struct Inbox<'a> {
    place: &'a Place,
    approvals: Arc<StoredApprovals>,
}

impl Inbox<'_> {
    fn list(&self, wanted: &Wanted) -> Result<Vec<Approval>, Failure> {
        let listed = self.approvals.list(&self.place.by, wanted);
        self.place.runtime.block_on(listed).map_err(failed)
    }

    /// The one question that is meant.
    fn find(&self, id: &str) -> Result<Approval, Failure> {
        let all = Wanted {
            limit: LISTED_MAX,
            ..Wanted::default()
        };
        let listed = self.list(&all)?.into_iter();
        let mut meant = listed.filter(|approval| approval.id.starts_with(id));
        match (meant.next(), meant.next()) {
            (Some(approval), None) => Ok(approval),
            (Some(_), Some(_)) => Err(Failure::new("more than one approval id starts so")
                .hint("give more characters of the id")),
            (None, _) => {
                let unknown = failed(approve::Error::Unknown(id.to_owned()));
                let folder = self.place.folder.path().display();
                let message = format!("{:#} in the data folder {folder}", unknown.error);
                Err(Failure::new(message).hint(UNKNOWN))
            }
        }
    }

    fn decide(&self, id: &str, response: &Response) -> Result<Approval, Failure> {
        let mut journal = Journal::start(self.place)?;
        let answered = self.approvals.decide(id, &self.place.by, response);
        let answered = self.place.runtime.block_on(answered).map_err(failed)?;
        journal.sign(self.place)?;
        Ok(answered)
    }
}

const UNKNOWN: &str = "`countersign approvals list --state all` lists all approvals of this folder; --data or COUNTERSIGN_DATA names another one";

/// Turns an error of the approvals into a failure with a hint.
fn failed(error: approve::Error) -> Failure {
    match error {
        approve::Error::Store(error) => store_failed(error),
        approve::Error::NotOpen { .. } | approve::Error::OtherRendering => {
            Failure::from(error).refused()
        }
        approve::Error::Unknown(_) => Failure::from(error).hint(UNKNOWN),
        approve::Error::Agent
        | approve::Error::NotTheirs
        | approve::Error::SameApprover
        | approve::Error::Asker
        | approve::Error::NotNarrower { .. }
        | approve::Error::Narrowed(_)
        | approve::Error::NoCatalog
        | approve::Error::Reason => Failure::from(error),
    }
}
