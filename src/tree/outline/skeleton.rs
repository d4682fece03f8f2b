//! Cutting a session's runs into segments, without reading a message.
//!
//! A run is cut after each message that something else hangs from; what is between two cuts is a
//! *piece*. A piece of tombstones only is passed over: its children count as its parent's. A piece
//! that is the only child of the one it hangs from continues that one's segment.
//!
//! Invariant: a parent's piece comes before its children's, so one pass in order is enough.

use crate::error::{Error, Result};
use crate::tree::{Address, Run};

/// How many messages are shown at each end of a segment.
const NEAR: u64 = 4;

/// A run with its end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stem {
    pub(crate) run: Run,
    /// The last address of the run.
    pub(crate) end: Address,
}

/// A session's tree as segments of addresses.
#[derive(Debug)]
pub(crate) struct Skeleton {
    pieces: Vec<Piece>,
    /// In ascending order.
    tombstones: Vec<Address>,
    chains: Vec<Chain>,
    roots: Vec<usize>,
}

/// Consecutive addresses, of which only the last has more than one child.
#[derive(Debug)]
struct Piece {
    first: Address,
    last: Address,
    /// How many of the addresses hold a message.
    living: u64,
    /// The nearest piece above that holds messages.
    parent: Option<usize>,
    /// How many pieces with messages hang from this one.
    children: usize,
    /// Where it lies; nowhere if it holds no message.
    place: Option<Position>,
}

#[derive(Debug, Clone, Copy)]
struct Position {
    chain: usize,
    /// How many messages of the chain come before.
    offset: u64,
}

/// One segment.
#[derive(Debug, Default)]
struct Chain {
    pieces: Vec<usize>,
    count: u64,
    parent: Option<usize>,
    children: Vec<usize>,
}

impl Skeleton {
    /// Returns the skeleton of the tree of these runs, both lists in ascending order.
    pub(crate) fn new(stems: &[Stem], tombstones: Vec<Address>) -> Result<Self> {
        let mut skeleton =
            Self { pieces: cut(stems), tombstones, chains: Vec::new(), roots: Vec::new() };
        skeleton.find_parents(stems)?;
        skeleton.chain_up();
        Ok(skeleton)
    }

    fn find_parents(&mut self, stems: &[Stem]) -> Result<()> {
        let mut stems = stems.iter().peekable();
        for index in 0..self.pieces.len() {
            let first = self.pieces[index].first;
            let hangs_from = match stems.next_if(|stem| stem.run.start == first) {
                Some(stem) => {
                    stem.run.parent.map(|parent| self.ending_at(parent, index)).transpose()?
                }
                // Cut from the one before it.
                None => Some(index - 1),
            };
            let piece = &self.pieces[index];
            let width = (piece.last.raw() - piece.first.raw() + 1) as u64;
            let living = width - self.tombstones_between(piece.first, piece.last).len() as u64;
            // Through a piece without messages, what it hangs from itself.
            let parent = hangs_from.and_then(|above| match self.pieces[above].living {
                0 => self.pieces[above].parent,
                _ => Some(above),
            });
            if let Some(parent) = parent.filter(|_| living > 0) {
                self.pieces[parent].children += 1;
            }
            self.pieces[index].living = living;
            self.pieces[index].parent = parent;
        }
        Ok(())
    }

    /// Returns the piece before `index` that ends at this address.
    fn ending_at(&self, address: Address, index: usize) -> Result<usize> {
        let found = self.pieces[..index].binary_search_by_key(&address, |piece| piece.last);
        found.map_err(|_| Error::Corrupt {
            what: format!(
                "message {} of session {} hangs from {}, which is not there or is newer",
                self.pieces[index].first.n(),
                address.session(),
                address.n()
            ),
        })
    }

    fn chain_up(&mut self) {
        for index in 0..self.pieces.len() {
            let piece = &self.pieces[index];
            let (living, above) = (piece.living, piece.parent);
            if living == 0 {
                continue;
            }
            let parent = above.and_then(|above| self.pieces[above].place);
            let is_only_child = above.is_some_and(|above| self.pieces[above].children == 1);
            let chain = match parent {
                Some(place) if is_only_child => place.chain,
                parent => self.begin(parent.map(|place| place.chain)),
            };
            let offset = self.chains[chain].count;
            self.pieces[index].place = Some(Position { chain, offset });
            self.chains[chain].pieces.push(index);
            self.chains[chain].count += living;
        }
    }

