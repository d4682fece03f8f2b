//! Reads bytes as verbs and runs each verb on the store and on the model.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use talktree::{Error, Message, MessageId, Session, SessionId, Store};

use super::model::{Model, Slot};

/// What ids, labels and texts are drawn from; empty and reserved names are among them.
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

/// The longest name allowed, in bytes.
const MAX_NAME: usize = 1_024;

/// The maximum number of sessions in a script.
const MAX_SESSIONS: usize = 6;

/// What playing a script did.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counts {
    /// Verbs that succeeded in both.
    pub done: u64,
    /// Verbs that both refused.
    pub refused: u64,
    /// Reads that were equal.
    pub compared: u64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.done += other.done;
        self.refused += other.refused;
        self.compared += other.compared;
    }
}

/// The result that the model expects of a verb.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Expected {
    Done,
    UnknownMessage,
    InvalidValue,
}

/// Plays a script.
///
/// # Errors
/// The first difference between store and model.
pub fn play(script: &[u8]) -> Result<Counts, String> {
    let mut world = World::new().map_err(|error| error.to_string())?;
    let mut bytes = script.iter().copied();
    let mut steps = Vec::new();
    while let Some(verb) = bytes.next() {
        let step = world.step(verb, &mut bytes);
        steps.push(step.0);
        step.1.and_then(|()| world.compare()).map_err(|what| format!("{what}, after {steps:?}"))?;
    }
    match world.store.verify(|_| {}) {
        Ok(verified) if verified.damages.is_empty() => Ok(world.counts),
        answer => Err(format!("verify says {answer:?}, after {steps:?}")),
    }
}

/// A store with the model of each session.
struct World {
    store: Store,
    models: BTreeMap<SessionId, Model>,
    /// The session in which the next verb runs.
    current: SessionId,
    counts: Counts,
}

impl World {
    fn new() -> talktree::Result<Self> {
        let store = Store::open_in_memory()?;
        let current = SessionId::from("s");
        let models = BTreeMap::from([(current.clone(), Model::default())]);
        Ok(Self { store, models, current, counts: Counts::default() })
    }

