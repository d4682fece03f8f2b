//! Erasing: what is erased is in no byte of the file, of its log, or of a later backup.
//!
//! An [`Erasure`] names what goes. The storage deletes it, overwrites what it leaves in the file and in the search
//! index, empties the write-ahead log, and reads the file to see that nothing is left. [`Erased`] says what went and
//! what stayed on purpose: summaries, and copies in forks. [`Erased::prove`] reads the files again.

mod outcome;
mod proof;
mod request;

pub use outcome::{Erased, ErasureCopies, ErasureExtent, ErasureSummary};
pub(crate) use proof::ErasureProver;
pub use proof::{ErasureProof, Occurrence};
pub use request::{Erasure, ErasureTarget};
