//! The log: one line for each event, with the ids of its call.
//!
//! Events of this workspace contain names, ids, codes and counts; each place that logs ensures that no value of
//! a call is among them. This layer is the last guard: strings are limited in length and pass the detectors,
//! and of other crates' events, which may quote anything they were given, only their place is logged.

use std::fmt::{self, Write as _};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use countersign::clock::Clock;
use countersign::observe::{CAUSE_TARGET, PARSE_TARGET};
use countersign::redact::Detector;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use super::lines::Lines;
use super::repeats::Kind;
use super::{LogFormat, panics};

/// Maximum length of a string in a line, in bytes.
const TEXT_BYTES_MAX: usize = 1_024;

/// Writes events as lines.
pub struct LogLayer {
    format: LogFormat,
    lines: Lines,
    clock: Arc<dyn Clock>,
    shows_causes: bool,
}

impl LogLayer {
    /// Creates a layer with this format, these lines and this clock.
    pub fn new(format: LogFormat, lines: Lines, clock: Arc<dyn Clock>) -> Self {
        Self {
            format,
            lines,
            clock,
            shows_causes: panics::are_shown(),
        }
    }

    fn line(&self, metadata: &Metadata<'_>, fields: &Fields) -> String {
        let mut line = String::with_capacity(256);
        let written = match self.format {
            LogFormat::Json => self.json(&mut line, metadata, fields),
            LogFormat::Text => self.text(&mut line, metadata, fields),
        };
        // Writing to a `String` does not fail.
        debug_assert!(written.is_ok());
        line.push('\n');
        line
    }

    fn json(&self, line: &mut String, metadata: &Metadata<'_>, fields: &Fields) -> fmt::Result {
        let (time, level, target) = (self.clock.now(), metadata.level(), metadata.target());
        write!(
            line,
            r#"{{"time":"{time:.6}","level":"{level}","target":"{target}""#
        )?;
        for (name, value) in &fields.0 {
            write!(line, r#","{name}":"#)?;
            match value {
                Value::Plain(text) => line.push_str(text),
                Value::Text(text) => {
                    line.push_str(&serde_json::to_string(text).map_err(|_| fmt::Error)?);
                }
            }
        }
        line.push('}');
        Ok(())
    }

    fn text(&self, line: &mut String, metadata: &Metadata<'_>, fields: &Fields) -> fmt::Result {
        let time = self.clock.now();
        write!(line, "{time:.3} {:5} ", metadata.level().as_str())?;
        let message = fields.0.iter().find(|(name, _)| *name == MESSAGE);
        match message {
            Some((_, Value::Text(text) | Value::Plain(text))) => push_visible(line, text),
            None => line.push_str(metadata.target()),
        }
        for (name, value) in fields.0.iter().filter(|(name, _)| *name != MESSAGE) {
            write!(line, " {name}=")?;
            match value {
                Value::Plain(text) | Value::Text(text) => push_visible(line, text),
            }
        }
        Ok(())
    }
}

impl fmt::Debug for LogLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogLayer")
            .field("format", &self.format)
            .finish_non_exhaustive()
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for LogLayer {
    /// Enables an event: of other crates, nothing below a warning, because they trace the bodies of messages;
    /// of tools, not the causes of their failures.
    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        if metadata.target() == CAUSE_TARGET {
            return self.shows_causes;
        }
        is_ours(metadata) || (metadata.is_event() && *metadata.level() <= Level::WARN)
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if !is_ours(attributes.metadata()) {
            return;
        }
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let metadata = event.metadata();
        let mut fields = Fields::default();
        if is_ours(metadata) {
            event.record(&mut fields);
        } else {
            fields.foreign(metadata);
        }
        let kind = fields.kind(metadata);
        for span in context.event_scope(event).into_iter().flatten() {
            if let Some(of_span) = span.extensions().get::<Fields>() {
                fields.0.extend_from_slice(&of_span.0);
            }
        }
        let line = self.line(metadata, &fields);
        // Warnings and errors may happen to every call at once.
        if *metadata.level() <= Level::WARN {
            self.lines.write_once(kind, line);
        } else {
            self.lines.write(line);
        }
    }
}

fn is_ours(metadata: &Metadata<'_>) -> bool {
    metadata.target().starts_with("countersign") || metadata.target() == PARSE_TARGET
}

const MESSAGE: &str = "message";

#[derive(Clone)]
enum Value {
    /// A number or a boolean.
    Plain(String),
    Text(String),
}

/// Fields of an event or a span, ready to be written.
#[derive(Clone, Default)]
struct Fields(Vec<(&'static str, Value)>);

impl Fields {
    fn text(&mut self, name: &'static str, text: &str) {
        let short = text.get(..text.floor_char_boundary(TEXT_BYTES_MAX));
        let short = short.unwrap_or_default();
        let clean = match name {
            // Random digits, which sometimes look like a card number.
            "trace_id" | "span_id" => short.into(),
            _ => Detector::new().scrub(short),
        };
        self.0.push((name, Value::Text(clean.into_owned())));
    }

    fn plain(&mut self, field: &Field, value: &impl ToString) {
        self.0.push((field.name(), Value::Plain(value.to_string())));
    }

    /// Returns the kind of a line: its place in the program and its strings, without digits.
    fn kind(&self, metadata: &Metadata<'_>) -> Kind {
        let mut hasher = DefaultHasher::new();
        metadata.callsite().hash(&mut hasher);
        let ids = ["request_id", "trace_id", "span_id"];
        for (name, value) in self.0.iter().filter(|(name, _)| !ids.contains(name)) {
            name.hash(&mut hasher);
            if let Value::Text(text) = value {
                let others = text.bytes().filter(|byte| !byte.is_ascii_digit());
                others.for_each(|byte| byte.hash(&mut hasher));
            }
        }
        Kind(hasher.finish())
    }

    /// Writes the fields of a library's event: the library, the level and the place, never its text.
    fn foreign(&mut self, metadata: &Metadata<'_>) {
        let file = metadata.file().and_then(|file| file.rsplit('/').next());
        let place = format!(
            "{}:{}",
            file.unwrap_or_default(),
            metadata.line().unwrap_or_default()
        );
        let target = metadata.target();
        let library = target.split("::").next().unwrap_or(target);
        let event = if *metadata.level() == Level::ERROR {
            "an error"
        } else {
            "a warning"
        };
        let message = format!(
            "the library {library} logged {event}; its text may quote a call and is left out"
        );
        self.text(MESSAGE, &message);
        self.text("part", target);
        self.text("place", &place);
    }
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.text(field.name(), value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.plain(field, &value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.plain(field, &value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.plain(field, &value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let mut text = Bounded(String::new());
        // The first part that does not fit ends the writing.
        let _full = write!(text, "{value:?}");
        self.text(field.name(), &text.0);
    }
}

/// A string with a maximum length, so that no value is written out completely first.
struct Bounded(String);

impl fmt::Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = TEXT_BYTES_MAX.saturating_sub(self.0.len());
        let fitting = text.get(..text.floor_char_boundary(room));
        self.0.push_str(fitting.unwrap_or_default());
        if text.len() > room {
            Err(fmt::Error)
        } else {
            Ok(())
        }
    }
}

/// Escapes control characters: a line stays one line, and a terminal is not controlled.
fn push_visible(line: &mut String, text: &str) {
    for character in text.chars() {
        if character.is_control() {
            line.extend(character.escape_default());
        } else {
            line.push(character);
        }
    }
}
