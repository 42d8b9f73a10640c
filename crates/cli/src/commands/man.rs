//! `countersign man`: manual pages of all commands.

use std::path::{Path, PathBuf};

use clap::CommandFactory as _;
use serde_json::json;

use super::counted;
use crate::Cli;
use crate::answer::write_json;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::terminal::Terminal;

/// Write the manual pages of all commands to a folder
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  countersign man ~/.local/share/man/man1
  man countersign-evidence-export")]
pub(crate) struct Man {
    /// Folder for the pages; it is created if it does not exist
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

impl Man {
    pub(crate) fn run(&self, terminal: &mut Terminal) -> Result<Exit, Failure> {
        std::fs::create_dir_all(&self.folder).map_err(|error| cannot_write(&self.folder, error))?;
        let mut root = Cli::command().disable_help_subcommand(true);
        root.build();
        let mut files = Vec::new();
        self.write(&root, &mut files)?;
        if terminal.is_for_programs() {
            write_json(terminal, &json!({"folder": self.folder, "files": files}))?;
        } else {
            let pages = counted(files.len(), "page", "pages");
            let folder = self.folder.display();
            terminal.say(format_args!("ok: {pages} written to {folder}"))?;
        }
        Ok(Exit::Ok)
    }

    /// Writes the page of a command, and those of its subcommands.
    fn write(&self, command: &clap::Command, files: &mut Vec<String>) -> Result<(), Failure> {
        let page = clap_mangen::Man::new(command.clone());
        let written = page.generate_to(&self.folder);
        written.map_err(|error| cannot_write(&self.folder.join(page.get_filename()), error))?;
        files.push(page.get_filename());
        for below in command.get_subcommands().filter(|it| !it.is_hide_set()) {
            self.write(below, files)?;
        }
        Ok(())
    }
}

fn cannot_write(path: &Path, error: std::io::Error) -> Failure {
    let context = format!("cannot write {}", path.display());
    Failure::from(anyhow::Error::new(error).context(context))
        .hint("choose a folder that you may write to")
}
