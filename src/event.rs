//! Change events: after each commit, the subscribers of this process are called.
//!
//! A listener runs outside every lock, in the thread that made the change, and may read, write, subscribe and drop
//! subscriptions. If it panics, the change and the other listeners are not affected.

use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use serde::Serialize;

use crate::callback;
use crate::error::Error;
use crate::id::{CompactionId, MessageId, SessionId};

/// A committed change to a session.
///
/// ```
/// use std::sync::mpsc;
/// use talktree::{Message, Store};
///
/// let chat = Store::open_in_memory()?.session("s")?;
/// let (sender, events) = mpsc::channel();
/// let _subscription = chat.subscribe(move |event| { let _ = sender.send(event.clone()); });
/// chat.append(Message::user("hello").with_id("m1"))?;
///
/// let json = serde_json::to_string(&events.try_recv().unwrap()).unwrap();
/// assert_eq!(json, r#"{"session":"s","change":"append","ids":["m1"]}"#);
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Event {
    /// The session that changed.
    pub session: SessionId,
    /// The change.
    #[serde(flatten)]
    pub change: Change,
}

/// The kinds of change.
///
/// ```
/// use std::sync::mpsc;
/// use talktree::{Change, Message, Store};
///
/// let chat = Store::open_in_memory()?.session("s")?;
/// let hello = chat.append(Message::user("hello"))?.id;
/// let (sender, changes) = mpsc::channel();
/// let _subscription = chat.subscribe(move |event| { let _ = sender.send(event.change.clone()); });
///
/// let compaction = chat.add_compaction("A greeting.", &hello, &hello)?.id;
/// chat.checkout_start()?;
/// let heard: Vec<Change> = changes.try_iter().collect();
/// let compact = Change::Compact { id: compaction, messages: 1, tokens_before: 6, tokens_after: 7 };
/// assert_eq!(heard, [compact, Change::Head { id: None }]);
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "change", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Change {
    /// Messages were appended.
    Append {
        /// Their ids, in order.
        ids: Vec<MessageId>,
    },
    /// The content of a message was replaced.
    Update {
        /// The message.
        id: MessageId,
    },
    /// Messages were deleted.
    Delete {
        /// Their ids.
        ids: Vec<MessageId>,
    },
    /// All messages were deleted.
    Clear,
    /// A compaction was added, by hand or by a summarizer.
    Compact {
        /// The compaction.
        id: CompactionId,
        /// How many stored messages it covers.
        messages: u64,
        /// How many tokens a model saw in its range.
        tokens_before: u64,
        /// How many tokens the summary has.
        tokens_after: u64,
    },
    /// A compaction was removed.
    RemoveCompaction {
        /// The removed compaction.
        id: CompactionId,
    },
    /// A checkout appended a summary of the branch it left. The message was sent as [`Append`](Self::Append) before.
    BranchSummary {
        /// The message with the summary.
        id: MessageId,
        /// How many messages and summaries it summarizes.
        messages: u64,
        /// How many tokens a model saw in them.
        tokens_before: u64,
        /// How many tokens the summary has.
        tokens_after: u64,
    },
    /// The session ended, and another one that begins with its summary continues it.
    Split {
        /// The session that continues it.
        child: SessionId,
        /// How many stored messages were on the path to the head.
        messages: u64,
        /// How many tokens a model saw of them.
        tokens_before: u64,
        /// How many tokens the summary has.
        tokens_after: u64,
    },
    /// Messages were imported.
    Import {
        /// The number of messages.
        messages: u64,
    },
    /// The head was moved by checkout, undo or redo.
    Head {
        /// The new head; `None` before the first message.
        id: Option<MessageId>,
    },
    /// The size of the window. Sent when a summarizer starts and ends and, in a session with a compaction threshold,
    /// after each change of the history.
    Window {
        /// Whether a summarizer is running.
        phase: Phase,
        /// The tokens that are compared with the threshold: the prompt, the tools and the history, or the history alone.
        tokens: u64,
        /// The threshold of automatic compaction, in tokens; `None` without one.
        threshold: Option<u64>,
    },
    /// The window is over its threshold, but compaction cannot bring it below: the prompt, the tools or the protected
    /// messages are too long, or the summarizer or the policy declined. Sent once, until the window is within its threshold again.
    CannotShorten {
        /// The tokens that are compared with the threshold.
        tokens: u64,
        /// The threshold, in tokens.
        threshold: u64,
        /// The reason.
        why: String,
    },
    /// A compaction or a branch summary by a summarizer failed. Compactions that it added before remain.
    CompactionFailed {
        /// The reason.
        why: String,
    },
    /// The session was removed.
    Remove,
}

