//! Progress bars: shown on stderr if it is a terminal, and cleared when the work is done.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use talktree::Progress;

/// A progress bar or spinner; dropping it clears it.
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

    /// Returns a spinner with the elapsed time, for work of unknown length.
    pub(crate) fn of_waiting(what: &str) -> Self {
        let bar = Self::new(what, "{spinner} {wide_msg} {elapsed}");
        bar.0.set_draw_target(ProgressDrawTarget::stderr());
        bar.0.enable_steady_tick(Duration::from_millis(100));
        bar
    }

    fn new(what: &str, template: &str) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(crate::text::one_line(what));
        Self(bar)
    }

    /// Shows how far the work is, once its total is known: of nothing the bar would be full.
    pub(crate) fn show(&self, progress: Progress) {
        if progress.total == 0 {
            return;
        }
        let is_first = self.0.length().is_none();
        self.0.set_length(progress.total);
        if is_first {
            // indicatif hides it if stderr is not a terminal.
            self.0.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.0.set_position(progress.done);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
