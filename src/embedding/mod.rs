//! Embeddings: vectors that a model of the program gives to texts, so that a search finds what was meant in other words.
//!
//! talktree has no model. A program brings an [`Embedder`]; [`Store::embed`](crate::Store::embed) keeps a vector beside each
//! message, and [`Search::by_meaning`](crate::search::Search::by_meaning) adds the messages whose vectors are nearest to that
//! of the query. A store that was never embedded pays nothing.

use std::fmt;
use std::sync::Arc;

use crate::callback;
use crate::error::{BoxError, Error, Result};

/// The maximum number of dimensions of a vector.
const MAX_DIMENSIONS: usize = 4_096;

/// Gives texts vectors: a model for embeddings, or a call of one.
///
/// It may be slow and call the library: no transaction is open and no lock is held while it runs. If it fails or panics,
/// the caller gets [`Error::Embedder`], and nothing of that batch is stored. There is no time limit; an embedder that needs
/// one returns an error itself.
///
/// ```
/// use talktree::{BoxError, Embedder, Message, Store};
///
/// /// Counts the letters, so that anagrams mean the same.
/// struct Letters;
///
/// impl Embedder for Letters {
///     fn name(&self) -> &str {
///         "letters-1"
///     }
///
///     fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, BoxError> {
///         let count = |text: &str, letter: u8| text.bytes().filter(|byte| *byte == letter).count() as f32;
///         Ok(texts.iter().map(|text| (b'a'..=b'z').map(|letter| count(text, letter)).collect()).collect())
///     }
/// }
///
/// let store = Store::open_in_memory()?;
/// store.session("s")?.append(Message::user("listen"))?;
/// store.embed(&Letters, |_| {})?;
///
/// assert_eq!(store.search("silent").run()?.hits.len(), 0);
/// assert_eq!(store.search("silent").by_meaning(Letters).run()?.hits.len(), 1);
/// # Ok::<(), talktree::Error>(())
/// ```
pub trait Embedder: Send + Sync {
    /// The name of the model and its version. Vectors of different names are never compared.
    fn name(&self) -> &str;

    /// Returns a vector for each text, all with the same number of dimensions, at most 4 096. Their length does
    /// not matter.
    ///
    /// # Errors
    /// Any error; the caller gets it as [`Error::Embedder`].
    fn embed(&self, texts: &[&str]) -> std::result::Result<Vec<Vec<f32>>, BoxError>;
}

impl<E: Embedder + ?Sized> Embedder for Arc<E> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn embed(&self, texts: &[&str]) -> std::result::Result<Vec<Vec<f32>>, BoxError> {
        (**self).embed(texts)
    }
}

/// The vectors that a store has of one [`Embedder`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Embedding {
    /// The name of the embedder.
    pub embedder: String,
    /// The dimensions of its vectors; `None` before the first one.
    pub dimensions: Option<usize>,
    /// How many messages were given to it.
    pub embedded: u64,
    /// How many messages it still has to be given.
    pub pending: u64,
}

/// The vector of a query.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct QueryVector {
    embedder: String,
    vector: Vector,
}

impl QueryVector {
    /// Returns the vector that the embedder gives to a text; `None` if the text is blank or its vector has no direction.
    ///
    /// # Errors
    /// [`Error::Embedder`].
    pub(crate) fn of(embedder: &dyn Embedder, text: &str) -> Result<Option<Self>> {
        if text.trim().is_empty() {
            return Ok(None);
        }
        let (name, vectors) = embed(embedder, &[text])?;
        let vector = vectors.into_iter().next().flatten();
        Ok(vector.map(|vector| Self { embedder: name, vector }))
    }

    /// Returns the name of the embedder.
    #[must_use]
    pub(crate) fn embedder(&self) -> &str {
        &self.embedder
    }

    pub(crate) fn vector(&self) -> &Vector {
        &self.vector
    }
}

impl fmt::Debug for QueryVector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} by {:?}", self.vector, self.embedder)
    }
}

