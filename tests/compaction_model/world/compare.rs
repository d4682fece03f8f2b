//! Comparing all that is read with the model.

use std::collections::BTreeSet;

use talktree::model::{
    Provider, sanitize, to_anthropic, to_openai_chat, to_openai_responses, validate_for,
};
use talktree::{CompactionId, CompactionStatus, Message, Result, Session};

use super::{Figures, Home, Said, World, all_said, own_options};
use crate::common::model::{Item, Span, State};
use crate::plan::check_usage;

impl World {
    /// Compares what is read most.
    pub(crate) fn compare(&self) -> Result<()> {
        let (chat, model) = (self.chat(), &self.models[self.at]);
        let living = |at: &usize| model.nodes[*at].state == State::Living;
        let path = model.path(model.head).into_iter().filter(living);
        let raw: Vec<Said> = path.map(|at| self.node_said(at)).collect();
        assert_eq!(all_said(&chat.raw_history()?), raw);
        let history = chat.history()?;
        let view: Vec<Said> =
            self.view(model.head).iter().map(|item| self.item_said(item)).collect();
        assert_eq!(all_said(&history), view);
        let tokens = self.count.all(&history);
        assert_eq!(chat.visible_tokens()?, tokens);
        check_usage(&chat.window_usage()?, &history, &own_options(), self.count);
        self.compare_compactions()
    }

    fn compare_compactions(&self) -> Result<()> {
        let (chat, model) = (self.chat(), &self.models[self.at]);
        let all = chat.compactions()?;
        assert_eq!(all.len(), model.spans.len());
        for (made, span) in all.iter().zip(&model.spans) {
            assert_eq!(
                (made.id.as_str(), made.first.as_str(), made.last.as_str(), made.count),
                (span.id.as_str(), span.first_id.as_str(), span.last_id.as_str(), span.count)
            );
            assert_eq!(made.summary, span.summary);
            let figures = Figures {
                before: made.tokens_before,
                after: made.tokens_after,
                nested: made.nested.clone(),
                model: made.model.clone(),
            };
            assert_eq!(figures, self.figures[self.at][&span.id]);
        }
        let shown: BTreeSet<usize> = model
            .items(model.head)
            .iter()
            .filter_map(|item| match item {
                Item::Span(span) => Some(*span),
                Item::Node(_) => None,
            })
            .collect();
        let path = model.path(model.head);
        for (at, span) in model.spans.iter().enumerate() {
            let id = CompactionId::from(span.id.as_str());
            let under = |shown: &&usize| {
                let shown = &model.spans[**shown];
                shown.first <= span.last && span.last <= shown.last
            };
            let status = match shown.iter().find(under) {
                _ if self.is_small() && !self.is_last_living(span) => None,
                _ if !path.contains(&span.last) => Some(CompactionStatus::OffPath),
                Some(shown) if *shown != at => {
                    Some(CompactionStatus::Under { id: model.spans[*shown].id.as_str().into() })
                }
                _ => Some(CompactionStatus::Shown),
            };
            if let Some(status) = status {
                assert_eq!(chat.compaction_status(&id)?, status);
            }
        }
        Ok(())
    }

    /// A small provider knows of a place only by the message there.
    fn is_last_living(&self, span: &Span) -> bool {
        self.models[self.at].nodes[span.last].state == State::Living
    }

    /// Compares everything.
    pub(crate) fn compare_all(&mut self) -> Result<()> {
        let at = self.at;
        for session in 0..self.models.len() {
            self.switch(session)?;
            self.compare()?;
            for at in self.models[session].living().collect::<Vec<_>>() {
                let view: Vec<Said> =
                    self.view(Some(at)).iter().map(|item| self.item_said(item)).collect();
                let history = self.chat().at(&self.id(at)).history()?;
                assert_eq!(all_said(&history), view);
                check_views(&history);
            }
            self.compare_expansions()?;
        }
        self.switch(at)
    }

    /// Looks for damage in the file, if there is one.
    pub(crate) fn verify(&self) -> Result<()> {
        if let Home::File(scratch) = &self.home {
            assert_eq!(scratch.store.verify(|_| {})?.damages, []);
        }
        Ok(())
    }

    /// Going down from a summary goes one level at a time, ends, and comes to the stored messages.
    fn compare_expansions(&self) -> Result<()> {
        let (chat, model) = (self.chat(), &self.models[self.at]);
        for (at, span) in model.spans.iter().enumerate() {
            let id = CompactionId::from(span.id.as_str());
            let below = model.below(at);
            let below: Vec<Said> = below
                .iter()
                .filter(|item| model.is_shown(item))
                .map(|item| self.item_said(item))
                .collect();
            assert_eq!(all_said(&chat.expand(&id)?), below);
            let raw = chat.expand_raw(&id)?;
            let under: Vec<Said> = model
                .under(span.first, span.last)
                .into_iter()
                .map(|at| self.node_said(at))
                .collect();
            assert_eq!(all_said(&raw), under);
            let seen: Vec<Message> = raw.into_iter().filter(|message| !message.is_hidden).collect();
            assert_eq!(all_said(&down(chat, &id, model.spans.len())?), all_said(&seen));
        }
        Ok(())
    }
}

/// Checks that every provider would take what is seen.
fn check_views(view: &[Message]) {
    let view = sanitize(view);
    for (provider, request) in [
        (Provider::Anthropic, to_anthropic(&view)),
        (Provider::OpenAiChat, to_openai_chat(&view)),
        (Provider::OpenAiResponses, to_openai_responses(&view)),
    ] {
        assert_eq!(validate_for(provider, &request), [], "{provider}");
    }
}

/// Returns the messages that are come to by expanding every summary below one.
fn down(chat: &Session, id: &CompactionId, levels: usize) -> Result<Vec<Message>> {
    let mut messages = Vec::new();
    for item in chat.expand(id)? {
        match CompactionId::from_message(&item.id) {
            Some(inner) => {
                assert!(levels > 0, "going down does not end");
                messages.extend(down(chat, &inner, levels - 1)?);
            }
            None => messages.push(item),
        }
    }
    Ok(messages)
}
