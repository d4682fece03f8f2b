//! The layout of a drawing: which child continues without indentation.
//!
//! The *main child* of a segment is drawn directly below it: the child that leads to the head, or else the one with
//! the most messages. The other children are indented. So each indentation at least halves the number of remaining
//! messages, which bounds the width of the drawing. The [`Layout`] of a segment depends on all its descendants, so it
//! is computed before the segment is drawn.

use super::Segment;

/// The layout of a segment.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Layout {
    /// The main child.
    pub(super) main: Option<usize>,
    /// The number of messages of the segment and its descendants.
    pub(super) messages: u64,
    /// The number of segments from here along the main children, this one included.
    pub(super) main_length: usize,
    /// Whether the head or a label is in this segment or in a descendant that is not below the main child.
    pub(super) is_marked: bool,
    /// Whether the head is in this segment or a descendant.
    pub(super) has_head: bool,
    /// Whether the head or a label is in this segment or a descendant.
    pub(super) has_mark: bool,
}

/// Returns the layout of each segment; children are visited before their parents.
pub(super) fn layouts(segments: &[Segment]) -> Vec<Layout> {
    let mut layouts = vec![Layout::default(); segments.len()];
    for (index, segment) in segments.iter().enumerate().rev() {
        let is_head = segment.landmarks.iter().any(|landmark| landmark.is_head);
        let is_labelled = segment.landmarks.iter().any(|landmark| !landmark.labels.is_empty());
        let mut layout = Layout {
            main: None,
            messages: segment.count,
            main_length: 1,
            is_marked: is_head || is_labelled,
            has_head: is_head,
            has_mark: is_head || is_labelled,
        };
        let mut best = (false, 0);
        for &child in &segment.children {
            let below = layouts[child];
            layout.messages += below.messages;
            layout.has_head |= below.has_head;
            layout.has_mark |= below.has_mark;
            // Of equal children the newest.
            if (below.has_head, below.messages) >= best {
                best = (below.has_head, below.messages);
                layout.main = Some(child);
                layout.main_length = below.main_length + 1;
            }
        }
        let mut sides = segment.children.iter().filter(|child| Some(**child) != layout.main);
        layout.is_marked |= sides.any(|side| layouts[*side].has_mark);
        layouts[index] = layout;
    }
    layouts
}