/// Calls the embedder; returns its name and a vector for each text, `None` for one without a direction.
pub(crate) fn embed(
    embedder: &dyn Embedder,
    texts: &[&str],
) -> Result<(String, Vec<Option<Vector>>)> {
    let called = callback::call(|| {
        let vectors = embedder.embed(texts);
        // Its error and its name are the program's, too, and may panic.
        (embedder.name().to_owned(), vectors)
    });
    let (name, vectors) = called.map_err(|failed| Error::Embedder { source: failed.into() })?;
    let vectors = vectors.map_err(|source| Error::Embedder { source })?;
    Ok((name, checked(texts.len(), &vectors)?))
}

/// Returns the name of an embedder.
pub(crate) fn name_of(embedder: &dyn Embedder) -> Result<String> {
    callback::call(|| embedder.name().to_owned())
        .map_err(|failed| Error::Embedder { source: failed.into() })
}

fn checked(texts: usize, vectors: &[Vec<f32>]) -> Result<Vec<Option<Vector>>> {
    let refused = |why: String| Err(Error::Embedder { source: why.into() });
    if vectors.len() != texts {
        return refused(format!("{texts} texts have {} vectors", vectors.len()));
    }
    let dimensions = vectors.first().map_or(0, Vec::len);
    if let Some(other) = vectors.iter().find(|vector| vector.len() != dimensions) {
        return refused(format!("one vector has {dimensions} dimensions, another {}", other.len()));
    }
    if texts > 0 && !(1..=MAX_DIMENSIONS).contains(&dimensions) {
        return refused(format!(
            "a vector has {dimensions} dimensions; the maximum is {MAX_DIMENSIONS}"
        ));
    }
    if vectors.iter().flatten().any(|value| !value.is_finite()) {
        return refused("a vector has a value that is no finite number".to_owned());
    }
    Ok(vectors.iter().map(|vector| Vector::of(vector)).collect())
}

/// The greatest value of a dimension.
const MAX: f32 = 127.0;
/// The bytes of the factor before the dimensions.
const FACTOR_BYTES: usize = 4;

/// A vector as it is stored: the direction only, a factor, as `f32` in little-endian order, and a signed byte for each dimension.
///
/// Bytes take a quarter of the room of `f32` and are compared several times as fast. The cosine of two vectors differs
/// from the exact one by less than 0.01.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Vector(Vec<u8>);

impl Vector {
    /// Returns the direction of a vector of finite values; `None` if all are zero.
    pub(crate) fn of(values: &[f32]) -> Option<Self> {
        let greatest = values.iter().fold(0.0_f32, |greatest, value| greatest.max(value.abs()));
        if greatest == 0.0 {
            return None;
        }
        // Divided first: the square of a great or small `f32` is infinite or zero.
        let bytes: Vec<u8> =
            values.iter().map(|value| (value / greatest * MAX).round() as i8 as u8).collect();
        // The length of the rounded vector, so that its cosine with itself is 1.
        let length = (dot(&bytes, &bytes) as f32).sqrt();
        let mut vector = (1.0 / length).to_le_bytes().to_vec();
        vector.extend(bytes);
        Some(Self(vector))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn dimensions(&self) -> usize {
        self.0.len() - FACTOR_BYTES
    }
}

impl fmt::Debug for Vector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "vector of {} dimensions", self.dimensions())
    }
}

/// Returns the cosine of the angle between a vector and a stored one, from -1 to 1; `None` if the stored one has other
/// dimensions.
pub(crate) fn cosine(vector: &Vector, stored: &[u8]) -> Option<f32> {
    if stored.len() != vector.0.len() {
        return None;
    }
    let (factor, dimensions) = vector.0.split_first_chunk()?;
    let (stored_factor, stored_dimensions) = stored.split_first_chunk()?;
    let factor = f32::from_le_bytes(*factor) * f32::from_le_bytes(*stored_factor);
    let cosine = dot(dimensions, stored_dimensions) as f32 * factor;
    cosine.is_finite().then(|| cosine.clamp(-1.0, 1.0))
}

