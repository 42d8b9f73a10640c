//! `countersign case`: everything about one order, call or record, for readers who are not engineers.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use countersign::archive::Export;
use countersign::contract::{Language, SnapshotId};
use countersign_console::case::{self, Line, Material, RuleVersion, Step, Story};
use countersign_evidence::bundle::Bundle;
use countersign_gateway::http::cases::ShownCase;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::lookup::{Name, Whose};
use super::reason;
use crate::answer::write_json;
use crate::commands::evidence::export::write_private;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::journal::Journal;
use crate::operations::Operation;
use crate::place::{Place, PlaceOptions, archive_failed};
use crate::rules::RuleOptions;
use crate::table::visible;
use crate::terminal::Terminal;

/// Number of lines of a step's details; programs and bundles have all of them.
const DETAILS_MAX: usize = 12;

/// Tell what became of one order or call: quoted, shown, confirmed, and who looked
///
/// Nothing sealed is opened without --reason. With it, that it was opened is recorded first.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  countersign case order_0123456789abcdef
  countersign case order_0123456789abcdef --reason 'dispute 4711'
  countersign case order_0123456789abcdef --reason 'dispute 4711' --zip dispute-4711.zip

The ZIP has the case to read in English and Chinese, the evidence, and a page that verifies it in a browser
without a network. Without --reason it has no content, only proofs.")]
pub(crate) struct CaseCommand {
    /// The id of an order, of a call or of a record, or the hash of its leaf
    #[arg(value_name = "ID")]
    name: Name,

    #[command(flatten)]
    whose: Whose,

    /// Reason for opening the sealed content; it is sealed in the record of the access
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: Option<String>,

    /// Write the case, its evidence and the page that verifies it into this ZIP, which only you can read
    #[arg(long, value_name = "FILE")]
    zip: Option<PathBuf>,
}

impl CaseCommand {
    pub(crate) fn run(
        &self,
        options: &PlaceOptions,
        terminal: &mut Terminal,
    ) -> Result<Exit, Failure> {
        let asked = Asked {
            name: self.name.clone(),
            whose: self.whose.clone(),
            reason: self.reason.clone(),
            is_for_a_file: self.zip.is_some(),
        };
        let Some(path) = &self.zip else {
            return options.perform(&asked, terminal);
        };
        // The file is made and written by whoever named it, and only where the bundle is whole.
        let (mut kept_terminal, kept) = terminal.kept();
        let exit = options.perform(&asked, &mut kept_terminal)?;
        kept_terminal.flush()?;
        let sent: Sent = serde_json::from_slice(&kept.take())?;
        self.write_zip(path, &sent)?;
        let shown = path.display();
        if terminal.is_for_programs() {
            write_json(
                terminal,
                &json!({"file": shown.to_string(), "records": sent.bundle.records.len()}),
            )?;
        } else {
            terminal.say(format_args!(
                "{} records in {shown}",
                sent.bundle.records.len()
            ))?;
        }
        Ok(exit)
    }

    fn write_zip(&self, path: &Path, sent: &Sent) -> Result<(), Failure> {
        let material = Material {
            case: &sent.case,
            bundle: self.reason.as_ref().map(|_| &sent.bundle),
            rules: &sent.rules,
            details_max: usize::MAX,
        };
        let now = crate::place::clock_and_ids().0.now();
        let made = case::zip(material, &sent.bundle, now)?;
        write_private(path, &made.bytes).map_err(|error| {
            let what = format!("cannot write {}", path.display());
            Failure::from(anyhow::Error::new(error).context(what))
        })
    }
}

/// The case that is asked for.
#[derive(Serialize, Deserialize)]
pub(crate) struct Asked {
    name: Name,
    whose: Whose,
    reason: Option<String>,
    /// True if the command makes a file of the answer.
    is_for_a_file: bool,
}

/// The parts of the file, for the command that writes it.
#[derive(Serialize, Deserialize)]
struct Sent {
    case: ShownCase,
    bundle: Bundle,
    rules: Vec<RuleVersion>,
}

impl Operation for Asked {
    const NAME: &'static str = "case";

    fn perform(&self, place: &Place, terminal: &mut Terminal) -> Result<Exit, Failure> {
        let ids = self.name.all(place, self.whose.user.as_deref())?;
        let rules = rule_labels(place);
        if self.is_for_a_file {
            let bundle = self.bundle(place, &ids)?;
            let case = self.gathered(place, &ids)?;
            let exit = exit_of(&case);
            let sent = Sent {
                case,
                bundle,
                rules,
            };
            writeln!(terminal.data(), "{}", serde_json::to_string(&sent)?)?;
            return Ok(exit);
        }
        let bundle = match &self.reason {
            Some(_) => Some(self.bundle(place, &ids)?),
            None => None,
        };
        // It is gathered after the opening, so that it shows this very access.
        let case = self.gathered(place, &ids)?;
        let material = Material {
            case: &case,
            bundle: bundle.as_ref(),
            rules: &rules,
            details_max: if terminal.is_for_programs() {
                usize::MAX
            } else {
                DETAILS_MAX
            },
        };
        let story = case::tell(material, Language::English);
        if terminal.is_for_programs() {
            write_json(terminal, &json!({"case": case, "story": story}))?;
        } else {
            write_story(terminal, &story)?;
        }
        Ok(exit_of(&case))
    }
}

