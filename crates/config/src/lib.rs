//! `countersign.toml`: every setting, declared once.
//!
//! The doc comment of a field is the one text of its setting. The JSON Schema for editors ([`schema`]), the
//! reference page ([`page`]) and the comments of a new file ([`starter`]) are all made from it.
//!
//! A value has one of four origins, the later before the earlier: the default, the file, the environment, a flag
//! of the command line. [`Loaded`] keeps the origin of each. This crate reads no file and no environment: texts
//! and values are arguments.
//!
//! | module | its part |
//! |---|---|
//! | [`sections`] | the settings, one file a section |
//! | [`value`] | lengths of time, addresses, references to secrets |
//! | [`schema`] | the JSON Schema, and the flat list of all settings |
//! | [`document`] | a file that was read: its values and their places |
//! | [`mistake`] | what is wrong with a file, and where |
//! | [`loaded`] | the layers, joined; the origin of each value; the difference of two |
//! | [`page`], [`starter`] | `docs/configuration.md`, and what `countersign init` writes |

mod check;
pub mod document;
pub mod loaded;
pub mod mistake;
mod nearest;
pub mod page;
pub mod schema;
pub mod sections;
pub mod starter;
pub mod value;

pub use document::Document;
pub use loaded::{Change, Given, Loaded, Origin, Row};
pub use mistake::{Mistake, Mistakes};
pub use sections::Config;

/// The name under which the file is looked for in the working folder.
pub const FILE_NAME: &str = "countersign.toml";

/// The largest file. An imported API of a thousand operations has a few megabytes.
pub const FILE_BYTES_MAX: usize = 16 << 20;
