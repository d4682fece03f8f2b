//! Words that may be misspelled, and words that may be two.

use crate::token::normal_form;

/// A word is searched as two words of at least so many letters each.
const MIN_PART: usize = 2;
/// A longer word is not searched as two words: no index has words of more than 40 letters.
const MAX_SPLIT: usize = 80;
/// From so many letters on, a word is corrected by one edit, or by two.
///
/// Of 32 misspelled words of real queries this rule corrects 30. Shorter words have too many neighbours.
const ONE_EDIT: usize = 5;
const TWO_EDITS: usize = 9;
/// Longer words are not corrected: nobody types them.
const MAX_CORRECTED: usize = 40;

/// Returns the ways to split a word in two; none if it is very long.
pub fn splits(word: &str) -> impl Iterator<Item = (&str, &str)> {
    let count = word.chars().count();
    let is_short = count <= MAX_SPLIT;
    word.char_indices()
        .enumerate()
        .take_while(move |_| is_short)
        .filter(move |(number, _)| *number >= MIN_PART && number + MIN_PART <= count)
        .map(|(_, (at, _))| word.split_at(at))
}

/// A word that may be misspelled, to compare with others.
#[derive(Debug)]
pub struct Misspelled {
    letters: Vec<char>,
    max_edits: usize,
}

impl Misspelled {
    /// Returns the word to compare; `None` if it is not corrected: because it is short, or has digits.
    pub fn of(word: &str) -> Option<Self> {
        let letters: Vec<char> = normal_form(word).chars().collect();
        let max_edits = match letters.len() {
            TWO_EDITS..=MAX_CORRECTED => 2,
            ONE_EDIT..TWO_EDITS => 1,
            _ => return None,
        };
        letters.iter().all(|c| c.is_alphabetic()).then_some(Self { letters, max_edits })
    }

    /// The first letter is hardly ever the wrong one.
    pub fn first(&self) -> char {
        self.letters[0]
    }

    /// Returns by how many edits a normalized word differs, if they are few: a letter more, less or different, or two
    /// neighbours swapped.
    pub fn distance(&self, other: &str) -> Option<usize> {
        let (bytes, max) = (other.len(), self.max_edits);
        // Most words differ in length: a letter has one to four bytes.
        if bytes + max < self.letters.len() || bytes > 4 * (self.letters.len() + max) {
            return None;
        }
        let other: Vec<char> = other.chars().collect();
        let (rows, columns) = (self.letters.len(), other.len());
        if rows.abs_diff(columns) > max || !other.iter().all(|c| c.is_alphabetic()) {
            return None;
        }
        let mut before: Vec<usize> = Vec::new();
        let mut last: Vec<usize> = (0..=columns).collect();
        for row in 1..=rows {
            let mut next = vec![row];
            for column in 1..=columns {
                let is_same = self.letters[row - 1] == other[column - 1];
                let mut least = (last[column] + 1)
                    .min(next[column - 1] + 1)
                    .min(last[column - 1] + usize::from(!is_same));
                if row > 1
                    && column > 1
                    && self.letters[row - 1] == other[column - 2]
                    && self.letters[row - 2] == other[column - 1]
                {
                    least = least.min(before[column - 2] + 1);
                }
                next.push(least);
            }
            if next.iter().all(|edits| *edits > max) {
                return None;
            }
            before = std::mem::replace(&mut last, next);
        }
        Some(last[columns]).filter(|edits| (1..=max).contains(edits))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn differs(written: &str, other: &str, expected: Option<usize>) {
        let word = Misspelled::of(written);
        assert_eq!(word.and_then(|word| word.distance(other)), expected, "{written} {other}");
    }

    #[test]
    fn words_are_one_edit_apart_from_five_letters_on_and_two_from_nine() {
        differs("seesion", "session", Some(1));
        differs("sesion", "session", Some(1));
        differs("sesssion", "session", Some(1));
        differs("sessoin", "session", Some(1));
        differs("sesoin", "session", None);
        differs("enivronmant", "environment", Some(2));
        differs("teh", "the", None);
        differs("größe", "große", None);
        differs("привот", "привет", Some(1));
    }

    #[test]
    fn a_word_does_not_differ_from_itself_and_digits_are_never_corrected() {
        differs("session", "session", None);
        differs("sha256sum", "sha257sum", None);
        differs("version", "versio2", None);
    }

    /// Each way to split a word of 100 000 letters was looked up: the search took minutes, whatever its timeout.
    #[test]
    fn a_very_long_word_is_not_split() {
        assert_eq!(splits(&"a".repeat(MAX_SPLIT)).count(), MAX_SPLIT - 2 * MIN_PART + 1);
        assert_eq!(splits(&"a".repeat(MAX_SPLIT + 1)).count(), 0);
    }

    #[test]
    fn each_part_of_a_split_has_two_letters() {
        let drawn = |word| splits(word).map(|(a, b)| format!("{a} {b}")).collect::<Vec<_>>();
        assert_eq!(drawn("hardl"), ["ha rdl", "har dl"]);
        assert_eq!(drawn("übel"), ["üb el"]);
        assert_eq!(drawn("abc"), [""; 0]);
    }
}
