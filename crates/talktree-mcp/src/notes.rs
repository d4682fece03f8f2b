//! Notes: texts of context blocks, which a model reads and adds to; and labels of messages.

use talktree::{Block, Context, SessionFilter, SessionId};

use crate::access::View;
use crate::answer::{NOTICE, Refused, Result, id, quotation, quoted};
use crate::read::message;
use crate::tools::Arguments;

/// The longest note, in estimated tokens: a bot that has a block of the label shows it in each prompt.
const MAX_NOTE: u64 = 4_000;

/// Whose notes a call means: of a session; else those of the owner, or of all sessions, if that is what the model sees.
struct Whose {
    /// Leads to them; it need not exist if the notes are of all sessions.
    session: SessionId,
    block: Block,
    told: String,
}

impl Whose {
    fn of(view: &View, given: &Arguments) -> Result<Self> {
        let (session, block, told) = match (given.text("session"), &view.access.owner) {
            (Some(session), _) => {
                let session = view.session(session)?.id().clone();
                let told = format!("session {}", id(&session));
                (session, Block::stored(), told)
            }
            (None, Some(owner)) => {
                let newest =
                    view.store.list().filter(SessionFilter::owned_by(owner)).limit(1).run()?;
                let newest = newest.sessions.into_iter().next();
                let none = || Refused(format!("{} has no session", quoted(owner)));
                let told = format!("all sessions of {}", quoted(owner));
                (newest.ok_or_else(none)?.info.id, Block::stored().per_owner(), told)
            }
            (None, None) if view.access.sources.is_empty() => {
                (SessionId::new(), Block::shared(), "all sessions".to_owned())
            }
            (None, None) => {
                return Err(Refused(
                    "you see some sessions only: name one with \"session\"".to_owned(),
                ));
            }
        };
        Ok(Self { session, block, told })
    }

    /// Returns the labels that have notes: those of this scope alone.
    fn stored(&self, view: &View) -> Result<Vec<(String, Block)>> {
        let scope = |block: &Block| (block.is_shared(), block.is_per_owner());
        let mut stored = view.store.session(&self.session)?.context().stored()?;
        stored.retain(|(_, block)| scope(block) == scope(&self.block));
        Ok(stored)
    }

    fn context(&self, view: &View, label: &str, block: Block) -> Result<Context> {
        let open = view.store.session_builder(&self.session).block(label, block).open()?;
        Ok(open.context().clone())
    }
}

pub(crate) fn notes(view: &View, given: &Arguments) -> Result<String> {
    let whose = Whose::of(view, given)?;
    let mut text = String::new();
    let is_asked = |label: &str| given.text("label").is_none_or(|asked| asked == label);
    for (label, block) in whose.stored(view)?.into_iter().filter(|(label, _)| is_asked(label)) {
        let info = whose.context(view, &label, block)?.block(&label)?.unwrap_or_default();
        let content = quotation(&view.redacted_text(&info.content));
        text += &format!("\n[{}, {}]\n{content}", id(&label), info.usage());
    }
    match text.is_empty() {
        true => Ok(format!("There are no notes of {}.", whose.told)),
        false => Ok(format!("Notes of {}\n{NOTICE}\n{}", whose.told, text.trim_end())),
    }
}

pub(crate) fn remember(view: &View, given: &Arguments) -> Result<String> {
    let (whose, label) = (Whose::of(view, given)?, given.required("label"));
    let stored = whose.stored(view)?.into_iter().find(|(stored, _)| stored == label);
    let block = stored.map_or_else(|| whose.block.clone(), |(_, block)| block).max_tokens(MAX_NOTE);
    let note = whose.context(view, label, block)?.append(label, given.required("text"))?;
    Ok(format!("Remembered under {} for {}: {}.", id(label), whose.told, note.usage()))
}

pub(crate) fn label(view: &View, given: &Arguments) -> Result<String> {
    let session = view.session(given.required("session"))?;
    let (name, message) = (given.required("name"), message(&session, given.required("message"))?);
    let before = session.labelled(name)?.filter(|before| *before != message.id);
    session.label(name, &message.id)?;
    let moved = before.map(|before| format!("; it was at {}", id(&before))).unwrap_or_default();
    Ok(format!("Label {} is at {}{moved}.", quoted(name), id(&message.id)))
}
