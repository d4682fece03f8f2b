//! Drawing an outline as lines.
//!
//! From a segment on, the trunk goes straight down; the other children are drawn before it, one
//! step to the right, each with a trunk of its own (`trunk` tells which is which). What is still to
//! be drawn is a stack of jobs: drawing a segment puts its trunk on it and, above that, its
//! branches. A job knows the rails that stand to the left of its lines; the lines themselves are
//! written by the `pen`. What is left out for want of room is counted.

use std::collections::VecDeque;
use std::rc::Rc;

use super::pen::{Line, Pen};
use super::trunk::{Note, take_notes};
use super::{Tree, outermost};

/// How an outline is drawn.
///
/// ```
/// use talktree::DrawOptions;
///
/// let wide = DrawOptions { max_children: 20, ..DrawOptions::default() };
/// assert!(!wide.is_ascii);
/// assert_eq!(DrawOptions::everything().max_children, usize::MAX);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DrawOptions {
    /// How many branches of one message are drawn beside the one that goes straight on; the others
    /// are counted. Those that lead to a label are always drawn.
    pub max_children: usize,
    /// How many segments in a row are drawn; of a longer row the middle is counted, up to what is
    /// labelled.
    pub max_trunk: usize,
    /// How far branches of branches are drawn, in steps to the right; those further in are counted.
    pub max_indent: usize,
    /// Whether the lines are drawn in ASCII.
    pub is_ascii: bool,
}

impl Default for DrawOptions {
    fn default() -> Self {
        Self { max_children: 8, max_trunk: 64, max_indent: 5, is_ascii: false }
    }
}

impl DrawOptions {
    /// Returns the options that leave no branch out.
    #[must_use]
    pub fn everything() -> Self {
        let max = usize::MAX;
        Self { max_children: max, max_trunk: max, max_indent: max, is_ascii: false }
    }
}

/// The lines of a drawing.
#[derive(Debug)]
pub struct Lines<'a> {
    tree: &'a Tree,
    options: DrawOptions,
    pen: Pen,
    /// What is known of each segment beside what it holds.
    notes: Vec<Note>,
    /// What is still to be drawn, the next at the end.
    jobs: Vec<Job>,
    ready: VecDeque<Line>,
}

#[derive(Debug)]
enum Job {
    Segment {
        segment: usize,
        /// What stands before the first line of the segment, and before the others.
        lead: Rc<str>,
        rest: Rc<str>,
        /// How many segments of this trunk were drawn before it.
        step: usize,
        /// How far to the right it is.
        indent: usize,
    },
    More {
        graph: Rc<str>,
        branches: usize,
        messages: u64,
    },
    Blank,
}

impl<'a> Lines<'a> {
    pub(super) fn new(tree: &'a Tree, options: &DrawOptions) -> Self {
        let mut lines = Self {
            tree,
            options: options.clone(),
            pen: Pen::of(options),
            notes: take_notes(&tree.segments),
            jobs: Vec::new(),
            ready: VecDeque::new(),
        };
        let nothing: Rc<str> = "".into();
        lines.push_branches(&tree.roots, [&nothing, &nothing, &nothing], 0);
        lines
    }

    /// Puts branches before everything that is still to be drawn, and a count of those left out.
    ///
    /// What stands before the first line of each, before its others, and before the count, are in
    /// `graphs`; branches without an indent are trees of their own.
    fn push_branches(&mut self, branches: &[usize], graphs: [&Rc<str>; 3], indent: usize) {
        let [lead, rest, more] = graphs;
        let is_apart = indent == 0;
        let max =
            if indent > self.options.max_indent { 0 } else { self.options.max_children.max(1) };
        let (mut drawn, mut hidden, mut messages) = (Vec::new(), 0, 0);
        for &branch in branches {
            let note = &self.notes[branch];
            // A count of one branch would take the room of the branch.
            let has_room = drawn.len() < max || (max > 0 && branches.len() == max + 1);
            match note.has_noted || has_room {
                true => drawn.push(branch),
                false => {
                    hidden += 1;
                    messages += note.messages;
                }
            }
        }
        if hidden > 0 {
            self.jobs.push(Job::More { graph: Rc::clone(more), branches: hidden, messages });
            if is_apart {
                self.jobs.push(Job::Blank);
            }
        }
        for (index, &segment) in drawn.iter().enumerate().rev() {
            let (lead, rest) = (Rc::clone(lead), Rc::clone(rest));
            self.jobs.push(Job::Segment { segment, lead, rest, step: 0, indent });
            if is_apart && index > 0 {
                self.jobs.push(Job::Blank);
            }
        }
    }