    fn begin(&mut self, parent: Option<usize>) -> usize {
        let chain = self.chains.len();
        match parent {
            Some(parent) => self.chains[parent].children.push(chain),
            None => self.roots.push(chain),
        }
        self.chains.push(Chain { parent, ..Chain::default() });
        chain
    }

    /// Returns how many segments there are.
    pub(crate) fn len(&self) -> usize {
        self.chains.len()
    }

    pub(crate) fn roots(&self) -> &[usize] {
        &self.roots
    }

    pub(crate) fn children(&self, segment: usize) -> &[usize] {
        &self.chains[segment].children
    }

    pub(crate) fn parent(&self, segment: usize) -> Option<usize> {
        self.chains[segment].parent
    }

    /// Returns how many messages a segment has.
    pub(crate) fn count(&self, segment: usize) -> u64 {
        self.chains[segment].count
    }

    /// Returns the segment and the place in it of the message at this address or, above
    /// tombstones, of the nearest one.
    pub(crate) fn locate(&self, address: Address) -> Option<(usize, u64)> {
        let mut index = self.pieces.partition_point(|piece| piece.last < address);
        let piece = self.pieces.get(index).filter(|piece| piece.first <= address)?;
        // The messages of the piece at this address or before it.
        let upto = (address.raw() - piece.first.raw() + 1) as u64
            - self.tombstones_between(piece.first, address).len() as u64;
        let mut upto = upto;
        if upto == 0 {
            index = piece.parent?;
            upto = self.pieces[index].living;
        }
        let place = self.pieces[index].place?;
        Some((place.chain, place.offset + upto - 1))
    }

