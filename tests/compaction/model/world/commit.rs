//! Plans and their commits: a commit must do what the model does, or be refused for a true reason.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;

use talktree::{
    Compacted, CompactionId, CompactionOptions, CompactionPlan, Error, Message, MessageId, Result,
    Stale, SummaryRefused,
};

use super::{Content, Figures, World, contents, session_options, summary_text};
use crate::common::model::{Compaction, Item, State};
use crate::model::count::Count;
use crate::model::op::Pick;
use crate::model::plan::{check_plan, range_of};

/// A plan, and what the model knew when it was made.
pub(super) struct KeptPlan {
    plan: CompactionPlan,
    leaf: usize,
    ends: (usize, usize),
    seen: Vec<Content>,
    /// The ids of all compactions at that time.
    compactions: BTreeSet<String>,
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
        let (Ok(plan), Some(leaf)) = (plan, leaf) else { return Ok(()) };
        let named = self.models[self.at].nearest(Some(leaf)).map(|at| self.id(at));
        assert_eq!(Some(plan.leaf()), named.as_ref());
        let kept = self.keep(plan, leaf, &view);
        self.plans[self.at].push(kept);
        Ok(())
    }

    pub(super) fn keep(&self, plan: CompactionPlan, leaf: usize, view: &[Message]) -> KeptPlan {
        let range = range_of(view, &plan);
        let items = self.view(Some(leaf));
        let model = &self.models[self.at];
        let last = match items[range.end - 1] {
            Item::Node(at) => at,
            Item::Compaction(compaction) => model.compactions[compaction].last,
        };
        let ends = (model.start(&items[range.start]), last);
        let compactions =
            model.compactions.iter().map(|compaction| compaction.id.clone()).collect();
        let leaf = model.nearest(Some(leaf)).unwrap_or(leaf);
        KeptPlan { plan, leaf, ends, seen: contents(&view[range]), compactions, count: self.count }
    }

    pub(super) fn commit(&mut self, pick: Option<Pick>, words: u8) -> Result<()> {
        let count = self.plans[self.at].len();
        if count == 0 {
            return Ok(());
        }
        let pick = pick.map_or(count - 1, |pick| usize::from(pick) % count);
        let name = self.new_name();
        let summary = talktree::Summary::new(summary_text(&name, words)).by("summarizer");
        let plan = self.plans[self.at][pick].plan.clone();
        let before = self.every_view()?;
        let raw = self.every_raw()?;
        let answer = self.chat().commit(plan, summary.clone());
        assert_eq!(self.every_raw()?, raw, "a compaction changes nothing that is stored");
        match answer {
            Ok(compacted) => {
                self.committed(pick, summary.text(), Some("summarizer"), &compacted)?;
                self.no_view_grew(&before, self.plans[self.at][pick].count)
            }
            Err(refused) => {
                self.check_refusal(pick, summary.text(), &refused);
                assert_eq!(self.every_view()?, before, "a refused commit changes nothing");
                Ok(())
            }
        }
    }

    /// Checks a committed plan and adds its compaction to the model.
    pub(super) fn committed(
        &mut self,
        pick: usize,
        summary: &str,
        by: Option<&str>,
        compacted: &Compacted,
    ) -> Result<()> {
        let kept = &self.plans[self.at][pick];
        assert_eq!(
            self.seen_now(kept),
            Ok(kept.seen.clone()),
            "only an unchanged range is committed"
        );
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
        self.add_compaction(&compacted.id, (first, last), summary, figures);
        let status = self.chat().compaction_status(&compacted.id)?;
        assert_eq!(compacted.status, status);
        Ok(())
    }

    /// Adds a compaction to the model.
    pub(super) fn add_compaction(
        &mut self,
        id: &CompactionId,
        ends: (usize, usize),
        summary: &str,
        figures: Figures,
    ) {
        let (first, last) = ends;
        self.figures[self.at].insert(id.to_string(), figures);
        let model = &mut self.models[self.at];
        // If an end was deleted, its id is the one that a compaction with the same end has stored.
        let name = |at: usize, of: fn(&Compaction) -> (usize, &String)| {
            let compactions = model.compactions.iter().map(of);
            let compacted =
                compactions.filter(|(end, _)| *end == at).map(|(_, id)| id.clone()).next();
            match model.nodes[at].state {
                State::Living => model.nodes[at].id.clone(),
                _ => compacted.unwrap_or_else(|| panic!("nothing ends at a tombstone")),
            }
        };
        let compaction = Compaction {
            id: id.to_string(),
            first,
            last,
            first_id: name(first, |compaction| (compaction.first, &compaction.first_id)),
            last_id: name(last, |compaction| (compaction.last, &compaction.last_id)),
            count: model.under(first, last).len() as u64,
            summary: summary.to_owned(),
        };
        model.compactions.push(compaction);
    }

    /// Returns what a model sees of a plan's range now: on the path of the plan, or on the head's path if it continues that
    /// path. `Err` if the range does not begin and end between items.
    pub(super) fn seen_now(&self, kept: &KeptPlan) -> std::result::Result<Vec<Content>, ()> {
        let model = &self.models[self.at];
        let (first, last) = kept.ends;
        let holds = |leaf: Option<usize>, at: usize| model.path(leaf).contains(&at);
        // The leaf of a plan at a deleted message is its nearest living ancestor, which may be before the range's end.
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
            Item::Compaction(compaction) => model.compactions[*compaction].last,
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
            seen.push(self.item_content(&item));
        }
        Ok(seen)
    }

    /// Checks that the reason of a refusal is true, and that the range has changed.
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
        let is_unchanged = self.seen_now(kept) == Ok(kept.seen.clone());
        assert!(!is_unchanged, "refused although the range is unchanged: {why}");
        let seen: BTreeMap<&MessageId, &Content> = kept.seen.iter().map(|it| (&it.0, it)).collect();
        match why {
            Stale::Deleted { id } => {
                assert!(seen.contains_key(id), "{why}");
                assert_eq!(model.find(id.as_str()), None, "{why}");
            }
            Stale::Updated { id } => {
                let at = model.find(id.as_str()).unwrap_or_else(|| panic!("{why}"));
                assert_ne!(self.node_content(at), *seen[id], "{why}");
            }
            Stale::Compacted { by } => {
                assert!(!seen.contains_key(&by.as_message()), "{why}");
                let compaction =
                    model.compactions.iter().find(|compaction| compaction.id == by.as_str());
                let compaction = compaction.unwrap_or_else(|| panic!("{why}"));
                let path = model.path(Some(kept.ends.1.max(compaction.last)));
                let is_over = |at: &usize| kept.ends.0 <= *at && *at <= kept.ends.1;
                assert!(path.iter().any(|at| is_over(at) && compaction.first <= *at), "{why}");
                // An older compaction may have become visible where a newer one was removed.
                let is_there =
                    |id: &CompactionId| model.compactions.iter().any(|it| it.id == id.as_str());
                let is_new = !kept.compactions.contains(by.as_str());
                assert!(is_new || kept.plan.summaries().iter().all(is_there), "{why}");
            }
            Stale::CompactionRemoved { id } => {
                assert!(seen.contains_key(&id.as_message()), "{why}");
                assert!(
                    model.compactions.iter().all(|compaction| compaction.id != id.as_str()),
                    "{why}"
                );
            }
            _ => panic!("{why}"),
        }
    }

    pub(super) fn compact(&mut self, leaf: Option<Pick>) -> Result<()> {
        let words = (self.number % 30) as u8;
        self.summarizer.words.store(words, Ordering::SeqCst);
        let asked = self.summarizer.count.load(Ordering::SeqCst);
        let summary = summary_text(&format!("automatic {asked}"), words);
        let plans = self.plans[self.at].len();
        let target = leaf.and_then(|pick| self.pick(pick));
        self.plan(target.and(leaf), &session_options())?;
        let before = self.every_view()?;
        let answer = match target {
            Some(at) => self.chat().at(&self.id(at)).compact(),
            None => self.chat().compact(),
        };
        let has_plan = self.plans[self.at].len() > plans;
        let is_asked = self.summarizer.count.load(Ordering::SeqCst) > asked;
        assert_eq!(is_asked, has_plan);
        match answer {
            Ok(Ok(compacted)) => {
                self.committed(plans, &summary, None, &compacted)?;
                self.no_view_grew(&before, self.count)
            }
            Ok(Err(_)) => {
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
