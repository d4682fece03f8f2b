//! The conversation that is open: a window of its messages, and the tree of its branches.
//!
//! Pages are read as one scrolls, so a conversation of any length opens at once. A position is a message and a line of it.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use ratatui::text::Line;
use talktree::{
    CompactionId, DrawOptions, Hit, Message, MessageId, Path, Session, SessionInfo, Tree, TreeLine,
};

use super::lines::{self, About};
use super::list::Place;
use crate::failure::Result;
use crate::names::title_of;

/// How many messages are read at a time.
const PAGE: usize = 60;
/// So near to an end of the window the next page is read.
const NEAR: usize = 20;

/// A message of the window, or one below a summary that is open.
pub(super) struct Item {
    pub(super) message: Message,
    /// Below how many open summaries it is.
    depth: usize,
    /// Whether its tools, its reasoning and its long texts are shown whole, or what a summary replaces.
    pub(super) is_open: bool,
    /// The summary of which more messages come after this one.
    rest: Option<CompactionId>,
    /// Its lines in a pane of this width.
    drawn: Option<(usize, Vec<Line<'static>>)>,
}

impl Item {
    fn new(message: Message, depth: usize) -> Self {
        Self { message, depth, is_open: false, rest: None, drawn: None }
    }

    fn summary(&self) -> Option<CompactionId> {
        CompactionId::from_message(&self.message.id)
    }
}

/// The conversation that is open.
pub(super) struct Chat {
    pub(super) session: Session,
    pub(super) title: String,
    pub(super) head: Option<MessageId>,
    /// When it was written last.
    written_at: Option<DateTime<Utc>>,
    tree: Tree,
    /// The drawing of the tree, and a place in it.
    pub(super) branches: Vec<TreeLine>,
    pub(super) at_branch: Place,
    /// The segments of the tree by their landmarks, which the first message of each is.
    segments: HashMap<MessageId, usize>,
    labels: HashMap<MessageId, Vec<String>>,
    /// The leaf of the path that is shown; the head without one.
    leaf: Option<MessageId>,
    /// Whether the messages are shown as they were said, also the hidden ones, without summaries.
    pub(super) is_raw: bool,
    pub(super) items: Vec<Item>,
    pub(super) selected: usize,
    /// The first line that is seen: an item, and a line of it.
    top: (usize, usize),
    has_before: bool,
    has_after: bool,
    width: usize,
    height: usize,
}

impl Chat {
    /// Opens a conversation, of which nothing is shown yet.
    pub(super) fn open(session: Session) -> Result<Self> {
        let mut chat = Self {
            session,
            title: String::new(),
            head: None,
            written_at: None,
            tree: Tree::default(),
            branches: Vec::new(),
            at_branch: Place::default(),
            segments: HashMap::new(),
            labels: HashMap::new(),
            leaf: None,
            is_raw: false,
            items: Vec::new(),
            selected: 0,
            top: (0, 0),
            has_before: false,
            has_after: false,
            width: 80,
            height: 24,
        };
        chat.read_tree()?;
        Ok(chat)
    }

    fn read_tree(&mut self) -> Result<()> {
        let info: Option<SessionInfo> = self.session.info()?;
        self.written_at = info.as_ref().map(|info| info.updated_at);
        self.title = match &info {
            Some(info) => title_of(&self.session, info)?,
            None => String::new(),
        };
        self.tree = self.session.tree()?;
        self.head = self.tree.head.clone();
        let all = self.tree.segments.iter().enumerate();
        let ids = all.flat_map(|(at, segment)| segment.landmarks.iter().map(move |it| (at, it)));
        self.segments = ids.map(|(at, landmark)| (landmark.id.clone(), at)).collect();
        self.labels.clear();
        for label in self.session.labels()? {
            self.labels.entry(label.id).or_default().push(label.name);
        }
        self.branches = self.tree.lines(&DrawOptions::default()).collect();
        self.at_branch.step(0, self.branches.len());
        self.items.iter_mut().for_each(|item| item.drawn = None);
        Ok(())
    }

    fn path(&self) -> Path {
        let path = match &self.leaf {
            Some(leaf) => self.session.at(leaf),
            None => self.session.path(),
        };
        if self.is_raw { path.raw() } else { path }
    }

    /// Shows the end of the path.
    pub(super) fn end(&mut self) -> Result<()> {
        let page = self.path().page().limit(PAGE).run()?;
        self.has_before = page.before.is_some();
        self.has_after = false;
        self.items = page.messages.into_iter().map(|message| Item::new(message, 0)).collect();
        self.selected = self.items.len().saturating_sub(1);
        // Drawing scrolls down to the last message.
        self.top = (self.selected, usize::MAX);
        Ok(())
    }

