//! Written calls that still arrive.

use super::{TextFormat, read_until};
use crate::dialect::stream::StreamEvent;

/// Maximum work of a stream, as a multiple of its bytes: how often a byte may be read again while it arrives.
const WORK_MAX: usize = 8;

/// Tells of the calls of a text while it arrives. What it tells is a notice: the whole text has the last word, because a
/// mark that ends thinking takes back everything before it.
#[derive(Debug, Clone, Default)]
pub struct TextStream {
    format: Option<TextFormat>,
    told: usize,
    work: usize,
}

impl TextStream {
    /// A stream of a format; without one, the marks in the text decide.
    pub fn new(format: Option<TextFormat>) -> Self {
        Self {
            format,
            ..Self::default()
        }
    }

    /// Sets the format, if it is not known yet.
    pub(in crate::dialect) fn set_format(&mut self, format: Option<TextFormat>) {
        self.format = self.format.or(format);
    }

    /// Tells of the calls that have become whole in the text so far.
    pub fn advance(&mut self, text: &str) -> Vec<StreamEvent> {
        let mut events = Vec::new();
        if self.work + text.len() > WORK_MAX * text.len() + 1024 {
            return events;
        }
        self.work += text.len();
        // Calls that may still grow are not shown.
        let Ok((written, settled)) = read_until(text, self.format, false) else {
            return events;
        };
        for call in written.calls.iter().take(settled).skip(self.told) {
            self.told = call.index + 1;
            if call.truncated || call.ambiguous {
                continue;
            }
            let index = call.index;
            events.push(StreamEvent::CallStarted {
                index,
                id: call.id.clone(),
                name: call.name.clone(),
            });
            events.push(StreamEvent::ArgumentsDelta {
                index,
                text: call.arguments.text.clone(),
            });
            events.push(StreamEvent::CallFinished { index });
        }
        events
    }
}
