//! Erasing: what is erased is in no byte of the file, of its log, or of a later backup.
//!
//! An [`Erasure`] names what is erased. The storage deletes the rows, overwrites their bytes in the file and in the search
//! index, and empties the write-ahead log. [`ErasureExtent`] lists what is erased and what is left: summaries, and copies
//! in forks. [`Erased::prove`] looks for the erased texts in every byte of the files.

mod outcome;
mod proof;
mod request;

pub use outcome::{Erased, ErasureCopies, ErasureExtent, ErasureSummary};
pub(crate) use proof::ErasureProver;
pub use proof::{ErasureProof, Occurrence};
pub use request::{Erasure, ErasureTarget};
