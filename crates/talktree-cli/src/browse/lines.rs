//! A message as lines of a terminal.

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use talktree::{CompactionId, Message, Part, Role};
use textwrap::WordSplitter;

use crate::text::{cut, escape, one_line, plural};
use crate::time::local;

/// How many bytes of a text are shown before one opens it, and how many at all.
const SHORT: usize = 16 << 10;
const MOST: usize = 1 << 20;

pub(super) const FAINT: Style = Style::new().add_modifier(Modifier::DIM);
pub(super) const STRONG: Style = Style::new().add_modifier(Modifier::BOLD);
pub(super) const MARK: Style = Style::new().fg(Color::Yellow).add_modifier(Modifier::BOLD);
pub(super) const SUMMARY: Style = Style::new().fg(Color::Magenta);
pub(super) const PLAIN: Style = Style::new();

/// What is shown of a message beside what it says.
pub(super) struct About<'a> {
    pub(super) depth: usize,
    pub(super) is_open: bool,
    pub(super) is_head: bool,
    /// Which one of how many versions it is, from 1.
    pub(super) version: Option<(usize, usize)>,
    pub(super) labels: &'a [String],
}

pub(super) fn role_style(role: &Role) -> Style {
    let colour = match role {
        Role::User => Color::Green,
        Role::Assistant => Color::Cyan,
        _ => Color::Blue,
    };
    Style::new().fg(colour).add_modifier(Modifier::BOLD)
}

/// Returns the lines of a message in a pane of this width: a heading, its parts, and an empty line.
pub(super) fn of(message: &Message, about: &About<'_>, width: usize) -> Vec<Line<'static>> {
    let mut out = Writer { lines: Vec::new(), margin: "│ ".repeat(about.depth), width };
    let summary = CompactionId::from_message(&message.id);
    let mut heading =
        vec![Span::styled(one_line(message.role.as_str()), role_style(&message.role))];
    let mut note = |style, text: String| heading.push(Span::styled(format!("  {text}"), style));
    if summary.is_some() {
        let count = message.field("compaction").and_then(|it| it.value()["count"].as_u64());
        let fold = if about.is_open { "▾" } else { "▸" };
        note(SUMMARY, format!("{fold} summary of {}", plural(count.unwrap_or(0), "message")));
    }
    note(FAINT, local(message.created_at));
    if let Some((place, count)) = about.version {
        note(MARK, format!("‹ {place}/{count} ›"));
    }
    if about.is_head {
        note(MARK, "head".to_owned());
    }
    about.labels.iter().for_each(|label| note(MARK, one_line(label)));
    if message.is_hidden {
        note(FAINT, "hidden".to_owned());
    }
    out.push(heading);
    let style = if message.is_hidden || summary.is_some() { FAINT } else { PLAIN };
    for part in &message.parts {
        out.part(&part.typed(), style, about.is_open || summary.is_some());
    }
    out.push(Vec::new());
    out.lines
}

struct Writer {
    lines: Vec<Line<'static>>,
    margin: String,
    width: usize,
}

impl Writer {
    fn push(&mut self, spans: Vec<Span<'static>>) {
        let margin = Span::styled(self.margin.clone(), SUMMARY);
        self.lines.push(Line::from_iter([margin].into_iter().chain(spans)));
    }

    fn part(&mut self, part: &Part, style: Style, is_open: bool) {
        match part {
            Part::Text(text) => self.text(style, &text.text, is_open),
            Part::Reasoning(reasoning) => {
                self.folded("thinks", &reasoning.text, &[&reasoning.text], is_open);
            }
            Part::Tool(tool) => {
                let texts = [&tool.input, &tool.output].map(|json| {
                    let value = json.as_ref().map(|json| json.value());
                    value.map_or_else(String::new, |value| match value.as_str() {
                        // A text reads better without its quotes and escapes.
                        Some(text) => text.to_owned(),
                        None if is_open => format!("{value:#}"),
                        None => value.to_string(),
                    })
                });
                let [input, output] = &texts;
                let failed = tool.error_text.as_deref().unwrap_or_default();
                let (said, of) = match (&tool.input, &tool.output, &tool.error_text) {
                    (.., Some(_)) => ("failed", failed),
                    (None, Some(_), _) => ("result of", output.as_str()),
                    _ => ("calls", input.as_str()),
                };
                self.folded(
                    &format!("{said} {}", tool.name),
                    of,
                    &[input, output, failed],
                    is_open,
                );
            }
            Part::File(file) => {
                let name = file.filename.as_deref().unwrap_or_default();
                let url = if file.url.starts_with("data:") { "" } else { &file.url };
                self.folded("file", &format!("{name} {} {url}", file.media_type), &[], false);
            }
            Part::Other(json) => {
                self.folded(&part.kind(), json.as_str(), &[json.as_str()], is_open)
            }
            _ => {}
        }
    }

    /// Writes a line that says what there is, and the texts below it if it is open.
    fn folded(&mut self, what: &str, first: &str, texts: &[&str], is_open: bool) {
        let fold = match (texts.is_empty(), is_open) {
            (true, _) => "·",
            (_, true) => "▾",
            (_, false) => "▸",
        };
        let what = format!("{fold} {}", one_line(what));
        let start = if is_open { String::new() } else { start(first, SHORT).0.to_owned() };
        let line = format!("{what}  {}", one_line(&start));
        let line = cut(&line, self.width.saturating_sub(self.margin.chars().count()));
        let at = line.len().min(what.len());
        let (what, rest) = line.split_at(if line.is_char_boundary(at) { at } else { 0 });
        self.push(vec![
            Span::styled(what.to_owned(), SUMMARY),
            Span::styled(rest.trim_end().to_owned(), FAINT),
        ]);
        if is_open {
            texts
                .iter()
                .filter(|text| !text.is_empty())
                .for_each(|text| self.text(FAINT, text, true));
        }
    }

    fn text(&mut self, style: Style, text: &str, is_open: bool) {
        let (shown, left) = start(text, if is_open { MOST } else { SHORT });
        let width = self.width.saturating_sub(self.margin.chars().count()).max(8);
        let options = textwrap::Options::new(width).word_splitter(WordSplitter::NoHyphenation);
        for line in shown.lines() {
            let line = escape(line).replace('\t', "    ");
            for row in textwrap::wrap(&line, &options) {
                self.push(vec![Span::styled(row.into_owned(), style)]);
            }
        }
        if left > 0 {
            let how = if is_open { "`talktree show` prints all" } else { "Enter shows more" };
            let note = format!("… {} more; {how}", crate::text::size(left as u64));
            self.push(vec![Span::styled(note, SUMMARY)]);
        }
    }
}

/// Returns the start of a text of about so many bytes, and how many are left.
fn start(text: &str, most: usize) -> (&str, usize) {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    (&text[..end], text.len() - end)
}
