//! Text that is broken between words at the edge of a terminal, also if it arrives in pieces.

use unicode_width::UnicodeWidthStr;

/// A line of a terminal while it is written.
#[derive(Debug)]
pub(crate) struct Wrap {
    columns: usize,
    /// How many columns of the line are in use.
    used: usize,
    /// The blanks after them; at a break there are none.
    blanks: usize,
    /// The word after the blanks, while its end has not arrived.
    word: String,
}

impl Wrap {
    pub(crate) fn new(columns: usize) -> Self {
        Self { columns, used: 0, blanks: 0, word: String::new() }
    }

    /// Returns what can be written once this text has arrived, too: all but its last word.
    pub(crate) fn push(&mut self, text: &str) -> String {
        let mut out = String::new();
        for c in text.chars() {
            match c {
                '\n' => {
                    self.end_word(&mut out);
                    out.push('\n');
                    (self.used, self.blanks) = (0, 0);
                }
                ' ' | '\t' => {
                    self.end_word(&mut out);
                    self.blanks += 1;
                }
                c => self.word.push(c),
            }
        }
        out
    }

    fn end_word(&mut self, out: &mut String) {
        let width = self.word.width();
        if width == 0 {
            return;
        }
        if self.used > 0 && self.used + self.blanks + width > self.columns {
            out.push('\n');
            (self.used, self.blanks) = (0, 0);
        }
        out.extend(std::iter::repeat_n(' ', self.blanks));
        self.used += self.blanks + width;
        self.blanks = 0;
        *out += &std::mem::take(&mut self.word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_not_broken_whatever_the_pieces_are() {
        let text = "one two  three\n  four fivesixseveneight nine 博物馆 ten\nend\n";
        let wrapped = "one two\nthree\n  four\nfivesixseveneight\nnine\n博物馆 ten\nend\n";
        for length in 1..=text.len() {
            let mut wrap = Wrap::new(10);
            let pieces: Vec<char> = text.chars().collect();
            let pieces = pieces.chunks(length).map(|piece| piece.iter().collect::<String>());
            let written: String = pieces.map(|piece| wrap.push(&piece)).collect();
            assert_eq!(written, wrapped, "in pieces of {length}");
        }
    }
}