    /// Shows the start of the path.
    pub(super) fn start(&mut self) -> Result<()> {
        let messages = self.path().iter().take(PAGE + 1).collect::<talktree::Result<Vec<_>>>()?;
        self.has_before = false;
        self.has_after = messages.len() > PAGE;
        self.items = messages.into_iter().take(PAGE).map(|it| Item::new(it, 0)).collect();
        (self.selected, self.top) = (0, (0, 0));
        Ok(())
    }

    /// Shows a message in its surroundings, on this path.
    fn around(&mut self, message: Message) -> Result<()> {
        let path = self.path();
        let after = path.page().after(&message.id).limit(PAGE).run()?;
        let before = path.page().before(&message.id).limit(PAGE).run()?;
        (self.has_before, self.has_after) = (before.before.is_some(), after.after.is_some());
        self.selected = before.messages.len();
        let all = before.messages.into_iter().chain([message]).chain(after.messages);
        self.items = all.map(|message| Item::new(message, 0)).collect();
        self.top = (self.selected, 0);
        self.scroll_up(self.height / 3);
        Ok(())
    }

    /// Shows a message of any branch, with what follows it; as it was said, if a summary replaces it.
    pub(super) fn show(&mut self, id: &MessageId) -> Result<bool> {
        let Some(message) = self.session.message(id)? else { return Ok(false) };
        let summary = CompactionId::from_message(id);
        let place = match &summary {
            Some(summary) => self.session.compaction(summary)?.last,
            None => id.clone(),
        };
        self.leaf = match self.session.is_on_path(&place)? {
            true => None,
            false => Some(self.leaf_below(&place)?),
        };
        self.is_raw &= summary.is_none();
        match self.around(message.clone()) {
            Err(_) if !self.is_raw => {
                self.is_raw = true;
                self.around(message)?;
            }
            shown => shown?,
        }
        Ok(true)
    }

    pub(super) fn show_hit(&mut self, hit: &Hit) -> Result<bool> {
        self.is_raw = false;
        self.show(&hit.id)
    }

    /// Returns the newest leaf below a message.
    fn leaf_below(&self, id: &MessageId) -> Result<MessageId> {
        let segments = &self.tree.segments;
        let mut at = self.segments.get(id).copied();
        if at.is_none() {
            // Parents come before their children, so the first one whose end is below the message is its own.
            for (number, segment) in segments.iter().enumerate() {
                if self.session.is_ancestor(id, &segment.last)? {
                    at = Some(number);
                    break;
                }
            }
        }
        // A message that was added since the tree was read is the end of its path.
        let Some(mut at) = at else { return Ok(id.clone()) };
        while let Some(newest) = segments[at].children.last() {
            at = *newest;
        }
        Ok(segments[at].last.clone())
    }

    /// Returns which of how many versions a message is: the messages that answer the same one.
    fn version(&self, id: &MessageId) -> Option<(usize, &[usize])> {
        let at = *self.segments.get(id)?;
        let segment = &self.tree.segments[at];
        let all = match segment.parent {
            Some(parent) => &self.tree.segments[parent].children,
            None => &self.tree.roots,
        };
        let place = all.iter().position(|other| *other == at)?;
        (segment.first == *id && all.len() > 1).then_some((place, all))
    }

    /// Shows another version of the selected message, or of the next one that has several.
    pub(super) fn switch(&mut self, by: isize) -> Result<bool> {
        let ids = self.items.iter().skip(self.selected).map(|item| &item.message.id);
        let Some((place, all)) = ids.filter_map(|id| self.version(id)).next() else {
            return Ok(false);
        };
        let count = all.len() as isize;
        let other = all[(place as isize + by).rem_euclid(count) as usize];
        let id = self.tree.segments[other].first.clone();
        self.show(&id)
    }

    /// Opens or closes what is folded in the selected message.
    pub(super) fn toggle(&mut self) -> Result<()> {
        let Some(item) = self.items.get_mut(self.selected) else { return Ok(()) };
        item.is_open = !item.is_open;
        item.drawn = None;
        let (depth, is_open) = (item.depth, item.is_open);
        let Some(summary) = item.summary() else { return Ok(()) };
        let below = self.selected + 1;
        if is_open {
            self.insert_of(&summary, None, below, depth + 1)?;
        } else {
            let count = self.items[below..].iter().take_while(|it| it.depth > depth).count();
            self.items.drain(below..below + count);
        }
        Ok(())
    }

