//! Stand-ins for tools: the same declaration and behaviour, and an effect that is only counted.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use countersign::contract::{Effect, ToolSpec};
use countersign::state::Collection;
use countersign::{Arguments, BoxFuture, CallContext, DryRun, DynTool, Reply, ToolError};
use serde_json::json;

/// Collection of the counts of tools whose effect is in the store.
const COUNTS: Collection = Collection::of_user("drill");

/// A tool without its effect. The effect of a write is a count in the call's own state; an effect elsewhere is a line in a file, as a
/// service would keep it.
pub(super) struct Double {
    spec: ToolSpec,
    upstream: Option<String>,
    dry_run: DryRun,
    lines: PathBuf,
    /// Effects of one call: more than one where a test shows that a check can fail.
    times: usize,
}

impl Double {
    pub(super) fn of(tool: &Arc<dyn DynTool>, folder: &Path, times: usize) -> Self {
        let spec = ToolSpec {
            output: None,
            ..tool.spec().clone()
        };
        let name = format!("{}.lines", spec.name);
        Self {
            spec,
            upstream: tool.upstream().map(str::to_owned),
            dry_run: tool.dry_run(),
            lines: folder.join(name),
            times,
        }
    }

    /// Adds the effect to the file of the service, and counts those of the user. The line is one write, so it is there or not.
    fn elsewhere(&self, user_id: &str) -> std::io::Result<usize> {
        let line = format!("{}\n", user_id.escape_default());
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.lines)?;
        for _ in 0..self.times {
            file.write_all(line.as_bytes())?;
        }
        let mut text = String::new();
        File::open(&self.lines)?.read_to_string(&mut text)?;
        Ok(text
            .lines()
            .filter(|known| *known == line.trim_end())
            .count())
    }
}

impl DynTool for Double {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn upstream(&self) -> Option<&str> {
        self.upstream.as_deref()
    }

    fn dry_run(&self) -> DryRun {
        self.dry_run
    }

    fn call<'a>(
        &'a self,
        ctx: &'a CallContext,
        _: Arguments,
    ) -> BoxFuture<'a, Result<Reply, ToolError>> {
        Box::pin(async move {
            let count = match self.spec.behaviour.effect {
                Effect::Read => 0,
                Effect::Write => {
                    let id = self.spec.name.as_str().replace('.', "-");
                    let state = ctx.state();
                    let before: Option<usize> = state.get(&COUNTS, &id).await?;
                    let count = before.unwrap_or_default() + self.times;
                    state.put(&COUNTS, &id, &count).await?;
                    count
                }
                Effect::External if ctx.is_dry_run() => 0,
                Effect::External => self.elsewhere(ctx.user_id()).map_err(|error| {
                    ToolError::upstream("drill", "the file of the drill cannot be written")
                        .with_source(error)
                })?,
            };
            Ok(Reply::from(json!({ "count": count })))
        })
    }
}