impl Asked {
    fn gathered(&self, place: &Place, ids: &[SnapshotId]) -> Result<ShownCase, Failure> {
        let name = self.name.text();
        let case = place.runtime.block_on(place.archive().case(&name, ids));
        Ok(ShownCase::new(&name, case.map_err(archive_failed)?))
    }

    /// One bundle of the whole case, with everything signed; the content is opened where there is a reason.
    fn bundle(&self, place: &Place, ids: &[SnapshotId]) -> Result<Bundle, Failure> {
        let mut journal = Journal::start(place)?;
        journal.sign(place)?;
        let records = self.gathered(place, ids)?.records;
        let ids: Vec<SnapshotId> = records.into_iter().map(|part| part.record.id).collect();
        let content = match &self.reason {
            Some(reason) => Export::Opened {
                by: &place.by,
                reason,
            },
            None => Export::Records,
        };
        let archive = place.archive();
        let bundle = place.runtime.block_on(archive.export(&ids, content, None));
        journal.sign(place)?;
        bundle.map_err(archive_failed)
    }
}

/// The rule sets that are known here, with the labels that people know them by.
pub(crate) fn rule_labels(place: &Place) -> Vec<RuleVersion> {
    let options = RuleOptions::configured(&place.config().rules);
    // A label is for people only: where it cannot be read, the digest is shown alone.
    let Ok(known) = options.known(Some(&place.folder)) else {
        return Vec::new();
    };
    let versions = known.versions.into_iter();
    let version = |version: crate::rules::Version| RuleVersion {
        version: version.digest.to_string(),
        label: version.label,
        name: version.name,
    };
    versions.map(version).collect()
}

fn exit_of(case: &ShownCase) -> Exit {
    if case.records.iter().all(|part| part.is_intact) {
        Exit::Ok
    } else {
        Exit::NotVerified
    }
}

fn write_story(terminal: &mut Terminal, story: &Story) -> Result<(), Failure> {
    let out = terminal.data();
    writeln!(out, "{}", visible(&story.title))?;
    for Line { label, value, .. } in &story.facts {
        writeln!(out, "  {}: {}", visible(label), visible(value))?;
    }
    for step in &story.steps {
        writeln!(out, "\n{}  {}", step.moment, visible(&step.title))?;
        write_step(out, step)?;
    }
    if !story.rules.is_empty() {
        writeln!(out, "\nRules that were applied")?;
        for rule in &story.rules {
            let label = if rule.label.is_empty() {
                "-"
            } else {
                &rule.label
            };
            writeln!(
                out,
                "  {} ({}) {}",
                visible(&rule.name),
                visible(label),
                rule.version
            )?;
        }
    }
    writeln!(out, "\nWho looked at sealed content")?;
    for look in &story.looks {
        writeln!(
            out,
            "  {}  {} {} ({})",
            look.moment,
            visible(&look.by),
            look.what,
            look.id
        )?;
    }
    if story.looks.is_empty() {
        writeln!(out, "  no one")?;
    }
    for note in &story.notes {
        terminal.say(format_args!("note: {note}"))?;
    }
    Ok(())
}

fn write_step(out: &mut impl std::io::Write, step: &Step) -> Result<(), Failure> {
    let mut line = |text: String| writeln!(out, "    {}", visible(&text));
    if !step.by.is_empty() {
        line(format!("by {}", step.by))?;
    }
    if !step.outcome.is_empty() {
        line(step.outcome.clone())?;
    }
    if let Some(shown) = &step.shown {
        let lead = if shown.is_checked {
            "the person was shown"
        } else {
            "the question (that it was on a screen is not proved)"
        };
        line(format!("{lead}: {}", shown.title))?;
        for Line { label, value, .. } in &shown.lines {
            line(format!("  {label}: {value}"))?;
        }
        for what in &shown.irreversible {
            line(format!("  cannot be undone: {what}"))?;
        }
    }
    for Line { label, value, .. } in &step.lines {
        line(format!("{label}: {value}"))?;
    }
    if !step.rules.is_empty() {
        line(format!("rules: {}", step.rules.join(", ")))?;
    }
    let tool = if step.tool.is_empty() {
        String::new()
    } else {
        format!(" · {}", step.tool)
    };
    line(format!("{} · {}{tool}", step.proof, step.id))?;
    Ok(())
}
