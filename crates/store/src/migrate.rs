//! Numbered migrations: finds the pending ones and checks that the applied ones are the ones this program
//! knows.
//!
//! A migration that was applied is never edited. Its checksum is kept beside its number, so an edited
//! file is noticed at the next start, not when two databases turn out to differ.

use countersign_contract::Digest;

/// One step of a schema, compiled into the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Migration {
    /// Number of the migration, counted from 1 without gaps.
    pub number: u32,
    /// Short name of the migration: the rest of its file's name.
    pub name: &'static str,
    /// SQL statements of the migration.
    pub sql: &'static str,
}

impl Migration {
    /// Returns the SHA-256 digest of the statements, byte for byte.
    pub fn checksum(&self) -> [u8; 32] {
        *Digest::of_bytes(self.sql.as_bytes()).as_bytes()
    }
}

/// A migration that a database says was applied to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// Its number.
    pub number: u32,
    /// Its name.
    pub name: String,
    /// The checksum that it had.
    pub checksum: Vec<u8>,
}

/// The database's schema is not one that this program may work on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MigrationError {
    /// The database was last used by a newer program, usually because an update was rolled back.
    #[error(
        "the store has schema {found}, this program knows up to {known}; use the program that last \
         opened it, or a newer one"
    )]
    Newer {
        /// Newest migration that was applied.
        found: u32,
        /// Newest migration that this program knows.
        known: u32,
    },
    /// A migration was applied with other statements than this program has, usually because its file was edited
    /// after a release.
    #[error(
        "migration {number:04}_{name} was applied with other statements than this program has; use the \
         release that made the store"
    )]
    Changed {
        /// Its number.
        number: u32,
        /// Its name here.
        name: &'static str,
    },
    /// A migration is missing although later ones were applied, usually because rows of the migration table
    /// were deleted.
    #[error(
        "migration {number:04}_{name} is missing in the store though later ones are there; restore it"
    )]
    Missing {
        /// Its number.
        number: u32,
        /// Its name here.
        name: &'static str,
    },
}

/// Returns the known migrations that are still to be applied, in their order.
pub fn pending<'m>(
    known: &'m [Migration],
    applied: &[Applied],
) -> Result<&'m [Migration], MigrationError> {
    let newest = applied.iter().map(|applied| applied.number).max();
    let newest = newest.unwrap_or_default();
    let newest_known = known.last().map_or(0, |migration| migration.number);
    if newest > newest_known {
        return Err(MigrationError::Newer {
            found: newest,
            known: newest_known,
        });
    }
    let (done, open) = known.split_at(known.partition_point(|known| known.number <= newest));
    for migration in done {
        let Migration { number, name, .. } = *migration;
        match applied.iter().find(|applied| applied.number == number) {
            None => return Err(MigrationError::Missing { number, name }),
            Some(applied) if applied.checksum != migration.checksum() => {
                return Err(MigrationError::Changed { number, name });
            }
            Some(_) => {}
        }
    }
    Ok(open)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [Migration; 3] = [
        Migration {
            number: 1,
            name: "claims",
            sql: "CREATE TABLE claim(a)",
        },
        Migration {
            number: 2,
            name: "log",
            sql: "CREATE TABLE record(a)",
        },
        Migration {
            number: 3,
            name: "holds",
            sql: "CREATE TABLE hold(a)",
        },
    ];

    fn applied(migration: &Migration) -> Applied {
        Applied {
            number: migration.number,
            name: migration.name.to_owned(),
            checksum: migration.checksum().to_vec(),
        }
    }

    #[test]
    fn what_was_applied_is_compared_and_the_rest_is_pending() {
        let all: Vec<Applied> = KNOWN.iter().map(applied).collect();
        let numbers = |applied: &[Applied]| {
            let open = pending(&KNOWN, applied).map_err(|error| error.to_string())?;
            Ok::<_, String>(open.iter().map(|open| open.number).collect::<Vec<_>>())
        };
        assert_eq!(numbers(&[]), Ok(vec![1, 2, 3]));
        assert_eq!(numbers(&all[..2]), Ok(vec![3]));
        assert_eq!(numbers(&all), Ok(vec![]));

        let mut edited = all.clone();
        edited[1].checksum[0] ^= 1;
        let mut newer = all.clone();
        newer[2].number = 4;
        let refusals =
            [&edited[..], &newer, &all[1..]].map(|applied| numbers(applied).unwrap_err());
        assert_eq!(
            refusals,
            [
                "migration 0002_log was applied with other statements than this program has; use the \
                 release that made the store",
                "the store has schema 4, this program knows up to 3; use the program that last opened \
                 it, or a newer one",
                "migration 0001_claims is missing in the store though later ones are there; restore it",
            ]
        );
    }
}
