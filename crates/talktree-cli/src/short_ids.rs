//! Short forms of ids for tables.

/// The minimum length of a shortened id.
const MIN_LENGTH: usize = 8;

/// A set of ids, to shorten each to a unique prefix.
pub(crate) struct ShortIds(Vec<String>);

impl ShortIds {
    pub(crate) fn new<'a>(ids: impl IntoIterator<Item = &'a str>) -> Self {
        let mut ids: Vec<String> = ids.into_iter().map(str::to_owned).collect();
        ids.sort_unstable();
        Self(ids)
    }

    /// Returns the shortest prefix of at least eight characters that no other id has.
    pub(crate) fn of<'a>(&self, id: &'a str) -> &'a str {
        let Ok(at) = self.0.binary_search_by(|other| other.as_str().cmp(id)) else { return id };
        let neighbours = [at.checked_sub(1), Some(at + 1)];
        let others = neighbours.into_iter().flatten().filter_map(|at| self.0.get(at));
        let common =
            others.map(|other| id.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count());
        let mut len = (common.max().unwrap_or(0) + 1).max(MIN_LENGTH);
        while len < id.len() && !id.is_char_boundary(len) {
            len += 1;
        }
        // An id that would lose only a few characters is not shortened.
        if len + 8 >= id.len() { id } else { &id[..len] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_shortened_to_unique_prefixes() {
        let ids = [
            "7f3a0c12-1111-4222-8333-444455556666",
            "7f3a0c12-2222-4222-8333-444455556666",
            "telegram:4711",
        ];
        let short = ShortIds::new(ids);
        assert_eq!(ids.map(|id| short.of(id)), ["7f3a0c12-1", "7f3a0c12-2", "telegram:4711"]);
        assert_eq!(ShortIds::new([ids[0]]).of(ids[0]), "7f3a0c12");
    }
}
