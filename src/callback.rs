//! Calls callbacks, the program's own code: listeners, handlers, summarizers, providers of blocks.
//!
//! None of them is called inside a transaction or under a lock. A panic becomes an error. A callback may call the library,
//! which may call a callback; such nesting has a limit, because otherwise a callback that calls itself would overflow the
//! stack, which ends the process.

use std::any::Any;
use std::cell::Cell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// How many callbacks may run inside each other in one thread. Each may start several more, so that the number of calls
/// grows exponentially with the depth.
const MAX_DEPTH: usize = 8;

thread_local! {
    /// How many callbacks run inside each other in this thread.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    /// Whether an error handler was called at the limit since the outermost of them began.
    static IS_TOLD: Cell<bool> = const { Cell::new(false) };
}

/// Why a callback returned nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failed {
    /// It panicked with this message.
    Panicked(String),
    /// It was not called: too many callbacks run inside each other.
    TooDeep,
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Panicked(text) => write!(f, "it panicked: {text}"),
            Self::TooDeep => {
                write!(f, "it was not called: {MAX_DEPTH} callbacks call each other already")
            }
        }
    }
}

impl std::error::Error for Failed {}

/// Lowers the depth when a callback ends, also by a panic.
struct Entered;

impl Drop for Entered {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
        if DEPTH.get() == 0 {
            IS_TOLD.set(false);
        }
    }
}

/// Calls a callback, unless too many run inside each other in this thread.
pub(crate) fn call<T>(callback: impl FnOnce() -> T) -> Result<T, Failed> {
    if DEPTH.get() >= MAX_DEPTH {
        return Err(Failed::TooDeep);
    }
    entered(callback)
}

/// Calls an error handler. At the limit it is called once until the outermost callback ends: otherwise nobody would hear that
/// callbacks were not called, and if it were called each time, it could call itself without end.
pub(crate) fn call_error_handler(handler: impl FnOnce()) -> Result<(), Failed> {
    if DEPTH.get() >= MAX_DEPTH && IS_TOLD.replace(true) {
        return Err(Failed::TooDeep);
    }
    entered(handler)
}

fn entered<T>(callback: impl FnOnce() -> T) -> Result<T, Failed> {
    DEPTH.set(DEPTH.get() + 1);
    let _entered = Entered;
    caught(callback)
}

/// Calls a callback at any depth.
pub(crate) fn caught<T>(callback: impl FnOnce() -> T) -> Result<T, Failed> {
    // No transaction and no lock of ours is open while it runs, so a panic breaks nothing.
    catch_unwind(AssertUnwindSafe(callback)).map_err(|panic| {
        let text = text_of(&*panic);
        // The payload is the callback's, too, and may panic when it is dropped.
        if let Err(other) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
            std::mem::forget(other);
        }
        Failed::Panicked(text)
    })
}

fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct PanicsWhenDropped;

    impl Drop for PanicsWhenDropped {
        fn drop(&mut self) {
            std::panic::panic_any(Self);
        }
    }

    #[test]
    fn a_payload_that_panics_when_it_is_dropped_does_not_escape() {
        let failed = caught(|| std::panic::panic_any(PanicsWhenDropped));
        assert_eq!(failed, Err::<(), _>(Failed::Panicked("no message".to_owned())));
    }

    fn nested(depth: usize) -> Result<usize, Failed> {
        match depth {
            0 => Ok(DEPTH.get()),
            depth => call(|| nested(depth - 1))?,
        }
    }

    #[test]
    fn callbacks_nest_up_to_a_limit() {
        assert_eq!(nested(MAX_DEPTH), Ok(MAX_DEPTH));
        assert_eq!(nested(MAX_DEPTH + 1), Err(Failed::TooDeep));
        assert_eq!(DEPTH.get(), 0);
    }

    #[test]
    fn an_error_handler_is_called_once_at_the_limit() {
        fn at_the_limit(depth: usize) -> (usize, usize) {
            if depth > 0 {
                return call(|| at_the_limit(depth - 1)).unwrap();
            }
            let (called, nested) = (Cell::new(0), Cell::new(0));
            for _ in 0..3 {
                let _ = call_error_handler(|| {
                    called.set(called.get() + 1);
                    let _ = call_error_handler(|| nested.set(nested.get() + 1));
                });
            }
            (called.get(), nested.get())
        }
        for _ in 0..2 {
            assert_eq!(at_the_limit(MAX_DEPTH), (1, 0));
            assert_eq!(at_the_limit(MAX_DEPTH - 1), (3, 1));
        }
    }

    #[test]
    fn a_panic_is_an_answer_and_leaves_the_depth() {
        let failed: Result<(), _> = call(|| panic!("boom {}", 7));
        assert_eq!(failed, Err(Failed::Panicked("boom 7".to_owned())));
        let failed: Result<(), _> = call(|| std::panic::panic_any(7));
        assert_eq!(failed.unwrap_err().to_string(), "it panicked: no message");
        assert_eq!(DEPTH.get(), 0);
    }
}
