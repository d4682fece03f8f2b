//! Plans and what becomes of them: right, or refused for a reason that is true.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;

use talktree::{
    Compacted, CompactionId, CompactionOptions, CompactionOutcome, CompactionPlan,
    CompactionStatus, Error, Message, MessageId, Planned, Result, Stale, SummaryRefused,
};

use super::{Figures, Said, World, all_said, own_options, summary_text};
use crate::common::model::{Item, Span, State};
use crate::count::Count;
use crate::op::Pick;
use crate::plan::{check_plan, stretch_of};

/// A plan, and what the model knew when it was made.
pub(super) struct Kept {
    plan: CompactionPlan,
    leaf: usize,
    ends: (usize, usize),
    seen: Vec<Said>,
    /// The summaries there were.
    spans: BTreeSet<String>,
    count: Count,
}

impl World {
    pub(super) fn plan(&mut self, leaf: Option<Pick>, options: &CompactionOptions) -> Result<()> {
        let (view, plan, leaf) = match leaf.and_then(|pick| self.pick(pick)) {
            Some(at) => {
                let id = self.id(at);
                let plan = self.chat().at(&id).plan_compaction(options)?;
                (self.chat().at(&id).history()?, plan, Some(at))
            }
            None => {
                let head = self.models[self.at].head;
                (self.chat().history()?, self.chat().plan_compaction(options)?, head)
            }
        };
        check_plan(&view, &plan, options, self.count);
        let (Planned::Compact(plan), Some(leaf)) = (plan, leaf) else { return Ok(()) };
        let named = self.models[self.at].nearest(Some(leaf)).map(|at| self.id(at));
        assert_eq!(Some(plan.leaf()), named.as_ref());
        let kept = self.keep(plan, leaf, &view);
        self.plans[self.at].push(kept);
        Ok(())
    }

    pub(super) fn keep(&self, plan: CompactionPlan, leaf: usize, view: &[Message]) -> Kept {
        let stretch = stretch_of(view, &plan);
        let items = self.view(Some(leaf));
        let model = &self.models[self.at];
        let last = match items[stretch.end - 1] {
            Item::Node(at) => at,
            Item::Span(span) => model.spans[span].last,
        };
        let ends = (model.start(&items[stretch.start]), last);
        let spans = model.spans.iter().map(|span| span.id.clone()).collect();
        let leaf = model.nearest(Some(leaf)).unwrap_or(leaf);
        Kept { plan, leaf, ends, seen: all_said(&view[stretch]), spans, count: self.count }
    }

    pub(super) fn commit(&mut self, pick: Option<Pick>, words: u8) -> Result<()> {
        let count = self.plans[self.at].len();
        if count == 0 {
            return Ok(());
        }
        let pick = pick.map_or(count - 1, |pick| usize::from(pick) % count);
        let name = self.new_name();
        let summary = talktree::Summary::new(summary_text(&name, words)).by("voice");
        let plan = self.plans[self.at][pick].plan.clone();
        let before = self.every_view()?;
        let raw = self.every_raw()?;
        let answer = self.chat().commit(plan, summary.clone());
        assert_eq!(self.every_raw()?, raw, "a summary changes nothing that is stored");
        match answer {
            Ok(compacted) => {
                self.committed(pick, summary.text(), Some("voice"), &compacted)?;
                self.no_view_grew(&before, self.plans[self.at][pick].count)
            }
            Err(refused) => {
                self.check_refusal(pick, summary.text(), &refused);
                assert_eq!(self.every_view()?, before, "what is refused changes nothing");
                Ok(())
            }
        }
    }

    /// Takes over a plan that was committed.
    pub(super) fn committed(
        &mut self,
        pick: usize,
        summary: &str,
        by: Option<&str>,
        compacted: &Compacted,
    ) -> Result<()> {
        let kept = &self.plans[self.at][pick];
        assert_eq!(self.seen_now(kept), Ok(kept.seen.clone()), "only what stands is committed");
        let (first, last) = kept.ends;
        let model = &self.models[self.at];
        assert_eq!(model.check_compaction(first, last), Ok(()));
        let after = self.count.of(&Message::assistant(summary));
        assert_eq!((compacted.tokens_before, compacted.tokens_after), (kept.plan.tokens(), after));
        assert!(after < kept.plan.tokens());
        assert_eq!(compacted.messages, kept.plan.messages());
        let figures = Figures {
            before: kept.plan.tokens(),
            after,
            nested: kept.plan.summaries().to_vec(),
            model: by.map(str::to_owned),
        };
        self.lay(&compacted.id, (first, last), summary, figures);
        let status = self.chat().compaction_status(&compacted.id)?;
        assert_eq!(compacted.is_shown, status == CompactionStatus::Shown);
        Ok(())
    }

    /// Adds a compaction to the model.
    pub(super) fn lay(
        &mut self,
        id: &CompactionId,
        ends: (usize, usize),
        summary: &str,
        figures: Figures,
    ) {
        let (first, last) = ends;
        self.figures[self.at].insert(id.to_string(), figures);
        let model = &mut self.models[self.at];
        // An end that was deleted is called what the summary there says it is.
        let name = |at: usize, of: fn(&Span) -> (usize, &String)| {
            let spans = model.spans.iter().map(of);
            let compacted = spans.filter(|(end, _)| *end == at).map(|(_, id)| id.clone()).next();
            match model.nodes[at].state {
                State::Living => model.nodes[at].id.clone(),
                _ => compacted.unwrap_or_else(|| panic!("nothing ends at a tombstone")),
            }
        };
        let span = Span {
            id: id.to_string(),
            first,
            last,
            first_id: name(first, |span| (span.first, &span.first_id)),
            last_id: name(last, |span| (span.last, &span.last_id)),
            count: model.under(first, last).len() as u64,
            summary: summary.to_owned(),
        };
        model.spans.push(span);
    }

