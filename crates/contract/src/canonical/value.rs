//! From a `Value`: a walk with its own stack, so that no nesting can exhaust the thread's.

use serde_json::{Number, Value};

use super::writer::Writer;
use super::{Error, number};

pub(super) fn walk(root: &Value, out: &mut Vec<u8>) -> Result<(), Error> {
    let mut writer = Writer::new(out);
    let mut open: Vec<Rest<'_>> = Vec::new();
    let mut next = Some(root);
    loop {
        if let Some(value) = next {
            open.extend(enter(value, &mut writer)?);
        }
        next = match open.last_mut() {
            None => return Ok(()),
            Some(Rest::Items(items)) => items.next(),
            Some(Rest::Members(members)) => match members.next() {
                Some((key, value)) => {
                    writer.key(key)?;
                    Some(value)
                }
                None => None,
            },
        };
        if next.is_none() {
            match open.pop() {
                Some(Rest::Members(_)) => writer.close_object()?,
                Some(Rest::Items(_)) | None => writer.close_array(),
            }
        }
    }
}

/// Rest of an open array or object that is still to be written.
enum Rest<'v> {
    Items(std::slice::Iter<'v, Value>),
    Members(serde_json::map::Iter<'v>),
}

/// Writes a scalar, or opens a container and gives its content.
fn enter<'v>(value: &'v Value, writer: &mut Writer<'_>) -> Result<Option<Rest<'v>>, Error> {
    match value {
        Value::Null => writer.literal("null"),
        Value::Bool(true) => writer.literal("true"),
        Value::Bool(false) => writer.literal("false"),
        Value::Number(number) => self::number(number, writer)?,
        Value::String(text) => writer.string(text),
        Value::Array(items) => {
            writer.open_array()?;
            return Ok(Some(Rest::Items(items.iter())));
        }
        Value::Object(members) => {
            writer.open_object()?;
            return Ok(Some(Rest::Members(members.iter())));
        }
    }
    Ok(None)
}

fn number(number: &Number, writer: &mut Writer<'_>) -> Result<(), Error> {
    if let Some(whole) = number.as_i64() {
        writer.number(|out| number::write_i64(whole, out), || whole.to_string())
    } else if number.is_f64() {
        let double = number.as_f64().unwrap_or(f64::INFINITY);
        writer.number(|out| number::write_f64(double, out), || number.to_string())
    } else {
        // A whole number beyond i64, or with `arbitrary_precision` beyond every fixed size.
        let text = number.to_string();
        writer.number(|out| number::write_text(&text, out), || text.clone())
    }
}