/// Whether a summarizer runs.
///
/// ```
/// use talktree::{Change, Phase};
///
/// let change = Change::Window { phase: Phase::Compacting, tokens: 120_000, threshold: Some(100_000) };
/// let json = serde_json::to_string(&change).unwrap();
/// assert_eq!(json, r#"{"change":"window","phase":"compacting","tokens":120000,"threshold":100000}"#);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Phase {
    /// No summarizer is running.
    Idle,
    /// A summarizer is running.
    Compacting,
}

type Listener = Arc<dyn Fn(&Event) + Send + Sync>;

/// The subscribers of a store. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Events(Arc<Registry>);

#[derive(Default)]
struct Registry {
    listeners: Mutex<Vec<(u64, Listener)>>,
    next_key: AtomicU64,
    /// Without listeners a write does not take the lock.
    count: AtomicUsize,
}

impl Events {
    pub(crate) fn subscribe(
        &self,
        listener: impl Fn(&Event) + Send + Sync + 'static,
    ) -> Subscription {
        let key = self.0.next_key.fetch_add(1, Ordering::Relaxed);
        let mut listeners = self.0.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.push((key, Arc::new(listener)));
        self.0.count.store(listeners.len(), Ordering::Release);
        Subscription { key, registry: Arc::downgrade(&self.0) }
    }

    pub(crate) fn has_listeners(&self) -> bool {
        self.0.count.load(Ordering::Acquire) > 0
    }

    /// Calls every listener in the current thread, and `failed` for each that panics. `change` is only evaluated if there
    /// is a listener.
    pub(crate) fn emit(
        &self,
        session: &SessionId,
        change: impl FnOnce() -> Change,
        failed: impl Fn(&Error),
    ) {
        if !self.has_listeners() {
            return;
        }
        let event = Event { session: session.clone(), change: change() };
        // Called outside the lock: a listener may subscribe, unsubscribe or write.
        let listeners: Vec<Listener> = {
            let listeners = self.0.listeners.lock().unwrap_or_else(PoisonError::into_inner);
            listeners.iter().map(|(_, listener)| Arc::clone(listener)).collect()
        };
        for listener in listeners {
            // The change is committed: a panic of one listener must not make it look failed, nor keep
            // the event from the others.
            if let Err(why) = callback::call(|| listener(&event)) {
                failed(&Error::Callback { what: "a listener", why: why.to_string() });
            }
        }
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").field("listeners", &self.0.count).finish()
    }
}

/// A subscription to the changes of a store. Dropping it ends the subscription.
///
/// ```
/// use std::sync::mpsc;
/// use talktree::{Message, Store};
///
/// let store = Store::open_in_memory()?;
/// let (sender, heard) = mpsc::channel();
/// let subscription = store.subscribe(move |event| { let _ = sender.send(event.session.clone()); });
/// drop(subscription);
///
/// store.session("s")?.append(Message::user("hello"))?;
/// assert!(heard.try_recv().is_err());
/// # Ok::<(), talktree::Error>(())
/// ```
#[must_use = "dropping a subscription ends it"]
pub struct Subscription {
    key: u64,
    registry: Weak<Registry>,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let Some(registry) = self.registry.upgrade() {
            let mut listeners = registry.listeners.lock().unwrap_or_else(PoisonError::into_inner);
            let at = listeners.iter().position(|(key, _)| *key == self.key);
            let listener = at.map(|at| listeners.remove(at));
            registry.count.store(listeners.len(), Ordering::Release);
            // Dropped outside the lock: a listener may own a subscription, whose drop takes the lock.
            drop(listeners);
            drop(listener);
        }
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription").field("key", &self.key).finish_non_exhaustive()
    }
}
