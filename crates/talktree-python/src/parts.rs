//! Arguments that Python passes as one object: a struct with the object's attributes as fields.

/// Declares such a struct, as `#[derive(FromPyObject)]` would.
///
/// The derive keeps each name in a cell that its first call fills, without the interpreter's lock for a moment. A child that
/// is forked in that moment waits for the cell forever, and no fork can wait for a thread that is not inside the library.
macro_rules! parts {
    ($(#[$meta:meta])* struct $name:ident { $($field:ident: $type:ty,)* }) => {
        $(#[$meta])*
        pub(crate) struct $name {
            $($field: $type,)*
        }

        impl<'py> pyo3::FromPyObject<'_, 'py> for $name {
            type Error = pyo3::PyErr;

            fn extract(given: pyo3::Borrowed<'_, 'py, pyo3::PyAny>) -> pyo3::PyResult<Self> {
                Ok(Self { $($field: given.getattr(stringify!($field))?.extract()?,)* })
            }
        }
    };
}
