//! Splits the runs of a session into segments, without reading a message.
//!
//! A run is split after each message that has a child in another run; the parts are *pieces*. A piece that is the only
//! child of its parent continues the segment of its parent. A piece of tombstones only is skipped: its children become
//! those of its parent.
//!
//! Invariant: a piece comes after its parent, so one pass in order is enough.

use crate::error::{Error, Result};
use crate::tree::{Address, Run};

/// The number of messages shown at each end of a segment.
const SHOWN_AT_ENDS: u64 = 4;

/// A run with its end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BoundedRun {
    pub(crate) run: Run,
    /// The last address of the run.
    pub(crate) end: Address,
}

/// The segments of a session's tree, as addresses.
#[derive(Debug)]
pub(crate) struct SegmentMap {
    pieces: Vec<Piece>,
    /// Ascending.
    tombstones: Vec<Address>,
    segments: Vec<AddressSegment>,
    roots: Vec<usize>,
}

/// Consecutive addresses, of which only the last may have more than one child.
#[derive(Debug)]
struct Piece {
    first: Address,
    last: Address,
    /// The number of addresses with a message.
    messages: u64,
    /// The nearest ancestor piece with messages.
    parent: Option<usize>,
    /// The number of child pieces with messages.
    children: usize,
    /// The position in a segment; `None` without messages.
    position: Option<Position>,
}

#[derive(Debug, Clone, Copy)]
struct Position {
    segment: usize,
    /// The number of messages of the segment before this piece.
    offset: u64,
}

#[derive(Debug, Default)]
struct AddressSegment {
    pieces: Vec<usize>,
    count: u64,
    parent: Option<usize>,
    children: Vec<usize>,
}

impl SegmentMap {
    /// Returns the segments of these runs. Both lists must be ascending.
    pub(crate) fn new(runs: &[BoundedRun], tombstones: Vec<Address>) -> Result<Self> {
        let mut map =
            Self { pieces: split(runs), tombstones, segments: Vec::new(), roots: Vec::new() };
        map.find_parents(runs)?;
        map.join_pieces();
        Ok(map)
    }

    fn find_parents(&mut self, runs: &[BoundedRun]) -> Result<()> {
        let mut runs = runs.iter().peekable();
        for index in 0..self.pieces.len() {
            let first = self.pieces[index].first;
            let above = match runs.next_if(|run| run.run.start == first) {
                Some(run) => {
                    run.run.parent.map(|parent| self.ending_at(parent, index)).transpose()?
                }
                // The rest of a run: its parent is the piece before it.
                None => Some(index - 1),
            };
            let piece = &self.pieces[index];
            let width = (piece.last.raw() - piece.first.raw() + 1) as u64;
            let messages = width - self.tombstones_between(piece.first, piece.last).len() as u64;
            // A piece without messages is skipped.
            let parent = above.and_then(|above| match self.pieces[above].messages {
                0 => self.pieces[above].parent,
                _ => Some(above),
            });
            if let Some(parent) = parent.filter(|_| messages > 0) {
                self.pieces[parent].children += 1;
            }
            self.pieces[index].messages = messages;
            self.pieces[index].parent = parent;
        }
        Ok(())
    }

    /// Returns the piece before `index` that ends at this address.
    fn ending_at(&self, address: Address, index: usize) -> Result<usize> {
        let found = self.pieces[..index].binary_search_by_key(&address, |piece| piece.last);
        found.map_err(|_| Error::Corrupt {
            what: format!(
                "message {} of session {} has parent {}, which is missing or newer",
                self.pieces[index].first.n(),
                address.session(),
                address.n()
            ),
        })
    }

    fn join_pieces(&mut self) {
        for index in 0..self.pieces.len() {
            let piece = &self.pieces[index];
            let (messages, above) = (piece.messages, piece.parent);
            if messages == 0 {
                continue;
            }
            let parent = above.and_then(|above| self.pieces[above].position);
            let is_only_child = above.is_some_and(|above| self.pieces[above].children == 1);
            let segment = match parent {
                Some(place) if is_only_child => place.segment,
                parent => self.add_segment(parent.map(|place| place.segment)),
            };
            let offset = self.segments[segment].count;
            self.pieces[index].position = Some(Position { segment, offset });
            self.segments[segment].pieces.push(index);
            self.segments[segment].count += messages;
        }
    }

