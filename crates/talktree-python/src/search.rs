//! Search, in a store, a session, on a path, or in the sessions of a manager.

use pyo3::prelude::*;
use serde_json::{Value, json};
use talktree::{Hit, Result, Search, Snippet};

use crate::embedding::{EmbedderParts, embedder};
use crate::json;
use crate::manager::Manager;
use crate::read::path;
use crate::session::Session;
use crate::store::{Store, seconds_of};

parts! {
    /// The options of a search, as Python passes them.
    struct SearchParts {
        text: String,
        sessions: Option<Vec<String>>,
        owner: Option<String>,
        author: Option<String>,
        tags: Vec<String>,
        on_path: bool,
        without_hidden: bool,
        plain: bool,
        exact: Vec<String>,
        timeout: Option<f64>,
        limit: Option<usize>,
        offset: Option<usize>,
        now: Option<String>,
        by_meaning: Option<EmbedderParts>,
    }
}

impl SearchParts {
    fn apply(self, mut search: Search) -> PyResult<Result<Search>> {
        if let Some(sessions) = self.sessions {
            search = search.sessions(sessions);
        }
        if let Some(owner) = self.owner {
            search = search.owner(owner);
        }
        if let Some(author) = self.author {
            search = search.author(author);
        }
        search = self.tags.into_iter().fold(search, Search::tag);
        if self.on_path {
            search = search.on_path();
        }
        if self.without_hidden {
            search = search.without_hidden();
        }
        if self.plain {
            search = search.plain();
        }
        search = self.exact.into_iter().fold(search, Search::exact);
        if let Some(seconds) = self.timeout {
            search = search.timeout(seconds_of("timeout", seconds)?);
        }
        if let Some(limit) = self.limit {
            search = search.limit(limit);
        }
        if let Some(offset) = self.offset {
            search = search.offset(offset);
        }
        if let Some(given) = self.by_meaning {
            search = search.by_meaning(embedder(given));
        }
        let now = json::maybe_time(self.now.as_deref());
        Ok(now.map(|now| match now {
            Some(now) => search.now(now),
            None => search,
        }))
    }
}

/// Which answer of a search is wanted.
#[derive(Clone, Copy)]
enum Answer {
    Hits,
    Sessions,
    Alternatives,
}

fn answer_of(name: &str) -> Answer {
    match name {
        "sessions" => Answer::Sessions,
        "alternatives" => Answer::Alternatives,
        _ => Answer::Hits,
    }
}

fn run(search: Search, answer: Answer) -> Result<String> {
    Ok(match answer {
        Answer::Hits => {
            let found = search.run()?;
            let hits: Vec<Value> = found.hits.iter().map(hit).collect();
            json!({"hits": hits, "matched": found.matched, "steps": found.steps, "notices": found.notices, "is_partial": found.is_partial})
        }
        Answer::Sessions => {
            let found = search.run_by_session()?;
            let sessions = found.hits.iter().map(|session| {
                let hits: Vec<Value> = session.hits.iter().map(hit).collect();
                json!({"session": session.session, "name": session.name, "score": session.score, "hits": hits})
            });
            let sessions: Vec<Value> = sessions.collect();
            json!({"sessions": sessions, "matched": found.matched, "steps": found.steps, "notices": found.notices, "is_partial": found.is_partial})
        }
        Answer::Alternatives => return json::text(&search.alternatives()?),
    }
    .to_string())
}

fn hit(hit: &Hit) -> Value {
    json!({
        "session": hit.session,
        "id": hit.id,
        "role": hit.role,
        "created_at": hit.created_at,
        "snippet": snippet(&hit.snippet),
        "score": hit.score,
        "matched": hit.matched,
        "on_path": hit.on_path,
        "under": hit.under,
        "sessions": hit.sessions,
    })
}

/// Returns the text of a snippet, its matches as ranges of characters, and the text with them marked.
fn snippet(snippet: &Snippet) -> Value {
    let mut marks: Vec<(usize, usize)> = Vec::new();
    let mut at = 0;
    for (piece, is_match) in snippet.pieces() {
        let end = at + piece.chars().count();
        if is_match {
            marks.push((at, end));
        }
        at = end;
    }
    json!({"text": snippet.text, "marks": marks, "display": snippet.to_string()})
}

#[pymethods]
impl Store {
    fn search(&self, py: Python<'_>, given: SearchParts, answer: &str) -> PyResult<String> {
        let answer = answer_of(answer);
        let search = self.handle.call(py, |store| Ok(store.search(&*given.text)))?;
        let search = given.apply(search)?;
        self.handle.call_long(py, |_| run(search?, answer))
    }
}

#[pymethods]
impl Manager {
    fn search(&self, py: Python<'_>, given: SearchParts, answer: &str) -> PyResult<String> {
        let answer = answer_of(answer);
        let search = self.handle.call(py, |bot| Ok(bot.store().search(&*given.text)))?;
        let search = given.apply(search)?;
        self.handle.call_long(py, |_| run(search?, answer))
    }
}

#[pymethods]
impl Session {
    /// Searches the session, or a path of it.
    fn search(
        &self,
        py: Python<'_>,
        given: SearchParts,
        is_of_path: bool,
        leaf: Option<&str>,
        answer: &str,
    ) -> PyResult<String> {
        let answer = answer_of(answer);
        let search = self.handle.call(py, |chat| {
            Ok(match is_of_path {
                true => path(chat, leaf, false).search(&*given.text),
                false => chat.search(&*given.text),
            })
        })?;
        let search = given.apply(search)?;
        self.handle.call_long(py, |_| run(search?, answer))
    }
}
