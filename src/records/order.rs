//! Sorts records so that parents come first.
//!
//! Nothing here recurses: a file may hold a chain of a million records, or a cycle.

/// Returns the records sorted so that parents come first, otherwise in the order of the file; and
/// the records at which a cycle was broken, which lose their parent.
pub fn arrange(parents: &mut [Option<u32>]) -> (Vec<u32>, Vec<u32>) {
    #[derive(Clone, Copy, PartialEq)]
    enum State {
        New,
        OnTheWay,
        Placed,
    }
    let mut states = vec![State::New; parents.len()];
    let mut order = Vec::with_capacity(parents.len());
    let (mut broken, mut way) = (Vec::new(), Vec::new());
    for start in 0..parents.len() as u32 {
        let mut next = Some(start);
        while let Some(record) = next {
            match states[record as usize] {
                State::New => {
                    states[record as usize] = State::OnTheWay;
                    way.push(record);
                    next = parents[record as usize];
                }
                State::OnTheWay => {
                    let begin = way.iter().position(|on_way| *on_way == record).unwrap_or(0);
                    let first = way[begin..].iter().copied().min().unwrap_or(record);
                    parents[first as usize] = None;
                    broken.push(first);
                    // Only one cycle can be reached from a record, so this path is walked at most
                    // twice.
                    for record in way.drain(..) {
                        states[record as usize] = State::New;
                    }
                    next = Some(start);
                }
                State::Placed => break,
            }
        }
        while let Some(record) = way.pop() {
            states[record as usize] = State::Placed;
            order.push(record);
        }
    }
    (order, broken)
}

/// Returns where a conversation ends that goes on below `from`: with the last leaf in the order of the file. `is_end` says which
/// records it may end with.
pub fn last_end(parents: &[Option<u32>], from: u32, is_end: impl Fn(u32) -> bool) -> u32 {
    let mut is_inner = vec![false; parents.len()];
    for record in (0..parents.len() as u32).filter(|record| is_end(*record)) {
        let mut above = parents[record as usize];
        while let Some(at) =
            above.filter(|at| !std::mem::replace(&mut is_inner[*at as usize], true))
        {
            above = parents[at as usize];
        }
    }
    if !is_inner[from as usize] {
        return from;
    }
    let is_below = |record: &u32| {
        std::iter::successors(Some(*record), |at| parents[*at as usize]).any(|at| at == from)
    };
    let mut leaves = (0..parents.len() as u32).rev();
    leaves.find(|at| !is_inner[*at as usize] && is_end(*at) && is_below(at)).unwrap_or(from)
}

/// The shape of a forest: answers questions about two records without walking.
#[derive(Debug)]
pub struct Shape {
    /// Each record's root.
    pub roots: Vec<u32>,
    depths: Vec<u32>,
    /// How many records are in the subtree of each, itself included.
    sizes: Vec<u32>,
    /// Each record's number in an order that numbers a record before its descendants.
    numbers: Vec<u32>,
}

impl Shape {
    pub fn new(parents: &[Option<u32>], order: &[u32]) -> Self {
        let count = parents.len();
        let mut shape = Self {
            roots: (0..count as u32).collect(),
            depths: vec![0; count],
            sizes: vec![1; count],
            numbers: vec![0; count],
        };
        for &record in order {
            if let Some(parent) = parents[record as usize] {
                shape.roots[record as usize] = shape.roots[parent as usize];
                shape.depths[record as usize] = shape.depths[parent as usize] + 1;
            }
        }
        for &record in order.iter().rev() {
            if let Some(parent) = parents[record as usize] {
                shape.sizes[parent as usize] += shape.sizes[record as usize];
            }
        }
        let mut free = 0;
        let mut free_below = vec![0; count];
        for &record in order {
            let place = match parents[record as usize] {
                Some(parent) => &mut free_below[parent as usize],
                None => &mut free,
            };
            shape.numbers[record as usize] = *place;
            *place += shape.sizes[record as usize];
            free_below[record as usize] = shape.numbers[record as usize] + 1;
        }
        shape
    }

    pub fn is_ancestor(&self, ancestor: u32, record: u32) -> bool {
        let (from, at) = (self.numbers[ancestor as usize], self.numbers[record as usize]);
        (from..from + self.sizes[ancestor as usize]).contains(&at)
    }

    /// Returns whether a branch leaves the path between `above` and its descendant `below`.
    pub fn has_branch_between(&self, above: u32, below: u32) -> bool {
        let steps = self.depths[below as usize] - self.depths[above as usize];
        self.sizes[above as usize] > self.sizes[below as usize] + steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each letter is a record, followed by its parent: `ba` is b below a, `a-` is a root.
    #[track_caller]
    fn arranged(records: &str) -> (String, String) {
        let ids: Vec<char> = records.split(' ').filter_map(|r| r.chars().next()).collect();
        let parent = |record: &str| {
            let parent = record.chars().nth(1)?;
            ids.iter().position(|id| *id == parent).map(|at| at as u32)
        };
        let mut parents: Vec<Option<u32>> = records.split(' ').map(parent).collect();
        let (order, broken) = arrange(&mut parents);
        let names = |places: Vec<u32>| places.iter().map(|at| ids[*at as usize]).collect();
        (names(order), names(broken))
    }

    #[test]
    fn parents_come_first_and_circles_are_broken_at_their_first_record() {
        for (records, order, broken) in [
            ("a- ba cb", "abc", ""),
            ("cb ba a-", "abc", ""),
            ("a- cb ba da", "abcd", ""),
            ("aa", "a", "a"),
            ("ab ba", "ab", "a"),
            ("x- ca ab bc db", "xcbad", "c"),
            ("da ab bc ca", "adcb", "a"),
            ("ab ba cd dc", "abcd", "ac"),
        ] {
            let (found, at) = arranged(records);
            assert_eq!((found.as_str(), at.as_str()), (order, broken), "{records}");
        }
    }

    #[test]
    fn a_million_records_in_reverse_take_no_time() {
        let count = 1_000_000;
        let mut parents: Vec<Option<u32>> = (1..count).map(Some).chain([None]).collect();
        let (order, broken) = arrange(&mut parents);
        assert_eq!((order[0], order.len(), broken.len()), (count - 1, count as usize, 0));
        let shape = Shape::new(&parents, &order);
        assert!(shape.is_ancestor(count - 1, 0) && !shape.is_ancestor(0, count - 1));
    }

    #[test]
    fn a_conversation_ends_with_its_last_leaf() {
        // 0 - 1 - 2, and 3 hangs from 1; 4 - 5 - 6 is a file in reverse, and ends with 4.
        let parents = [None, Some(0), Some(1), Some(1), Some(5), Some(6), None];
        for (from, end) in [(0, 3), (2, 2), (6, 4), (4, 4)] {
            assert_eq!(last_end(&parents, from, |_| true), end);
        }
        assert_eq!(last_end(&parents, 0, |at| at != 3), 2);
        assert_eq!(last_end(&parents, 6, |at| at > 5), 6);
    }

    #[test]
    fn a_shape_knows_ancestors_and_branches() {
        // 0 - 1 - 2 - 3, and 4 hangs from 1
        let parents = [None, Some(0), Some(1), Some(2), Some(1)];
        let shape = Shape::new(&parents, &[0, 1, 2, 3, 4]);
        assert!(shape.is_ancestor(1, 4) && !shape.is_ancestor(2, 4) && shape.is_ancestor(4, 4));
        assert!(shape.has_branch_between(1, 3) && !shape.has_branch_between(2, 3));
        assert_eq!(shape.roots, [0; 5]);
    }
}
