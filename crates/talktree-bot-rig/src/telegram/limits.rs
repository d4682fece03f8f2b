//! Telegram's limits on how often a bot may write.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

/// How often the bot may write. A call over a limit is refused with error 429.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// The shortest time between two messages or edits in a chat.
    pub between: Duration,
    /// How many messages and edits a group takes in a minute.
    pub group_minute: usize,
    /// How many calls there may be in a second, in all chats.
    pub second: usize,
}

impl Default for Limits {
    /// What Telegram documents: one a second, 20 a minute in groups, 30 a second in all.
    fn default() -> Self {
        Self { between: Duration::from_secs(1), group_minute: 20, second: 30 }
    }
}

/// The newest calls.
#[derive(Debug, Default)]
pub(super) struct Recent {
    all: VecDeque<Instant>,
    chats: HashMap<i64, VecDeque<Instant>>,
}

impl Recent {
    /// Notes a call that writes to a chat, or returns the time until it may.
    pub(super) fn note(&mut self, limits: &Limits, chat: i64, now: Instant) -> Option<Duration> {
        let chat_calls = self.chats.entry(chat).or_default();
        let windows = [
            (&mut self.all, limits.second, Duration::from_secs(1)),
            (chat_calls, if chat < 0 { limits.group_minute } else { usize::MAX }, MINUTE),
        ];
        let mut wait = None;
        for (calls, most, window) in windows {
            while calls.front().is_some_and(|first| now - *first >= window) {
                calls.pop_front();
            }
            if let Some(first) = calls.front().filter(|_| calls.len() >= most) {
                wait = wait.max(Some(window - (now - *first)));
            }
        }
        let chat_calls = self.chats.entry(chat).or_default();
        if let Some(last) = chat_calls.back().filter(|last| now - **last < limits.between) {
            wait = wait.max(Some(limits.between - (now - *last)));
        }
        if wait.is_none() {
            chat_calls.push_back(now);
            self.all.push_back(now);
        }
        wait
    }
}

const MINUTE: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_refuses_and_says_how_long() {
        let (limits, began) = (Limits::default(), Instant::now());
        let at = |ms| began + Duration::from_millis(ms);
        let mut recent = Recent::default();
        assert_eq!(recent.note(&limits, 1, at(0)), None);
        assert_eq!(recent.note(&limits, 1, at(400)), Some(Duration::from_millis(600)));
        assert_eq!(recent.note(&limits, 1, at(1000)), None);

        for chat in 2..31 {
            assert_eq!(recent.note(&limits, chat, at(1500)), None);
        }
        assert_eq!(recent.note(&limits, 99, at(1600)), Some(Duration::from_millis(400)));

        let mut recent = Recent::default();
        for n in 0..20 {
            assert_eq!(recent.note(&limits, -7, at(n * 1000)), None);
        }
        assert_eq!(recent.note(&limits, -7, at(20_000)), Some(Duration::from_secs(40)));
        assert_eq!(recent.note(&limits, 7, at(20_000)), None);
    }
}
