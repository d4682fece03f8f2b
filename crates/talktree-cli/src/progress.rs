//! Progress bars: on stderr, where it is a terminal, and gone when the work is done.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use talktree::Progress;

/// A bar for long work.
pub(crate) struct Bar(ProgressBar);

impl Bar {
    /// Returns a bar that counts bytes.
    pub(crate) fn of_bytes(what: &str) -> Self {
        Self::new(what, "{msg} {wide_bar} {bytes}/{total_bytes} {eta}")
    }

    /// Returns a bar that counts steps.
    pub(crate) fn of_steps(what: &str) -> Self {
        Self::new(what, "{msg} {wide_bar} {human_pos}/{human_len} {eta}")
    }

    /// Returns a sign that turns: nobody knows how far what is waited for is.
    pub(crate) fn of_waiting(what: &str) -> Self {
        let bar = Self::new(what, "{spinner} {wide_msg} {elapsed}");
        bar.0.enable_steady_tick(Duration::from_millis(100));
        bar
    }

    fn new(what: &str, template: &str) -> Self {
        // Hidden by itself where stderr is no terminal.
        let bar = ProgressBar::new(0);
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(crate::clean::one_line(what));
        Self(bar)
    }

    /// Shows how far the work is.
    pub(crate) fn show(&self, progress: Progress) {
        self.0.set_length(progress.total);
        self.0.set_position(progress.done);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
