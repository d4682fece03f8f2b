//! Draws an outline as lines.
//!
//! A segment is followed by its indented branches and then by its main child (see [`Layout`]). A stack of jobs replaces
//! recursion: drawing a segment pushes its main child and, above it, its branches. Branches and segments over the
//! limits of [`DrawOptions`] are counted instead of drawn.

use std::collections::VecDeque;
use std::rc::Rc;

use super::{Renderer, Segment, Tree, TreeLine, outermost};

/// The limits and style of a drawing.
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
    /// The maximum number of indented branches of one message; the others are counted. Branches that lead to the head
    /// or a label are always drawn.
    pub max_children: usize,
    /// The maximum number of consecutive segments along the main children; the middle of a longer row is counted,
    /// except segments with the head or a label.
    pub max_main_segments: usize,
    /// The maximum number of indentations; branches further right are counted.
    pub max_indent: usize,
    /// Whether the lines use only ASCII characters.
    pub is_ascii: bool,
}

impl Default for DrawOptions {
    fn default() -> Self {
        Self { max_children: 8, max_main_segments: 64, max_indent: 5, is_ascii: false }
    }
}

impl DrawOptions {
    /// Returns the options that draw every branch.
    #[must_use]
    pub fn everything() -> Self {
        let max = usize::MAX;
        Self { max_children: max, max_main_segments: max, max_indent: max, is_ascii: false }
    }
}

/// The lines of a drawing.
#[derive(Debug)]
pub(super) struct Lines<'a> {
    tree: &'a Tree,
    options: DrawOptions,
    renderer: Renderer,
    layouts: Vec<Layout>,
    /// The remaining jobs, the next one last.
    jobs: Vec<Job>,
    ready: VecDeque<TreeLine>,
}

