//! `countersign completions`: completion scripts for shells.

use std::io::Write as _;

use clap::CommandFactory as _;
use serde_json::json;

use crate::Cli;
use crate::answer::write_json;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::terminal::Terminal;

/// Print the completion script of a shell
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  countersign completions bash > ~/.local/share/bash-completion/completions/countersign
  countersign completions zsh > ~/.zfunc/_countersign
  countersign completions fish > ~/.config/fish/completions/countersign.fish")]
pub(crate) struct Completions {
    /// Shell that the script is for
    #[arg(value_enum, value_name = "SHELL")]
    shell: clap_complete::Shell,
}

impl Completions {
    pub(crate) fn run(&self, terminal: &mut Terminal) -> Result<Exit, Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "countersign", &mut script);
        if terminal.is_for_programs() {
            let script = String::from_utf8_lossy(&script);
            let answer = json!({"shell": self.shell.to_string(), "script": script});
            write_json(terminal, &answer)?;
        } else {
            terminal.data().write_all(&script)?;
        }
        Ok(Exit::Ok)
    }
}
