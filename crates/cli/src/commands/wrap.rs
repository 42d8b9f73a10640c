//! `countersign wrap`: one MCP server behind the gateway, for a client that starts programs.

use std::path::{Path, PathBuf};

use countersign::contract::Digest;
use countersign_config::FILE_NAME;

use super::mcp::Mcp;
use crate::config::DATA_VARIABLE;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::folder::Folder;
use crate::place::PlaceFlags;
use crate::terminal::Terminal;

/// Run one MCP server behind the gateway, for a client that starts programs
///
/// Serves the tools over stdin and stdout. The first list of tools is approved automatically. A tool that changes later
/// cannot be called until it is approved: with the --config of the file that `wrap` names on stderr when it starts.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  countersign wrap -- npx -y @modelcontextprotocol/server-everything
  claude mcp add files -- countersign wrap --name files -- npx -y @modelcontextprotocol/server-filesystem /srv")]
pub(crate) struct Wrap {
    /// Prefix of the tool names [default: derived from the command]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Environment variable to pass on; without it the server gets only PATH, HOME and the locale
    #[arg(long, value_name = "NAME")]
    env: Vec<String>,

    #[command(flatten)]
    mcp: Mcp,

    /// Program and its arguments, after --
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

impl Wrap {
    pub(crate) fn run(&self, flags: &PlaceFlags, terminal: &mut Terminal) -> Result<Exit, Failure> {
        if flags.config.is_some() {
            return Err(Failure::new(
                "wrap creates its own configuration, so --config cannot be used",
            )
            .hint("add the server to your configuration as an [[upstream]] with kind = \"mcp\""));
        }
        let variable = std::env::var_os(DATA_VARIABLE).map(PathBuf::from);
        let named = flags.data.clone().or(variable);
        let data = named.map_or_else(Folder::usual, Ok)?;
        let name = self.name.clone().unwrap_or_else(|| name_of(&self.command));
        let path = self.write(&data, &name)?;
        let shown = path.display();
        terminal.say(format_args!(
            "note: to review and approve changed tools, run `countersign --config {shown} upstreams diff {name}`"
        ))?;
        let mut flags = flags.clone();
        flags.config = Some(path);
        self.mcp.run(&flags.read(terminal)?, terminal)
    }

    /// Writes the configuration of the server to the folder in which the next start finds it, with the approvals beside it.
    fn write(&self, data: &Path, name: &str) -> Result<PathBuf, Failure> {
        let written = serde_json::to_string(&self.command)?;
        let digest = Digest::of_bytes(written.as_bytes()).to_string();
        let short: String = digest.chars().skip("sha256:".len()).take(12).collect();
        let folder = data.join("wrap").join(format!("{name}-{short}"));
        let folder = Folder::make(folder)?;
        let here = std::env::current_dir()?;
        // The server finds relative paths where the client has started us.
        let mut command = vec![
            "env".to_owned(),
            "-C".to_owned(),
            here.display().to_string(),
        ];
        command.extend(self.command.iter().cloned());
        // A JSON text of strings is one of TOML as well.
        let command = serde_json::to_string(&command)?;
        let name = serde_json::to_string(name)?;
        let env = self
            .env
            .iter()
            .map(|name| format!("env.{name} = \"env:{name}\"\n"));
        let env: Vec<String> = env.collect();
        let text = format!(
            "# Written by `countersign wrap`.\n\n[[upstream]]\nname = {name}\nkind = \"mcp\"\ncommand = {command}\n\
             trust = \"first_use\"\nshared = true\n{}",
            env.concat()
        );
        folder.write(FILE_NAME, &text, 0o600)?;
        Ok(folder.file(FILE_NAME))
    }
}

/// The name of a server by its command: the last word that looks like a program or a package.
pub(super) fn name_of(command: &[String]) -> String {
    const LAUNCHERS: [&str; 8] = [
        "npx", "uvx", "node", "python", "python3", "uv", "run", "docker",
    ];
    let words = command.iter().filter(|word| !word.starts_with('-'));
    let word = words
        .filter_map(|word| word.rsplit('/').next())
        .find(|word| !LAUNCHERS.contains(word));
    let word = word.unwrap_or("server");
    let word = word.split('@').next().unwrap_or(word);
    let word = word.trim_end_matches(".py").trim_end_matches(".js");
    let word = word
        .trim_start_matches("mcp-")
        .trim_start_matches("server-");
    let is_letter =
        |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
    let name: String = word
        .to_ascii_lowercase()
        .chars()
        .filter(|c| is_letter(*c))
        .take(32)
        .collect();
    let starts = name.starts_with(|c: char| c.is_ascii_lowercase());
    if starts { name } else { "server".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_has_the_name_of_its_package() {
        for (command, name) in [
            (
                "npx -y @modelcontextprotocol/server-filesystem /srv",
                "filesystem",
            ),
            ("npx some-server", "some-server"),
            ("uvx mcp-server-git@2.1", "git"),
            ("python3 /opt/tools/weather.py", "weather"),
            ("node --max-old-space-size=512 dist/index.js", "index"),
            ("./9", "server"),
        ] {
            let command: Vec<String> = command.split(' ').map(str::to_owned).collect();
            assert_eq!(name_of(&command), name);
        }
    }
}