    /// Returns the address of the message at this place of a segment.
    pub(crate) fn address(&self, segment: usize, at: u64) -> Option<Address> {
        let chain = self.chains.get(segment)?;
        let offset = |index: &usize| self.pieces[*index].place.map_or(0, |place| place.offset);
        let after = chain.pieces.partition_point(|index| offset(index) <= at);
        let index = *chain.pieces.get(after.checked_sub(1)?)?;
        let piece = &self.pieces[index];
        let nth = at - offset(&index);
        if nth >= piece.living {
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

    /// Returns the places of a segment to show: those near its ends, and those that are noted.
    pub(crate) fn landmarks(
        &self,
        segment: usize,
        noted: impl IntoIterator<Item = u64>,
    ) -> Vec<u64> {
        let count = self.count(segment);
        // A gap of one message takes as much room as the message.
        if count <= 2 * NEAR + 1 {
            return (0..count).collect();
        }
        let mut places: Vec<u64> = (0..NEAR).chain(count - NEAR..count).collect();
        places.extend(noted.into_iter().filter(|at| *at < count));
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

/// Returns the pieces of the runs, in ascending order.
fn cut(stems: &[Stem]) -> Vec<Piece> {
    let mut ends: Vec<Address> = stems.iter().filter_map(|stem| stem.run.parent).collect();
    ends.sort_unstable();
    ends.dedup();
    let mut ends = ends.into_iter().peekable();
    let mut pieces = Vec::with_capacity(stems.len() * 2);
    for stem in stems {
        let mut first = stem.run.start;
        let mut push = |first: Address, last: Address| {
            let (living, parent, children, place) = (0, None, 0, None);
            pieces.push(Piece { first, last, living, parent, children, place });
        };
        while let Some(end) = ends.next_if(|end| *end < stem.end) {
            if end >= first {
                push(first, end);
                first = end.after();
            }
        }
        push(first, stem.end);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(n: usize) -> Address {
        Address::new(1, n as u32)
    }

    /// The segments of a tree drawn as text: a letter a message, each with its parent; a capital
    /// is a tombstone, `-` no parent, `.` a removed row. `"a- ba ca"` is a message with two answers.
    fn segments(tree: &str) -> String {
        let nodes: Vec<&[u8]> = tree.split(' ').map(str::as_bytes).collect();
        let (mut stems, mut tombstones) = (Vec::<Stem>::new(), Vec::new());
        for (index, node) in nodes.iter().enumerate() {
            let &[letter, parent] = *node else { continue };
            let address = at(index + 1);
            if letter.is_ascii_uppercase() {
                tombstones.push(address);
            }
            let parent = (parent != b'-').then(|| at(usize::from(parent - b'a') + 1));
            match stems.last_mut() {
                Some(stem) if parent == Some(address.before()) => stem.end = address,
                _ => stems.push(Stem { run: Run { start: address, parent }, end: address }),
            }
        }
        let skeleton = Skeleton::new(&stems, tombstones).unwrap_or_else(|error| panic!("{error}"));
        let draw = |segment: usize| -> String {
            let letters = (0..skeleton.count(segment)).map(|place| {
                let address =
                    skeleton.address(segment, place).unwrap_or_else(|| panic!("no {place}"));
                assert_eq!(skeleton.locate(address), Some((segment, place)));
                char::from(nodes[address.n() as usize - 1][0])
            });
            let letters: String = letters.collect();
            let parent =
                skeleton.parent(segment).map_or("-".to_owned(), |parent| parent.to_string());
            format!("{letters}{parent}")
        };
        (0..skeleton.len()).map(draw).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_segment_goes_on_until_it_branches() {
        for (tree, drawn) in [
            ("a- ba cb", "abc-"),
            ("a- b-", "a- b-"),
            ("a- ba ca", "a- b0 c0"),
            ("a- ba cb da ed", "a- bc0 de0"),
            // Two branches written in turn: each is one segment of many runs.
            ("a- ba ca db ec fd ge", "a- bdf0 ceg0"),
            // A reply regenerated every turn.
            ("a- ba ca dc ed fd", "a- b0 cd0 e2 f2"),
            // After a removed leaf the chain goes on in another run.
            ("a- ba . db ed", "abde-"),
        ] {
            assert_eq!(segments(tree), drawn, "{tree}");
        }
    }

    #[test]
    fn a_tombstone_is_passed_over() {
        for (tree, drawn) in [
            ("a- Ba cb", "ac-"),
            ("A- ba cb", "bc-"),
            // The children of a tombstone are its parent's ..
            ("a- Ba cb db", "a- c0 d0"),
            ("a- Ba cb da eb", "a- c0 d0 e0"),
            // .. and roots if it was one.
            ("A- ba ca", "b- c-"),
            ("a- Ba Cb dc", "ad-"),
            // One of two branches is gone but for its place.
            ("a- Ba Cb db ea", "a- d0 e0"),
        ] {
            assert_eq!(segments(tree), drawn, "{tree}");
        }
    }

    #[test]
    fn the_head_on_a_tombstone_is_shown_at_what_it_hung_from() -> Result<()> {
        let stem = |start, parent: Option<usize>, end| Stem {
            run: Run { start: at(start), parent: parent.map(at) },
            end: at(end),
        };
        let skeleton = Skeleton::new(&[stem(1, None, 4), stem(5, Some(2), 6)], vec![at(1), at(5)])?;
        // 1 is gone; 2; below it 3 4, and 6 below 5, which is gone, too.
        assert_eq!(skeleton.locate(at(1)), None);
        assert_eq!(skeleton.locate(at(2)), Some((0, 0)));
        assert_eq!(skeleton.locate(at(5)), Some((0, 0)));
        assert_eq!(skeleton.locate(at(6)), Some((2, 0)));
        assert_eq!(skeleton.locate(at(7)), None);
        Ok(())
    }

    #[test]
    fn a_parent_that_is_not_there_is_damage() {
        let stem = Stem { run: Run { start: at(5), parent: Some(at(2)) }, end: at(6) };
        assert!(matches!(Skeleton::new(&[stem], Vec::new()), Err(Error::Corrupt { .. })));
    }

    #[test]
    fn long_segments_show_their_ends_and_what_is_noted() -> Result<()> {
        let stem = |end| Stem { run: Run { start: at(1), parent: None }, end: at(end) };
        let short = Skeleton::new(&[stem(9)], Vec::new())?;
        assert_eq!(short.landmarks(0, []), (0..9).collect::<Vec<_>>());
        let long = Skeleton::new(&[stem(100)], Vec::new())?;
        assert_eq!(long.landmarks(0, [50, 2, 50]), [0, 1, 2, 3, 50, 96, 97, 98, 99]);
        Ok(())
    }
}
