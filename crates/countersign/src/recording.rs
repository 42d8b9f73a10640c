//! Answers from a recording, for tests and evaluations: nothing is run.
//!
//! An [`Executor`](crate::Executor) that is built with a [`Player`] resolves, authorizes, admits and binds a call as always.
//! Then the recording answers: the call that has the same tool and the same bound arguments. No user is asked, no key is
//! taken, no tool runs and no state is written. The record of such a call says that it was answered from a recording.
//!
//! A call is matched strictly. Where the same call was answered differently over time, the first one gets the first answer,
//! the second one the second, and one more than were recorded is refused. Where it was always answered alike, it may be
//! made any number of times. In a masked recording a placeholder is matched by the value that was recorded if the
//! [digests](Digests) of the masked values are there. Without them it is matched by any value of its kind, with a warning: the
//! same value each time, and another value than any other placeholder of this kind. Where an answer has the placeholder, the
//! caller gets its own value back.

use std::sync::Arc;

use countersign_args::Arguments;
use countersign_contract::{ErrorCode, ToolSpec};

use crate::BoxFuture;
use crate::context::CallContext;
use crate::tool::{DynTool, Reply, ToolError};

mod bindings;
mod compare;
mod digests;
mod known;
mod mask;
mod play;

pub use digests::{Digests, DigestsError};
pub(crate) use known::Known;
pub(crate) use mask::{Masker, placeholder};
pub use play::{Answer, Counts, Nearest, NotRecorded, Player};

/// The event in the records of a run from a recording.
pub(crate) const FROM_RECORDING: &str = "from_recording";

/// A tool of which only the declaration is known; it cannot be run.
pub fn declared(spec: ToolSpec) -> Arc<dyn DynTool> {
    Arc::new(DeclaredOnly(spec))
}

struct DeclaredOnly(ToolSpec);

impl DynTool for DeclaredOnly {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn call<'a>(
        &'a self,
        _: &'a CallContext,
        _: Arguments,
    ) -> BoxFuture<'a, Result<Reply, ToolError>> {
        // Nobody calls it: the recording answers before.
        let message = format!("only the declaration of {} is known", self.0.name);
        let error = ToolError::new(ErrorCode::UpstreamError, message).without_effect();
        Box::pin(std::future::ready(Err(error)))
    }
}
