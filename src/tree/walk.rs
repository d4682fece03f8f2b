//! The walk from a leaf back to its root.
//!
//! Every read of a path uses this walk: histories, streams, pages, lengths, membership. It asks a [`TreeSource`] two
//! questions and reads no message. The *raw* walk yields the runs of the path. The *visible* walk yields a summary
//! where a compaction ends on the path, and continues before the first message of that compaction; so compacted
//! messages are never touched.

use super::Address;
use crate::error::Error;

/// Messages at consecutive addresses, in which each is the parent of the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    /// The first address.
    pub(crate) start: Address,
    /// The parent of the first message; `None` for a root.
    pub(crate) parent: Option<Address>,
}

/// A compaction: its range and key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    /// Its key in the storage. Of two compactions with the same range the greater key is the newer.
    pub(crate) key: i64,
    pub(crate) first: Address,
    pub(crate) last: Address,
}

/// The questions that a walk asks of a storage.
pub(crate) trait TreeSource {
    /// The storage's own error: the caller must still see whether a system call failed.
    type Error: From<Error>;

    /// Returns the run that holds the message at this address.
    fn run_of(&mut self, at: Address) -> Result<Run, Self::Error>;

    /// Returns the last compaction of the session that ends at or before this address. Of several that end there it is
    /// the one with the smallest start, of these the newest.
    fn span_ending_at_or_before(&mut self, at: Address) -> Result<Option<Span>, Self::Error>;
}

/// A part of a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlanPart {
    /// The messages of consecutive addresses, both ends included.
    Messages { first: Address, last: Address },
    /// A summary.
    Summary(Span),
}

/// A planned history, newest part first.
pub(crate) type Plan = Vec<PlanPart>;

/// The walk from a leaf to its root; yields the newest part first.
pub(crate) struct Walk<'a, S: ?Sized> {
    source: &'a mut S,
    /// The newest message that was not yielded yet.
    at: Option<Address>,
    spans: Spans,
}

/// The last compaction that ends at or before the current message.
enum Spans {
    /// There is none, or the walk is raw.
    None,
    /// Not looked up yet.
    Unknown,
    /// The last one; it may be on another branch.
    Next(Span),
}

impl<'a, S: TreeSource + ?Sized> Walk<'a, S> {
    /// Walks over the stored messages of the path to `leaf`.
    pub(crate) fn raw(source: &'a mut S, leaf: Option<Address>) -> Self {
        Self { source, at: leaf, spans: Spans::None }
    }

    /// Walks over the path to `leaf` with compactions applied.
    pub(crate) fn visible(source: &'a mut S, leaf: Option<Address>) -> Self {
        Self { source, at: leaf, spans: Spans::Unknown }
    }

    /// Returns the newest message that was not yielded yet.
    pub(crate) fn position(&self) -> Option<Address> {
        self.at
    }

    /// Returns the next older part.
    pub(crate) fn next(&mut self) -> Result<Option<PlanPart>, S::Error> {
        let Some(at) = self.at else { return Ok(None) };
        let span = self.span_before(at)?;
        if let Some(span) = span.filter(|span| span.last == at) {
            self.at = self.parent(span.first)?;
            return Ok(Some(PlanPart::Summary(span)));
        }
        let run = self.run(at)?;
        let first = match span {
            Some(span) if span.last >= run.start => {
                self.at = Some(span.last);
                span.last.after()
            }
            _ => {
                self.at = run.parent;
                run.start
            }
        };
        Ok(Some(PlanPart::Messages { first, last: at }))
    }

    /// Returns all remaining parts, newest first.
    pub(crate) fn plan(mut self) -> Result<Plan, S::Error> {
        let mut plan = Plan::new();
        while let Some(planned) = self.next()? {
            plan.push(planned);
        }
        Ok(plan)
    }

    /// Returns whether the address is on the path.
    pub(crate) fn reaches(mut self, address: Address) -> Result<bool, S::Error> {
        while let Some(planned) = self.next()? {
            if let PlanPart::Messages { first, last } = planned
                && first <= address
            {
                return Ok(address <= last);
            }
        }
        Ok(false)
    }

    fn parent(&mut self, address: Address) -> Result<Option<Address>, S::Error> {
        let run = self.run(address)?;
        Ok(if run.start == address { run.parent } else { Some(address.before()) })
    }

    fn run(&mut self, at: Address) -> Result<Run, S::Error> {
        let run = self.source.run_of(at)?;
        // A parent that is newer than its child would make the walk endless.
        if run.start > at || run.parent.is_some_and(|parent| parent >= run.start) {
            return Err(Error::Corrupt {
                what: format!(
                    "message {} of session {} has a newer parent",
                    run.start.n(),
                    at.session()
                ),
            }
            .into());
        }
        Ok(run)
    }

