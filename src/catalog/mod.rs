//! The catalog: the sessions of a store as a list, and the outside keys that point to them.
//!
//! A list shows sessions without reading their messages. A *filter* chooses which ones, a *cursor* continues after a page.
//! A session can be put into the *trash*: lists, searches and bindings leave it out, and it can be restored. A *binding*
//! says which session an outside key, such as a chat of a messenger, points to. At any time a key points to one session at
//! most; the sessions that it pointed to before stay in the store.

mod binding;
mod change;
mod filter;
mod message;
mod owner;
mod page;

pub use binding::{Binding, BindingEnd, BindingFilter};
pub(crate) use binding::{ResumeRequest, Resumed};
pub use change::SessionChange;
pub use filter::{SessionFilter, SessionState};
pub use message::{ListedMessage, MessageCursor, MessageFilter, MessagePage};
pub use owner::OwnerInfo;
pub use page::{ListedSession, SessionCursor, SessionPage};
