//! The results of reads and writes.

mod pointer;
mod read;
mod record;
mod session;
mod written;

pub use pointer::{HeadEntry, Label, MessageTag};
pub use read::{Page, Recent, RowStat};
pub use record::Record;
pub(crate) use session::{MAX_TAGS, too_many_tags};
pub use session::{SessionDetails, SessionInfo};
pub(crate) use written::CountedAppend;
pub use written::{Appended, Deleted, Updated, Upserted};
