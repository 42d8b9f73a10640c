//! Measured work: one pass over a set of calls, with everything prepared before. Both harnesses run these functions, so that their figures
//! are about the same thing.

use std::hint::black_box;
use std::io::Result;
use std::sync::Arc;

use countersign::contract::canonical;
use countersign::contract::tool::{BindPolicy, UnknownKeys};
use countersign::dialect;
use countersign::{CallContext, Catalog, Executor, Principal, Tool, ToolCall, ToolError};
use countersign_args::Binder;
use jsonschema::Validator;
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::calls::{self, Call};
use crate::damage;
use crate::written;

/// The calls of [`calls::all`], with all that reads them. The peer is `serde_json` into a value and
/// a prepared `jsonschema` validator: a reader that repairs nothing.
pub struct Binding {
    calls: Vec<Call>,
    damaged: Vec<String>,
    binders: Vec<Binder>,
    validators: Vec<Validator>,
}

impl Binding {
    /// Prepares every schema and damages every call.
    ///
    /// # Panics
    ///
    /// Where a schema cannot be prepared; the inputs' test prepares them all.
    pub fn prepare() -> Self {
        Self::of(&calls::schemas(), calls::all())
    }

    /// Prepares these schemas, and damages these calls.
    ///
    /// # Panics
    ///
    /// Where a schema cannot be prepared.
    pub fn of(schemas: &[Value], calls: Vec<Call>) -> Self {
        let binder = |schema| lenient(schema).expect("a good schema");
        let validator = |schema| jsonschema::validator_for(schema).expect("a good schema");
        let damaged = damage::all(&calls);
        Self {
            damaged: damaged.into_iter().map(|(_, text)| text).collect(),
            binders: schemas.iter().map(binder).collect(),
            validators: schemas.iter().map(validator).collect(),
            calls,
        }
    }

    /// Returns the number of calls in a pass.
    pub fn count(&self) -> usize {
        self.calls.len()
    }

    /// Binds every call.
    pub fn well_formed(&self) {
        for call in &self.calls {
            if let Some(binder) = self.binders.get(call.tool) {
                black_box(binder.bind(&call.text));
            }
        }
    }

    /// Binds every call as it is after the damage.
    pub fn damaged(&self) {
        for (call, text) in self.calls.iter().zip(&self.damaged) {
            if let Some(binder) = self.binders.get(call.tool) {
                black_box(binder.bind(text));
            }
        }
    }

    /// Parses and validates every call.
    pub fn peer(&self) {
        for call in &self.calls {
            if let Some(validator) = self.validators.get(call.tool) {
                let value = serde_json::from_str::<Value>(&call.text).unwrap_or_default();
                black_box(validator.is_valid(&value));
            }
        }
    }

    /// Writes every call in its canonical form.
    pub fn canonical(&self) {
        for call in &self.calls {
            let _ = black_box(canonical::from_json_text(&call.text));
        }
    }
}

/// A binder for one of the inputs' schemas.
///
/// # Panics
///
/// Where the schema cannot be prepared; the inputs' test prepares them all.
pub fn binder(schema: &Value) -> Binder {
    Binder::from_schema(schema, BindPolicy::default()).expect("a good schema")
}

/// A binder for a schema, as `countersign bind --schema` has it: names that the schema does not forbid are kept. `None` if the
/// schema cannot be used.
pub fn lenient(schema: &Value) -> Option<Binder> {
    let policy = BindPolicy {
        unknown_keys: UnknownKeys::Keep,
        ..BindPolicy::default()
    };
    Binder::from_schema(schema, policy).ok()
}

/// Models' whole texts, read as calls; the peer is one pass over their characters.
pub struct Reading {
    texts: Vec<String>,
}

impl Reading {
    /// Reads the texts.
    ///
    /// # Errors
    ///
    /// The golden files cannot be read.
    pub fn prepare() -> Result<Self> {
        written::texts().map(|texts| Self { texts })
    }

    /// Returns the number of texts in a pass.
    pub fn count(&self) -> usize {
        self.texts.len()
    }

    /// Reads every text.
    pub fn read(&self) {
        for text in &self.texts {
            let _ = black_box(dialect::written::read(black_box(text), None));
        }
    }

    /// Goes once over the characters of every text.
    pub fn scan(&self) {
        for text in &self.texts {
            black_box(
                black_box(text.as_str())
                    .chars()
                    .filter(|c| *c == '<')
                    .count(),
            );
        }
    }
}

/// A catalog of one read that does nothing, so that only the executor is measured.
pub struct Executing {
    catalog: Catalog,
    executor: Executor,
    principal: Arc<Principal>,
    runtime: Runtime,
}

impl Executing {
    /// Number of calls in a pass.
    pub const COUNT: usize = 200;

    /// Prepares the catalog, the executor and a runtime of one thread.
    ///
    /// # Panics
    ///
    /// Where the machine gives no runtime.
    pub fn prepare() -> Self {
        let catalog = Catalog::builder()
            .tool(Nothing)
            .build()
            .expect("one good tool is a catalog");
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .expect("a runtime without I/O needs nothing");
        Self {
            executor: Executor::new(catalog.clone()),
            catalog,
            principal: Arc::new(Principal::user("u_1")),
            runtime,
        }
    }

    /// Executes the read.
    pub fn no_op_read(&self) {
        self.runtime.block_on(async {
            for _ in 0..Self::COUNT {
                let call = ToolCall::new(Nothing::NAME, "{}", self.principal.clone());
                black_box(self.executor.execute(call).await);
            }
        });
    }

    /// Looks the tool up.
    pub fn look_up(&self) {
        for _ in 0..Self::COUNT {
            black_box(self.catalog.get(black_box(Nothing::NAME)));
        }
    }
}

struct Nothing;

impl Tool for Nothing {
    const NAME: &'static str = "bench.nothing";
    const DESCRIPTION: &'static str = "Does nothing.";
    type Args = ();
    type Output = ();

    async fn call(&self, _: &CallContext, (): ()) -> std::result::Result<(), ToolError> {
        Ok(())
    }
}
