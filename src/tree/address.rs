//! The address of a message: its rowid in the database.

/// The maximum number of messages of a session. Numbers are never reused, so deleted messages count.
pub(crate) const MAX_MESSAGES: u64 = u32::MAX as u64 - 1;

/// The maximum number of sessions of a store: the upper half of an address holds no more.
pub(crate) const MAX_SESSIONS: i64 = i32::MAX as i64;

/// The address of a message: the key of its session, and its number in the session's order of appends.
///
/// Invariant: the number is at least 1, so the address before a session's first message is never used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Address(i64);

impl Address {
    /// Returns the address of the `n`-th append to the session of this key.
    pub(crate) const fn new(session: i64, n: u32) -> Self {
        Self((session << 32) | n as i64)
    }

    pub(crate) const fn from_raw(raw: i64) -> Self {
        Self(raw)
    }

    pub(crate) const fn raw(self) -> i64 {
        self.0
    }

    pub(crate) const fn session(self) -> i64 {
        self.0 >> 32
    }

    /// Returns the number of the message in its session's order of appends, from 1.
    pub(crate) const fn n(self) -> u32 {
        self.0 as u32
    }

    /// Returns the previous address, which no message has if this is the first of its session.
    pub(crate) const fn before(self) -> Self {
        Self(self.0 - 1)
    }

    /// Returns the next address.
    pub(crate) const fn after(self) -> Self {
        Self(self.0 + 1)
    }

    /// Returns the first and last address of the session.
    pub(crate) const fn range_of(session: i64) -> (Self, Self) {
        (Self::new(session, 1), Self::new(session, u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_holds_its_session_and_number() {
        let address = Address::new(7, u32::MAX);
        assert_eq!((address.session(), address.n()), (7, u32::MAX));
        assert!(address < Address::new(8, 1));
    }
}
