//! Conversions between columns and types. A value that does not fit was not written by this program.

use std::fmt::Display;
use std::str::FromStr;

use rusqlite::Row;

use super::failure::Failure;

pub(super) fn bytes32(row: &Row<'_>, column: usize) -> Result<[u8; 32], Failure> {
    let bytes = row
        .get_ref(column)?
        .as_blob()
        .map_err(rusqlite::Error::from)?;
    bytes.try_into().map_err(|_| {
        let (name, found) = (name(row, column), bytes.len());
        Failure::damaged(format!(
            "column {name} of a row (32 bytes expected, {found} found)"
        ))
    })
}

/// Parses a string column.
pub(super) fn parsed<T: FromStr<Err: Display>>(row: &Row<'_>, column: usize) -> Result<T, Failure> {
    let text = row
        .get_ref(column)?
        .as_str()
        .map_err(rusqlite::Error::from)?;
    parse(row, column, text)
}

pub(super) fn parsed_option<T: FromStr<Err: Display>>(
    row: &Row<'_>,
    column: usize,
) -> Result<Option<T>, Failure> {
    let text = row
        .get_ref(column)?
        .as_str_or_null()
        .map_err(rusqlite::Error::from)?;
    text.map(|text| parse(row, column, text)).transpose()
}

fn parse<T: FromStr<Err: Display>>(row: &Row<'_>, column: usize, text: &str) -> Result<T, Failure> {
    text.parse().map_err(|error| {
        let name = name(row, column);
        Failure::damaged(format!("column {name} of a row ({error})"))
    })
}

fn name(row: &Row<'_>, column: usize) -> String {
    let name = row.as_ref().column_name(column);
    name.map_or_else(|_| column.to_string(), str::to_owned)
}

/// Converts a signed column. A negative number was not written by this program, and reads as zero.
pub(super) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn bounded(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