    fn work(&mut self, job: Job) {
        match job {
            Job::Blank => self.ready.push_back(Line::default()),
            Job::More { graph, branches, messages } => {
                self.ready.push_back(self.pen.branches(&graph, branches as u64, messages));
            }
            Job::Segment { segment, lead, rest, step, indent } => {
                let Some(segment) = self.step_over(segment, step, &rest) else { return };
                self.draw(segment, &lead, &rest);
                self.go_on(segment, &rest, step + 1, indent);
            }
        }
    }

    /// Returns the segment to draw: this one, or one further down if the row is too long.
    fn step_over(&mut self, segment: usize, step: usize, graph: &str) -> Option<usize> {
        let half = (self.options.max_trunk / 2).max(1);
        let is_kept =
            |note: &Note| step < half || note.trunk <= half || note.is_noted || note.main.is_none();
        let (mut to, mut count) = (segment, 0_u64);
        while !is_kept(&self.notes[to]) {
            to = self.notes[to].main?;
            count += 1;
        }
        match count {
            0 => Some(segment),
            _ => {
                let messages = self.notes[segment].messages - self.notes[to].messages;
                self.ready.push_back(self.pen.branchings(graph, count, messages));
                Some(to)
            }
        }
    }

    /// Puts what hangs from a segment before everything that is still to be drawn.
    fn go_on(&mut self, segment: usize, graph: &Rc<str>, step: usize, indent: usize) {
        let Some(main) = self.notes[segment].main else { return };
        let (lead, rest) = (Rc::clone(graph), Rc::clone(graph));
        self.jobs.push(Job::Segment { segment: main, lead, rest, step, indent });
        let children = &self.tree.segments[segment].children;
        let sides: Vec<usize> = children.iter().copied().filter(|child| *child != main).collect();
        if sides.is_empty() {
            return;
        }
        let (tee, bar) = self.pen.rails();
        let lead = format!("{graph}{tee}").into();
        let rest = format!("{graph}{bar}").into();
        self.push_branches(&sides, [&lead, &rest, &lead], indent + 1);
    }

    fn draw(&mut self, segment: usize, lead: &str, rest: &str) {
        let tree = self.tree;
        let segment = &tree.segments[segment];
        let compactions = outermost(&segment.compactions);
        let mut next = 0;
        for landmark in &segment.landmarks {
            let graph = if next == 0 { lead } else { rest };
            if landmark.at > next {
                self.ready.push_back(self.pen.gap(rest, landmark.at - next));
            }
            next = landmark.at + 1;
            let is_compacted = compactions.iter().any(|compaction| {
                compaction.starts_at <= Some(landmark.at) && landmark.at <= compaction.ends_at
            });
            self.ready.push_back(self.pen.message(landmark, graph, is_compacted));
            for compaction in
                compactions.iter().filter(|compaction| compaction.ends_at == landmark.at)
            {
                self.ready.push_back(self.pen.summary(compaction, rest));
            }
        }
    }
}

