//! Standard output: styled lines for people, or JSON lines for programs.
//!
//! Invariant: no control character of stored text reaches a terminal. Lines are escaped piece by
//! piece as they are written; JSON has its own escapes.

use std::cell::RefCell;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::rc::Rc;

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use chrono::{DateTime, Local, Utc};
use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter, Serializer};
use talktree::{PieceKind, Role};
use unicode_width::UnicodeWidthStr;

use crate::pager::Paged;
use crate::text::{cut, escape, is_unsafe};
use crate::time::{ago, iso, local};

/// A piece is not cut to fewer columns than this; it goes to another line.
pub(crate) const MIN_CUT: usize = 12;

/// A styled piece of a line.
pub(crate) type Piece<'a> = (Style, &'a str);

/// Writes a line of pieces, each a text after its style: `put!(out; LABEL name, PLAIN " removed")`.
macro_rules! put {
    ($out:expr; $($style:ident $text:expr),* $(,)?) => {
        $out.line(&[$(($crate::output::$style, $text)),*])
    };
}
pub(crate) use put;

/// The destination of a command's output.
pub(crate) struct Output {
    writer: Box<dyn Write>,
    is_coloured: bool,
    is_terminal: bool,
    /// The number of columns, if the output is a terminal.
    width: Option<usize>,
}

impl Output {
    pub(crate) fn stdout(colour: clap::ColorChoice) -> Self {
        let choice = match colour {
            clap::ColorChoice::Auto => AutoStream::choice(&io::stdout()),
            clap::ColorChoice::Always => ColorChoice::Always,
            clap::ColorChoice::Never => ColorChoice::Never,
        };
        let is_terminal = io::stdout().is_terminal();
        let is_coloured = choice != ColorChoice::Never;
        // Without colour no style is written. `AutoStream` would also strip escape codes from
        // exported text, so it is not used there.
        let writer: Box<dyn Write> = match is_coloured {
            true => Box::new(BufWriter::new(AutoStream::new(io::stdout(), choice))),
            false => Box::new(BufWriter::new(io::stdout())),
        };
        Self { writer, is_coloured, is_terminal, width: width(is_terminal) }
    }

    /// Returns an output that nobody reads.
    pub(crate) fn nowhere() -> Self {
        let writer = Box::new(io::sink());
        Self { writer, is_coloured: false, is_terminal: false, width: None }
    }

    /// Returns an output to memory, with the buffer it writes to.
    pub(crate) fn memory() -> (Self, Rc<RefCell<Vec<u8>>>) {
        let memory = Rc::new(RefCell::new(Vec::new()));
        let writer = Box::new(Memory(Rc::clone(&memory)));
        (Self { writer, is_coloured: false, is_terminal: false, width: None }, memory)
    }

    /// Returns an output to memory, as to a terminal of this width.
    #[cfg(test)]
    pub(crate) fn of_width(width: usize) -> (Self, Rc<RefCell<Vec<u8>>>) {
        let (out, memory) = Self::memory();
        (Self { width: Some(width), is_terminal: true, ..out }, memory)
    }

    /// Shows what is longer than the screen in a pager; for commands that only read. Nothing was written yet.
    pub(crate) fn page(&mut self) {
        if cfg!(unix)
            && self.is_terminal
            && let Some(paged) = Paged::new()
        {
            self.writer = Box::new(BufWriter::new(paged));
        }
    }

    /// Returns whether people read the output as it is written.
    pub(crate) fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Returns a time for a list: on a terminal as people say it, else with its zone.
    pub(crate) fn ago(&self, time: DateTime<Utc>) -> String {
        if self.is_terminal { ago(time, &Local::now()) } else { iso(time) }
    }

    /// Returns a time to the second: on a terminal the local one, else with its zone.
    pub(crate) fn moment(&self, time: DateTime<Utc>) -> String {
        if self.is_terminal { local(time) } else { iso(time) }
    }

    /// Returns the number of columns, if the output is a terminal.
    pub(crate) fn width(&self) -> Option<usize> {
        self.width
    }

    /// Returns whether colour marks matches, so that they need no other mark.
    pub(crate) fn is_coloured(&self) -> bool {
        self.is_coloured
    }

