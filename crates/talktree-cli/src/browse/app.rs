//! What is shown, and what each key does.

use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crossterm::clipboard::CopyToClipboard;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::crossterm::execute;
use talktree::Store;

use super::Browsed;
use super::chat::Chat;
use super::list::{Find, Sessions};
#[cfg(feature = "web")]
use crate::commands::serve::Page;
use crate::failure::Result;
use crate::text::one_line;

/// So long after the last key a search begins.
const PAUSE: Duration = Duration::from_millis(120);

/// The part of the screen that gets the keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pane {
    /// The sessions, or the hits of a search.
    List,
    Branches,
    Text,
}

/// A line that is being typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Typing {
    Query,
    /// The name of a label for the selected message, which is kept in [`App::label`].
    Label,
}

pub(super) struct App {
    pub(super) store: Store,
    pub(super) path: PathBuf,
    pub(super) owner: Option<String>,
    can_write: bool,
    pub(super) is_coloured: bool,
    pub(super) pane: Pane,
    pub(super) sessions: Sessions,
    pub(super) find: Option<Find>,
    pub(super) chat: Option<Chat>,
    pub(super) typing: Option<Typing>,
    pub(super) label: String,
    /// When the query was changed last, until it is run.
    changed: Option<Instant>,
    /// What the last key did, or why it did nothing.
    pub(super) notice: String,
    pub(super) shows_help: bool,
    pub(super) is_done: bool,
    #[cfg(feature = "web")]
    page: Option<Page>,
}

impl App {
    pub(super) fn new(browsed: Browsed) -> Result<Self> {
        let Browsed { store, path, owner, session, can_write, is_coloured } = browsed;
        let sessions = Sessions::read(&store, owner.as_deref())?;
        let mut app = Self {
            store,
            path,
            owner,
            can_write,
            is_coloured,
            pane: Pane::List,
            sessions,
            find: None,
            chat: None,
            typing: None,
            label: String::new(),
            changed: None,
            notice: String::new(),
            shows_help: false,
            is_done: false,
            #[cfg(feature = "web")]
            page: None,
        };
        match session {
            Some(session) => {
                app.chat.insert(Chat::open(session)?).end()?;
                app.pane = Pane::Text;
            }
            None => app.preview()?,
        }
        Ok(app)
    }

    /// Returns how long no key may come until [`idle`](Self::idle) has something to do; as long as it likes without one.
    pub(super) fn patience(&self) -> Option<Duration> {
        self.changed.map(|changed| PAUSE.saturating_sub(changed.elapsed()))
    }

    /// Does what waits for a pause: a search, or a look at what others wrote.
    pub(super) fn idle(&mut self) {
        let done = match self.changed.take() {
            Some(_) => self.search(),
            None => self.refresh(),
        };
        self.notify(done);
    }

    fn refresh(&mut self) -> Result<()> {
        let Some(chat) = &mut self.chat else { return Ok(()) };
        if chat.refresh()? && self.sessions.place.selected == 0 {
            self.sessions = Sessions::read(&self.store, self.owner.as_deref())?;
        }
        Ok(())
    }

    fn search(&mut self) -> Result<()> {
        self.changed = None;
        let Some(find) = &mut self.find else { return Ok(()) };
        if !find.is_run {
            find.run(&self.store, self.owner.as_deref())?;
        }
        self.preview()
    }

    fn notify(&mut self, done: Result<()>) {
        if let Err(failure) = done {
            self.notice = one_line(&failure.message().unwrap_or_default());
        }
    }

    pub(super) fn paste(&mut self, text: &str) {
        if self.typing.is_some() {
            one_line(text).chars().for_each(|c| self.type_in(Some(c)));
        }
    }

    pub(super) fn press(&mut self, key: KeyEvent) {
        self.notice.clear();
        let done = match key.code {
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => {
                self.is_done = true;
                Ok(())
            }
            _ if self.shows_help => {
                self.shows_help = false;
                Ok(())
            }
            _ if self.typing.is_some() => self.press_in_line(key),
            code => self.press_in_pane(code),
        };
        self.notify(done);
    }

    fn type_in(&mut self, c: Option<char>) {
        let text = match (self.typing, &mut self.find) {
            (Some(Typing::Query), Some(find)) => {
                find.is_run = false;
                self.changed = Some(Instant::now());
                &mut find.query
            }
            _ => &mut self.label,
        };
        match c {
            Some(c) => text.push(c),
            None => drop(text.pop()),
        }
    }

