//! Server-sent events: the lines of a body to events.

/// The fields of an event. A field of another name is ignored.
const FIELDS: [&str; 4] = ["data", "event", "id", "retry"];

/// An event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Event {
    /// Empty if it has none.
    pub(super) name: String,
    /// Its lines, joined by line breaks.
    pub(super) data: String,
}

/// Returns whether data is the mark of the end, or a JSON object.
fn is_whole(data: &str) -> bool {
    is_end(data)
        || data.starts_with('{') && serde_json::from_str::<serde::de::IgnoredAny>(data).is_ok()
}

/// Returns whether data is the mark at the end of some streams.
pub(super) fn is_end(data: &str) -> bool {
    data.trim() == "[DONE]"
}

/// A body of events, so far.
#[derive(Debug, Default)]
pub(super) struct Events {
    name: String,
    data: Option<String>,
    /// Whether there was a field of an event, or a comment.
    is_stream: bool,
    has_begun: bool,
    /// The lines before the first field: a provider may answer with JSON instead of events.
    plain: String,
}

impl Events {
    /// Takes a line; returns the event that it ends.
    pub(super) fn line(&mut self, line: &str) -> Option<Event> {
        let line = line.trim_end_matches('\r');
        // A body may begin with a byte order mark.
        let line = if self.has_begun { line } else { line.trim_start_matches('\u{FEFF}') };
        self.has_begun = true;
        if line.is_empty() {
            return self.last();
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        let is_comment = field.is_empty();
        if is_comment || FIELDS.contains(&field) {
            self.is_stream = true;
            self.plain.clear();
        } else if !self.is_stream {
            self.plain.push_str(line);
            self.plain.push('\n');
        }
        match field {
            "event" => value.clone_into(&mut self.name),
            "data" => match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => {
                    self.data = Some(value.to_owned());
                    // Some servers leave out the empty line after an event. JSON that is whole has no further lines.
                    if is_whole(value) {
                        return self.last();
                    }
                }
            },
            _ => {}
        }
        None
    }

    /// Returns the event of the lines so far; `None` if it has no data.
    pub(super) fn last(&mut self) -> Option<Event> {
        let name = std::mem::take(&mut self.name);
        let data = self.data.take()?;
        Some(Event { name, data })
    }

    /// Returns the body if it has no events.
    pub(super) fn plain_body(&self) -> Option<&str> {
        (!self.plain.is_empty()).then_some(self.plain.as_str())
    }
}