    /// Inserts a page of what a summary replaces, at a place of the window.
    fn insert_of(
        &mut self,
        summary: &CompactionId,
        after: Option<&MessageId>,
        at: usize,
        depth: usize,
    ) -> Result<()> {
        let page = self.session.expand_page(summary, after, PAGE)?;
        let mut items: Vec<Item> = page.into_iter().map(|it| Item::new(it, depth)).collect();
        if let Some(last) = items.last_mut() {
            last.rest = Some(summary.clone());
        }
        self.items.splice(at..at, items);
        Ok(())
    }

    /// Shows the messages as they were said, or as a model should see them.
    pub(super) fn toggle_raw(&mut self) -> Result<()> {
        self.is_raw = !self.is_raw;
        let at = self.items.get(self.selected).map(|item| item.message.id.clone());
        match at.filter(|id| CompactionId::from_message(id).is_none()) {
            // A message that a summary replaces is not there as a model sees it.
            Some(id) if self.is_raw || self.path().page().after(&id).limit(0).run().is_ok() => {
                self.show(&id).map(drop)
            }
            _ => self.end(),
        }
    }

    /// Reads what was written since; returns whether there was anything.
    pub(super) fn refresh(&mut self) -> Result<bool> {
        let written_at = self.session.info()?.map(|info| info.updated_at);
        if written_at == self.written_at {
            return Ok(false);
        }
        let was_last = self.selected + 1 >= self.items.len() && !self.has_after;
        let last = self.items.iter().rev().find(|item| item.depth == 0);
        let last = last.map(|item| item.message.clone());
        self.read_tree()?;
        let Some(last) = last else { return self.end().map(|()| true) };
        match self.path().page().after(&last.id).limit(PAGE).run() {
            // The last one may have grown.
            Ok(page) if page.messages.is_empty() && was_last => self.end()?,
            Ok(page) => {
                self.items.extend(page.messages.into_iter().map(|it| Item::new(it, 0)));
                self.has_after = page.after.is_some();
                if was_last {
                    self.selected = self.items.len() - 1;
                }
            }
            // The head is on another branch now, or a summary replaces the message.
            Err(_) => self.end()?,
        }
        Ok(true)
    }

    pub(super) fn selected(&self) -> Option<&Message> {
        self.items.get(self.selected).map(|item| &item.message)
    }

    /// Reads the next page at an end of the window that is near, or of a summary that is open.
    fn read_ahead(&mut self) -> Result<()> {
        let near = self.selected..self.items.len().min(self.selected + NEAR);
        for at in near.rev() {
            let item = &self.items[at];
            let (depth, last) = (item.depth, item.message.id.clone());
            if let Some(summary) = item.rest.clone() {
                let below = self.items[at + 1..].iter().take_while(|it| it.depth > depth).count();
                self.insert_of(&summary, Some(&last), at + 1 + below, depth)?;
                self.items[at].rest = None;
            }
        }
        if self.has_after && self.selected + NEAR >= self.items.len() {
            let last = self.items.iter().rev().find(|item| item.depth == 0);
            let Some(last) = last.map(|item| item.message.id.clone()) else { return Ok(()) };
            let page = self.path().page().after(&last).limit(PAGE).run()?;
            self.has_after = page.after.is_some();
            self.items.extend(page.messages.into_iter().map(|message| Item::new(message, 0)));
        }
        if self.has_before && self.selected < NEAR {
            let Some(first) = self.items.first().map(|item| item.message.id.clone()) else {
                return Ok(());
            };
            let page = self.path().page().before(&first).limit(PAGE).run()?;
            self.has_before = page.before.is_some();
            let count = page.messages.len();
            self.items.splice(0..0, page.messages.into_iter().map(|it| Item::new(it, 0)));
            self.selected += count;
            self.top.0 += count;
        }
        Ok(())
    }

    fn lines_of(&mut self, at: usize) -> &[Line<'static>] {
        let width = self.width;
        let is_drawn = |item: &Item| item.drawn.as_ref().is_some_and(|(of, _)| *of == width);
        if !self.items.get(at).is_some_and(is_drawn)
            && let Some(item) = self.items.get(at)
        {
            let id = &item.message.id;
            let about = About {
                depth: item.depth,
                is_open: item.is_open,
                is_head: self.head.as_ref() == Some(id),
                version: self.version(id).map(|(place, all)| (place + 1, all.len())),
                labels: self.labels.get(id).map_or(&[], Vec::as_slice),
            };
            let drawn = lines::of(&item.message, &about, width);
            self.items[at].drawn = Some((width, drawn));
        }
        let drawn = self.items.get(at).and_then(|item| item.drawn.as_ref());
        drawn.map_or(&[], |(_, lines)| lines.as_slice())
    }

