//! Tables: each column is as wide as its widest cell; the last is cut at the edge of the terminal.
//!
//! On a terminal a column without any content is left out, and so are columns that are only shown on a wide one.

use std::io;

use anstyle::Style;
use chrono::{DateTime, Utc};
use unicode_width::UnicodeWidthStr;

use crate::output::{Output, Piece};
use crate::style;
use crate::text::{cut, escape};

/// The maximum width of a column other than the last.
const MAX_WIDTH: usize = 40;

/// Rows of cells under a heading.
pub(crate) struct Table {
    heading: Vec<&'static str>,
    styles: Vec<Style>,
    rows: Vec<Vec<String>>,
    /// The least width of a terminal that shows a column, by its heading.
    shown_from: Vec<(&'static str, usize)>,
}

impl Table {
    pub(crate) fn new<const N: usize>(columns: [(&'static str, Style); N]) -> Self {
        let (heading, styles) = columns.into_iter().unzip();
        Self { heading, styles, rows: Vec::new(), shown_from: Vec::new() }
    }

    /// Leaves the column out on a terminal that is narrower than this.
    pub(crate) fn shown_from(mut self, column: &'static str, width: usize) -> Self {
        self.shown_from.push((column, width));
        self
    }

    fn is_shown(&self, column: usize, width: Option<usize>) -> bool {
        let Some(width) = width else { return true };
        let heading = self.heading[column];
        let is_wide =
            self.shown_from.iter().all(|(other, least)| *other != heading || width >= *least);
        is_wide && self.rows.iter().any(|row| !row[column].is_empty())
    }

    pub(crate) fn push<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(
            cells.iter().map(|cell| escape(&cut(cell, MAX_WIDTH * 4)).into_owned()).collect(),
        );
    }

    pub(crate) fn write(&self, out: &mut Output) -> io::Result<()> {
        let last = self.heading.len().saturating_sub(1);
        let widest = |column: usize| {
            let cells = self.rows.iter().map(|row| row[column].width());
            cells.chain([self.heading[column].width()]).max().unwrap_or(0).min(MAX_WIDTH)
        };
        let widths: Vec<usize> = (0..last).map(widest).collect();
        let heading: Vec<String> = self.heading.iter().map(|cell| (*cell).to_owned()).collect();
        let faint = vec![style::FAINT; self.heading.len()];
        let rows = self.rows.iter().map(|row| (row, &self.styles));
        for (row, styles) in std::iter::once((&heading, &faint)).chain(rows) {
            let mut cells: Vec<(Style, String)> = Vec::new();
            let shown = |(column, _): &(usize, &String)| self.is_shown(*column, out.width());
            for (column, cell) in row.iter().enumerate().filter(shown) {
                match widths.get(column) {
                    None => cells.push((styles[column], cell.clone())),
                    Some(width) => {
                        let cell = cut(cell, *width);
                        let blanks = " ".repeat(width.saturating_sub(cell.width()) + 2);
                        cells.push((styles[column], cell.into_owned()));
                        cells.push((style::PLAIN, blanks));
                    }
                }
            }
            let pieces: Vec<Piece<'_>> =
                cells.iter().map(|(style, text)| (*style, &**text)).collect();
            out.line_cut(&pieces)?;
        }
        Ok(())
    }
}

/// Returns the time to the minute, as tables show it.
pub(crate) fn minute(time: DateTime<Utc>) -> String {
    time.format("%Y-%m-%d %H:%M").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On 60 columns the list of sessions had eight left for the name.
    #[test]
    fn on_a_narrow_terminal_columns_are_left_out() -> io::Result<()> {
        let mut table =
            Table::new(["id", "from", "model", "name"].map(|name| (name, style::PLAIN)))
                .shown_from("from", 100);
        table.push(["1", "a file", "", "one"].map(str::to_owned));
        for (width, expected) in
            [(60, "id  name\n1   one\n"), (100, "id  from    name\n1   a file  one\n")]
        {
            let (mut out, written) = Output::of_width(width);
            table.write(&mut out)?;
            out.flush()?;
            assert_eq!(String::from_utf8_lossy(&written.borrow()), expected);
        }
        let (mut out, written) = Output::memory();
        table.write(&mut out)?;
        out.flush()?;
        let expected = "id  from    model  name\n1   a file         one\n";
        assert_eq!(String::from_utf8_lossy(&written.borrow()), expected);
        Ok(())
    }
}
