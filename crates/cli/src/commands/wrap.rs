//! `countersign wrap`: one MCP server behind the gateway, for a client that starts programs.

use std::path::{Path, PathBuf};

use countersign::contract::Digest;
use countersign_config::FILE_NAME;
use countersign_upstream::mcp::tool_name;

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
  countersign wrap --read read_file --read list_directory -- npx -y @modelcontextprotocol/server-filesystem /srv
  claude mcp add files -- countersign wrap --name files -- npx -y @modelcontextprotocol/server-filesystem /srv")]
pub(crate) struct Wrap {
    /// Prefix of the tool names [default: derived from the command]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Environment variable to pass on; without it the server gets only PATH, HOME and the locale
    #[arg(long, value_name = "NAME")]
    env: Vec<String>,

    /// Tool that only reads, by its name at the server; without it a call counts as a write
    #[arg(long, value_name = "TOOL")]
    read: Vec<String>,

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
            .hint("change the file that `wrap` names when it starts, or add the server to your configuration as an [[upstream]] with kind = \"mcp\""));
        }
        let variable = std::env::var_os(DATA_VARIABLE).map(PathBuf::from);
        let named = flags.data.clone().or(variable);
        let data = named.map_or_else(Folder::usual, Ok)?;
        let name = self.name.clone().unwrap_or_else(|| name_of(&self.command));
        let path = self.write(&data, &name)?;
        let shown = path.display();
        terminal.say(format_args!(
            "note: your settings of this server are in {shown}; to review and approve changed tools, run `countersign --config {shown} upstreams diff {name}`"
        ))?;
        let mut flags = flags.clone();
        flags.config = Some(path);
        self.mcp.run(&flags.read(terminal)?, terminal)
    }

    /// Writes the entry of the server to the folder in which the next start finds it, with the approvals beside it. The configuration that
    /// includes the entry belongs to the user: it is written once.
    fn write(&self, data: &Path, name: &str) -> Result<PathBuf, Failure> {
        let here = std::env::current_dir()?;
        let folder = data.join("wrap").join(self.folder_name(name, &here)?);
        let folder = Folder::make(folder)?;
        folder.write(ENTRY_NAME, &self.entry(name, &here)?, 0o600)?;
        let written = folder.read(FILE_NAME)?;
        if written.is_none_or(|text| text.starts_with(REWRITTEN)) {
            folder.write(FILE_NAME, &settings(name), 0o600)?;
        }
        Ok(folder.file(FILE_NAME))
    }

    /// The folder of a server. Relative paths in a command mean another server in another working folder.
    fn folder_name(&self, name: &str, here: &Path) -> Result<String, Failure> {
        let mut written = serde_json::to_string(&self.command)?;
        if self.command.iter().any(|word| is_relative(word, here)) {
            written.push_str(&here.to_string_lossy());
        }
        let digest = Digest::of_bytes(written.as_bytes()).to_string();
        let short: String = digest.chars().skip("sha256:".len()).take(12).collect();
        Ok(format!("{name}-{short}"))
    }

    /// The entry of the server, and of the tools that only read.
    fn entry(&self, name: &str, here: &Path) -> Result<String, Failure> {
        // The server finds relative paths where the client has started us.
        let mut command = vec![
            "env".to_owned(),
            "-C".to_owned(),
            here.display().to_string(),
        ];
        command.extend(self.command.iter().cloned());
        // A JSON text of strings is one of TOML as well.
        let command = serde_json::to_string(&command)?;
        let env = self
            .env
            .iter()
            .map(|name| format!("env.{name} = \"env:{name}\"\n"));
        let env: Vec<String> = env.collect();
        let reads = self.read.iter().map(|tool| {
            let tool = serde_json::to_string(&tool_name(&format!("{name}."), tool))?;
            Ok(format!("\n[[tool]]\nname = {tool}\neffect = \"read\"\n"))
        });
        let reads: Vec<String> = reads.collect::<Result<_, Failure>>()?;
        let name = serde_json::to_string(name)?;
        Ok(format!(
            "# Written by `countersign wrap` at each start; your own settings belong into {FILE_NAME}.\n\n\
             [[upstream]]\nname = {name}\nkind = \"mcp\"\ncommand = {command}\n\
             trust = \"first_use\"\nshared = true\n{}{}",
            env.concat(),
            reads.concat()
        ))
    }
}

/// Name of the file with the entry of the server.
const ENTRY_NAME: &str = "server.toml";

/// The beginning of a configuration of an earlier version, which wrote it anew at each start.
const REWRITTEN: &str = "# Written by `countersign wrap`.\n\n[[upstream]]";

/// The configuration that a user goes on with.
fn settings(name: &str) -> String {
    format!(
        "# Settings of the server {name}. `countersign wrap` has made this file, and leaves it as it is from now on.\n\n\
         include = [\"{ENTRY_NAME}\"]\n\n\
         # A tool that only reads, by its name in `countersign tools`:\n\
         # [[tool]]\n# name = \"{name}.read_file\"\n# effect = \"read\"\n"
    )
}

/// True if a word of a command, or the value of an option, names something in the working folder.
fn is_relative(word: &str, here: &Path) -> bool {
    let value = word.split_once('=').map(|(_, value)| value);
    let mut paths = [Some(word), value].into_iter().flatten();
    paths.any(|path| {
        let path = Path::new(path);
        !path.as_os_str().is_empty() && path.is_relative() && here.join(path).exists()
    })
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
    use clap::Parser as _;

    use super::*;

    /// The same words are another server in another folder only where they name something in it.
    #[test]
    fn a_relative_command_belongs_to_its_folder() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for folder in [&one, &two] {
            std::fs::write(folder.path().join("server.js"), "").unwrap();
        }
        let name = |command: &str, folder: &tempfile::TempDir| {
            let command: Vec<&str> = std::iter::once("wrap")
                .chain(["--"])
                .chain(command.split(' '))
                .collect();
            let wrap = Own::parse_from(command).wrap;
            wrap.folder_name("own", folder.path()).unwrap()
        };
        for (command, is_relative) in [
            ("node server.js", true),
            ("node ./server.js", true),
            ("node --import=server.js x", true),
            ("server-filesystem .", true),
            ("node /opt/server.js", false),
            ("npx -y some-server", false),
        ] {
            let is_apart = name(command, &one) != name(command, &two);
            assert_eq!(is_apart, is_relative, "{command}");
            assert_eq!(name(command, &one), name(command, &one));
        }
    }

    #[derive(clap::Parser)]
    struct Own {
        #[command(flatten)]
        wrap: Wrap,
    }

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