    /// Runs one verb; returns a description of the call, and the difference if store and model disagree.
    fn step(
        &mut self,
        verb: u8,
        bytes: &mut impl Iterator<Item = u8>,
    ) -> (String, Result<(), String>) {
        let mut name = || name(bytes);
        let (one, two) = (name(), name());
        let (id, other) = (MessageId::from(one.as_str()), MessageId::from(two.as_str()));
        let sessions = self.models.len();
        let Some(model) = self.models.get_mut(&self.current) else {
            return (String::new(), Err("the current session has no model".to_owned()));
        };
        let session = match self.store.session(self.current.clone()) {
            Ok(session) => session,
            Err(error) => return (String::new(), Err(error.to_string())),
        };
        let message = Message::user(two.as_str()).with_id(id.clone());
        let (slot, slot_two) = (model.find(&one), model.find(&two));
        let (verb_name, answer, expected) = match verb % 18 {
            0..5 => {
                let head = model.head_slot();
                let expected = append(model, head, &one, &two);
                ("append", session.append(message).map(drop), expected)
            }
            5..7 => {
                // Parent and id are swapped: the new id is the first name, the parent the second.
                let message = Message::user(one.as_str()).with_id(id.clone());
                let expected = match slot_two {
                    _ if !is_valid_id(&one) => Expected::InvalidValue,
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
                let expected = match slot {
                    _ if !is_valid_id(&one) => Expected::InvalidValue,
                    Some(slot) => {
                        model.update(slot, &two);
                        Expected::Done
                    }
                    None => append(model, model.head_slot(), &one, &two),
                };
                ("upsert", session.upsert(message).map(drop), expected)
            }
            9 => {
                if let Some(slot) = slot {
                    model.update(slot, &two);
                }
                ("update", session.update(message).map(drop), known(slot))
            }
            10 => {
                if let Some(slot) = slot {
                    model.delete(&[slot]);
                }
                ("delete", session.delete([&id]).map(drop), known(slot))
            }
            11 => {
                let both: Vec<Slot> = slot.into_iter().chain(slot_two).collect();
                let expected = if both.len() == 2 {
                    model.delete(&both);
                    Expected::Done
                } else {
                    Expected::UnknownMessage
                };
                ("delete of two", session.delete([&id, &other]).map(drop), expected)
            }
            12 => {
                if let Some(slot) = slot {
                    model.delete_branch(slot);
                }
                ("delete_branch", session.delete_branch(&id).map(drop), known(slot))
            }
            13 => {
                let expected = match known(slot) {
                    _ if !is_valid_id(&two) || two == "head" => Expected::InvalidValue,
                    // It would mean the message.
                    Expected::Done if model.find(&two).is_some() => Expected::InvalidValue,
                    expected => expected,
                };
                if expected == Expected::Done {
                    model.label(&two, slot);
                }
                ("label", session.label(&two, &id), expected)
            }
            14 => {
                model.label(&one, None);
                ("unlabel", session.unlabel(&one), Expected::Done)
            }
            15 => {
                if slot.is_some() {
                    model.checkout(slot);
                }
                ("checkout", session.checkout(&id), known(slot))
            }
            16 if sessions < MAX_SESSIONS => {
                let expected =
                    if !is_valid_name(&two) { Expected::InvalidValue } else { known(slot) };
                let fork = session.fork(&id, &two);
                if let (Expected::Done, Some(slot), Ok(fork)) = (expected, slot, &fork) {
                    let forked = model.fork(slot);
                    self.models.insert(fork.id().clone(), forked);
                }
                ("fork", fork.map(drop), expected)
            }
            _ => {
                let at = usize::from(verb) % sessions;
                let next = self.models.keys().nth(at).cloned();
                self.current = next.unwrap_or_else(|| self.current.clone());
                ("switch", Ok(()), Expected::Done)
            }
        };
        let agreed = match (&answer, expected) {
            (Ok(()), Expected::Done) => {
                self.counts.done += 1;
                Ok(())
            }
            (Err(Error::UnknownMessage { .. }), Expected::UnknownMessage)
            | (Err(Error::InvalidValue { .. }), Expected::InvalidValue) => {
                self.counts.refused += 1;
                Ok(())
            }
            _ => Err(format!("{verb_name} returns {answer:?}, expected {expected:?}")),
        };
        let cut = |text: &str| text.chars().take(20).collect::<String>();
        (format!("{verb_name} {:?} {:?}", cut(&one), cut(&two)), agreed)
    }

    /// Compares everything that the model can answer about the current session.
    fn compare(&mut self) -> Result<(), String> {
        let model = self.models.get(&self.current).ok_or("the current session has no model")?;
        let session =
            self.store.session(self.current.clone()).map_err(|error| error.to_string())?;
        let reads = compare(&session, model).map_err(|error| error.to_string())?;
        for (what, is_equal) in reads {
            if !is_equal {
                return Err(format!("{what} differs; expected {model:?}"));
            }
            self.counts.compared += 1;
        }
        Ok(())
    }
}

fn compare(session: &Session, model: &Model) -> talktree::Result<Vec<(&'static str, bool)>> {
    let path = model.path(model.head_slot());
    let raw = session.raw_history()?;
    let texts = raw.iter().all(|message| model.text(message.id.as_str()) == Some(&message.text()));
    let labels = session.labels()?;
    let mut labels: Vec<_> =
        labels.iter().map(|label| (label.name.as_str(), label.id.as_str())).collect();
    labels.sort_unstable();
    let mut paths = true;
    let leaves = session.leaves()?;
    for leaf in &leaves {
        let slot = model.find(leaf.as_str());
        let found = session.at(leaf).raw_history()?;
        paths &= slot.is_some() && ids(&found) == model.path(slot);
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

/// Appends to the model and returns the expected result. A known id is a no-op.
fn append(model: &mut Model, parent: Option<Slot>, id: &str, text: &str) -> Expected {
    if !is_valid_id(id) {
        return Expected::InvalidValue;
    }
    if model.find(id).is_none() {
        model.append(parent, id, text);
    }
    Expected::Done
}

fn known(slot: Option<Slot>) -> Expected {
    if slot.is_some() { Expected::Done } else { Expected::UnknownMessage }
}

fn is_valid_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= MAX_NAME
}

fn is_valid_id(id: &str) -> bool {
    is_valid_name(id) && !id.starts_with("compaction_")
}

/// Reads a name: one of the list, a random one of up to seven bytes, or one at the limit of length.
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
