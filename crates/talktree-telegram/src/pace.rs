//! Rate limits: when the API may be called. Pure logic; the caller passes the time.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

/// At most so many calls in any second.
#[derive(Debug)]
pub(crate) struct Window {
    max: usize,
    /// The times of the newest calls, some of them still to come.
    calls: VecDeque<Instant>,
}

impl Window {
    pub(crate) fn new(per_second: u32) -> Self {
        Self { max: per_second.max(1) as usize, calls: VecDeque::new() }
    }

    /// Returns when the next call may be made, and counts it.
    pub(crate) fn reserve(&mut self, now: Instant) -> Instant {
        let at = self.next(now);
        self.calls.push_back(at);
        at
    }

    /// Returns whether a call may be made now.
    pub(crate) fn is_free(&mut self, now: Instant) -> bool {
        self.next(now) <= now
    }

    /// Returns whether a call may be made now, and counts it if so.
    pub(crate) fn try_reserve(&mut self, now: Instant) -> bool {
        let is_free = self.is_free(now);
        if is_free {
            self.calls.push_back(now);
        }
        is_free
    }

    fn next(&mut self, now: Instant) -> Instant {
        let second = Duration::from_secs(1);
        while self.calls.front().is_some_and(|&call| call + second <= now) {
            self.calls.pop_front();
        }
        // Calls are reserved in order, so the one `max` calls ago says when there is room again.
        let before = self.calls.len().checked_sub(self.max).and_then(|n| self.calls.get(n));
        let newest = self.calls.back().copied().unwrap_or(now);
        before.map_or(now, |&call| call + second).max(newest).max(now)
    }
}

/// When each chat's messages may be edited again.
#[derive(Debug, Default)]
pub(crate) struct Chats {
    next: HashMap<i64, Instant>,
}

/// From this many chats on, those that may be edited now are forgotten, so that the map does not grow without end.
const MANY_CHATS: usize = 4_096;

impl Chats {
    /// Returns when a message of this chat may be edited, and counts the edit.
    pub(crate) fn reserve(&mut self, chat: i64, now: Instant, interval: Duration) -> Instant {
        if self.next.len() >= MANY_CHATS {
            self.next.retain(|_, next| *next > now);
        }
        let at = self.next.get(&chat).copied().unwrap_or(now).max(now);
        self.next.insert(chat, at + interval);
        at
    }

    /// Returns whether a message of this chat may be edited now.
    pub(crate) fn is_free(&self, chat: i64, now: Instant) -> bool {
        self.next.get(&chat).is_none_or(|&next| next <= now)
    }

    /// Returns whether a message of this chat may be edited now, and counts the edit if so.
    pub(crate) fn try_reserve(&mut self, chat: i64, now: Instant, interval: Duration) -> bool {
        let is_free = self.is_free(chat, now);
        if is_free {
            self.reserve(chat, now, interval);
        }
        is_free
    }

    /// Allows no edit in this chat before that time.
    pub(crate) fn block(&mut self, chat: i64, until: Instant) {
        let next = self.next.entry(chat).or_insert(until);
        *next = until.max(*next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn no_second_has_more_calls_than_allowed() {
        let start = Instant::now();
        let mut window = Window::new(3);
        let at: Vec<_> = (0..7).map(|_| window.reserve(start).duration_since(start)).collect();
        assert_eq!(at, [ms(0), ms(0), ms(0), ms(1000), ms(1000), ms(1000), ms(2000)]);

        // Whenever they are asked for: each is a second after the third before it.
        let mut window = Window::new(3);
        let mut now = start;
        let mut calls = Vec::new();
        for n in 0..50_u64 {
            now += ms(n * 37 % 300);
            calls.push(window.reserve(now));
        }
        assert!(calls.windows(4).all(|calls| calls[3] >= calls[0] + ms(1000)));
        assert!(calls.is_sorted());
    }

    #[test]
    fn a_call_that_can_be_left_out_takes_no_place_of_one_that_waits() {
        let start = Instant::now();
        let mut window = Window::new(2);
        assert!(window.try_reserve(start));
        assert!(window.try_reserve(start + ms(10)));
        assert!(!window.try_reserve(start + ms(20)));
        assert_eq!(window.reserve(start + ms(20)), start + ms(1000));
        assert!(!window.try_reserve(start + ms(999)));
        assert!(window.try_reserve(start + ms(1011)));
    }

    #[test]
    fn a_chat_is_edited_once_in_its_interval() {
        let start = Instant::now();
        let mut chats = Chats::default();
        assert!(chats.is_free(7, start)); // does not count
        assert!(chats.try_reserve(7, start, ms(1000)));
        assert!(!chats.is_free(7, start + ms(999)));
        assert!(!chats.try_reserve(7, start + ms(999), ms(1000)));
        assert!(chats.try_reserve(8, start + ms(999), ms(1000))); // another chat
        assert_eq!(chats.reserve(7, start + ms(999), ms(1000)), start + ms(1000));
        assert_eq!(chats.reserve(7, start + ms(1001), ms(1000)), start + ms(2000));
        chats.block(7, start + ms(9000));
        chats.block(7, start + ms(5000)); // does not shorten it
        assert!(!chats.try_reserve(7, start + ms(8999), ms(1000)));
        assert!(chats.try_reserve(7, start + ms(9000), ms(1000)));
    }

    #[test]
    fn chats_that_wait_for_nothing_are_forgotten() {
        let start = Instant::now();
        let mut chats = Chats::default();
        for chat in 0..10_000 {
            chats.reserve(chat, start + ms(chat.unsigned_abs()), ms(1));
        }
        assert!(chats.next.len() <= MANY_CHATS);
    }
}
