//! Reads bytes as verbs and does each twice, on the store and on the model.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use talktree::{Error, Message, MessageId, Session, SessionId, Store};

use super::model::{Model, Slot};

/// What can stand for an id, a label or a text. Too long, empty and kept ones are among them.
const NAMES: [&str; 20] = [
    "a",
    "b",
    "c",
    "d",
    "e",
    "f",
    "A",
    "a ",
    "\0",
    "a\0b",
    "'",
    "\"; --",
    "%_",
    "故宫",
    "e\u{301}",
    "\u{202E}",
    "\u{10FFFF}",
    "compaction_",
    "compaction_x",
    "",
];

/// The greatest number of bytes of a name.
const MAX_NAME: usize = 1_024;

/// How many sessions a script has at the most.
const MAX_SESSIONS: usize = 6;

/// What a script came to.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tried {
    /// Verbs that both did.
    pub done: u64,
    /// Verbs that both refused.
    pub refused: u64,
    /// Reads that gave the same.
    pub compared: u64,
}

impl AddAssign for Tried {
    fn add_assign(&mut self, other: Self) {
        self.done += other.done;
        self.refused += other.refused;
        self.compared += other.compared;
    }
}

/// What the model expects of a verb.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Expected {
    Done,
    UnknownMessage,
    InvalidName,
}

/// Plays a script.
///
/// # Errors
/// Where the store and the model part.
pub fn play(script: &[u8]) -> Result<Tried, String> {
    let mut world = World::new().map_err(|error| error.to_string())?;
    let mut bytes = script.iter().copied();
    let mut steps = Vec::new();
    while let Some(verb) = bytes.next() {
        let step = world.step(verb, &mut bytes);
        steps.push(step.0);
        step.1.and_then(|()| world.compare()).map_err(|what| format!("{what}, after {steps:?}"))?;
    }
    match world.store.verify(|_| {}) {
        Ok(verified) if verified.damages.is_empty() => Ok(world.tried),
        answer => Err(format!("verify says {answer:?}, after {steps:?}")),
    }
}

/// A store, and what it should hold.
struct World {
    store: Store,
    models: BTreeMap<SessionId, Model>,
    /// The session that verbs go to.
    present: SessionId,
    tried: Tried,
}

impl World {
    fn new() -> talktree::Result<Self> {
        let store = Store::open_in_memory()?;
        let present = SessionId::from("s");
        let models = BTreeMap::from([(present.clone(), Model::default())]);
        Ok(Self { store, models, present, tried: Tried::default() })
    }

    /// Does one verb; answers with its name and names, and whether the two agree about it.
    fn step(
        &mut self,
        verb: u8,
        bytes: &mut impl Iterator<Item = u8>,
    ) -> (String, Result<(), String>) {
        let mut name = || name(bytes);
        let (one, two) = (name(), name());
        let (id, other) = (MessageId::from(one.as_str()), MessageId::from(two.as_str()));
        let sessions = self.models.len();
        let Some(model) = self.models.get_mut(&self.present) else {
            return (String::new(), Err("the present session has no model".to_owned()));
        };
        let session = match self.store.session(self.present.clone()) {
            Ok(session) => session,
            Err(error) => return (String::new(), Err(error.to_string())),
        };
        let message = Message::user(two.as_str()).with_id(id.clone());
        let (place, place_two) = (model.find(&one), model.find(&two));
        let (called, answer, expected) = match verb % 18 {
            0..5 => {
                let head = model.head_place();
                let expected = append(model, head, &one, &two);
                ("append", session.append(message).map(drop), expected)
            }
            5..7 => {
                // Under the second name, saying the first.
                let message = Message::user(one.as_str()).with_id(id.clone());
                let expected = match place_two {
                    _ if !may_be_written(&one) => Expected::InvalidName,
                    None => Expected::UnknownMessage,
                    Some(parent) => append(model, Some(parent), &one, &one),
                };
                ("append_to", session.append_to(&other, message).map(drop), expected)
            }
            7 => {
                let expected = append(model, None, &one, &two);
                ("append_root", session.append_root(message).map(drop), expected)
            }
            8 => {
                let expected = match place {
                    _ if !may_be_written(&one) => Expected::InvalidName,
                    Some(place) => {
                        model.update(place, &two);
                        Expected::Done
                    }
                    None => append(model, model.head_place(), &one, &two),
                };
                ("upsert", session.upsert(message).map(drop), expected)
            }
            9 => {
                if let Some(place) = place {
                    model.update(place, &two);
                }
                ("update", session.update(message).map(drop), known(place))
            }
            10 => {
                if let Some(place) = place {
                    model.delete(&[place]);
                }
                ("delete", session.delete([&id]).map(drop), known(place))
            }
            11 => {
                let both: Vec<Slot> = place.into_iter().chain(place_two).collect();
                let expected = if both.len() == 2 {
                    model.delete(&both);
                    Expected::Done
                } else {
                    Expected::UnknownMessage
                };
                ("delete two", session.delete([&id, &other]).map(drop), expected)
            }
            12 => {
                if let Some(place) = place {
                    model.delete_branch(place);
                }
                ("delete_branch", session.delete_branch(&id).map(drop), known(place))
            }
            13 => {
                let expected =
                    if !may_be_named(&two) { Expected::InvalidName } else { known(place) };
                if expected == Expected::Done {
                    model.label(&two, place);
                }
                ("label", session.label(&two, &id), expected)
            }
            14 => {
                model.label(&one, None);
                ("unlabel", session.unlabel(&one), Expected::Done)
            }
            15 => {
                if place.is_some() {
                    model.checkout(place);
                }
                ("checkout", session.checkout(&id), known(place))
            }
            16 if sessions < MAX_SESSIONS => {
                let expected =
                    if !may_be_named(&two) { Expected::InvalidName } else { known(place) };
                let fork = session.fork(&id, &two);
                if let (Expected::Done, Some(place), Ok(fork)) = (expected, place, &fork) {
                    let forked = model.fork(place);
                    self.models.insert(fork.id().clone(), forked);
                }
                ("fork", fork.map(drop), expected)
            }
            _ => {
                let at = usize::from(verb) % sessions;
                let next = self.models.keys().nth(at).cloned();
                self.present = next.unwrap_or_else(|| self.present.clone());
                ("switch", Ok(()), Expected::Done)
            }
        };
        let agreed = match (&answer, expected) {
            (Ok(()), Expected::Done) => {
                self.tried.done += 1;
                Ok(())
            }
            (Err(Error::UnknownMessage { .. }), Expected::UnknownMessage)
            | (Err(Error::InvalidName { .. }), Expected::InvalidName) => {
                self.tried.refused += 1;
                Ok(())
            }
            _ => Err(format!("{called} answers {answer:?}, expected {expected:?}")),
        };
        let cut = |text: &str| text.chars().take(20).collect::<String>();
        (format!("{called} {:?} {:?}", cut(&one), cut(&two)), agreed)
    }

