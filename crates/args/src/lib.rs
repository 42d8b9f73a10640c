//! Lenient in, strict out: a model's argument text bound to declared types.
//!
//! [`Binder::bind`] takes the raw text and gives back [`Arguments`] that the declaration accepts, with an
//! [`Issue`](countersign_contract::Issue) for every change, or the reasons why there is no safe reading. It
//! does not guess: a change that would lose something, or that has two known readings, is refused.
//!
//! The modules, in the order in which a text passes through them: `strict` reads JSON as it is; `tolerant`
//! reads what models write; `candidates` finds the documents in a text, and `outside` checks that only prose
//! stands around them; `coerce` converts values to their declared types; `validate` checks the result; `report`
//! lists every change and error, with the sentences of `words`. `stream` shows a call while it still arrives.

mod arguments;
mod binder;
mod bound;
mod candidates;
mod coerce;
mod duplicates;
mod escape;
mod fault;
mod fold;
mod format;
mod limits;
mod markup;
mod names;
mod number;
mod outside;
mod reading;
mod render;
mod report;
mod schema;
mod stream;
mod strict;
mod tolerant;
mod tree;
mod validate;
mod words;
mod written;

pub use arguments::Arguments;
pub use binder::Binder;
pub use bound::{Bound, Unreadable};
pub use limits::Limits;
pub use reading::Reading;
pub use schema::SchemaError;
pub use stream::{StopReason, Stream, StreamEvent};
pub use written::{
    Aside, ElementCall, Thinking, aside, element_call, end_of_thinking, labelled_result, thinking,
    thinking_marks,
};
