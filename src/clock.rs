//! The time of the system, also if its clock is before 1970.
//!
//! A clock that was never set may be. The libraries for times and ids panic then.

use std::time::SystemTime;

use chrono::{DateTime, Utc};
use uuid::{NoContext, Timestamp, Uuid};

/// Returns the current time.
pub(crate) fn now() -> DateTime<Utc> {
    SystemTime::now().into()
}

/// Returns a new UUIDv7: unique, and increasing with time after 1970.
pub(crate) fn uuid() -> Uuid {
    uuid_at(SystemTime::now())
}

fn uuid_at(time: SystemTime) -> Uuid {
    match time < SystemTime::UNIX_EPOCH {
        true => Uuid::new_v7(Timestamp::from_unix(NoContext, 0, 0)),
        false => Uuid::now_v7(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn ids_are_unique_before_1970() {
        let time = SystemTime::UNIX_EPOCH - Duration::from_secs(1);
        assert_ne!(uuid_at(time), uuid_at(time));
    }
}