    /// What a model sees now of the stretch of a plan: on the path it was made for, and on to the head if that has gone on
    /// from there. `Err` if its items do not begin and end there.
    pub(super) fn seen_now(&self, kept: &Kept) -> std::result::Result<Vec<Said>, ()> {
        let model = &self.models[self.at];
        let (first, last) = kept.ends;
        let holds = |leaf: Option<usize>, at: usize| model.path(leaf).contains(&at);
        // A plan on a deleted message names the nearest living one above, which its stretch may reach beyond.
        let is_leaf_there = model.nodes[kept.leaf].state == State::Living && kept.leaf >= last;
        let leaf = match () {
            () if model.nodes[last].state == State::Removed => return Err(()),
            () if is_leaf_there && holds(model.head, kept.leaf) => model.head,
            () if is_leaf_there => Some(kept.leaf),
            () if holds(model.head, last) => model.head,
            () => Some(last),
        };
        let end = |item: &Item| match item {
            Item::Node(at) => *at,
            Item::Span(span) => model.spans[*span].last,
        };
        let mut seen = Vec::new();
        for item in self.view(leaf) {
            let (start, end) = (model.start(&item), end(&item));
            if end < first || start > last {
                continue;
            }
            if start < first || end > last {
                return Err(());
            }
            seen.push(self.item_said(&item));
        }
        Ok(seen)
    }

    /// A refusal says something that is true, and what stands is not refused.
    pub(super) fn check_refusal(&self, pick: usize, summary: &str, refused: &Error) {
        let kept = &self.plans[self.at][pick];
        let tokens = self.count.of(&Message::assistant(summary));
        let is_blank = summary.starts_with(' ');
        let model = &self.models[self.at];
        let why = match refused {
            Error::SummaryRefused { why: SummaryRefused::Blank } => return assert!(is_blank),
            Error::SummaryRefused { why: SummaryRefused::NotShorter { tokens: t, replaced } } => {
                assert_eq!((*t, *replaced), (tokens, kept.plan.tokens()));
                return assert!(tokens >= *replaced);
            }
            Error::Stale { why } => why,
            other => panic!("refused because {other}"),
        };
        assert!(!is_blank && tokens < kept.plan.tokens());
        // By ids alone a small storage cannot ask what shows on a deleted message.
        let is_end_deleted = model.nodes[kept.ends.1].state != State::Living;
        let is_out_of_sight = self.is_small() && is_end_deleted;
        let stands = self.seen_now(kept) == Ok(kept.seen.clone());
        assert!(!stands || is_out_of_sight, "refused, and stands: {why}");
        let seen: BTreeMap<&MessageId, &Said> = kept.seen.iter().map(|it| (&it.0, it)).collect();
        match why {
            Stale::Deleted { id } => {
                assert!(seen.contains_key(id) || is_out_of_sight, "{why}");
                assert_eq!(model.find(id.as_str()), None, "{why}");
            }
            Stale::Updated { id } => {
                let at = model.find(id.as_str()).unwrap_or_else(|| panic!("{why}"));
                assert_ne!(self.node_said(at), *seen[id], "{why}");
            }
            Stale::Compacted { by } => {
                assert!(!seen.contains_key(&by.as_message()), "{why}");
                let span = model.spans.iter().find(|span| span.id == by.as_str());
                let span = span.unwrap_or_else(|| panic!("{why}"));
                let path = model.path(Some(kept.ends.1.max(span.last)));
                let is_over = |at: &usize| kept.ends.0 <= *at && *at <= kept.ends.1;
                assert!(path.iter().any(|at| is_over(at) && span.first <= *at), "{why}");
                // One that there was may have come up where a summary that was not part of it went.
                let is_there =
                    |id: &CompactionId| model.spans.iter().any(|it| it.id == id.as_str());
                let is_new = !kept.spans.contains(by.as_str());
                assert!(is_new || kept.plan.summaries().iter().all(is_there), "{why}");
            }
            Stale::CompactionRemoved { id } => {
                assert!(seen.contains_key(&id.as_message()), "{why}");
                assert!(model.spans.iter().all(|span| span.id != id.as_str()), "{why}");
            }
            _ => panic!("{why}"),
        }
    }

    pub(super) fn compact(&mut self, leaf: Option<Pick>) -> Result<()> {
        let words = (self.number % 30) as u8;
        self.voice.words.store(words, Ordering::SeqCst);
        let asked = self.voice.count.load(Ordering::SeqCst);
        let summary = summary_text(&format!("by itself {asked}"), words);
        let plans = self.plans[self.at].len();
        let target = leaf.and_then(|pick| self.pick(pick));
        self.plan(target.and(leaf), &own_options())?;
        let before = self.every_view()?;
        let answer = match target {
            Some(at) => self.chat().at(&self.id(at)).compact(),
            None => self.chat().compact(),
        };
        let has_plan = self.plans[self.at].len() > plans;
        let is_asked = self.voice.count.load(Ordering::SeqCst) > asked;
        assert_eq!(is_asked, has_plan);
        match answer {
            Ok(CompactionOutcome::Compacted(compacted)) => {
                self.committed(plans, &summary, None, &compacted)?;
                self.no_view_grew(&before, self.count)
            }
            Ok(CompactionOutcome::Nothing(_)) => {
                assert!(!has_plan);
                Ok(())
            }
            Err(refused) => {
                self.check_refusal(plans, &summary, &refused);
                Ok(())
            }
        }
    }
}