    /// Writes a line of styled pieces, escaped.
    pub(crate) fn line(&mut self, pieces: &[Piece<'_>]) -> io::Result<()> {
        for (style, text) in pieces.iter().filter(|(_, text)| !text.is_empty()) {
            let text = escape(text);
            match self.is_coloured && *style != Style::new() {
                true => write!(self.writer, "{style}{text}{style:#}")?,
                false => self.writer.write_all(text.as_bytes())?,
            }
        }
        self.writer.write_all(b"\n")
    }

    /// Writes a line of styled pieces, cut at the edge of the terminal.
    pub(crate) fn line_cut(&mut self, pieces: &[Piece<'_>]) -> io::Result<()> {
        let Some(width) = self.width else { return self.line(pieces) };
        let mut left = width;
        let mut shown: Vec<(Style, String)> = Vec::new();
        for (style, text) in pieces {
            let text = escape(text);
            let text = cut(&text, left);
            left -= text.width().min(left);
            shown.push((*style, text.into_owned()));
        }
        let shown: Vec<Piece<'_>> = shown.iter().map(|(style, text)| (*style, &**text)).collect();
        self.line(&shown)
    }

    /// Writes pieces with two blanks between them; what does not fit on the terminal goes to another line, indented.
    /// The piece of number `cut` is shortened to fit.
    pub(crate) fn flow(&mut self, pieces: &[Piece<'_>], to_cut: Option<usize>) -> io::Result<()> {
        const GAP: &str = "  ";
        let width = self.width.unwrap_or(usize::MAX);
        let (mut line, mut used, mut is_first) = (Vec::new(), 0, true);
        for (at, (style, text)) in
            pieces.iter().enumerate().filter(|(_, (_, text))| !text.is_empty())
        {
            let text = escape(text);
            let least = if to_cut == Some(at) { text.width().min(MIN_CUT) } else { text.width() };
            if used > 0 && used + GAP.len() + least > width {
                self.write_line(&std::mem::take(&mut line))?;
                used = 0;
            }
            if !is_first {
                line.push((Style::new(), GAP.to_owned()));
                used += GAP.len();
            }
            let left = if to_cut == Some(at) { width.saturating_sub(used) } else { usize::MAX };
            let text = cut(&text, left).into_owned();
            (used, is_first) = (used + text.width(), false);
            line.push((*style, text));
        }
        self.write_line(&line)
    }

    fn write_line(&mut self, line: &[(Style, String)]) -> io::Result<()> {
        let pieces: Vec<Piece<'_>> = line.iter().map(|(style, text)| (*style, &**text)).collect();
        self.line(&pieces)
    }

    /// Writes a text of styled pieces after an indent; on a terminal it is broken between words.
    pub(crate) fn wrapped(&mut self, indent: &str, pieces: &[Piece<'_>]) -> io::Result<()> {
        let width = self.width.unwrap_or(usize::MAX);
        let start = || vec![(Style::new(), indent.to_owned())];
        let (mut line, mut used) = (start(), indent.width());
        for (style, text) in pieces {
            for word in escape(text).split_inclusive(' ') {
                let is_first = used == indent.width();
                if !is_first && used + word.trim_end().width() > width {
                    if let Some((_, last)) = line.last_mut() {
                        last.truncate(last.trim_end().len());
                    }
                    self.write_line(&line)?;
                    (line, used) = (start(), indent.width());
                }
                used += word.width();
                line.push((*style, word.to_owned()));
            }
        }
        self.write_line(&line)
    }

    /// Writes a text of any number of lines, each after the indent.
    pub(crate) fn block(&mut self, style: Style, indent: &str, text: &str) -> io::Result<()> {
        for line in text.lines() {
            match line.is_empty() {
                true => self.line(&[])?,
                false => self.line(&[(Style::new(), indent), (style, line)])?,
            }
        }
        Ok(())
    }

    /// Writes one JSON value on a line.
    pub(crate) fn json(&mut self, value: &impl Serialize) -> io::Result<()> {
        value
            .serialize(&mut Serializer::with_formatter(&mut self.writer, SafeFormatter))
            .map_err(io::Error::from)?;
        self.writer.write_all(b"\n")
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

/// A writer for exports: byte for byte to a file or a pipe, escaped line by line to a terminal.
pub(crate) struct Exact<'a> {
    out: &'a mut Output,
    /// The incomplete last line; used for a terminal only.
    line: Vec<u8>,
    /// Whether the content is JSON, so that escapes must be valid JSON.
    is_json: bool,
}

impl<'a> Exact<'a> {
    pub(crate) fn new(out: &'a mut Output, is_json: bool) -> Self {
        Self { out, line: Vec::new(), is_json }
    }

    fn write_line(&mut self) -> io::Result<()> {
        let line = std::mem::take(&mut self.line);
        if !self.is_json {
            return self.out.line(&[(Style::new(), &String::from_utf8_lossy(&line))]);
        }
        SafeFormatter::write(&mut self.out.writer, &String::from_utf8_lossy(&line), true)?;
        self.out.writer.write_all(b"\n")
    }
}

impl Write for Exact<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.out.is_terminal {
            return self.out.writer.write(bytes);
        }
        for byte in bytes {
            match byte {
                b'\n' => self.write_line()?,
                byte => self.line.push(*byte),
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.line.is_empty() {
            self.write_line()?;
        }
        self.out.writer.flush()
    }
}

struct Memory(Rc<RefCell<Vec<u8>>>);

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the number of columns to fit lines into; none if the output is not a terminal.
fn width(is_terminal: bool) -> Option<usize> {
    let stated = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let seen = || terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    is_terminal.then(|| stated.or_else(seen)).flatten().filter(|width| *width >= 20)
}

/// Formats JSON on one line, with unsafe characters as escapes.
struct SafeFormatter;

impl SafeFormatter {
    fn write(writer: &mut (impl Write + ?Sized), text: &str, is_raw: bool) -> io::Result<()> {
        let mut from = 0;
        for (at, c) in text.char_indices().filter(|(_, c)| is_unsafe(*c) || *c == '\t') {
            writer.write_all(&text.as_bytes()[from..at])?;
            match c {
                // Raw JSON has these between values only.
                '\n' | '\r' | '\t' if is_raw => writer.write_all(b" ")?,
                c => write!(writer, "\\u{:04x}", u32::from(c))?,
            }
            from = at + c.len_utf8();
        }
        writer.write_all(&text.as_bytes()[from..])
    }
}

impl Formatter for SafeFormatter {
    fn write_string_fragment<W: Write + ?Sized>(
        &mut self,
        writer: &mut W,
        text: &str,
    ) -> io::Result<()> {
        Self::write(writer, text, false)
    }

    fn write_raw_fragment<W: Write + ?Sized>(
        &mut self,
        writer: &mut W,
        text: &str,
    ) -> io::Result<()> {
        Self::write(writer, text, true)
    }

    fn write_char_escape<W: Write + ?Sized>(
        &mut self,
        writer: &mut W,
        escape: serde_json::ser::CharEscape,
    ) -> io::Result<()> {
        CompactFormatter.write_char_escape(writer, escape)
    }
}

pub(crate) const PLAIN: Style = Style::new();
pub(crate) const STRONG: Style = Style::new().bold();
pub(crate) const FAINT: Style = Style::new().dimmed();
pub(crate) const ID: Style = AnsiColor::Yellow.on_default();
pub(crate) const LABEL: Style = AnsiColor::Magenta.on_default();
pub(crate) const COMPACTION: Style = AnsiColor::Cyan.on_default();
pub(crate) const MATCH: Style = AnsiColor::Red.on_default().bold();
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
pub(crate) const BAD: Style = AnsiColor::Red.on_default();

/// Returns the style of a message's role.
pub(crate) fn role_style(role: &Role) -> Style {
    match role {
        Role::User => AnsiColor::Green.on_default().bold(),
        Role::Assistant => AnsiColor::Blue.on_default().bold(),
        _ => STRONG,
    }
}

/// Returns the style of a piece of a tree drawing.
pub(crate) fn piece_style(kind: PieceKind) -> Style {
    match kind {
        PieceKind::Graph | PieceKind::More | PieceKind::Faded => FAINT,
        PieceKind::Head => MATCH,
        PieceKind::Role => STRONG,
        PieceKind::Id => ID,
        PieceKind::Label => LABEL,
        PieceKind::Compaction => COMPACTION,
        _ => PLAIN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_one_line_with_unsafe_characters_as_escapes() -> Result<(), serde_json::Error> {
        let raw =
            talktree::Json::parse("{\n\t\"a\": \"\u{9b}x\"\r\n}").unwrap_or_else(|e| panic!("{e}"));
        let value = (raw, "b\u{202e}\n\u{7f}é");
        let mut bytes = Vec::new();
        value.serialize(&mut Serializer::with_formatter(&mut bytes, SafeFormatter))?;
        let text = String::from_utf8_lossy(&bytes);
        assert_eq!(text, "[{  \"a\": \"\\u009bx\"  },\"b\\u202e\\n\\u007fé\"]");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text)?[1], "b\u{202e}\n\u{7f}é");
        Ok(())
    }
}
