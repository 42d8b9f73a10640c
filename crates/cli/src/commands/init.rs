//! `countersign init`: a new `countersign.toml`, from a few questions.

use std::fs::OpenOptions;
use std::io::{BufRead, ErrorKind, IsTerminal as _, Write as _, stdin};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use countersign_config::starter::{self, Answers, Extent};
use countersign_config::value::{Listen, StoreAddress, WebUrl};
use countersign_config::{Document, FILE_NAME, schema};
use countersign_gateway::policy;
use serde_json::json;

use crate::answer::write_json;
use crate::config;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::place::PlaceFlags;
use crate::terminal::Terminal;

/// Create a countersign.toml with the usual settings, each explained
///
/// Asks a few questions; Enter takes the default. With --yes it asks nothing. An existing file is never overwritten. The
/// JSON Schema is written beside it, as countersign.schema.json: editors complete and check the file with it.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  countersign init
  countersign init --yes
  countersign init --yes --upstream http://127.0.0.1:8000 --listen 9000
  countersign init --yes --everything --config etc/countersign.toml")]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of the command line"
)]
pub(crate) struct Init {
    /// Ask nothing; use defaults for everything that no option sets
    #[arg(long, short)]
    yes: bool,

    /// Write all settings, not only the usual ones
    #[arg(long)]
    everything: bool,

    /// Listen address of the server [default: 127.0.0.1:8787]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<Listen>,

    /// URL of your service, whose functions become tools
    #[arg(long, value_name = "URL")]
    upstream: Option<WebUrl>,

    /// Also serve the example shop
    #[arg(long)]
    shop: bool,

    /// Users must confirm calls of your tools that change something
    #[arg(long)]
    confirm_writes: bool,
}

impl Init {
    pub(crate) fn run(&self, flags: &PlaceFlags, terminal: &mut Terminal) -> Result<Exit, Failure> {
        let path = flags.config.clone();
        let path = path.unwrap_or_else(|| PathBuf::from(FILE_NAME));
        if path.exists() {
            return Err(is_there(&path));
        }
        let usual = Answers {
            listen: self.listen.unwrap_or_default(),
            store: flags.named_store().cloned(),
            upstream: self.upstream.clone(),
            shop: self.shop,
            confirm_writes: self.confirm_writes,
        };
        let answers = if self.yes {
            usual
        } else {
            if !stdin().is_terminal() {
                let failure = Failure::new("init asks questions, but stdin is not a terminal");
                let hint =
                    "use --yes for the defaults, and options such as --upstream for other values";
                return Err(failure.hint(hint));
            }
            asked(
                usual,
                &mut Ask {
                    terminal,
                    input: &mut stdin().lock(),
                },
            )?
        };
        if answers
            .store
            .as_ref()
            .is_some_and(StoreAddress::holds_password)
        {
            return Err(Failure::new("the address of the store contains a password")
                .hint("put the whole address into an environment variable and name it: --store env:DATABASE_URL"));
        }
        let extent = if self.everything {
            Extent::Everything
        } else {
            Extent::Usual
        };
        let text = starter::text(&answers, extent);
        Document::parse(&path, &text).map_err(config::wrong)?;
        write_new(&path, &text)?;
        let schema = write_schema(&path)?;
        if terminal.is_for_programs() {
            let (file, schema) = (path.display().to_string(), schema.display().to_string());
            write_json(terminal, &json!({"file": file, "schema": schema}))?;
            return Ok(Exit::Ok);
        }
        terminal.say(format_args!("ok: {} created", path.display()))?;
        let named = if flags.config.is_some() {
            format!(" --config {}", path.display())
        } else {
            String::new()
        };
        if answers.upstream.is_none() && !answers.shop {
            terminal.say(format_args!(
                "next: add an [[upstream]] and its tools; docs/http-tool.md shows how a function becomes a tool"
            ))?;
        }
        terminal.say(format_args!("then: countersign lint{named}"))?;
        terminal.say(format_args!("then: countersign serve{named}"))?;
        Ok(Exit::Ok)
    }
}