/// Returns the scalar product. Of [`MAX_DIMENSIONS`] it fits an `i32`.
fn dot(a: &[u8], b: &[u8]) -> i32 {
    let product = |(a, b): (&u8, &u8)| i32::from(i16::from(*a as i8) * i16::from(*b as i8));
    a.iter().zip(b).map(product).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Gives(Vec<Vec<f32>>);

    impl Embedder for Gives {
        fn name(&self) -> &str {
            "gives"
        }

        fn embed(&self, _: &[&str]) -> std::result::Result<Vec<Vec<f32>>, BoxError> {
            Ok(self.0.clone())
        }
    }

    /// Asserts why vectors for two texts are refused.
    #[track_caller]
    fn refuses(vectors: &[&[f32]], expected: &str) {
        let embedder = Gives(vectors.iter().map(|vector| vector.to_vec()).collect());
        let error = embed(&embedder, &["a", "b"]).unwrap_err().to_string();
        assert_eq!(error, format!("the embedder failed: {expected}"));
    }

    #[test]
    fn vectors_that_cannot_be_compared_are_refused() {
        refuses(&[&[1.0]], "2 texts have 1 vectors");
        refuses(&[&[1.0], &[1.0, 2.0]], "one vector has 1 dimensions, another 2");
        refuses(&[&[], &[]], "a vector has 0 dimensions; the maximum is 4096");
        refuses(
            &[&[1.0; 4_097], &[1.0; 4_097]],
            "a vector has 4097 dimensions; the maximum is 4096",
        );
        refuses(&[&[1.0], &[f32::NAN]], "a vector has a value that is no finite number");
    }

    #[test]
    fn a_vector_without_a_direction_is_none() -> Result<()> {
        let (_, vectors) = embed(&Gives(vec![vec![0.0, 0.0], vec![0.0, 1e-30]]), &["a", "b"])?;
        assert_eq!(vectors.iter().map(Option::is_some).collect::<Vec<_>>(), [false, true]);
        Ok(())
    }

    #[test]
    fn an_embedder_that_panics_is_an_error() {
        struct Panics;
        impl Embedder for Panics {
            fn name(&self) -> &str {
                "panics"
            }
            fn embed(&self, _: &[&str]) -> std::result::Result<Vec<Vec<f32>>, BoxError> {
                panic!("no model")
            }
        }
        let error = embed(&Panics, &["a"]).unwrap_err();
        assert_eq!(error.to_string(), "the embedder failed: it panicked: no model");
    }

    /// Returns the exact cosine.
    fn exact(a: &[f32], b: &[f32]) -> f32 {
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
    }

    #[test]
    fn cosines_are_near_the_exact_ones() {
        // Numbers of a multiplicative generator, between -1 and 1.
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as f32 / (1_u64 << 30) as f32 - 1.0
        };
        for dimensions in [2, 3, 384, 4_096] {
            for _ in 0..20 {
                let a: Vec<f32> = (0..dimensions).map(|_| next()).collect();
                let b: Vec<f32> = a.iter().map(|value| value + 0.5 * next()).collect();
                let (first, second) = (Vector::of(&a).unwrap(), Vector::of(&b).unwrap());
                let found = cosine(&first, second.bytes()).unwrap();
                assert!((found - exact(&a, &b)).abs() < 0.01, "{found} {}", exact(&a, &b));
            }
        }
    }

    #[test]
    fn only_the_direction_counts() {
        let small = Vector::of(&[1e-30, -3e-30]).unwrap();
        let great = Vector::of(&[1e30, -3e30]).unwrap();
        assert_eq!(small, great);
        assert!(cosine(&small, great.bytes()).unwrap() > 0.999_999);
        let opposite = Vector::of(&[-1.0, 3.0]).unwrap();
        assert!(cosine(&small, opposite.bytes()).unwrap() < -0.999_999);
    }

    #[test]
    fn a_stored_vector_of_another_length_or_damaged_has_no_cosine() {
        let vector = Vector::of(&[1.0, 2.0]).unwrap();
        assert_eq!(cosine(&vector, &[]), None);
        assert_eq!(cosine(&vector, Vector::of(&[1.0]).unwrap().bytes()), None);
        assert_eq!(cosine(&vector, &[0, 0, 0xC0, 0x7F, 1, 1]), None); // not a number
    }
}
