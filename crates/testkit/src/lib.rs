//! Checks on the workspace itself. All of it is in `tests/`, because nothing here is for other crates:
//! `tidy` holds the layers, the error codes and the source files, `docs` the pages, `contracts` the
//! files for other languages.
