//! Drift: where the blocks have moved on since the prompt was frozen.
//!
//! The difference of two texts is by lines: the shortest one (Myers), found in linear memory by
//! halving. Its work is limited; where the limit is reached, what is left is one removal and one
//! addition, which is longer but as true.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;

/// The steps a difference may take before it gives up on being the shortest.
const MAX_STEPS: usize = 4_000_000;

/// The lines shown around a change.
const AROUND: usize = 3;

/// A block that differs from what the frozen prompt says of it.
///
/// It prints as a unified diff.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Drift {
    /// The block.
    pub label: String,
    /// How it differs.
    pub kind: DriftKind,
    /// The changed lines in unified form, from the frozen content to the present.
    pub diff: String,
}

/// How a block differs from the frozen prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DriftKind {
    /// Its content is another.
    Changed,
    /// The prompt does not have it.
    Added,
    /// Only the prompt has it.
    Removed,
}

impl fmt::Display for Drift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let label = &self.label;
        match self.kind {
            DriftKind::Changed => writeln!(f, "--- {label} (frozen)\n+++ {label} (now)")?,
            DriftKind::Added => writeln!(f, "--- (not frozen)\n+++ {label} (now)")?,
            DriftKind::Removed => writeln!(f, "--- {label} (frozen)\n+++ (removed)")?,
        }
        f.write_str(&self.diff)
    }
}

/// Returns the blocks that differ, each given as label and content: the present ones in their
/// order, then those that are gone.
pub(crate) fn drifts(frozen: &[(&str, &str)], present: &[(&str, &str)]) -> Vec<Drift> {
    let was: HashMap<_, _> = frozen.iter().copied().collect();
    let is: HashMap<_, _> = present.iter().copied().collect();
    let moved = present.iter().filter_map(|(label, now)| match was.get(label) {
        Some(before) if before == now => None,
        Some(before) => Some((label, DriftKind::Changed, unified(before, now))),
        None => Some((label, DriftKind::Added, unified("", now))),
    });
    let gone = frozen.iter().filter(|(label, _)| !is.contains_key(label));
    let gone = gone.map(|(label, before)| (label, DriftKind::Removed, unified(before, "")));
    moved
        .chain(gone)
        .map(|(label, kind, diff)| Drift { label: (*label).to_owned(), kind, diff })
        .collect()
}

/// Returns the difference of two texts in unified form, without a head; empty if they are equal.
pub(crate) fn unified(old: &str, new: &str) -> String {
    let old: Vec<_> = old.split_inclusive('\n').collect();
    let new: Vec<_> = new.split_inclusive('\n').collect();
    let changes = changes(&old, &new, MAX_STEPS);
    let mut text = String::new();
    let mut at = 0;
    while let Some(first) = changes.get(at) {
        // Changes whose surroundings touch share a hunk.
        let mut end = at + 1;
        while let (Some(last), Some(next)) = (changes.get(end - 1), changes.get(end))
            && next.old.start - last.old.end <= 2 * AROUND
        {
            end += 1;
        }
        let hunk = changes.get(at..end).unwrap_or_default();
        write_hunk(&mut text, &old, &new, first, hunk);
        at = end;
    }
    text
}

/// Lines of the old text that became lines of the new one; either may be empty, not both.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Replaced {
    old: Range<usize>,
    new: Range<usize>,
}

fn write_hunk(text: &mut String, old: &[&str], new: &[&str], first: &Replaced, hunk: &[Replaced]) {
    let last = hunk.last().unwrap_or(first);
    let before = first.old.start.min(AROUND);
    let after = (old.len() - last.old.end).min(AROUND);
    let old_lines = first.old.start - before..last.old.end + after;
    let new_lines = first.new.start - before..last.new.end + after;
    *text += &format!("@@ -{} +{} @@\n", span(&old_lines), span(&new_lines));
    let mut at = old_lines.start;
    for change in hunk {
        write_lines(text, ' ', &old[at..change.old.start]);
        write_lines(text, '-', &old[change.old.clone()]);
        write_lines(text, '+', &new[change.new.clone()]);
        at = change.old.end;
    }
    write_lines(text, ' ', &old[at..old_lines.end]);
}

/// Returns a hunk's first line, from 1, and its count, left out if it is 1.
fn span(lines: &Range<usize>) -> String {
    match lines.len() {
        // Of no lines, the place is the line before.
        0 => format!("{},0", lines.start),
        1 => format!("{}", lines.start + 1),
        count => format!("{},{count}", lines.start + 1),
    }
}

fn write_lines(text: &mut String, mark: char, lines: &[&str]) {
    for line in lines {
        text.push(mark);
        text.push_str(line);
        if !line.ends_with('\n') {
            text.push_str("\n\\ No newline at end of text\n");
        }
    }
}

