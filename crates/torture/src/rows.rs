//! Rows that are put back, deleted and changed with SQL, behind the back of the program: `verify --all` has to name each of them.
//!
//! A real installation works, is copied, and goes on working. Then one row of its store at a time is made as it was in the copy, removed, or changed
//! in one column, and the whole is verified.

mod scene;
mod tables;

use std::path::Path;

use anyhow::{Context as _, Result};

pub use scene::{Scene, play};
use tables::{Mutation, mutations};
pub use tables::{Standing, standing};

/// The counts of a run.
#[derive(Debug, Default)]
pub struct Rows {
    /// Changes that were made, one at a time.
    pub changes: u32,
    /// Changes that `verify --all` has named, or for which it did not open the store.
    pub named: u32,
    /// Changes that free nothing and hide nothing, and were not named.
    pub harmless: u32,
    /// Changes of what is compared with nothing, and were not named.
    pub open: u32,
    /// Changes that the schema of the database has refused.
    pub refused: u32,
    /// Changes that nothing has named.
    pub unnoticed: u32,
    /// Each of the latter in words.
    pub violations: Vec<String>,
}

/// Makes the changes, one at a time, and verifies after each. Of the changes of one column only one in so many is made.
/// `progress` is called after each.
pub fn rows(program: &Path, folder: &Path, one_in: usize, progress: &dyn Fn()) -> Result<Rows> {
    let scene = play(program, folder)?;
    let mut rows = Rows::default();
    if let Some(said) = scene.place(&scene.new).verify()? {
        let said = format!("not valid before anything was changed: {said}");
        rows.violations.push(said);
        return Ok(rows);
    }
    let all = mutations(&scene.database(&scene.old), &scene.database(&scene.new))?;
    for (n, mutation) in all.iter().enumerate() {
        // Whole rows are few and say the most.
        if mutation.is_of_column() && !n.is_multiple_of(one_in.max(1)) {
            continue;
        }
        one(&scene, mutation, &mut rows)?;
        progress();
    }
    Ok(rows)
}

fn one(scene: &Scene, mutation: &Mutation, rows: &mut Rows) -> Result<()> {
    let copy = scene.copy()?;
    let database = scene.database(copy.path());
    if mutation.make(&database).is_err() {
        rows.refused += 1;
        return Ok(());
    }
    rows.changes += 1;
    let said = scene.place(copy.path()).verify();
    match (said.context("verify does not run")?, mutation.standing()) {
        (Some(_), _) => rows.named += 1,
        (None, Standing::Harmless(_)) => rows.harmless += 1,
        (None, Standing::Open(_)) => rows.open += 1,
        (None, Standing::Guarded) => {
            rows.unnoticed += 1;
            rows.violations.push(mutation.to_string());
        }
    }
    Ok(())
}
