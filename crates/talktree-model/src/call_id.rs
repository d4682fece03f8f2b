//! Call ids that providers accept.

use std::collections::{HashMap, HashSet};

use uuid::Uuid;

/// Gives each call of a request an id that the provider accepts and that no other call has.
///
/// An id that fits is kept. Any other id is replaced by its first letters and its hash, so that it
/// is the same in every request. A second call with the same id gets a number.
pub(super) struct CallIds {
    max: usize,
    given: HashSet<String>,
    repeats: HashMap<String, u64>,
}

impl CallIds {
    /// `max` is the longest id in characters, at least 40.
    pub(super) fn new(max: usize) -> Self {
        Self { max, given: HashSet::new(), repeats: HashMap::new() }
    }

    pub(super) fn give(&mut self, id: &str) -> String {
        let fitting = fit(id, self.max);
        if self.given.insert(fitting.clone()) {
            return fitting;
        }
        let repeats = self.repeats.entry(fitting.clone()).or_default();
        loop {
            *repeats += 1;
            let number = format!("_{repeats}");
            let room = self.max.saturating_sub(number.len()).min(fitting.len());
            let numbered = format!("{}{number}", &fitting[..room]);
            if self.given.insert(numbered.clone()) {
                return numbered;
            }
        }
    }
}

fn fit(id: &str, max: usize) -> String {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    if !id.is_empty() && id.len() <= max && id.chars().all(fits) {
        return id.to_owned();
    }
    let letters = id.chars().map(|letter| if fits(letter) { letter } else { '_' });
    let letters: String = letters.take(16).collect();
    // Some endpoints refuse an id with `_` at an end.
    let letters = letters.trim_matches('_');
    let letters = if letters.is_empty() { "call" } else { letters };
    let hash = Uuid::new_v5(&Uuid::NAMESPACE_OID, id.as_bytes()).simple().to_string();
    format!("{letters}-{}", &hash[..16])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_id_that_fits_is_kept_and_another_is_the_same_every_time() {
        let mut ids = CallIds::new(40);
        assert_eq!(ids.give("toolu_01-a"), "toolu_01-a");
        let given = ids.give("functions.get:0");
        assert!(given.starts_with("functions_get_0-"), "{given}");
        assert_eq!(CallIds::new(40).give("functions.get:0"), given);
        assert_ne!(ids.give("functions.get/0"), given);
        assert!(ids.give("").starts_with("call-"));
        assert_eq!((ids.give("x"), ids.give("x"), ids.give("x_1")), three("x", "x_1", "x_1_1"));
    }

    fn three(a: &str, b: &str, c: &str) -> (String, String, String) {
        (a.to_owned(), b.to_owned(), c.to_owned())
    }

    proptest! {
        #[test]
        fn every_id_fits_and_is_given_once(
            given in prop::collection::vec("[ab_.:é]{0,3}|[a-z]{38,90}", 0..40),
        ) {
            let mut ids = CallIds::new(40);
            let mut seen = HashSet::new();
            for id in given {
                let id = ids.give(&id);
                prop_assert!((1..=40).contains(&id.len()));
                prop_assert!(id.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b)));
                prop_assert!(seen.insert(id));
            }
        }
    }
}