/// The answers of a person, with those that are known as the usual ones.
fn asked(usual: Answers, ask: &mut Ask<'_>) -> Result<Answers, Failure> {
    let listen = ask.value("Listen address of the server?", Some(usual.listen))?;
    let store = ask.value(
        "Store? Enter for a file in the data folder, or postgres://USER@HOST/DATABASE or env:NAME",
        usual.store,
    )?;
    let upstream = ask.value(
        "URL of your service, such as http://127.0.0.1:8000? Enter for none",
        usual.upstream,
    )?;
    let shop = ask.yes("Also serve the example shop?", usual.shop)?;
    let confirm_writes = ask.yes(
        "Must users confirm calls that change something?",
        usual.confirm_writes,
    )?;
    Ok(Answers {
        listen: listen.unwrap_or_default(),
        store,
        upstream,
        shop,
        confirm_writes,
    })
}

/// Asks a person.
struct Ask<'t> {
    terminal: &'t mut Terminal,
    input: &'t mut dyn BufRead,
}

impl Ask<'_> {
    /// Asks a question and returns the answer, or the usual value if the answer is empty. An answer that cannot be read is asked for again.
    fn value<T: FromStr<Err = String> + std::fmt::Display>(
        &mut self,
        question: &str,
        usual: Option<T>,
    ) -> Result<Option<T>, Failure> {
        let shown = usual.as_ref().map(|usual| format!(" [{usual}]"));
        let question = format!("{question}{}", shown.unwrap_or_default());
        loop {
            let answer = self.line(&question)?;
            if answer.is_empty() {
                return Ok(usual);
            }
            match answer.parse() {
                Ok(value) => return Ok(Some(value)),
                Err(expected) => self.terminal.say(expected)?,
            }
        }
    }

    fn yes(&mut self, question: &str, usual: bool) -> Result<bool, Failure> {
        let shown = if usual { "Y/n" } else { "y/N" };
        loop {
            let answer = self.line(&format!("{question} [{shown}]"))?;
            match answer.to_lowercase().as_str() {
                "" => return Ok(usual),
                "y" | "yes" => return Ok(true),
                "n" | "no" => return Ok(false),
                _ => self.terminal.say("expected y or n")?,
            }
        }
    }

    fn line(&mut self, question: &str) -> Result<String, Failure> {
        self.terminal.say(question)?;
        let mut line = String::new();
        if self.input.read_line(&mut line)? == 0 {
            return Err(
                Failure::new("the input ended before all questions were answered")
                    .hint("no file was written"),
            );
        }
        Ok(line.trim().to_owned())
    }
}

/// Writes a file that must not be there yet.
fn write_new(path: &Path, text: &str) -> Result<(), Failure> {
    let file = OpenOptions::new().write(true).create_new(true).open(path);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| {
        if error.kind() == ErrorKind::AlreadyExists {
            return is_there(path);
        }
        let context = format!("cannot write {}", path.display());
        anyhow::Error::new(error).context(context).into()
    })
}

/// Writes the schema beside the file, where editors look for it. It is made by the program, so one of an earlier version is replaced.
fn write_schema(file: &Path) -> Result<PathBuf, Failure> {
    let path = file.with_file_name(schema::FILE_NAME);
    let written = std::fs::write(&path, schema::text(&policy::schema()));
    written.map_err(|error| {
        let context = format!("cannot write {}", path.display());
        Failure::from(anyhow::Error::new(error).context(context))
    })?;
    Ok(path)
}

fn is_there(path: &Path) -> Failure {
    Failure::new(format!(
        "{} already exists and is not overwritten",
        path.display()
    ))
    .hint("name another file with --config, or check this one with `countersign lint`")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(text: &str) -> Result<Answers, Failure> {
        let mut terminal = Terminal::new(false);
        let mut ask = Ask {
            terminal: &mut terminal,
            input: &mut text.as_bytes(),
        };
        asked(Answers::default(), &mut ask)
    }

    #[test]
    fn questions_have_usual_answers_and_are_asked_again() {
        let usual = answers("\n\n\n\n\n").unwrap();
        assert_eq!(format!("{usual:?}"), format!("{:?}", Answers::default()));
        let own = answers("here\n9000\nenv:DATABASE_URL\nhttp://127.0.0.1:8000\nmaybe\ny\nno\n");
        let own = own.unwrap();
        assert_eq!(own.listen.to_string(), "127.0.0.1:9000");
        assert_eq!(own.store.unwrap().to_string(), "env:DATABASE_URL");
        assert!(own.upstream.is_some() && own.shop && !own.confirm_writes);
        assert!(
            answers("9000\n").is_err(),
            "a person who leaves writes nothing"
        );
    }
}