    fn add_segment(&mut self, parent: Option<usize>) -> usize {
        let segment = self.segments.len();
        match parent {
            Some(parent) => self.segments[parent].children.push(segment),
            None => self.roots.push(segment),
        }
        self.segments.push(AddressSegment { parent, ..AddressSegment::default() });
        segment
    }

    /// Returns the number of segments.
    pub(crate) fn len(&self) -> usize {
        self.segments.len()
    }

    pub(crate) fn roots(&self) -> &[usize] {
        &self.roots
    }

    pub(crate) fn children(&self, segment: usize) -> &[usize] {
        &self.segments[segment].children
    }

    pub(crate) fn parent(&self, segment: usize) -> Option<usize> {
        self.segments[segment].parent
    }

    /// Returns the number of messages of a segment.
    pub(crate) fn count(&self, segment: usize) -> u64 {
        self.segments[segment].count
    }

    /// Returns the segment and position of the message at this address; for a tombstone, those of its nearest living
    /// ancestor.
    pub(crate) fn locate(&self, address: Address) -> Option<(usize, u64)> {
        let mut index = self.pieces.partition_point(|piece| piece.last < address);
        let piece = self.pieces.get(index).filter(|piece| piece.first <= address)?;
        // The number of messages of the piece up to this address.
        let upto = (address.raw() - piece.first.raw() + 1) as u64
            - self.tombstones_between(piece.first, address).len() as u64;
        let mut upto = upto;
        if upto == 0 {
            index = piece.parent?;
            upto = self.pieces[index].messages;
        }
        let place = self.pieces[index].position?;
        Some((place.segment, place.offset + upto - 1))
    }

    /// Returns the address of a message, by its position in a segment.
    pub(crate) fn address(&self, segment: usize, at: u64) -> Option<Address> {
        let segment = self.segments.get(segment)?;
        let offset = |index: &usize| self.pieces[*index].position.map_or(0, |place| place.offset);
        let after = segment.pieces.partition_point(|index| offset(index) <= at);
        let index = *segment.pieces.get(after.checked_sub(1)?)?;
        let piece = &self.pieces[index];
        let nth = at - offset(&index);
        if nth >= piece.messages {
            return None;
        }
        let mut address = piece.first.raw() + nth as i64;
        for tombstone in self.tombstones_between(piece.first, piece.last) {
            if tombstone.raw() > address {
                break;
            }
            address += 1;
        }
        Some(Address::from_raw(address))
    }

    /// Returns the positions that are shown: those near the ends of the segment, and the marked ones.
    pub(crate) fn landmarks(
        &self,
        segment: usize,
        marked: impl IntoIterator<Item = u64>,
    ) -> Vec<u64> {
        let count = self.count(segment);
        // A line that counts one omitted message would be as long as the message.
        if count <= 2 * SHOWN_AT_ENDS + 1 {
            return (0..count).collect();
        }
        let mut places: Vec<u64> = (0..SHOWN_AT_ENDS).chain(count - SHOWN_AT_ENDS..count).collect();
        places.extend(marked.into_iter().filter(|at| *at < count));
        places.sort_unstable();
        places.dedup();
        places
    }

    fn tombstones_between(&self, first: Address, last: Address) -> &[Address] {
        let from = self.tombstones.partition_point(|tombstone| *tombstone < first);
        let len = self.tombstones[from..].partition_point(|tombstone| *tombstone <= last);
        &self.tombstones[from..from + len]
    }
}

