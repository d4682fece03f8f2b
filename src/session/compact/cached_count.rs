//! A count that is made again only when what it counts has changed.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::tokens::Count;

/// The last count, with the key of what was counted. The count of a counter that failed is not kept.
#[derive(Default)]
pub(super) struct CachedCount(Mutex<Option<(u64, u64)>>);

impl CachedCount {
    /// Returns the tokens under this key; counts them if the last key was another one.
    pub(super) fn get(&self, key: u64, count: impl FnOnce() -> Count) -> u64 {
        if let Some((counted, tokens)) = *self.last()
            && counted == key
        {
            return tokens;
        }
        // Counted outside the lock: a counter may call the library.
        let Count { tokens, is_estimate } = count();
        *self.last() = (!is_estimate).then_some((key, tokens));
        tokens
    }

    /// Keeps a count that was made elsewhere.
    pub(super) fn put(&self, key: u64, tokens: u64) {
        *self.last() = Some((key, tokens));
    }

    fn last(&self) -> MutexGuard<'_, Option<(u64, u64)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_another_key_or_an_estimate_is_counted_again() {
        let cached = CachedCount::default();
        let exact = |tokens| move || Count { tokens, is_estimate: false };
        assert_eq!(cached.get(1, exact(5)), 5);
        assert_eq!(cached.get(1, || unreachable!()), 5);
        assert_eq!(cached.get(2, || Count { tokens: 7, is_estimate: true }), 7);
        assert_eq!(cached.get(2, exact(8)), 8);
        assert_eq!(cached.get(2, || unreachable!()), 8);
        cached.put(3, 9);
        assert_eq!(cached.get(3, || unreachable!()), 9);
    }
}