    /// Reads the present session in every way that the model can answer, too.
    fn compare(&mut self) -> Result<(), String> {
        let model = self.models.get(&self.present).ok_or("the present session has no model")?;
        let session =
            self.store.session(self.present.clone()).map_err(|error| error.to_string())?;
        let reads = compare(&session, model).map_err(|error| error.to_string())?;
        for (what, is_equal) in reads {
            if !is_equal {
                return Err(format!("{what} differs; expected {model:?}"));
            }
            self.tried.compared += 1;
        }
        Ok(())
    }
}

fn compare(session: &Session, model: &Model) -> talktree::Result<Vec<(&'static str, bool)>> {
    let path = model.path(model.head_place());
    let raw = session.raw_history()?;
    let texts = raw.iter().all(|message| model.text(message.id.as_str()) == Some(&message.text()));
    let labels = session.labels()?;
    let mut labels: Vec<_> =
        labels.iter().map(|label| (label.name.as_str(), label.id.as_str())).collect();
    labels.sort_unstable();
    let mut paths = true;
    let leaves = session.leaves()?;
    for leaf in &leaves {
        let place = model.find(leaf.as_str());
        let found = session.at(leaf).raw_history()?;
        paths &= place.is_some() && ids(&found) == model.path(place);
    }
    let backward: Vec<Message> = session.iter_rev().collect::<talktree::Result<_>>()?;
    Ok(vec![
        ("head", session.head()?.as_ref().map(MessageId::as_str) == model.head()),
        ("raw_history", ids(&raw) == path),
        ("a text", texts),
        ("history", ids(&session.history()?) == path),
        ("iter_rev", ids(&backward).into_iter().rev().eq(path.iter().copied())),
        ("path_length", session.path_length()? == path.len() as u64),
        ("leaves", leaves.iter().map(MessageId::as_str).eq(model.leaves())),
        ("a leaf's path", paths),
        ("labels", labels == model.labels()),
    ])
}

fn ids(messages: &[Message]) -> Vec<&str> {
    messages.iter().map(|message| message.id.as_str()).collect()
}

/// Appends to the model, and says what the store should answer. Over a known id nothing is appended.
fn append(model: &mut Model, parent: Option<Slot>, id: &str, text: &str) -> Expected {
    if !may_be_written(id) {
        return Expected::InvalidName;
    }
    if model.find(id).is_none() {
        model.append(parent, id, text);
    }
    Expected::Done
}

fn known(place: Option<Slot>) -> Expected {
    if place.is_some() { Expected::Done } else { Expected::UnknownMessage }
}

fn may_be_named(name: &str) -> bool {
    !name.is_empty() && name.len() <= MAX_NAME
}

fn may_be_written(id: &str) -> bool {
    may_be_named(id) && !id.starts_with("compaction_")
}

/// Reads a name: one of the list, or one of its own of up to seven bytes, or one at the edge of what is allowed.
fn name(bytes: &mut impl Iterator<Item = u8>) -> String {
    match bytes.next().unwrap_or(0) {
        pick @ 0..240 => NAMES[usize::from(pick) % NAMES.len()].to_owned(),
        pick @ 240..252 => {
            let own: Vec<u8> = bytes.take(usize::from(pick - 240) % 8).collect();
            String::from_utf8_lossy(&own).into_owned()
        }
        pick @ 252..254 => "x".repeat(MAX_NAME - usize::from(pick - 252)),
        _ => "x".repeat(MAX_NAME + 1),
    }
}
