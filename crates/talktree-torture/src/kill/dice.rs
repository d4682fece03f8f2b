//! What a worker does next, by chance.

use fastrand::Rng;

use super::deed::Deed;
use super::model::Model;
use crate::text::{Said, Text};

/// How many labels a session has at the most.
const LABELS: u32 = 4;
/// How many messages an import has at the most: more than go into one of its transactions.
const MAX_IMPORT: u32 = 2_500;

/// The dice of one worker.
#[derive(Debug)]
pub(crate) struct Dice {
    rng: Rng,
    /// What the words of this process begin with; no other process's do.
    stem: String,
    count: u32,
}

impl Dice {
    pub(crate) fn new(seed: u64, worker: &str, opening: u32) -> Self {
        Self { rng: Rng::with_seed(seed), stem: format!("{worker}o{opening}"), count: 0 }
    }

    /// Returns a name that nothing bears yet.
    fn name(&mut self, kind: char) -> String {
        self.count += 1;
        format!("{}{kind}{}", self.stem, self.count)
    }

    fn said(&mut self) -> Said {
        let length = match self.rng.u32(..100) {
            0..80 => self.rng.u32(2..60),
            80..98 => self.rng.u32(100..1_000),
            _ => self.rng.u32(1_000..15_000),
        };
        Said::new(self.name('m'), length)
    }

    fn pick<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        (!of.is_empty()).then(|| &of[self.rng.usize(..of.len())])
    }

    /// Returns the next deed.
    pub(crate) fn next(&mut self, model: &Model) -> Deed {
        let deed = match self.rng.u32(..1_000) {
            0..270 => None,
            270..330 => Some(Deed::AppendAndCompact { message: self.said() }),
            330..360 => Some(Deed::CommitPlan {
                id: self.name('s'),
                first: String::new(),
                last: String::new(),
            }),
            360..370 => Some(Deed::StaleCompaction { message: self.said() }),
            370..470 => Some(self.batch(None)),
            470..530 => self.branch(model),
            530..610 => self.update(model),
            610..675 => self.pick(&model.bare_ids()).map(|id| Deed::Delete { id: (*id).clone() }),
            675..705 => self.compact(model),
            705..720 => self
                .pick(&model.compactions)
                .map(|compaction| Deed::RemoveCompaction { id: compaction.id.clone() }),
            // Nothing was ever written to a session without messages.
            720..725 => {
                let has_begun = !model.ids().is_empty();
                has_begun.then(|| Deed::Split { session: self.name('p') })
            }
            725..745 => self.leave(model),
            745..770 => Some(Deed::Tokens { are_words: self.rng.u32(..4) == 0 }),
            770..800 => self.label(model),
            800..825 => self.pick(&model.ids()).map(|id| Deed::Checkout { id: (*id).clone() }),
            825..842 => self.fork(model),
            842..910 => Some(Deed::Share { message: self.said() }),
            910..975 => self.search(model),
            975..985 => Some(self.import()),
            985..995 => Some(Deed::Backup { file: self.name('b') }),
            _ => Some(Deed::Create { file: self.name('c'), message: self.said() }),
        };
        deed.unwrap_or_else(|| Deed::Append { to: None, messages: vec![self.said()] })
    }

    fn batch(&mut self, to: Option<String>) -> Deed {
        let count = self.rng.u32(2..40);
        Deed::Append { to, messages: (0..count).map(|_| self.said()).collect() }
    }

    fn branch(&mut self, model: &Model) -> Option<Deed> {
        let to = (*self.pick(&model.ids())?).clone();
        match self.rng.bool() {
            true => Some(self.batch(Some(to))),
            false => Some(Deed::Append { to: Some(to), messages: vec![self.said()] }),
        }
    }

    fn update(&mut self, model: &Model) -> Option<Deed> {
        let id = (*self.pick(&model.ids())?).clone();
        let text: Text = self.said().text;
        Some(Deed::Update { message: Said { id, text } })
    }

    /// Compacts a stretch of messages that all show.
    fn compact(&mut self, model: &Model) -> Option<Deed> {
        let shown = model.shown();
        let at = self.rng.usize(..shown.len().max(1));
        let is_message = |id: &&String| model.word(id).is_some();
        let width = self.rng.usize(2..30);
        let stretch: Vec<&String> =
            shown.iter().skip(at).take_while(is_message).take(width).collect();
        let (first, last) = (stretch.first()?.to_string(), stretch.last()?.to_string());
        Some(Deed::Compact { id: self.name('s'), first, last })
    }

    fn leave(&mut self, model: &Model) -> Option<Deed> {
        let to = (*self.pick(&model.ids())?).clone();
        Some(Deed::Leave { to, message: self.said() })
    }

    fn label(&mut self, model: &Model) -> Option<Deed> {
        let id = (*self.pick(&model.ids())?).clone();
        Some(Deed::Label { name: format!("label {}", self.rng.u32(..LABELS)), id })
    }

    /// Forks at a message that the history shows.
    fn fork(&mut self, model: &Model) -> Option<Deed> {
        let shown = model.shown();
        let at = self.pick(&shown).filter(|id| model.word(id).is_some())?.clone();
        Some(Deed::Fork { session: self.name('f'), at })
    }

    fn search(&mut self, model: &Model) -> Option<Deed> {
        let id = (*self.pick(&model.ids())?).clone();
        let word = model.word(&id)?.to_owned();
        Some(Deed::Search { id, word })
    }

    fn import(&mut self) -> Deed {
        let count = match self.rng.u32(..4) > 0 {
            true => self.rng.u32(1..100),
            false => self.rng.u32(100..MAX_IMPORT),
        };
        Deed::Import { session: self.name('i'), count }
    }
}
