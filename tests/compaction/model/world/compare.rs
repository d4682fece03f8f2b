//! Compares everything that can be read with the model.

use std::collections::BTreeSet;

use talktree::{CompactionId, CompactionStatus, Message, Result, Session};

use super::{Content, Figures, World, contents, session_options};
use crate::common::model::{Item, State};
use crate::model::plan::check_usage;

impl World {
    /// Compares the reads of the current session.
    pub(crate) fn compare(&self) -> Result<()> {
        let (chat, model) = (self.chat(), &self.models[self.at]);
        let living = |at: &usize| model.nodes[*at].state == State::Living;
        let path = model.path(model.head).into_iter().filter(living);
        let raw: Vec<Content> = path.map(|at| self.node_content(at)).collect();
        assert_eq!(contents(&chat.raw_history()?), raw);
        let history = chat.history()?;
        let view: Vec<Content> =
            self.view(model.head).iter().map(|item| self.item_content(item)).collect();
        assert_eq!(contents(&history), view);
        let tokens = self.count.all(&history);
        assert_eq!(chat.visible_tokens()?, tokens);
        check_usage(&chat.window_usage()?, &history, &session_options(), self.count);
        self.compare_compactions()
    }

    fn compare_compactions(&self) -> Result<()> {
        let (chat, model) = (self.chat(), &self.models[self.at]);
        let all = chat.compactions()?;
        assert_eq!(all.len(), model.compactions.len());
        for (made, compaction) in all.iter().zip(&model.compactions) {
            assert_eq!(
                (made.id.as_str(), made.first.as_str(), made.last.as_str(), made.count),
                (
                    compaction.id.as_str(),
                    compaction.first_id.as_str(),
                    compaction.last_id.as_str(),
                    compaction.count
                )
            );
            assert_eq!(made.summary, compaction.summary);
            let figures = Figures {
                before: made.tokens_before,
                after: made.tokens_after,
                nested: made.nested.clone(),
                model: made.model.clone(),
            };
            assert_eq!(figures, self.figures[self.at][&compaction.id]);
        }
        let shown: BTreeSet<usize> = model
            .items(model.head)
            .iter()
            .filter_map(|item| match item {
                Item::Compaction(compaction) => Some(*compaction),
                Item::Node(_) => None,
            })
            .collect();
        let path = model.path(model.head);
        for (at, compaction) in model.compactions.iter().enumerate() {
            let id = CompactionId::from(compaction.id.as_str());
            let under = |shown: &&usize| {
                let shown = &model.compactions[**shown];
                shown.first <= compaction.last && compaction.last <= shown.last
            };
            let status = match shown.iter().find(under) {
                _ if !path.contains(&compaction.last) => CompactionStatus::OffPath,
                Some(shown) if *shown != at => {
                    CompactionStatus::Under { id: model.compactions[*shown].id.as_str().into() }
                }
                _ => CompactionStatus::Shown,
            };
            assert_eq!(chat.compaction_status(&id)?, status);
        }
        Ok(())
    }

    /// Compares every session at every message.
    pub(crate) fn compare_all(&mut self) -> Result<()> {
        let at = self.at;
        for session in 0..self.models.len() {
            self.switch(session)?;
            self.compare()?;
            for at in self.models[session].living().collect::<Vec<_>>() {
                let view: Vec<Content> =
                    self.view(Some(at)).iter().map(|item| self.item_content(item)).collect();
                let history = self.chat().at(&self.id(at)).history()?;
                assert_eq!(contents(&history), view);
            }
            self.compare_expansions()?;
        }
        self.switch(at)
    }

    /// Verifies the file.
    pub(crate) fn verify(&self) -> Result<()> {
        assert_eq!(self.scratch.store.verify(|_| {})?.damages, []);
        Ok(())
    }

    /// Checks `expand`: one level at a time, it ends at the stored messages.
    fn compare_expansions(&self) -> Result<()> {
        let (chat, model) = (self.chat(), &self.models[self.at]);
        for (at, compaction) in model.compactions.iter().enumerate() {
            let id = CompactionId::from(compaction.id.as_str());
            let below = model.below(at);
            let below: Vec<Content> = below
                .iter()
                .filter(|item| model.is_shown(item))
                .map(|item| self.item_content(item))
                .collect();
            assert_eq!(contents(&chat.expand(&id)?), below);
            let raw = chat.expand_raw(&id)?;
            let under: Vec<Content> = model
                .under(compaction.first, compaction.last)
                .into_iter()
                .map(|at| self.node_content(at))
                .collect();
            assert_eq!(contents(&raw), under);
            let seen: Vec<Message> = raw.into_iter().filter(|message| !message.is_hidden).collect();
            assert_eq!(contents(&expand_all(chat, &id, model.compactions.len())?), contents(&seen));
        }
        Ok(())
    }
}

/// Expands a compaction and every compaction inside it; returns the messages.
fn expand_all(chat: &Session, id: &CompactionId, levels: usize) -> Result<Vec<Message>> {
    let mut messages = Vec::new();
    for item in chat.expand(id)? {
        match CompactionId::from_message(&item.id) {
            Some(inner) => {
                assert!(levels > 0, "the expansion does not end");
                messages.extend(expand_all(chat, &inner, levels - 1)?);
            }
            None => messages.push(item),
        }
    }
    Ok(messages)
}
