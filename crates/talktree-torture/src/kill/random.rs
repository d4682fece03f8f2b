//! Chooses the next operation of a worker at random.

use fastrand::Rng;

use super::model::Model;
use super::operation::Operation;
use super::transcripts::EntriesSpec;
use crate::text::{MessageSpec, TextSpec};

/// The maximum number of labels in a session.
const LABELS: u32 = 4;
/// The maximum number of messages in an import: more than wait for others in one transaction.
const MAX_IMPORT: u32 = 2_500;

/// The random choices of one worker.
#[derive(Debug)]
pub(crate) struct Choices {
    rng: Rng,
    /// The prefix of all names that this process makes; no other process has the same.
    stem: String,
    worker: String,
    count: u32,
}

impl Choices {
    pub(crate) fn new(seed: u64, worker: &str, opening: u32) -> Self {
        Self {
            rng: Rng::with_seed(seed),
            stem: format!("{worker}o{opening}"),
            worker: worker.to_owned(),
            count: 0,
        }
    }

    /// Returns an unused name.
    fn name(&mut self, kind: char) -> String {
        self.count += 1;
        format!("{}{kind}{}", self.stem, self.count)
    }

    fn message(&mut self) -> MessageSpec {
        let length = match self.rng.u32(..100) {
            0..80 => self.rng.u32(2..60),
            80..98 => self.rng.u32(100..1_000),
            _ => self.rng.u32(1_000..15_000),
        };
        MessageSpec::new(self.name('m'), length)
    }

    fn pick<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        (!of.is_empty()).then(|| &of[self.rng.usize(..of.len())])
    }

    /// Returns the next operation.
    pub(crate) fn next(&mut self, model: &Model) -> Operation {
        let operation = match self.rng.u32(..1_000) {
            0..270 => None,
            270..330 => Some(Operation::AppendAndCompact { message: self.message() }),
            330..360 => Some(Operation::CommitPlan {
                id: self.name('s'),
                first: String::new(),
                last: String::new(),
            }),
            360..370 => Some(Operation::CommitStalePlan { message: self.message() }),
            370..470 => Some(self.batch(None)),
            470..530 => self.branch(model),
            530..610 => self.update(model),
            610..675 => {
                self.pick(&model.bare_ids()).map(|id| Operation::Delete { id: (*id).clone() })
            }
            675..705 => self.compact(model),
            705..720 => self
                .pick(&model.compactions)
                .map(|compaction| Operation::RemoveCompaction { id: compaction.id.clone() }),
            // Splitting needs a session that exists, so one with messages. It is split once.
            720..725 => {
                let can_split = !model.ids().is_empty() && model.splits.is_empty();
                can_split.then(|| Operation::Split { session: self.name('p') })
            }
            725..745 => self.branch_summary(model),
            745..770 => Some(Operation::VisibleTokens { are_words: self.rng.u32(..4) == 0 }),
            770..800 => self.label(model),
            800..825 => self.pick(&model.ids()).map(|id| Operation::Checkout { id: (*id).clone() }),
            825..842 => self.fork(model),
            842..910 => Some(Operation::AppendShared { message: self.message() }),
            910..945 => self.search(model),
            945..965 => Some(self.entries(model)),
            965..975 => self.erasure(model),
            975..985 => Some(self.import()),
            985..995 => Some(Operation::Backup { file: self.name('b') }),
            _ => Some(Operation::Create { file: self.name('c'), message: self.message() }),
        };
        operation.unwrap_or_else(|| Operation::Append { to: None, messages: vec![self.message()] })
    }

    fn batch(&mut self, to: Option<String>) -> Operation {
        let count = self.rng.u32(2..40);
        Operation::Append { to, messages: (0..count).map(|_| self.message()).collect() }
    }

    fn branch(&mut self, model: &Model) -> Option<Operation> {
        let to = (*self.pick(&model.ids())?).clone();
        match self.rng.bool() {
            true => Some(self.batch(Some(to))),
            false => Some(Operation::Append { to: Some(to), messages: vec![self.message()] }),
        }
    }

    fn update(&mut self, model: &Model) -> Option<Operation> {
        let id = (*self.pick(&model.ids())?).clone();
        let text: TextSpec = self.message().text;
        Some(Operation::Update { message: MessageSpec { id, text } })
    }

    /// Compacts a range of messages that are all visible.
    fn compact(&mut self, model: &Model) -> Option<Operation> {
        let shown = model.shown();
        let at = self.rng.usize(..shown.len().max(1));
        let is_message = |id: &&String| model.word(id).is_some();
        let width = self.rng.usize(2..30);
        let range: Vec<&String> =
            shown.iter().skip(at).take_while(is_message).take(width).collect();
        let (first, last) = (range.first()?.to_string(), range.last()?.to_string());
        Some(Operation::ImportCompaction { id: self.name('s'), first, last })
    }

    fn branch_summary(&mut self, model: &Model) -> Option<Operation> {
        let to = (*self.pick(&model.ids())?).clone();
        Some(Operation::BranchSummary { to, message: self.message() })
    }

    fn label(&mut self, model: &Model) -> Option<Operation> {
        let id = (*self.pick(&model.ids())?).clone();
        Some(Operation::Label { name: format!("label {}", self.rng.u32(..LABELS)), id })
    }

    /// Forks at a visible message.
    fn fork(&mut self, model: &Model) -> Option<Operation> {
        let shown = model.shown();
        let at = self.pick(&shown).filter(|id| model.word(id).is_some())?.clone();
        Some(Operation::Fork { session: self.name('f'), at })
    }

    fn search(&mut self, model: &Model) -> Option<Operation> {
        let id = (*self.pick(&model.ids())?).clone();
        let word = model.word(&id)?.to_owned();
        Some(Operation::Search { id, word })
    }

    fn entries(&mut self, model: &Model) -> Operation {
        let count = if self.rng.bool() { self.rng.u32(1..10) } else { self.rng.u32(10..400) };
        let entries = EntriesSpec { stem: self.name('e'), count };
        Operation::AppendEntries { transcript: model.transcripts.current(&self.worker), entries }
    }

    /// Erases a transcript with its owner; first the one whose erasure was killed.
    fn erasure(&mut self, model: &Model) -> Option<Operation> {
        let transcript = model.transcripts.next_to_erase(&self.worker)?;
        Some(Operation::EraseOwner { transcript })
    }

    fn import(&mut self) -> Operation {
        let count = match self.rng.u32(..4) > 0 {
            true => self.rng.u32(1..100),
            false => self.rng.u32(100..MAX_IMPORT),
        };
        Operation::Import { session: self.name('i'), count }
    }
}