    /// Returns the last compaction that ends at or before `at`. Asks the storage only if the known one ends after `at`.
    fn span_before(&mut self, at: Address) -> Result<Option<Span>, S::Error> {
        let is_stale = match &self.spans {
            Spans::None => return Ok(None),
            Spans::Unknown => true,
            Spans::Next(span) => span.last > at,
        };
        if is_stale {
            self.spans = match self.source.span_ending_at_or_before(at)? {
                Some(span) if span.first > span.last => {
                    return Err(Error::Corrupt {
                        what: format!("compaction {} ends before it starts", span.key),
                    }
                    .into());
                }
                Some(span) => Spans::Next(span),
                None => Spans::None,
            };
        }
        Ok(match self.spans {
            Spans::Next(span) => Some(span),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Result;

    /// A tree drawn as text. Each word is a message and its parent, in order of append; `-` is no parent. `"a- ba cb
    /// da"` is the path a b c, and a branch d under a.
    struct Drawing {
        parents: Vec<Option<usize>>,
        spans: Vec<Span>,
    }

    fn at(letter: u8) -> Address {
        Address::new(1, u32::from(letter - b'a') + 1)
    }

    fn draw(tree: &str, spans: &str) -> Drawing {
        let parent = |node: &str| match node.as_bytes()[1] {
            b'-' => None,
            letter => Some(usize::from(letter - b'a')),
        };
        let span = |(key, ends): (usize, &str)| Span {
            key: key as i64,
            first: at(ends.as_bytes()[0]),
            last: at(ends.as_bytes()[3]),
        };
        Drawing {
            parents: tree.split(' ').map(parent).collect(),
            spans: spans.split_whitespace().enumerate().map(span).collect(),
        }
    }

    impl TreeSource for Drawing {
        type Error = Error;

        fn run_of(&mut self, at: Address) -> Result<Run> {
            let mut n = at.n() as usize - 1;
            while n > 0 && self.parents[n] == Some(n - 1) {
                n -= 1;
            }
            Ok(Run {
                start: Address::new(1, n as u32 + 1),
                parent: self.parents[n].map(|parent| Address::new(1, parent as u32 + 1)),
            })
        }

        fn span_ending_at_or_before(&mut self, at: Address) -> Result<Option<Span>> {
            let known = self.spans.iter().filter(|span| span.last <= at);
            let best = known.max_by_key(|o| (o.last, std::cmp::Reverse(o.first), o.key));
            Ok(best.copied())
        }
    }

    /// The history of a leaf, oldest first: a letter for a message, `[b..d]` for a summary.
    #[track_caller]
    fn view(tree: &str, spans: &str, leaf: u8) -> String {
        let mut drawing = draw(tree, spans);
        let plan = Walk::visible(&mut drawing, Some(at(leaf))).plan();
        let letter = |address: Address| char::from(b'a' + address.n() as u8 - 1);
        let mut items = Vec::new();
        for planned in plan.unwrap_or_else(|error| panic!("{error}")).iter().rev() {
            match *planned {
                PlanPart::Summary(o) => {
                    items.push(format!("[{}..{}]", letter(o.first), letter(o.last)))
                }
                PlanPart::Messages { first, last } => {
                    items.extend(
                        (first.n()..=last.n()).map(|n| letter(Address::new(1, n)).to_string()),
                    );
                }
            }
        }
        items.join(" ")
    }

    #[test]
    fn a_summary_replaces_its_range_on_the_paths_with_its_last_message() {
        let line = "a- ba cb dc ed";
        let fork = "a- ba cb da ed";
        for (tree, spans, leaf, shown) in [
            (line, "", b'e', "a b c d e"),
            (line, "b..d", b'e', "a [b..d] e"),
            (line, "b..d", b'd', "a [b..d]"),
            (line, "b..d", b'c', "a b c"),
            (line, "a..e", b'e', "[a..e]"),
            (line, "a..b d..e", b'e', "[a..b] c [d..e]"),
            (line, "b..c b..d", b'e', "a [b..d] e"),
            (line, "c..d b..d", b'e', "a [b..d] e"),
            (line, "b..d a..c", b'c', "[a..c]"),
            (line, "b..d a..c", b'e', "a [b..d] e"),
            (fork, "", b'e', "a d e"),
            (fork, "b..c", b'e', "a d e"),
            (fork, "b..c", b'c', "a [b..c]"),
            (fork, "a..d", b'e', "[a..d] e"),
            (fork, "a..a", b'c', "[a..a] b c"),
        ] {
            assert_eq!(view(tree, spans, leaf), shown, "{tree} with {spans} at {leaf}");
        }
    }

    #[test]
    fn a_path_reaches_only_its_own_messages() -> Result<()> {
        let mut fork = draw("a- ba cb da ed", "");
        for (leaf, message, is_held) in
            [(b'e', b'd', true), (b'e', b'b', false), (b'c', b'a', true), (b'c', b'd', false)]
        {
            assert_eq!(Walk::raw(&mut fork, Some(at(leaf))).reaches(at(message))?, is_held);
        }
        Ok(())
    }
}
