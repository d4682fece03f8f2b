//! The tree of a session, drawn as text.

use pyo3::prelude::*;
use talktree::DrawOptions;

use crate::session::Session;

#[pymethods]
impl Session {
    /// Draws the tree; a limit that is missing has its default.
    fn tree(
        &self,
        py: Python<'_>,
        max_children: Option<usize>,
        max_main_segments: Option<usize>,
        max_indent: Option<usize>,
        is_ascii: bool,
        is_whole: bool,
    ) -> PyResult<String> {
        let mut options = if is_whole { DrawOptions::everything() } else { DrawOptions::default() };
        options.max_children = max_children.unwrap_or(options.max_children);
        options.max_main_segments = max_main_segments.unwrap_or(options.max_main_segments);
        options.max_indent = max_indent.unwrap_or(options.max_indent);
        options.is_ascii = is_ascii;
        self.handle.call(py, |chat| {
            let tree = chat.tree()?;
            let lines: Vec<String> = tree.lines(&options).map(|line| line.to_string()).collect();
            Ok(lines.join("\n"))
        })
    }
}
