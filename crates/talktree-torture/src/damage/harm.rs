//! One harm done to the bytes of a file.

use std::fmt;

use super::case::Ground;

/// SQLite's size of a page, as talktree uses it.
pub(super) const PAGE: usize = 4_096;

/// How many of each kind there are.
pub(super) struct Counts {
    pub(super) flips: u64,
    pub(super) lengths: u64,
    pub(super) pages: u64,
}

impl Counts {
    /// Returns how many harms there are in all; each kind of page harm comes as often.
    pub(super) fn total(&self) -> u64 {
        self.flips + self.lengths + 2 * self.pages
    }
}

/// What is done to a file.
#[derive(Debug, Clone, Copy)]
pub(super) enum Harm {
    /// The bits of the mask are turned over.
    Flip { place: usize, mask: u8 },
    /// The file ends here.
    Cut { length: usize },
    /// These bytes are zero.
    Zero { from: usize, length: usize },
    /// Two pages lie in each other's place.
    Swap { page: usize, other: usize },
}

impl Harm {
    /// Returns the harm of a round; the same one for the same seed.
    pub(super) fn of_round(seed: u64, round: u64, counts: &Counts, ground: &Ground) -> Self {
        let mut dice =
            fastrand::Rng::with_seed(seed ^ (round + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let (length, pages) = (ground.bytes.len(), ground.bytes.len() / PAGE);
        let (lengths, zeros) = (counts.flips, counts.flips + counts.lengths);
        let swaps = zeros + counts.pages;
        match round {
            _ if round < lengths => {
                // A byte that is another one, and a single bit, in turn.
                let mask = if round.is_multiple_of(2) { dice.u8(1..) } else { 1 << dice.u8(..8) };
                Self::Flip { place: dice.usize(..length), mask }
            }
            // Short ends, whole pages, and any length.
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

    /// Does the harm.
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

    /// Returns what this kind of harm is called.
    pub(super) fn kind(self) -> &'static str {
        match self {
            Self::Flip { mask, .. } if mask.is_power_of_two() => "a flipped bit",
            Self::Flip { .. } => "a flipped byte",
            Self::Cut { .. } => "a cut file",
            Self::Zero { .. } => "zeroed bytes",
            Self::Swap { .. } => "exchanged pages",
        }
    }

    /// Returns the page it touches first; `None` for a file that is cut.
    pub(super) fn page(self) -> Option<usize> {
        match self {
            Self::Flip { place, .. } => Some(place / PAGE),
            Self::Cut { .. } => None,
            Self::Zero { from, .. } => Some(from / PAGE),
            Self::Swap { page, .. } => Some(page),
        }
    }
}

impl fmt::Display for Harm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flip { place, mask } => write!(f, "byte {place} turned by {mask:#04x}"),
            Self::Cut { length } => write!(f, "cut to {length} bytes"),
            Self::Zero { from, length } => write!(f, "{length} bytes zeroed from {from}"),
            Self::Swap { page, other } => write!(f, "pages {page} and {other} exchanged"),
        }
    }
}