    /// Scrolls towards the end by so many lines.
    fn scroll_down(&mut self, mut by: usize) {
        while by > 0 {
            let left = self.lines_of(self.top.0).len().saturating_sub(self.top.1);
            if by < left || self.top.0 + 1 >= self.items.len() {
                self.top.1 += by.min(left.saturating_sub(1));
                return;
            }
            by -= left;
            self.top = (self.top.0 + 1, 0);
        }
    }

    /// Scrolls towards the start by so many lines.
    fn scroll_up(&mut self, mut by: usize) {
        while by > self.top.1 && self.top.0 > 0 {
            by -= self.top.1;
            self.top.0 -= 1;
            self.top.1 = self.lines_of(self.top.0).len();
        }
        self.top.1 = self.top.1.saturating_sub(by);
    }

    /// Returns how many lines below the first one that is seen the selected message begins; none if that is far away.
    fn offset(&mut self) -> Option<isize> {
        let far = 2 * self.height as isize;
        let mut offset = -(self.top.1 as isize);
        for at in self.top.0..self.selected {
            offset += self.lines_of(at).len() as isize;
            if offset > far {
                return None;
            }
        }
        (self.selected >= self.top.0).then_some(offset)
    }

    /// Scrolls so that the selected message is seen: whole, or the part of a long one to which one has come.
    fn reveal(&mut self) {
        let (length, height) = (self.lines_of(self.selected).len() as isize, self.height as isize);
        match self.offset() {
            Some(offset) if offset < 0 && length > height && offset + length > 0 => {}
            Some(offset) if offset >= 0 && length <= height => {
                self.scroll_down((offset + length - height).max(0).unsigned_abs());
            }
            Some(0) => {}
            _ => self.top = (self.selected, 0),
        }
    }

    /// Goes to the next message; within one that is longer than the pane, by half a pane.
    pub(super) fn down(&mut self) -> Result<()> {
        let (length, height) = (self.lines_of(self.selected).len() as isize, self.height as isize);
        let below = self.offset().map_or(0, |offset| offset + length - height);
        if below > 0 {
            self.scroll_down(below.min((height / 2).max(1)).unsigned_abs());
        } else if self.selected + 1 < self.items.len() {
            self.selected += 1;
            self.reveal();
        }
        self.read_ahead()
    }

    /// Goes to the message before; within one that is longer than the pane, by half a pane.
    pub(super) fn up(&mut self) -> Result<()> {
        if self.selected == self.top.0 && self.top.1 > 0 {
            self.scroll_up((self.height / 2).clamp(1, self.top.1));
        } else if self.selected > 0 {
            self.selected -= 1;
            if self.selected < self.top.0 {
                let length = self.lines_of(self.selected).len();
                self.top = (self.selected, length.saturating_sub(self.height));
            }
        }
        self.read_ahead()
    }

    /// Moves by about a pane.
    pub(super) fn page(&mut self, is_down: bool) -> Result<()> {
        let mut passed = 0;
        while passed < self.height {
            let before = (self.selected, self.top);
            if is_down {
                self.down()?
            } else {
                self.up()?
            }
            if before == (self.selected, self.top) {
                break;
            }
            passed += self.lines_of(self.selected).len().clamp(1, self.height / 2 + 1);
        }
        Ok(())
    }

    /// Returns the lines that are seen in a pane of this size, each with whether it is one of the selected message.
    pub(super) fn seen(&mut self, width: usize, height: usize) -> Vec<(Line<'static>, bool)> {
        (self.width, self.height) = (width, height);
        let length = self.lines_of(self.top.0).len();
        if self.top.1 >= length {
            self.top.1 = length;
            self.scroll_up(height);
        }
        self.reveal();
        let (mut at, mut line) = self.top;
        let mut seen = Vec::with_capacity(height);
        while seen.len() < height && at < self.items.len() {
            let is_selected = at == self.selected;
            let lines = self.lines_of(at).iter().skip(line).take(height - seen.len());
            seen.extend(lines.map(|line| (line.clone(), is_selected)));
            (at, line) = (at + 1, 0);
        }
        seen
    }

    /// Goes to the message of the selected line of the tree.
    pub(super) fn show_branch(&mut self) -> Result<bool> {
        let line = self.branches.get(self.at_branch.selected);
        match line.and_then(|line| line.message.clone()) {
            Some(id) => self.show(&id),
            None => Ok(false),
        }
    }
}
