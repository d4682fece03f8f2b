//! Marks: each text names its owner and its chat.

use std::fmt;

/// The origin of a text. The owner's epoch counts the erasures of the owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Mark {
    pub(super) owner: u32,
    pub(super) epoch: u32,
    pub(super) chat: u32,
    pub(super) kind: Kind,
    /// The number in the chat; never used again.
    pub(super) number: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Kind {
    Message,
    Summary,
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { owner, epoch, chat, kind, number } = self;
        let kind = if *kind == Kind::Message { 'n' } else { 's' };
        write!(f, "zq{owner}e{epoch}c{chat}{kind}{number}zq")
    }
}

impl Mark {
    /// Returns whether two marks belong to the same chat of the same owner, between the same erasures.
    pub(super) fn is_beside(&self, other: &Self) -> bool {
        (self.owner, self.epoch, self.chat) == (other.owner, other.epoch, other.chat)
    }

    /// Reads a mark that bytes begin with.
    fn at_start(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes.strip_prefix(b"zq")?;
        let mut number = |end: &[u8]| -> Option<(u32, u8)> {
            let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let value = std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()?;
            let found = *rest.get(digits).filter(|byte| end.contains(byte))?;
            rest = &rest[digits + 1..];
            Some((value, found))
        };
        let (owner, _) = number(b"e")?;
        let (epoch, _) = number(b"c")?;
        let (chat, kind) = number(b"ns")?;
        let (number, _) = number(b"z")?;
        rest.starts_with(b"q").then_some(())?;
        let kind = if kind == b'n' { Kind::Message } else { Kind::Summary };
        Some(Self { owner, epoch, chat, kind, number })
    }

    /// Returns the marks in bytes.
    pub(super) fn all(bytes: &[u8]) -> impl Iterator<Item = Self> + '_ {
        let starts = bytes.windows(3).enumerate();
        starts
            .filter(|(_, window)| window.starts_with(b"zq") && window[2].is_ascii_digit())
            .filter_map(|(at, _)| Self::at_start(&bytes[at..]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_read_back_from_any_bytes() {
        let mark = Mark { owner: 7, epoch: 0, chat: 12, kind: Kind::Message, number: 3 };
        let summary = Mark { kind: Kind::Summary, ..mark };
        let text = format!("\u{0}zq{mark}, zq1e {summary}zq9e");
        assert_eq!(Mark::all(text.as_bytes()).collect::<Vec<_>>(), [mark, summary]);
        assert_eq!(mark.to_string(), "zq7e0c12n3zq");
    }
}
