//! The interpreter that imported the module.

use std::sync::atomic::{AtomicI64, Ordering};

use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;

/// The interpreter that imported the module first; -1 before that.
static OWNER: AtomicI64 = AtomicI64::new(-1);

/// Claims the module for the present interpreter.
///
/// # Errors
/// `ImportError` in any other interpreter of the process.
pub(crate) fn claim(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let id = present(module.py());
    match OWNER.compare_exchange(-1, id, Ordering::SeqCst, Ordering::SeqCst) {
        Err(owner) if owner != id => Err(PyImportError::new_err(
            "talktree is in use by another interpreter of this process, and cannot be imported in two",
        )),
        _ => Ok(()),
    }
}

#[expect(unsafe_code, reason = "PyO3 has no safe call for it")]
fn present(_py: Python<'_>) -> i64 {
    // SAFETY: the thread is attached to an interpreter, as the argument proves; the state is only read.
    unsafe { pyo3::ffi::PyInterpreterState_GetID(pyo3::ffi::PyInterpreterState_Get()) }
}
