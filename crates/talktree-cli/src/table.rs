//! Tables: each column is as wide as its widest cell; the last is cut at the edge of the terminal.
//!
//! On a terminal a column without any content is left out, and so are columns that are only shown on a wide one. A table of
//! numbers leaves out columns until the others fit, because half a number is a wrong one.

use std::io;

use anstyle::Style;
use unicode_width::UnicodeWidthStr;

use crate::output::{FAINT, MIN_CUT, Output, PLAIN, Piece};
use crate::text::{cut, escape};

/// The maximum width of a column other than the last.
const MAX_WIDTH: usize = 40;

/// The first column of a table of numbers keeps this width while other columns can be left out.
const MIN_NAME: usize = 24;

/// The blanks between two columns.
const GAP: usize = 2;

/// Rows of cells under a heading.
pub(crate) struct Table {
    heading: Vec<&'static str>,
    styles: Vec<Style>,
    rows: Vec<Vec<String>>,
    /// The least width of a terminal that shows a column, by its heading.
    shown_from: Vec<(&'static str, usize)>,
    /// In a table of numbers, the headings that a narrow terminal leaves out, the first one first.
    optional: Option<&'static [&'static str]>,
}

impl Table {
    /// Returns a table with these headings, one word each, and a style for the cells of each column.
    pub(crate) fn new<const N: usize>(heading: &'static str, styles: [Style; N]) -> Self {
        let (heading, styles) = (heading.split_whitespace().collect(), styles.to_vec());
        Self { heading, styles, rows: Vec::new(), shown_from: Vec::new(), optional: None }
    }

    /// Gives the first column another heading.
    pub(crate) fn first(mut self, heading: &'static str) -> Self {
        self.heading[0] = heading;
        self
    }

    /// Leaves the column out on a terminal that is narrower than this.
    pub(crate) fn shown_from(mut self, column: &'static str, width: usize) -> Self {
        self.shown_from.push((column, width));
        self
    }

    /// Makes it a table of numbers: only the cells of the first column are ever cut. If it is too wide for the terminal, these
    /// columns are left out, the first one first, until it fits.
    pub(crate) fn of_numbers(mut self, optional: &'static [&'static str]) -> Self {
        self.optional = Some(optional);
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

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub(crate) fn write(&self, out: &mut Output) -> io::Result<()> {
        let columns = self.columns(out.width());
        let heading: Vec<String> = self.heading.iter().map(|cell| (*cell).to_owned()).collect();
        let faint = vec![FAINT; self.heading.len()];
        let rows = self.rows.iter().map(|row| (row, &self.styles));
        for (row, styles) in std::iter::once((&heading, &faint)).chain(rows) {
            let mut cells: Vec<(Style, String)> = Vec::new();
            for (at, &(column, width)) in columns.iter().enumerate() {
                let cell = cut(&row[column], width);
                let blanks = width.saturating_sub(cell.width()) + GAP;
                cells.push((styles[column], cell.into_owned()));
                if at + 1 < columns.len() {
                    cells.push((PLAIN, " ".repeat(blanks)));
                }
            }
            let pieces: Vec<Piece<'_>> =
                cells.iter().map(|(style, text)| (*style, &**text)).collect();
            match self.optional {
                // What does not fit even so is on two lines of the terminal.
                Some(_) => out.line(&pieces)?,
                None => out.line_cut(&pieces)?,
            }
        }
        Ok(())
    }

    /// Returns the columns that are shown, with their widths.
    fn columns(&self, width: Option<usize>) -> Vec<(usize, usize)> {
        let last = self.heading.len().saturating_sub(1);
        let widest = |column: usize| {
            let cells = self.rows.iter().map(|row| row[column].width());
            let widest = cells.chain([self.heading[column].width()]).max().unwrap_or(0);
            let is_cut = if self.optional.is_some() { column == 0 } else { column != last };
            if is_cut { widest.min(MAX_WIDTH) } else { widest }
        };
        let shown = (0..self.heading.len()).filter(|column| self.is_shown(*column, width));
        let mut columns: Vec<(usize, usize)> =
            shown.map(|column| (column, widest(column))).collect();
        let (Some(optional), Some(width)) = (self.optional, width) else { return columns };
        // What the first column may have.
        let left = |columns: &[(usize, usize)]| {
            let others = columns.iter().skip(1).map(|(_, width)| width + GAP);
            width.saturating_sub(others.sum())
        };
        let name = columns.first().map_or(0, |(_, width)| *width);
        for heading in optional {
            if left(&columns) >= name.min(MIN_NAME) {
                break;
            }
            columns.retain(|(column, _)| self.heading[*column] != *heading);
        }
        let left = left(&columns).max(MIN_CUT);
        if let Some((_, width)) = columns.first_mut() {
            *width = left.min(name);
        }
        columns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On 60 columns the list of sessions had eight left for the name.
    #[test]
    fn on_a_narrow_terminal_columns_are_left_out() -> io::Result<()> {
        let mut table = Table::new("id from model name", [PLAIN; 4]).shown_from("from", 100);
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

    /// The cost was cut to `…` on 80 columns, and a number to its first digits.
    #[test]
    fn a_table_of_numbers_leaves_columns_out_before_it_cuts_a_number() -> io::Result<()> {
        let mut table =
            Table::new("model input cached cost", [PLAIN; 4]).of_numbers(&["cached", "input"]);
        let row = ["a-model-with-a-long-name", "1234567", "7654321", "12.345678 USD"];
        table.push(row.map(str::to_owned));
        for (width, expected) in [
            (60, "a-model-with-a-long-name  1234567  7654321  12.345678 USD\n"),
            (50, "a-model-with-a-long-name  1234567  12.345678 USD\n"),
            (40, "a-model-with-a-long-name  12.345678 USD\n"),
            (34, "a-model-with-a-lon…  12.345678 USD\n"),
            (20, "a-model-wit…  12.345678 USD\n"),
        ] {
            let (mut out, written) = Output::of_width(width);
            table.write(&mut out)?;
            out.flush()?;
            let written = String::from_utf8_lossy(&written.borrow()).into_owned();
            assert_eq!(written.split_once('\n').map(|(_, rows)| rows), Some(expected), "{width}");
        }
        Ok(())
    }
}
