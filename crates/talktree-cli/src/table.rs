//! Tables: each column is as wide as its widest cell; the last is cut at the edge of the terminal.

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
}

impl Table {
    pub(crate) fn new<const N: usize>(columns: [(&'static str, Style); N]) -> Self {
        let (heading, styles) = columns.into_iter().unzip();
        Self { heading, styles, rows: Vec::new() }
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
            for (column, cell) in row.iter().enumerate() {
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