/// Returns what to replace to come from the old lines to the new ones.
fn changes(old: &[&str], new: &[&str], max_steps: usize) -> Vec<Replaced> {
    // Numbers compare faster than lines, and a line is compared many times.
    let mut numbers = HashMap::new();
    let mut number = |line| {
        let next = numbers.len();
        *numbers.entry(line).or_insert(next)
    };
    let old: Vec<usize> = old.iter().map(|line| number(*line)).collect();
    let new: Vec<usize> = new.iter().map(|line| number(*line)).collect();
    let mut search = Search { old: &old, new: &new, steps: max_steps, found: Vec::new() };
    search.narrow(0..old.len(), 0..new.len());
    search.found
}

struct Search<'a> {
    old: &'a [usize],
    new: &'a [usize],
    /// The steps that are left.
    steps: usize,
    found: Vec<Replaced>,
}

impl Search<'_> {
    /// Finds the changes between two stretches, in order.
    fn narrow(&mut self, mut old: Range<usize>, mut new: Range<usize>) {
        while !old.is_empty() && !new.is_empty() && self.old[old.start] == self.new[new.start] {
            (old.start, new.start) = (old.start + 1, new.start + 1);
        }
        while !old.is_empty() && !new.is_empty() && self.old[old.end - 1] == self.new[new.end - 1] {
            (old.end, new.end) = (old.end - 1, new.end - 1);
        }
        if old.is_empty() && new.is_empty() {
            return;
        }
        if old.is_empty() || new.is_empty() {
            return self.replace(old, new);
        }
        match self.middle(&old, &new) {
            // A corner would leave all the work as it was.
            Some((x, y)) if (x, y) != (old.start, new.start) && (x, y) != (old.end, new.end) => {
                self.narrow(old.start..x, new.start..y);
                self.narrow(x..old.end, y..new.end);
            }
            _ => self.replace(old, new),
        }
    }

    fn replace(&mut self, old: Range<usize>, new: Range<usize>) {
        if let Some(last) = self.found.last_mut()
            && (last.old.end, last.new.end) == (old.start, new.start)
        {
            (last.old.end, last.new.end) = (old.end, new.end);
            return;
        }
        self.found.push(Replaced { old, new });
    }

    /// Returns a point on a shortest way through the box, about half of its changes from either
    /// end; `None` if the steps are used up.
    ///
    /// Two searches go towards each other, one round of changes at a time; a diagonal holds the
    /// farthest place reached on it. Where they meet on a diagonal is on a shortest way.
    fn middle(&mut self, old: &Range<usize>, new: &Range<usize>) -> Option<(usize, usize)> {
        let (width, height) = (old.len() as isize, new.len() as isize);
        let most = (width + height + 1) / 2;
        let (delta, is_odd) = (width - height, (width + height) % 2 != 0);
        // Diagonal k lies at k + most + 1; one further on either side is looked at.
        let place = |k: isize| (k + most + 1) as usize;
        let mut forward = vec![0_isize; 2 * most as usize + 3];
        let mut backward = forward.clone();
        for round in 0..=most {
            self.steps = self.steps.checked_sub(2 * round as usize + 1)?;
            for k in (-round..=round).step_by(2) {
                let (left, right) = (forward[place(k - 1)], forward[place(k + 1)]);
                let down = k == -round || (k != round && left < right);
                let mut x = if down { right } else { left + 1 };
                // A way that left the box has no more to find.
                if x > width || x - k > height {
                    forward[place(k)] = x;
                    continue;
                }
                let start = x;
                while x < width
                    && x - k < height
                    && self.old[old.start + x as usize] == self.new[new.start + (x - k) as usize]
                {
                    x += 1;
                }
                self.steps = self.steps.checked_sub((x - start) as usize)?;
                forward[place(k)] = x;
                let other = delta - k;
                if is_odd
                    && (1 - round..round).contains(&other)
                    && x + backward[place(other)] >= width
                {
                    return Some((old.start + x as usize, new.start + (x - k) as usize));
                }
            }
            for k in (-round..=round).step_by(2) {
                let (left, right) = (backward[place(k - 1)], backward[place(k + 1)]);
                let down = k == -round || (k != round && left < right);
                let mut x = if down { right } else { left + 1 };
                if x > width || x - k > height {
                    backward[place(k)] = x;
                    continue;
                }
                let start = x;
                while x < width
                    && x - k < height
                    && self.old[old.end - 1 - x as usize]
                        == self.new[new.end - 1 - (x - k) as usize]
                {
                    x += 1;
                }
                self.steps = self.steps.checked_sub((x - start) as usize)?;
                backward[place(k)] = x;
                let other = delta - k;
                if !is_odd
                    && (-round..=round).contains(&other)
                    && x + forward[place(other)] >= width
                {
                    return Some((old.end - x as usize, new.end - (x - k) as usize));
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn letters(text: &str) -> Vec<&str> {
        text.split_inclusive(|_| true).collect()
    }

    /// Draws the changes of two texts of one-letter lines: `a[b|c]d`.
    fn drawn(old: &str, new: &str, max_steps: usize) -> String {
        let (old, new) = (letters(old), letters(new));
        let (mut text, mut at) = (String::new(), 0);
        for change in changes(&old, &new, max_steps) {
            let kept = &old[at..change.old.start];
            let (gone, come) = (&old[change.old.clone()], &new[change.new.clone()]);
            text += &format!("{}[{}|{}]", kept.concat(), gone.concat(), come.concat());
            at = change.old.end;
        }
        text + &old[at..].concat()
    }

    #[test]
    fn what_changed_is_found_between_what_stayed() {
        let cases = [
            ("abc", "abc", "abc"),
            ("", "", ""),
            ("", "ab", "[|ab]"),
            ("ab", "", "[ab|]"),
            ("abc", "axc", "a[b|x]c"),
            ("abcdef", "acdxf", "a[b|]cd[e|x]f"),
            ("aab", "ab", "a[a|]b"),
            ("abcabba", "cbabac", "[ab|]c[|b]ab[b|]a[|c]"),
        ];
        for (old, new, picture) in cases {
            let is = drawn(old, new, MAX_STEPS);
            let count = |picture: &str| {
                picture.split(['[', ']']).skip(1).step_by(2).map(|c| c.len() - 1).sum::<usize>()
            };
            assert_eq!(count(&is), count(picture), "{old:?} {new:?}: {is}");
        }
        assert_eq!(drawn("abc", "axc", MAX_STEPS), "a[b|x]c");
        assert_eq!(drawn("abcdef", "acdxf", MAX_STEPS), "a[b|]cd[e|x]f");
    }

    #[test]
    fn without_steps_all_between_the_common_ends_is_replaced() {
        assert_eq!(drawn("abcdef", "axcyef", 0), "a[bcd|xcy]ef");
    }

    #[test]
    fn a_large_difference_ends_soon() {
        let old: String = (0..200_000).map(|n| format!("old {n}\n")).collect();
        let new: String = (0..200_000).map(|n| format!("new {n}\n")).collect();
        let diff = unified(&old, &new);
        assert_eq!(diff.lines().count(), 400_001);
        assert!(diff.starts_with("@@ -1,200000 +1,200000 @@\n-old 0\n"));
    }

    #[test]
    fn a_diff_is_in_unified_form() {
        let old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14";
        let new = "1\n2\nthree\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n";
        let diff = "@@ -1,6 +1,6 @@\n 1\n 2\n-3\n+three\n 4\n 5\n 6\n\
                    @@ -11,4 +11,4 @@\n 11\n 12\n 13\n-14\n\\ No newline at end of text\n+14\n";
        assert_eq!(unified(old, new), diff);
        assert_eq!(unified("", "a\n"), "@@ -0,0 +1 @@\n+a\n");
        assert_eq!(unified("a\n", ""), "@@ -1 +0,0 @@\n-a\n");
        assert_eq!(unified("a\n", "a\n"), "");
    }

    #[test]
    fn blocks_that_changed_came_or_went_have_drifted() {
        let frozen = [("soul", "same"), ("memory", "tea\n"), ("old", "gone\n")];
        let present = [("soul", "same"), ("new", "here\n"), ("memory", "coffee\n")];
        let drifts = drifts(&frozen, &present);
        let text: Vec<_> = drifts.iter().map(ToString::to_string).collect();
        assert_eq!(
            text,
            [
                "--- (not frozen)\n+++ new (now)\n@@ -0,0 +1 @@\n+here\n",
                "--- memory (frozen)\n+++ memory (now)\n@@ -1 +1 @@\n-tea\n+coffee\n",
                "--- old (frozen)\n+++ (removed)\n@@ -1 +0,0 @@\n-gone\n",
            ]
        );
        let kinds: Vec<_> = drifts.iter().map(|drift| drift.kind).collect();
        assert_eq!(kinds, [DriftKind::Added, DriftKind::Changed, DriftKind::Removed]);
    }

    /// The length of the shortest difference, by the table of longest common subsequences.
    fn shortest(old: &[&str], new: &[&str]) -> usize {
        let mut common = vec![vec![0_usize; new.len() + 1]; old.len() + 1];
        for (i, a) in old.iter().enumerate() {
            for (j, b) in new.iter().enumerate() {
                common[i + 1][j + 1] =
                    if a == b { common[i][j] + 1 } else { common[i][j + 1].max(common[i + 1][j]) };
            }
        }
        old.len() + new.len() - 2 * common[old.len()][new.len()]
    }

    proptest! {
        #[test]
        fn changes_lead_from_the_old_to_the_new_and_are_the_fewest(
            old in "[abc]{0,24}", new in "[abc]{0,24}", steps in 0_usize..200
        ) {
            let (old, new) = (letters(&old), letters(&new));
            for (steps, is_shortest) in [(MAX_STEPS, true), (steps, false)] {
                let (mut built, mut at, mut size) = (Vec::<&str>::new(), 0, 0);
                for change in changes(&old, &new, steps) {
                    built.extend(&old[at..change.old.start]);
                    prop_assert_eq!(built.len(), change.new.start);
                    built.extend(&new[change.new.clone()]);
                    size += change.old.len() + change.new.len();
                    at = change.old.end;
                }
                built.extend(&old[at..]);
                prop_assert_eq!(&built, &new);
                prop_assert!(!is_shortest || size == shortest(&old, &new));
            }
        }
    }
}
