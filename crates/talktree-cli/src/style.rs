//! Styles: one for each kind of thing, in colours of the terminal's own palette.

use anstyle::{AnsiColor, Style};
use talktree::{Ink, Role};

pub(crate) const PLAIN: Style = Style::new();
pub(crate) const STRONG: Style = Style::new().bold();
pub(crate) const FAINT: Style = Style::new().dimmed();
pub(crate) const ID: Style = AnsiColor::Yellow.on_default();
pub(crate) const LABEL: Style = AnsiColor::Magenta.on_default();
pub(crate) const COMPACTION: Style = AnsiColor::Cyan.on_default();
pub(crate) const MATCH: Style = AnsiColor::Red.on_default().bold();
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
pub(crate) const BAD: Style = AnsiColor::Red.on_default();

/// Returns the style of a message's role.
pub(crate) fn role(role: &Role) -> Style {
    match role {
        Role::User => AnsiColor::Green.on_default().bold(),
        Role::Assistant => AnsiColor::Blue.on_default().bold(),
        _ => STRONG,
    }
}

/// Returns the style of a piece of a tree drawing.
pub(crate) fn ink(ink: Ink) -> Style {
    match ink {
        Ink::Graph | Ink::More | Ink::Faded => FAINT,
        Ink::Head => MATCH,
        Ink::Role => STRONG,
        Ink::Id => ID,
        Ink::Label => LABEL,
        Ink::Compaction => COMPACTION,
        _ => PLAIN,
    }
}
