//! The trunks of a drawing: which branch goes straight on.
//!
//! One column is the *trunk*: from a segment on, the child that leads to the head is drawn straight
//! below it, elsewhere the child with the most messages. The other children step to the right, each
//! with a trunk of its own. So a step to the right at least halves what is left to draw, and no
//! tree is indented more often than its size can be halved. A [`Note`] is what has to be known of
//! all that lies below a segment before the segment is drawn.

use super::Segment;

/// What is known of a segment beside what it holds.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Note {
    /// The child that is drawn straight below.
    pub(super) main: Option<usize>,
    /// How many messages the segment and all below it have.
    pub(super) messages: u64,
    /// How many segments there are straight down, itself included.
    pub(super) trunk: usize,
    /// Whether the head or a label is in this segment, or below it and not straight down.
    pub(super) is_noted: bool,
    /// Whether the head is in this segment or below it.
    pub(super) has_head: bool,
    /// Whether the head or a label is in this segment or below it.
    pub(super) has_noted: bool,
}

/// Returns what is known of each segment; children are looked at before their parents.
pub(super) fn take_notes(segments: &[Segment]) -> Vec<Note> {
    let mut notes = vec![Note::default(); segments.len()];
    for (index, segment) in segments.iter().enumerate().rev() {
        let is_head = segment.landmarks.iter().any(|landmark| landmark.is_head);
        let is_labelled = segment.landmarks.iter().any(|landmark| !landmark.labels.is_empty());
        let mut note = Note {
            main: None,
            messages: segment.count,
            trunk: 1,
            is_noted: is_head || is_labelled,
            has_head: is_head,
            has_noted: is_head || is_labelled,
        };
        let mut best = (false, 0);
        for &child in &segment.children {
            let below = notes[child];
            note.messages += below.messages;
            note.has_head |= below.has_head;
            note.has_noted |= below.has_noted;
            // Of equals the newest.
            if (below.has_head, below.messages) >= best {
                best = (below.has_head, below.messages);
                note.main = Some(child);
                note.trunk = below.trunk + 1;
            }
        }
        let mut sides = segment.children.iter().filter(|child| Some(**child) != note.main);
        note.is_noted |= sides.any(|side| notes[*side].has_noted);
        notes[index] = note;
    }
    notes
}
