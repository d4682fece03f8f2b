//! One corruption of the bytes of a file.

use std::fmt;

use super::case::Baseline;

/// The page size that talktree uses.
pub(super) const PAGE: usize = 4_096;

/// How many corruptions of each kind there are.
pub(super) struct Counts {
    pub(super) flips: u64,
    pub(super) lengths: u64,
    pub(super) pages: u64,
}

impl Counts {
    /// Returns the number of all corruptions; pages are zeroed and swapped equally often.
    pub(super) fn total(&self) -> u64 {
        self.flips + self.lengths + 2 * self.pages
    }
}

/// What is done to the bytes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Corruption {
    /// Flips the bits of the mask.
    Flip { place: usize, mask: u8 },
    /// Truncates the file.
    Cut { length: usize },
    /// Overwrites bytes with zeroes.
    Zero { from: usize, length: usize },
    /// Swaps two pages.
    Swap { page: usize, other: usize },
}

impl Corruption {
    /// Returns the corruption of a round, which depends only on the seed and the round.
    pub(super) fn of_round(seed: u64, round: u64, counts: &Counts, baseline: &Baseline) -> Self {
        let mut dice =
            fastrand::Rng::with_seed(seed ^ (round + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let (length, pages) = (baseline.bytes.len(), baseline.bytes.len() / PAGE);
        let (lengths, zeros) = (counts.flips, counts.flips + counts.lengths);
        let swaps = zeros + counts.pages;
        match round {
            _ if round < lengths => {
                // Alternately a whole byte and a single bit.
                let mask = if round.is_multiple_of(2) { dice.u8(1..) } else { 1 << dice.u8(..8) };
                Self::Flip { place: dice.usize(..length), mask }
            }
            // Short files, whole pages, and any length.
            _ if round < zeros => Self::Cut {
                length: match round % 3 {
                    0 => dice.usize(..600),
                    1 => dice.usize(..pages) * PAGE,
                    _ => dice.usize(..length),
                },
            },
            _ if round == zeros => Self::Zero { from: 0, length: 100 },
            _ if round == zeros + 1 => Self::Zero { from: 16, length: 84 },
            _ if round < swaps => Self::Zero { from: dice.usize(..pages) * PAGE, length: PAGE },
            _ => Self::Swap { page: dice.usize(1..pages), other: dice.usize(1..pages) },
        }
    }

    /// Corrupts the bytes.
    pub(super) fn apply(self, bytes: &mut Vec<u8>) {
        match self {
            Self::Flip { place, mask } => bytes[place] ^= mask,
            Self::Cut { length } => bytes.truncate(length),
            Self::Zero { from, length } => bytes[from..from + length].fill(0),
            Self::Swap { page, other } => {
                for at in 0..PAGE {
                    bytes.swap(page * PAGE + at, other * PAGE + at);
                }
            }
        }
    }

    /// Returns the name of this kind of corruption.
    pub(super) fn kind(self) -> &'static str {
        match self {
            Self::Flip { mask, .. } if mask.is_power_of_two() => "flipped bit",
            Self::Flip { .. } => "flipped byte",
            Self::Cut { .. } => "truncated file",
            Self::Zero { .. } => "zeroed bytes",
            Self::Swap { .. } => "swapped pages",
        }
    }

    /// Returns the first page it changes; `None` for a truncation.
    pub(super) fn page(self) -> Option<usize> {
        match self {
            Self::Flip { place, .. } => Some(place / PAGE),
            Self::Cut { .. } => None,
            Self::Zero { from, .. } => Some(from / PAGE),
            Self::Swap { page, .. } => Some(page),
        }
    }
}

impl fmt::Display for Corruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flip { place, mask } => write!(f, "byte {place} flipped by {mask:#04x}"),
            Self::Cut { length } => write!(f, "truncated to {length} bytes"),
            Self::Zero { from, length } => write!(f, "{length} bytes zeroed from {from}"),
            Self::Swap { page, other } => write!(f, "pages {page} and {other} swapped"),
        }
    }
}