#[derive(Debug)]
enum Job {
    Segment {
        segment: usize,
        /// The graph before the first line of the segment, and before the other lines.
        first_graph: Rc<str>,
        graph: Rc<str>,
        /// The number of segments already drawn along these main children.
        step: usize,
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
            renderer: Renderer::of(options),
            layouts: layouts(&tree.segments),
            jobs: Vec::new(),
            ready: VecDeque::new(),
        };
        let nothing: Rc<str> = "".into();
        lines.push_branches(&tree.roots, [&nothing, &nothing, &nothing], 0);
        lines
    }

    /// Pushes branches, and a count of the omitted ones.
    ///
    /// `graphs` are those of a branch's first line, of its other lines, and of the count. Branches without indentation
    /// are separate trees.
    fn push_branches(&mut self, branches: &[usize], graphs: [&Rc<str>; 3], indent: usize) {
        let [first_graph, graph, more] = graphs;
        let is_apart = indent == 0;
        let max =
            if indent > self.options.max_indent { 0 } else { self.options.max_children.max(1) };
        let (mut drawn, mut hidden, mut messages) = (Vec::new(), 0, 0);
        for &branch in branches {
            let layout = &self.layouts[branch];
            // A count of one branch would be as long as the branch.
            let has_room = drawn.len() < max || (max > 0 && branches.len() == max + 1);
            match layout.has_mark || has_room {
                true => drawn.push(branch),
                false => {
                    hidden += 1;
                    messages += layout.messages;
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
            let (first_graph, graph) = (Rc::clone(first_graph), Rc::clone(graph));
            self.jobs.push(Job::Segment { segment, first_graph, graph, step: 0, indent });
            if is_apart && index > 0 {
                self.jobs.push(Job::Blank);
            }
        }
    }

    fn run(&mut self, job: Job) {
        match job {
            Job::Blank => self.ready.push_back(TreeLine::default()),
            Job::More { graph, branches, messages } => {
                self.ready.push_back(self.renderer.branches(&graph, branches as u64, messages));
            }
            Job::Segment { segment, first_graph, graph, step, indent } => {
                let Some(segment) = self.skip_long_row(segment, step, &graph) else { return };
                self.draw(segment, &first_graph, &graph);
                self.push_children(segment, &graph, step + 1, indent);
            }
        }
    }

    /// Returns the segment to draw: this one, or a later one if the row is too long.
    fn skip_long_row(&mut self, segment: usize, step: usize, graph: &str) -> Option<usize> {
        let half = (self.options.max_main_segments / 2).max(1);
        let is_kept = |layout: &Layout| {
            step < half || layout.main_length <= half || layout.is_marked || layout.main.is_none()
        };
        let (mut to, mut count) = (segment, 0_u64);
        while !is_kept(&self.layouts[to]) {
            to = self.layouts[to].main?;
            count += 1;
        }
        match count {
            0 => Some(segment),
            _ => {
                let messages = self.layouts[segment].messages - self.layouts[to].messages;
                self.ready.push_back(self.renderer.branchings(graph, count, messages));
                Some(to)
            }
        }
    }

    /// Pushes the children of a segment.
    fn push_children(&mut self, segment: usize, graph: &Rc<str>, step: usize, indent: usize) {
        let Some(main) = self.layouts[segment].main else { return };
        self.jobs.push(Job::Segment {
            segment: main,
            first_graph: Rc::clone(graph),
            graph: Rc::clone(graph),
            step,
            indent,
        });
        let children = &self.tree.segments[segment].children;
        let sides: Vec<usize> = children.iter().copied().filter(|child| *child != main).collect();
        if sides.is_empty() {
            return;
        }
        let (tee, bar) = self.renderer.branch_graphs();
        let first_graph = format!("{graph}{tee}").into();
        let other_graph = format!("{graph}{bar}").into();
        self.push_branches(&sides, [&first_graph, &other_graph, &first_graph], indent + 1);
    }

    fn draw(&mut self, segment: usize, first_graph: &str, graph: &str) {
        let tree = self.tree;
        let segment = &tree.segments[segment];
        let compactions = outermost(&segment.compactions);
        let mut next = 0;
        for landmark in &segment.landmarks {
            let own_graph = if next == 0 { first_graph } else { graph };
            if landmark.at > next {
                self.ready.push_back(self.renderer.gap(graph, landmark.at - next));
            }
            next = landmark.at + 1;
            let is_compacted = compactions.iter().any(|compaction| {
                compaction.starts_at <= Some(landmark.at) && landmark.at <= compaction.ends_at
            });
            self.ready.push_back(self.renderer.message(landmark, own_graph, is_compacted));
            for compaction in
                compactions.iter().filter(|compaction| compaction.ends_at == landmark.at)
            {
                self.ready.push_back(self.renderer.summary(compaction, graph));
            }
        }
    }
}

impl Iterator for Lines<'_> {
    type Item = TreeLine;

    fn next(&mut self) -> Option<TreeLine> {
        while self.ready.is_empty() {
            let job = self.jobs.pop()?;
            self.run(job);
        }
        self.ready.pop_front()
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::outline::{CompactionMark, Landmark, Segment};
    use crate::tree::{Address, BoundedRun, Run, SegmentMap};

    /// A tree of messages `m1`, `m2`, .. with these parents; 0 is no parent.
    fn tree(parents: impl IntoIterator<Item = usize>) -> Tree {
        let at = |n: usize| Address::new(1, n as u32);
        let mut runs = Vec::<BoundedRun>::new();
        for (index, parent) in parents.into_iter().enumerate() {
            let (address, parent) = (at(index + 1), (parent > 0).then(|| at(parent)));
            match runs.last_mut() {
                Some(run) if parent == Some(address.before()) => run.end = address,
                _ => runs.push(BoundedRun { run: Run { start: address, parent }, end: address }),
            }
        }
        let map = SegmentMap::new(&runs, Vec::new()).unwrap_or_else(|error| panic!("{error}"));
        let id = |segment, at| {
            let n = map.address(segment, at).map_or(0, |address| address.n());
            crate::MessageId::from(format!("m{n}"))
        };
        let segment = |segment| Segment {
            first: id(segment, 0),
            last: id(segment, map.count(segment) - 1),
            count: map.count(segment),
            hidden: 0,
            landmarks: map
                .landmarks(segment, [])
                .into_iter()
                .map(|at| landmark(id(segment, at), at))
                .collect(),
            compactions: Vec::new(),
            parent: map.parent(segment),
            children: map.children(segment).to_vec(),
        };
        let segments: Vec<Segment> = (0..map.len()).map(segment).collect();
        let messages = segments.iter().map(|segment| segment.count).sum();
        Tree { head: None, messages, roots: map.roots().to_vec(), segments }
    }

    /// Every message has two replies, and the conversation continues after the second.
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

    /// The drawing without the role, which is the same in every line.
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
    fn a_chain_is_not_indented() {
        assert_drawn(&tree(0..3), &["o m1", "o m2", "o m3"]);
        let long =
            ["o m1", "o m2", "o m3", "o m4", "  … 1 234 559 more …", "o m1234564", "o m1234565"];
        let drawn = drawn(&tree(0..1_234_567), &DrawOptions::default());
        assert_eq!(drawn.lines().take(7).collect::<Vec<_>>(), long);
    }

    #[test]
    fn the_branch_to_the_head_is_not_indented() {
        let parents = [0, 1, 2, 3, 1, 5];
        let mut tree = tree(parents);
        assert_drawn(&tree, &["o m1", "├─o m5", "│ o m6", "o m2", "o m3", "o m4"]);
        find(&mut tree, "m5").is_head = true;
        assert_drawn(&tree, &["o m1", "├─o m2", "│ o m3", "│ o m4", "* m5 (head)", "o m6"]);
    }

    #[test]
    fn a_reply_regenerated_every_turn_is_indented_once() {
        // m1 has the replies m2 and m3; m3 is followed by m4, which has the replies m5 and m6; ..
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
    fn several_roots_are_separated() {
        assert_drawn(&tree([0, 1, 0]), &["o m1", "o m2", "", "o m3"]);
    }

    #[test]
    fn many_branches_are_counted_except_labelled_ones() {
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
    fn long_rows_of_segments_are_counted_except_labelled_ones() {
        let mut long = regenerated(2_001);
        let options = DrawOptions { max_main_segments: 4, ..DrawOptions::default() };
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
                "* m5 (head, a, \"b\\u001b[2J\")",
            ],
        );
    }

    #[test]
    fn a_tree_of_300_000_deep_or_wide_needs_little_stack() -> Result<(), Box<dyn std::error::Error>>
    {
        const COUNT: usize = 300_000;
        let work = || {
            let everything = DrawOptions { is_ascii: true, ..DrawOptions::everything() };
            let regenerated = regenerated(COUNT);
            let wide = tree(std::iter::once(0).chain((1..COUNT).map(|_| 1)));
            // Each message has a near and a distant child: a balanced binary tree.
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