    fn press_in_line(&mut self, key: KeyEvent) -> Result<()> {
        let typing = self.typing;
        match key.code {
            KeyCode::Esc => {
                self.typing = None;
                if typing == Some(Typing::Query) {
                    self.find = None;
                    self.changed = None;
                }
                self.preview()
            }
            KeyCode::Enter if typing == Some(Typing::Label) => {
                self.typing = None;
                self.set_label()
            }
            KeyCode::Enter => {
                self.typing = None;
                self.search()
            }
            KeyCode::Up | KeyCode::Down => {
                self.typing = None;
                self.search()
            }
            KeyCode::Char('u' | 'w') if key.modifiers.contains(KeyModifiers::CONTROL) => {
                while self.line().is_some_and(|line| !line.is_empty()) {
                    self.type_in(None);
                }
                Ok(())
            }
            KeyCode::Backspace => {
                self.type_in(None);
                Ok(())
            }
            KeyCode::Char(c) => {
                self.type_in(Some(c));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Returns the line that is being typed.
    pub(super) fn line(&self) -> Option<&str> {
        match self.typing? {
            Typing::Query => self.find.as_ref().map(|find| find.query.as_str()),
            Typing::Label => Some(&self.label),
        }
    }

    fn press_in_pane(&mut self, code: KeyCode) -> Result<()> {
        match code {
            KeyCode::Char('q') => self.is_done = true,
            KeyCode::Char('?') => self.shows_help = true,
            KeyCode::Char('/') => {
                self.find.get_or_insert_default();
                self.typing = Some(Typing::Query);
                self.pane = Pane::List;
            }
            KeyCode::Tab => self.next_pane(),
            KeyCode::Char('b') if self.chat.is_some() => {
                self.pane = if self.pane == Pane::Branches { Pane::Text } else { Pane::Branches };
            }
            KeyCode::Esc if self.pane == Pane::List => {
                self.find = None;
                self.preview()?;
            }
            KeyCode::Char('h') | KeyCode::Left | KeyCode::Esc => self.back(),
            KeyCode::Char('j') | KeyCode::Down => self.step(1)?,
            KeyCode::Char('k') | KeyCode::Up => self.step(-1)?,
            KeyCode::PageDown | KeyCode::Char(' ') => self.page(true)?,
            KeyCode::PageUp => self.page(false)?,
            KeyCode::Home | KeyCode::Char('g') => self.far(false)?,
            KeyCode::End | KeyCode::Char('G') => self.far(true)?,
            KeyCode::Enter | KeyCode::Char('l') | KeyCode::Right => self.enter()?,
            code => return self.press_in_chat(code),
        }
        Ok(())
    }

    fn press_in_chat(&mut self, code: KeyCode) -> Result<()> {
        let Some(chat) = &mut self.chat else { return Ok(()) };
        match code {
            KeyCode::Char(key @ ('[' | ']')) => {
                if !chat.switch(if key == '[' { -1 } else { 1 })? {
                    self.notice = "no other version from here on; b shows the branches".to_owned();
                }
                self.pane = Pane::Text;
            }
            KeyCode::Char('r') => chat.toggle_raw()?,
            KeyCode::Char('o') => return self.open_page(),
            KeyCode::Char('y') => {
                if let Some(message) = chat.selected() {
                    // The terminal copies it, also over a connection.
                    let copy = CopyToClipboard::to_clipboard_from(message.text());
                    execute!(io::stdout(), copy)?;
                    self.notice = "copied".to_owned();
                }
            }
            KeyCode::Char('c' | 'm') if !self.can_write => {
                self.notice =
                    "nothing is changed: begin with --write to checkout and label".to_owned();
            }
            KeyCode::Char('c') => {
                if let Some(message) = chat.selected() {
                    self.notice = "the head is at this message".to_owned();
                    if chat.head.as_ref() != Some(&message.id) {
                        chat.session.checkout(&message.id)?;
                        chat.refresh()?;
                        self.notice += "; u undoes that";
                    }
                }
            }
            KeyCode::Char('u') if self.can_write => {
                let is_undone = chat.session.undo_head()?;
                chat.refresh()?;
                self.notice = match is_undone {
                    true => "the head is where it was before".to_owned(),
                    false => "no move of the head is left to undo".to_owned(),
                };
            }
            KeyCode::Char('m') => {
                self.label.clear();
                self.typing = Some(Typing::Label);
            }
            _ => {}
        }
        Ok(())
    }

    #[cfg(feature = "web")]
    fn open_page(&mut self) -> Result<()> {
        let Some(chat) = &self.chat else { return Ok(()) };
        let Some(message) = chat.selected() else { return Ok(()) };
        let page = match &mut self.page {
            Some(page) => page,
            none => none.insert(Page::serve(&self.store, self.owner.clone())?),
        };
        let address = page.open(chat.session.id().as_str(), message.id.as_str());
        self.notice = format!("in the browser: {address}");
        Ok(())
    }

    #[cfg(not(feature = "web"))]
    fn open_page(&mut self) -> Result<()> {
        self.notice = "this talktree was built without the page".to_owned();
        Ok(())
    }

    fn set_label(&mut self) -> Result<()> {
        let Some(chat) = &mut self.chat else { return Ok(()) };
        if let Some(message) = chat.selected()
            && !self.label.trim().is_empty()
        {
            chat.session.label(self.label.trim(), &message.id)?;
            chat.refresh()?;
        }
        Ok(())
    }

    fn next_pane(&mut self) {
        self.pane = match self.pane {
            Pane::List if self.chat.is_some() => Pane::Text,
            Pane::Text => Pane::Branches,
            _ => Pane::List,
        };
    }

    fn back(&mut self) {
        self.pane = match self.pane {
            Pane::Branches => Pane::Text,
            _ => Pane::List,
        };
    }

    fn step(&mut self, by: isize) -> Result<()> {
        match (self.pane, &mut self.find, &mut self.chat) {
            (Pane::List, Some(find), _) => find.step(by),
            (Pane::List, None, _) => {
                self.sessions.step(by, &self.store, self.owner.as_deref())?;
            }
            (Pane::Branches, _, Some(chat)) => {
                chat.at_branch.step(by, chat.branches.len());
                return chat.show_branch().map(drop);
            }
            (Pane::Text, _, Some(chat)) if by > 0 => return chat.down(),
            (Pane::Text, _, Some(chat)) => return chat.up(),
            _ => return Ok(()),
        }
        self.preview()
    }

    fn page(&mut self, is_down: bool) -> Result<()> {
        match (self.pane, &mut self.chat) {
            (Pane::Text, Some(chat)) => chat.page(is_down),
            _ => self.step(if is_down { 15 } else { -15 }),
        }
    }

    /// Goes to the start or the end of what has the keys; of the sessions, to the last one that was read.
    fn far(&mut self, is_end: bool) -> Result<()> {
        let rows =
            self.sessions.rows.len().saturating_sub(1).saturating_sub(self.sessions.place.selected);
        match (self.pane, &mut self.chat) {
            (Pane::Text, Some(chat)) if is_end => chat.end(),
            (Pane::Text, Some(chat)) => chat.start(),
            (Pane::List, _) if is_end && self.find.is_none() => self.step(rows as isize),
            _ if is_end => self.step(isize::MAX),
            _ => self.step(isize::MIN + 1),
        }
    }

    fn enter(&mut self) -> Result<()> {
        match (self.pane, &mut self.chat) {
            (Pane::Text, Some(chat)) => return chat.toggle(),
            (Pane::Branches, _) => {}
            _ => self.preview()?,
        }
        if self.chat.is_some() {
            self.pane = Pane::Text;
        }
        Ok(())
    }

    /// Opens what the list names: a session, or a hit.
    fn preview(&mut self) -> Result<()> {
        let hit = self.find.as_ref().and_then(|find| find.hit()).cloned();
        let wanted = match (&self.find, &hit) {
            (_, Some(hit)) => hit.session.clone(),
            (Some(_), None) => return Ok(()),
            (None, None) => match self.sessions.rows.get(self.sessions.place.selected) {
                Some(listed) => listed.info.id.clone(),
                None => return Ok(()),
            },
        };
        let is_open = self.chat.as_ref().is_some_and(|chat| *chat.session.id() == wanted);
        if !is_open {
            self.chat = Some(Chat::open(self.store.session(wanted)?)?);
        }
        let Some(chat) = &mut self.chat else { return Ok(()) };
        match &hit {
            Some(hit) if chat.show_hit(hit)? => return Ok(()),
            Some(_) => self.notice = "the message was deleted meanwhile".to_owned(),
            None => {}
        }
        if is_open { Ok(()) } else { chat.end() }
    }
}
