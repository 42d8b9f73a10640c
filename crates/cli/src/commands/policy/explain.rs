//! `countersign policy explain`: which line of a policy decides a call.

use std::io::Write as _;
use std::path::Path;

use countersign::clock::{Clock as _, SystemClock};
use countersign_gateway::policy::{Explained, Explanation};
use jiff::Timestamp;

use super::Source;
use super::ask::{Asked, Who};
use super::recorded::Recorded;
use crate::answer::write_json;
use crate::commands::lookup::{Name, Whose};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::place::PlaceOptions;
use crate::terminal::Terminal;
use crate::{catalog, policy};

/// Show which line of a policy decided a recorded call, or would decide one that is not made
///
/// Nothing is called, opened or recorded. Limits, budgets and the tool itself are not asked.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  countersign policy explain ev_01a1e209-3e99-736c-842c-57d140cc68f6
  countersign policy explain --as agent:shopper --user ann --scope tools:call --tool notes.add --args '{text: milk}'
  countersign policy explain --user ann --tool notes.clear --policy draft.toml --json")]
pub(crate) struct Explain {
    /// The id of a record, or the request id of its call
    #[arg(value_name = "ID", conflicts_with_all = ["who", "scopes", "tool", "args", "session", "currency", "at", "policy"])]
    name: Option<Name>,

    /// Caller: agent:ID, user:ID or system:ID; without it, the user
    #[arg(long = "as", value_name = "ACTOR")]
    who: Option<Who>,

    /// User for whom the call is made
    #[arg(long, value_name = "USER")]
    user: Option<String>,

    /// A scope of the credential; may be given several times
    #[arg(long = "scope", value_name = "SCOPE")]
    scopes: Vec<String>,

    /// The tool
    #[arg(long, value_name = "TOOL", required_unless_present = "name")]
    tool: Option<String>,

    /// The arguments; without them, rules that need them are left open
    #[arg(long, value_name = "TEXT")]
    args: Option<String>,

    /// The session
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,

    /// The currency that the call names
    #[arg(long, value_name = "CODE")]
    currency: Option<String>,

    /// Time of the call; without it, now
    #[arg(long, value_name = "TIME")]
    at: Option<Timestamp>,

    #[command(flatten)]
    source: Source,
}

impl Explain {
    pub(crate) fn run(
        &self,
        options: &PlaceOptions,
        terminal: &mut Terminal,
    ) -> Result<Exit, Failure> {
        if let Some(name) = &self.name {
            let whose = Whose {
                user: self.user.clone(),
            };
            let name = name.clone();
            return options.perform(&Recorded { name, whose }, terminal);
        }
        let (options, policy) = self.source.read(options, terminal)?;
        let catalog = catalog::declared(options.loaded())?;
        let fits = policy::fits(&policy, &catalog);
        fits.map_err(|error| policy::refused(options.loaded(), error))?;
        let asked = Asked {
            who: self.who.clone(),
            user: self.user.clone(),
            scopes: self.scopes.clone(),
            tool: self.tool.clone().unwrap_or_default(),
            args: self.args.clone(),
            session: self.session.clone(),
            currency: self.currency.clone(),
            at: self.at,
        };
        let explanation = asked.explain(&policy, &catalog, SystemClock::new().now())?;
        let file = policy::file_of(options.loaded());
        write(terminal, &explanation, file.as_deref())
    }
}

pub(super) fn write(
    terminal: &mut Terminal,
    explanation: &Explanation,
    file: Option<&Path>,
) -> Result<Exit, Failure> {
    if terminal.is_for_programs() {
        write_json(terminal, explanation)?;
        return Ok(Exit::Ok);
    }
    let Explanation {
        policy,
        tool,
        decision,
        because,
    } = explanation;
    writeln!(
        terminal.data(),
        "{}: {tool} under {policy}",
        decision.as_str()
    )?;
    for entry in because {
        writeln!(terminal.data(), "  {}", line(entry, file))?;
    }
    if because.is_empty() {
        writeln!(terminal.data(), "  no entry of the policy looks at it")?;
    }
    Ok(Exit::Ok)
}

/// `policy.toml:12: [[rules]] large: its condition holds: the call is refused`.
pub(super) fn line(entry: &Explained, file: Option<&Path>) -> String {
    let Explained {
        line, entry, says, ..
    } = entry;
    match (file, line) {
        (Some(file), Some(line)) => format!("{}:{line}: {entry}: {says}", file.display()),
        (None, _) | (_, None) => format!("{entry}: {says}"),
    }
}
