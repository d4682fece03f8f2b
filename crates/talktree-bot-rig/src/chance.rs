//! Random choices.

use fastrand::Rng;

/// Returns one of these things, each with the probability of its share; else `None`. The shares add up to at most 1.
pub(crate) fn drawn<T, const N: usize>(shares: [(f64, T); N], rng: &mut Rng) -> Option<T> {
    let mut rest = rng.f64();
    for (share, thing) in shares {
        if rest < share {
            return Some(thing);
        }
        rest -= share;
    }
    None
}
