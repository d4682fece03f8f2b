//! The walk back from a leaf to its root.
//!
//! One walk serves every read of a path: histories, streams, pages, lengths, membership. It asks a
//! [`TreeSource`] two questions and reads no message. The *raw* walk yields the path's runs; the
//! *visible* one puts a summary wherever the latest compaction ends on what is left of the path,
//! and goes on before that compaction's first message, so what is hidden is never touched.

use super::Address;
use crate::error::{Error, Result};

/// A stretch of consecutive addresses in which each message hangs from the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    /// The address the run starts at.
    pub(crate) start: Address,
    /// What the start hangs from; `None` for a root.
    pub(crate) parent: Option<Address>,
}

/// A compaction, as the walk sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    /// What the storage knows it by; of two with the same ends the greater is the newer.
    pub(crate) key: i64,
    pub(crate) first: Address,
    pub(crate) last: Address,
}

/// What the walk asks of a storage.
pub(crate) trait TreeSource {
    /// Returns the run that holds the message at this address.
    fn run_of(&mut self, at: Address) -> Result<Run>;

    /// Returns the compaction of the same session that ends at this address or before: the one
    /// with the greatest end, of these the one with the smallest start, of these the newest.
    fn span_ending_at_or_before(&mut self, at: Address) -> Result<Option<Span>>;
}

/// One piece of a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stretch {
    /// Messages at consecutive addresses, oldest first.
    Messages { first: Address, last: Address },
    /// A summary.
    Summary(Span),
}

/// A planned history: its stretches, newest first.
pub(crate) type Plan = Vec<Stretch>;

/// The walk from a leaf to its root; yields stretches newest first.
pub(crate) struct Walk<'a, S: ?Sized> {
    source: &'a mut S,
    /// Where the walk stands: the newest message not yet yielded.
    at: Option<Address>,
    spans: Spans,
}

/// What is known of the compactions that end at or before the present place.
enum Spans {
    /// A raw walk, or a session in which none is left.
    None,
    /// Not asked yet.
    Unknown,
    /// The latest one, which may lie on another branch.
    Next(Span),
}

impl<'a, S: TreeSource + ?Sized> Walk<'a, S> {
    /// Returns the walk over the stored messages of the path to `leaf`.
    pub(crate) fn raw(source: &'a mut S, leaf: Option<Address>) -> Self {
        Self { source, at: leaf, spans: Spans::None }
    }

    /// Returns the walk over the path to `leaf` with compactions applied.
    pub(crate) fn visible(source: &'a mut S, leaf: Option<Address>) -> Self {
        Self { source, at: leaf, spans: Spans::Unknown }
    }

    /// Returns the newest message that was not yielded yet.
    pub(crate) fn position(&self) -> Option<Address> {
        self.at
    }

    /// Returns the next older stretch.
    pub(crate) fn next(&mut self) -> Result<Option<Stretch>> {
        let Some(at) = self.at else { return Ok(None) };
        let span = self.span_before(at)?;
        if let Some(span) = span.filter(|span| span.last == at) {
            self.at = self.parent(span.first)?;
            return Ok(Some(Stretch::Summary(span)));
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
        Ok(Some(Stretch::Messages { first, last: at }))
    }

    /// Returns the whole of what is left, newest first.
    pub(crate) fn plan(mut self) -> Result<Plan> {
        let mut plan = Plan::new();
        while let Some(stretch) = self.next()? {
            plan.push(stretch);
        }
        Ok(plan)
    }

    /// Returns whether the path holds the address.
    pub(crate) fn reaches(mut self, address: Address) -> Result<bool> {
        while let Some(stretch) = self.next()? {
            if let Stretch::Messages { first, last } = stretch
                && first <= address
            {
                return Ok(address <= last);
            }
        }
        Ok(false)
    }

    fn parent(&mut self, address: Address) -> Result<Option<Address>> {
        let run = self.run(address)?;
        Ok(if run.start == address { run.parent } else { Some(address.before()) })
    }

    fn run(&mut self, at: Address) -> Result<Run> {
        let run = self.source.run_of(at)?;
        // A parent that is not older would send the walk in circles.
        if run.start > at || run.parent.is_some_and(|parent| parent >= run.start) {
            return Err(Error::Corrupt {
                what: format!(
                    "message {} of session {} hangs from a newer one",
                    run.start.n(),
                    at.session()
                ),
            });
        }
        Ok(run)
    }

    /// Returns the latest compaction that ends at `at` or before, asking only when the one known
    /// ends after it.
    fn span_before(&mut self, at: Address) -> Result<Option<Span>> {
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
                    });
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

    /// A tree drawn as text: a letter a message, in order of append, each with its parent; `-` is
    /// none. `"a- ba cb da"` is the path a b c and a branch d under a.
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

    /// The view at a leaf, oldest first: letters for messages, `[b..d]` for a summary.
    #[track_caller]
    fn view(tree: &str, spans: &str, leaf: u8) -> String {
        let mut drawing = draw(tree, spans);
        let plan = Walk::visible(&mut drawing, Some(at(leaf))).plan();
        let letter = |address: Address| char::from(b'a' + address.n() as u8 - 1);
        let mut items = Vec::new();
        for stretch in plan.unwrap_or_else(|error| panic!("{error}")).iter().rev() {
            match *stretch {
                Stretch::Summary(o) => {
                    items.push(format!("[{}..{}]", letter(o.first), letter(o.last)))
                }
                Stretch::Messages { first, last } => {
                    items.extend(
                        (first.n()..=last.n()).map(|n| letter(Address::new(1, n)).to_string()),
                    );
                }
            }
        }
        items.join(" ")
    }

    #[test]
    fn a_summary_stands_for_its_stretch_on_the_paths_that_hold_its_end() {
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
    fn a_path_reaches_its_own_messages_only() -> Result<()> {
        let mut fork = draw("a- ba cb da ed", "");
        for (leaf, message, is_held) in
            [(b'e', b'd', true), (b'e', b'b', false), (b'c', b'a', true), (b'c', b'd', false)]
        {
            assert_eq!(Walk::raw(&mut fork, Some(at(leaf))).reaches(at(message))?, is_held);
        }
        Ok(())
    }
}
