//! Given summaries, removed compactions, branch summaries and splits.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use talktree::{CompactionId, Error, Message, Result};

use super::{Figures, World, contents, marked, session_options};
use crate::common::model::{Item, Model, Node, Refusal, State};
use crate::model::op::Pick;

impl World {
    pub(super) fn compaction(&mut self, leaf: Option<Pick>, ends: (Pick, Pick)) -> Result<()> {
        let view = self.view(self.leaf(leaf));
        let item = |pick: Pick| view.get(usize::from(pick) % view.len().max(1));
        let (Some(a), Some(b)) = (item(ends.0), item(ends.1)) else { return Ok(()) };
        let (first_id, last_id) = (self.item_content(a).0, self.item_content(b).0);
        let model = &self.models[self.at];
        let first = model.start(a);
        let last = match b {
            Item::Node(at) => *at,
            Item::Compaction(compaction) => model.compactions[*compaction].last,
        };
        let expected = model.check_compaction(first, last);
        let compacted: Vec<Item> = match expected {
            Ok(()) => {
                let view = self.view(Some(last));
                view.into_iter().filter(|item| self.models[self.at].start(item) >= first).collect()
            }
            Err(_) => Vec::new(),
        };
        let before = self.tokens_of(&compacted);
        let name = self.new_name();
        let summary = marked(&name, 3);
        match (self.chat().add_compaction(summary.as_str(), &first_id, &last_id), expected) {
            (Ok(added), Ok(())) => {
                let id = added.id;
                assert_eq!(added.status, self.chat().compaction_status(&id)?);
                let made = self.chat().compaction(&id)?;
                let compactions = compacted.iter().filter_map(|item| match item {
                    Item::Compaction(_) => CompactionId::from_message(&self.item_content(item).0),
                    Item::Node(_) => None,
                });
                let nested: Vec<CompactionId> = compactions.collect();
                let figures = Figures {
                    before: if self.is_recounted { made.tokens_before } else { before },
                    after: self.count.of(&Message::assistant(summary.as_str())),
                    nested,
                    model: None,
                };
                self.add_compaction(&id, (first, last), &summary, figures);
            }
            (Err(Error::NotAncestor { .. }), Err(Refusal::NotAncestor))
            | (Err(Error::NothingVisible { .. }), Err(Refusal::Nothing))
            | (Err(Error::InsideSummary { .. }), Err(Refusal::Inside(_))) => {}
            (answer, expected) => panic!("{answer:?} where {expected:?} was expected"),
        }
        Ok(())
    }

    fn tokens_of(&self, items: &[Item]) -> u64 {
        let message = |item: &Item| match item {
            Item::Node(at) => self.to_message(&self.models[self.at].nodes[*at]),
            Item::Compaction(_) => Message::new("assistant", self.item_content(item).2),
        };
        items.iter().map(|item| self.count.of(&message(item))).sum()
    }

    /// Removes a compaction; the histories then equal those of the model without it.
    pub(super) fn remove_compaction(&mut self, pick: Pick) -> Result<()> {
        let count = self.model().compactions.len();
        if count == 0 {
            return Ok(());
        }
        let at = usize::from(pick) % count;
        let id = CompactionId::from(self.models[self.at].compactions[at].id.as_str());
        let below = contents(&self.chat().expand(&id)?);
        let before = contents(&self.chat().history()?);
        self.chat().remove_compaction(&id)?;
        let compaction = self.model().compactions.remove(at);
        let after = contents(&self.chat().history()?);
        // If no other compaction crosses its start, its contents become visible in its position.
        if let Some(place) = before.iter().position(|item| item.0 == id.as_message())
            && !self.models[self.at].compactions.iter().any(|other| {
                other.first < compaction.first
                    && (compaction.first..compaction.last).contains(&other.last)
            })
        {
            let expected = [&before[..place], &below, &before[place + 1..]].concat();
            assert_eq!(after, expected, "the contents of the removed compaction are visible again");
        }
        Ok(())
    }

    pub(super) fn branch_summary(&mut self, to: Pick, by_summarizer: bool) -> Result<()> {
        let Some(to) = self.pick(to) else { return Ok(()) };
        let model = &self.models[self.at];
        let from = model.nearest(model.head);
        let goal = model.path(Some(to));
        let is_shared = |item: &Item| match item {
            Item::Node(at) => goal.contains(at),
            Item::Compaction(compaction) => {
                let compaction = &model.compactions[*compaction];
                model
                    .under(compaction.first, compaction.last)
                    .last()
                    .is_some_and(|last| goal.contains(last))
            }
        };
        let view = self.view(from);
        let left: Vec<&Item> = view.iter().skip_while(|item| is_shared(item)).collect();
        let is_left = !left.is_empty() && from.is_some_and(|from| !goal.contains(&from));
        let name = self.new_name();
        let text = marked(&name, 2);
        let to_id = self.id(to);
        let stored = if by_summarizer {
            self.summarizer.words.store(4, Ordering::SeqCst);
            self.chat().checkout_summarized(&to_id)?
        } else {
            let plan = self.chat().plan_branch_summary(&to_id, &session_options())?;
            if let Some(plan) = &plan {
                assert_eq!(plan.messages(), left.len());
                assert_eq!((plan.from(), plan.to()), (&self.id(from.unwrap()), &to_id));
                let tokens = self.chat().at(plan.from()).history()?;
                assert_eq!(plan.tokens(), self.count.all(&tokens[tokens.len() - left.len()..]));
            }
            match plan {
                Some(plan) => Some(self.chat().checkout_with_summary(plan, text.as_str())?),
                None => self.chat().checkout(&to_id).map(|()| None)?,
            }
        };
        assert_eq!(stored.is_some(), is_left);
        match stored {
            Some(stored) => {
                let message = self.chat().message(&stored.id)?.unwrap();
                assert_eq!(message.parent, Some(to_id));
                let node = Node {
                    id: stored.id.to_string(),
                    parent: None,
                    role: "assistant",
                    text: message.text(),
                    is_hidden: false,
                    state: State::Living,
                };
                self.model().append(Some(to), vec![node]);
            }
            None => self.model().move_head(Some(to)),
        }
        Ok(())
    }

    pub(super) fn split(&mut self) -> Result<()> {
        let name = self.new_name();
        let text = marked(&name, 4);
        let id = self.models.len().to_string();
        let was_split = self.chat().info()?.is_some_and(|info| info.end_reason.is_some());
        match self.chat().compact_and_split_as(&id.as_str().into(), text.as_str()) {
            Ok(child) => {
                assert!(self.model().exists && !was_split);
                let history = child.history()?;
                assert_eq!(child.visible_tokens()?, self.count.all(&history));
                let node = Node {
                    id: history[0].id.to_string(),
                    parent: None,
                    role: "assistant",
                    text,
                    is_hidden: false,
                    state: State::Living,
                };
                let mut model = Model::new();
                model.append(None, vec![node]);
                self.add_model(model, HashMap::new());
            }
            Err(Error::UnknownSession { .. }) => assert!(!self.model().exists),
            Err(Error::InvalidValue { .. }) => assert!(was_split),
            Err(error) => return Err(error),
        }
        Ok(())
    }
}
