//! Lists that are walked through: the sessions, and the hits of a search.

use talktree::{Hit, ListedSession, SessionFilter, Store};

use crate::failure::Result;
use crate::names::title_of;
use crate::text::{one_line, plural};

/// How many sessions are read at a time.
const PAGE: usize = 100;
/// How many hits a search shows at most.
const HITS: usize = 100;
/// How long a search may take: one waits for the next key.
const TIMEOUT: std::time::Duration = std::time::Duration::from_millis(500);

/// A place in a list: the row that is selected, and the first one that is seen.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Place {
    pub(super) selected: usize,
    pub(super) top: usize,
}

impl Place {
    /// Moves by so many rows of a list of this length.
    pub(super) fn step(&mut self, by: isize, length: usize) {
        self.selected = self.selected.saturating_add_signed(by).min(length.saturating_sub(1));
    }

    /// Scrolls so that the selected row is one of those that are seen, and returns the first one.
    pub(super) fn seen(&mut self, height: usize) -> usize {
        let lowest = (self.selected + 1).saturating_sub(height);
        self.top = self.top.clamp(lowest, self.selected.max(lowest));
        self.top
    }
}

/// The sessions, the one with the newest message first.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    pub(super) rows: Vec<ListedSession>,
    pub(super) place: Place,
    /// Where the next page begins; none after the last one.
    after: Option<String>,
}

impl Sessions {
    pub(super) fn read(store: &Store, owner: Option<&str>) -> Result<Self> {
        let mut sessions = Self::default();
        sessions.more(store, owner)?;
        Ok(sessions)
    }

    fn more(&mut self, store: &Store, owner: Option<&str>) -> Result<()> {
        let filter = SessionFilter { owner: owner.map(str::to_owned), ..SessionFilter::default() };
        let page = store.list().filter(filter).after(self.after.as_deref()).limit(PAGE).run()?;
        self.rows.extend(page.sessions);
        self.after = page.after;
        Ok(())
    }

    pub(super) fn step(&mut self, by: isize, store: &Store, owner: Option<&str>) -> Result<()> {
        let wanted = self.place.selected.saturating_add_signed(by);
        while wanted >= self.rows.len() && self.after.is_some() {
            self.more(store, owner)?;
        }
        self.place.step(by, self.rows.len());
        Ok(())
    }
}

/// The name of a session, or what was said first in it.
pub(super) fn title(listed: &ListedSession) -> String {
    match (&listed.info.name, &listed.preview) {
        (Some(name), _) if !name.trim().is_empty() => one_line(name),
        (_, Some(line)) => format!("“{}”", one_line(line)),
        _ => one_line(listed.info.id.as_str()),
    }
}

/// A row of what a search found.
#[derive(Debug)]
pub(super) enum Found {
    /// The session of the hits below it.
    Session(String),
    Hit(Box<Hit>),
}

/// A search: what is typed, and what it finds.
#[derive(Debug, Default)]
pub(super) struct Find {
    pub(super) query: String,
    pub(super) rows: Vec<Found>,
    pub(super) place: Place,
    /// What the search says about itself: how many it found, how it widened the query.
    pub(super) about: String,
    /// Whether the rows are those of the query.
    pub(super) is_run: bool,
}

impl Find {
    pub(super) fn run(&mut self, store: &Store, owner: Option<&str>) -> Result<()> {
        self.is_run = true;
        self.place = Place::default();
        self.rows.clear();
        self.about.clear();
        if self.query.trim().is_empty() {
            return Ok(());
        }
        let search = store.search(&self.query).limit(HITS).timeout(TIMEOUT);
        let search = match owner {
            Some(owner) => search.owner(owner),
            None => search,
        };
        let found = search.run()?;
        // The sessions in the order of their best hits, and the hits of each together.
        let mut sessions: Vec<(String, Vec<Hit>)> = Vec::new();
        let mut places = std::collections::HashMap::new();
        let count = found.hits.len();
        for hit in found.hits {
            let at = *places.entry(hit.session.clone()).or_insert(sessions.len());
            if at == sessions.len() {
                let session = store.session(hit.session.clone())?;
                let title = session.info()?.map(|info| title_of(&session, &info)).transpose()?;
                sessions.push((title.unwrap_or_default(), Vec::new()));
            }
            sessions[at].1.push(hit);
        }
        for (title, hits) in sessions {
            self.rows.push(Found::Session(title));
            self.rows.extend(hits.into_iter().map(|hit| Found::Hit(Box::new(hit))));
        }
        self.about = match count {
            0 => "nothing found".to_owned(),
            HITS => format!("the best {HITS}"),
            count => plural(count as u64, "message"),
        };
        if found.is_partial {
            self.about += "; the search ran out of time";
        }
        let steps = found.steps.iter().map(ToString::to_string);
        for about in found.notices.into_iter().chain(steps) {
            self.about += &format!("; {}", one_line(&about));
        }
        self.step(1);
        Ok(())
    }

    /// Moves by so many rows; the heading of a session is passed over.
    pub(super) fn step(&mut self, by: isize) {
        let before = self.place.selected;
        self.place.step(by, self.rows.len());
        if matches!(self.rows.get(self.place.selected), Some(Found::Session(_))) {
            match by < 0 && self.place.selected > 0 {
                true => self.place.selected -= 1,
                false => self.place.step(1, self.rows.len()),
            }
        }
        if self.hit().is_none() {
            self.place.selected = before;
        }
    }

    pub(super) fn hit(&self) -> Option<&Hit> {
        match self.rows.get(self.place.selected)? {
            Found::Hit(hit) => Some(hit),
            Found::Session(_) => None,
        }
    }
}

/// Returns where a hit is, if it is not simply on the way to the head.
pub(super) fn place_of(hit: &Hit) -> &'static str {
    match (&hit.under, hit.on_path) {
        (Some(_), _) => "  under a summary",
        (None, false) => "  on another branch",
        (None, true) => "",
    }
}