impl Iterator for Lines<'_> {
    type Item = Line;

    fn next(&mut self) -> Option<Line> {
        while self.ready.is_empty() {
            let job = self.jobs.pop()?;
            self.work(job);
        }
        self.ready.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::outline::{CompactionMark, Landmark, Segment};
    use crate::tree::{Address, Run, Skeleton, Stem};

    /// A tree of messages `m1`, `m2`, .. with these parents; 0 is none.
    fn tree(parents: impl IntoIterator<Item = usize>) -> Tree {
        let at = |n: usize| Address::new(1, n as u32);
        let mut stems = Vec::<Stem>::new();
        for (index, parent) in parents.into_iter().enumerate() {
            let (address, parent) = (at(index + 1), (parent > 0).then(|| at(parent)));
            match stems.last_mut() {
                Some(stem) if parent == Some(address.before()) => stem.end = address,
                _ => stems.push(Stem { run: Run { start: address, parent }, end: address }),
            }
        }
        let skeleton = Skeleton::new(&stems, Vec::new()).unwrap_or_else(|error| panic!("{error}"));
        let id = |segment, at| {
            let n = skeleton.address(segment, at).map_or(0, |address| address.n());
            crate::MessageId::from(format!("m{n}"))
        };
        let segment = |segment| Segment {
            first: id(segment, 0),
            last: id(segment, skeleton.count(segment) - 1),
            count: skeleton.count(segment),
            hidden: 0,
            landmarks: skeleton
                .landmarks(segment, [])
                .into_iter()
                .map(|at| landmark(id(segment, at), at))
                .collect(),
            compactions: Vec::new(),
            parent: skeleton.parent(segment),
            children: skeleton.children(segment).to_vec(),
        };
        let segments: Vec<Segment> = (0..skeleton.len()).map(segment).collect();
        let messages = segments.iter().map(|segment| segment.count).sum();
        Tree { head: None, messages, roots: skeleton.roots().to_vec(), segments }
    }

    /// Every message has two answers, the second of which goes on.
    fn regenerated(count: usize) -> Tree {
        tree(std::iter::once(0).chain((2..=count).map(|n| if n % 2 == 0 { n - 1 } else { n - 2 })))
    }

    fn landmark(id: crate::MessageId, at: u64) -> Landmark {
        Landmark {
            at,
            id,
            role: crate::Role::User,
            preview: String::new(),
            created_at: chrono::DateTime::UNIX_EPOCH,
            is_hidden: false,
            is_head: false,
            labels: Vec::new(),
        }
    }

    fn find<'t>(tree: &'t mut Tree, id: &str) -> &'t mut Landmark {
        let mut landmarks = tree.segments.iter_mut().flat_map(|segment| &mut segment.landmarks);
        landmarks.find(|landmark| landmark.id == *id).unwrap_or_else(|| panic!("no {id}"))
    }

    /// The drawing without the role, which is always the same.
    fn drawn(tree: &Tree, options: &DrawOptions) -> String {
        let lines: Vec<String> =
            tree.lines(options).map(|line| line.to_string().replace(" user", "")).collect();
        lines.join("\n")
    }

    #[track_caller]
    fn assert_drawn(tree: &Tree, expected: &[&str]) {
        assert_eq!(drawn(tree, &DrawOptions::default()), expected.join("\n"));
    }

    #[test]
    fn a_chain_is_no_staircase() {
        assert_drawn(&tree(0..3), &["o m1", "o m2", "o m3"]);
        let long =
            ["o m1", "o m2", "o m3", "o m4", "  … 1 234 559 more …", "o m1234564", "o m1234565"];
        let drawn = drawn(&tree(0..1_234_567), &DrawOptions::default());
        assert_eq!(drawn.lines().take(7).collect::<Vec<_>>(), long);
    }

    #[test]
    fn the_branch_to_the_head_goes_straight_on() {
        let parents = [0, 1, 2, 3, 1, 5];
        let mut tree = tree(parents);
        assert_drawn(&tree, &["o m1", "├─o m5", "│ o m6", "o m2", "o m3", "o m4"]);
        find(&mut tree, "m5").is_head = true;
        assert_drawn(&tree, &["o m1", "├─o m2", "│ o m3", "│ o m4", "* m5 (head)", "o m6"]);
    }

    #[test]
    fn a_reply_regenerated_every_turn_is_no_staircase() {
        // m1 with answers m2, m3; m3 goes on with m4, which has answers m5, m6; ..
        assert_drawn(
            &tree([0, 1, 1, 3, 4, 4, 6]),
            &["o m1", "├─o m2", "o m3", "o m4", "├─o m5", "o m6", "o m7"],
        );
    }

    #[test]
    fn branches_of_branches_are_indented_further() {
        assert_drawn(
            &tree([0, 1, 2, 2, 1, 5, 6, 7]),
            &["o m1", "├─o m2", "│ ├─o m3", "│ o m4", "o m5", "o m6", "o m7", "o m8"],
        );
    }

    #[test]
    fn several_roots_stand_apart() {
        assert_drawn(&tree([0, 1, 0]), &["o m1", "o m2", "", "o m3"]);
    }

    #[test]
    fn wide_fans_are_counted_but_for_what_is_labelled() {
        let fan = |width: usize| tree(std::iter::once(0).chain((0..width).map(|_| 1)));
        let options = DrawOptions { max_children: 2, is_ascii: true, ..DrawOptions::default() };
        assert_eq!(drawn(&fan(4), &options), "o m1\n|-o m2\n|-o m3\n|-o m4\no m5");
        assert_eq!(
            drawn(&fan(5), &options),
            "o m1\n|-o m2\n|-o m3\n|-... 2 branches, 2 messages\no m6"
        );
        let mut labelled = fan(1_000);
        find(&mut labelled, "m500").labels.push("best".to_owned());
        assert_eq!(
            drawn(&labelled, &options),
            "o m1\n|-o m2\n|-o m3\n|-o m500 (best)\n|-... 996 branches, 996 messages\no m1001"
        );
    }

    #[test]
    fn long_rows_of_branchings_are_counted_but_for_what_is_labelled() {
        let mut long = regenerated(2_001);
        let options = DrawOptions { max_trunk: 4, ..DrawOptions::default() };
        let start = "o m1\n├─o m2\no m3\n├─o m4\n  … 997 branchings, 1 994 messages …\no m1999";
        assert!(drawn(&long, &options).starts_with(start), "{}", drawn(&long, &options));
        find(&mut long, "m1001").labels.push("here".to_owned());
        find(&mut long, "m500").labels.push("beside".to_owned());
        let drawn = drawn(&long, &options);
        assert!(drawn.contains("\no m499\n├─o m500 (beside)\n"), "{drawn}");
        assert!(drawn.contains("\no m1001 (here)\n"), "{drawn}");
        assert!(drawn.lines().count() < 20, "{drawn}");
    }

    #[test]
    fn hidden_messages_compactions_and_labels_are_marked() {
        let mut tree = tree(0..5);
        find(&mut tree, "m1").preview = "hello".to_owned();
        find(&mut tree, "m2").is_hidden = true;
        find(&mut tree, "m5").is_head = true;
        find(&mut tree, "m5").labels = vec!["a".to_owned(), "b\u{1b}[2J".to_owned()];
        tree.segments[0].compactions.push(CompactionMark {
            id: "0193a5c2-1f3b-7000-8000-0123456789ab".into(),
            first: "m3".into(),
            last: "m4".into(),
            count: 2,
            starts_at: Some(2),
            ends_at: 3,
            preview: "They met.".to_owned(),
        });
        assert_drawn(
            &tree,
            &[
                "o m1  hello",
                "- m2 [hidden]",
                "· m3",
                "· m4",
                "  [compaction …456789ab: 2 messages] They met.",
                "* m5 (head, a, b\\u{1b}[2J)",
            ],
        );
    }

    #[test]
    fn a_million_deep_or_wide_needs_little_stack() -> Result<(), Box<dyn std::error::Error>> {
        const COUNT: usize = 1_000_000;
        let work = || {
            let everything = DrawOptions { is_ascii: true, ..DrawOptions::everything() };
            let regenerated = regenerated(COUNT);
            let wide = tree(std::iter::once(0).chain((1..COUNT).map(|_| 1)));
            // Each message has an answer right behind it and one far behind: halves of halves.
            let bushy = tree((0..COUNT).map(|n| n.div_ceil(2)));
            let mut widest = 0;
            for tree in [&regenerated, &wide, &bushy] {
                let lines = tree.lines(&everything);
                widest = widest.max(lines.map(|line| line.pieces[0].1.len()).max().unwrap_or(0));
                assert!(tree.lines(&DrawOptions::default()).count() < 100_000);
            }
            widest
        };
        let thread = std::thread::Builder::new().stack_size(256 << 10).spawn(work)?;
        let widest = thread.join().map_err(|_| "the thread died")?;
        assert!(widest <= 2 * 21, "{widest}");
        Ok(())
    }
}
