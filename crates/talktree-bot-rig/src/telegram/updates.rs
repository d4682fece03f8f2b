//! The queue of updates, as Telegram keeps it.
//!
//! A poll with an offset confirms all updates below it. What is not confirmed is handed out again by the next poll.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Instant;

use serde_json::Value;

use super::faults::Chance;

/// How many confirmed updates are kept, to be handed out once more.
const KEPT: usize = 200;

/// The number of the first update.
const FIRST: i64 = 500_000_000;

#[derive(Debug, Default)]
pub(super) struct Updates {
    pushed: i64,
    waiting: BTreeMap<i64, Value>,
    confirmed: VecDeque<Value>,
    /// When each update was handed out for the last time.
    pub(super) handed: HashMap<i64, Instant>,
}

impl Updates {
    /// Adds an update and returns its number.
    pub(super) fn push(&mut self, mut update: Value) -> i64 {
        let id = FIRST + self.pushed;
        self.pushed += 1;
        update["update_id"] = id.into();
        self.waiting.insert(id, update);
        id
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Confirms what is below an offset; a negative one keeps that many of the newest.
    pub(super) fn confirm(&mut self, offset: i64) {
        let first = match offset {
            0.. => offset,
            _ => {
                let back = usize::try_from(-offset - 1).unwrap_or(usize::MAX);
                self.waiting.keys().rev().nth(back).copied().unwrap_or(0)
            }
        };
        let left = self.waiting.split_off(&first);
        self.confirmed.extend(std::mem::replace(&mut self.waiting, left).into_values());
        let excess = self.confirmed.len().saturating_sub(KEPT);
        self.confirmed.drain(..excess);
    }

    /// Returns the updates for a poll, with what goes wrong with them.
    pub(super) fn batch(&mut self, limit: usize, chance: &mut Chance) -> Vec<Value> {
        let mut batch: Vec<Value> = self.waiting.values().take(limit).cloned().collect();
        let now = Instant::now();
        for id in self.waiting.keys().take(limit) {
            self.handed.insert(*id, now);
        }
        if batch.is_empty() {
            return batch;
        }
        let twice: Vec<Value> = batch.iter().filter(|_| chance.is_duplicate()).cloned().collect();
        for update in twice {
            let at = chance.rng.usize(..=batch.len());
            batch.insert(at, update);
        }
        if !self.confirmed.is_empty() && chance.is_duplicate() {
            let old = chance.rng.usize(..self.confirmed.len());
            batch.push(self.confirmed[old].clone());
        }
        if chance.is_shuffled() {
            chance.rng.shuffle(&mut batch);
        }
        batch
    }
}