/// Splits the runs into pieces, ascending.
fn split(runs: &[BoundedRun]) -> Vec<Piece> {
    let mut ends: Vec<Address> = runs.iter().filter_map(|run| run.run.parent).collect();
    ends.sort_unstable();
    ends.dedup();
    let mut ends = ends.into_iter().peekable();
    let mut pieces = Vec::with_capacity(runs.len() * 2);
    for run in runs {
        let mut first = run.run.start;
        let mut push = |first: Address, last: Address| {
            let (messages, parent, children, position) = (0, None, 0, None);
            pieces.push(Piece { first, last, messages, parent, children, position });
        };
        while let Some(end) = ends.next_if(|end| *end < run.end) {
            if end >= first {
                push(first, end);
                first = end.after();
            }
        }
        push(first, run.end);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(n: usize) -> Address {
        Address::new(1, n as u32)
    }

    /// The segments of a tree drawn as text. Each word is a message and its parent, in order of append; a capital is a
    /// tombstone, `-` is no parent, `.` a removed row. `"a- ba ca"` is a message with two children.
    fn segments(tree: &str) -> String {
        let nodes: Vec<&[u8]> = tree.split(' ').map(str::as_bytes).collect();
        let (mut runs, mut tombstones) = (Vec::<BoundedRun>::new(), Vec::new());
        for (index, node) in nodes.iter().enumerate() {
            let &[letter, parent] = *node else { continue };
            let address = at(index + 1);
            if letter.is_ascii_uppercase() {
                tombstones.push(address);
            }
            let parent = (parent != b'-').then(|| at(usize::from(parent - b'a') + 1));
            match runs.last_mut() {
                Some(run) if parent == Some(address.before()) => run.end = address,
                _ => runs.push(BoundedRun { run: Run { start: address, parent }, end: address }),
            }
        }
        let map = SegmentMap::new(&runs, tombstones).unwrap_or_else(|error| panic!("{error}"));
        let draw = |segment: usize| -> String {
            let letters = (0..map.count(segment)).map(|place| {
                let address = map.address(segment, place).unwrap_or_else(|| panic!("no {place}"));
                assert_eq!(map.locate(address), Some((segment, place)));
                char::from(nodes[address.n() as usize - 1][0])
            });
            let letters: String = letters.collect();
            let parent = map.parent(segment).map_or("-".to_owned(), |parent| parent.to_string());
            format!("{letters}{parent}")
        };
        (0..map.len()).map(draw).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_segment_ends_where_it_branches() {
        for (tree, drawn) in [
            ("a- ba cb", "abc-"),
            ("a- b-", "a- b-"),
            ("a- ba ca", "a- b0 c0"),
            ("a- ba cb da ed", "a- bc0 de0"),
            // Two branches with interleaved appends: each is one segment of many runs.
            ("a- ba ca db ec fd ge", "a- bdf0 ceg0"),
            // A reply that is regenerated in each turn.
            ("a- ba ca dc ed fd", "a- b0 cd0 e2 f2"),
            // After a removed leaf the segment continues in another run.
            ("a- ba . db ed", "abde-"),
        ] {
            assert_eq!(segments(tree), drawn, "{tree}");
        }
    }

    #[test]
    fn a_tombstone_is_skipped() {
        for (tree, drawn) in [
            ("a- Ba cb", "ac-"),
            ("A- ba cb", "bc-"),
            // The children of a tombstone become those of its parent ..
            ("a- Ba cb db", "a- c0 d0"),
            ("a- Ba cb da eb", "a- c0 d0 e0"),
            // .. or roots, if it was a root.
            ("A- ba ca", "b- c-"),
            ("a- Ba Cb dc", "ad-"),
            // All messages of one of two branches are deleted.
            ("a- Ba Cb db ea", "a- d0 e0"),
        ] {
            assert_eq!(segments(tree), drawn, "{tree}");
        }
    }

    #[test]
    fn a_head_on_a_tombstone_is_shown_at_its_living_ancestor() -> Result<()> {
        let run = |start, parent: Option<usize>, end| BoundedRun {
            run: Run { start: at(start), parent: parent.map(at) },
            end: at(end),
        };
        let map = SegmentMap::new(&[run(1, None, 4), run(5, Some(2), 6)], vec![at(1), at(5)])?;
        // 1 and 5 are tombstones; the children of 2 are 3 (with 4) and 5 (with 6).
        assert_eq!(map.locate(at(1)), None);
        assert_eq!(map.locate(at(2)), Some((0, 0)));
        assert_eq!(map.locate(at(5)), Some((0, 0)));
        assert_eq!(map.locate(at(6)), Some((2, 0)));
        assert_eq!(map.locate(at(7)), None);
        Ok(())
    }

    #[test]
    fn a_missing_parent_is_corrupt() {
        let run = BoundedRun { run: Run { start: at(5), parent: Some(at(2)) }, end: at(6) };
        assert!(matches!(SegmentMap::new(&[run], Vec::new()), Err(Error::Corrupt { .. })));
    }

    #[test]
    fn long_segments_show_their_ends_and_marked_messages() -> Result<()> {
        let run = |end| BoundedRun { run: Run { start: at(1), parent: None }, end: at(end) };
        let short = SegmentMap::new(&[run(9)], Vec::new())?;
        assert_eq!(short.landmarks(0, []), (0..9).collect::<Vec<_>>());
        let long = SegmentMap::new(&[run(100)], Vec::new())?;
        assert_eq!(long.landmarks(0, [50, 2, 50]), [0, 1, 2, 3, 50, 96, 97, 98, 99]);
        Ok(())
    }
}
