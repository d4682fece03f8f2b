//! A source that grows, in each of its forms: whichever stages of it are imported, in any order, the store ends the same.

use proptest::prelude::*;
use talktree::{Result, Store};
use talktree_import::export::content_hash;
use talktree_import::{ImportOptions, ImportReport};

use crate::common::sources::PROGRAMS;
use crate::random;

/// The longest conversation.
const LONGEST: usize = 13;

fn import(store: &Store, path: &std::path::Path) -> Result<ImportReport> {
    let report = talktree_import::import(store, path, &ImportOptions::default(), |_| {})?;
    assert_eq!(report.records, report.kept + report.converted + report.dropped, "{report:#?}");
    assert!(report.first_fault().is_none(), "{report:#?}");
    Ok(report)
}

#[test]
fn stages_of_a_source_in_any_order_and_form_end_in_the_same_store() {
    let stages = proptest::collection::vec((1..=LONGEST, any::<prop::sample::Index>()), 1..6);
    for (program, forms) in PROGRAMS {
        let folder = tempfile::tempdir().unwrap();
        let expected = {
            let store = Store::open_in_memory().unwrap();
            let report = import(&store, &forms[0](folder.path(), LONGEST)).unwrap();
            assert_eq!(report.added, LONGEST as u64, "{program}: {report:#?}");
            content_hash(&store).unwrap()
        };
        let at_last = any::<prop::sample::Index>();
        random::check_all(random::cases(12), &(stages.clone(), at_last), |(mut stages, last)| {
            // Sooner or later all of it.
            let last = last.index(stages.len());
            stages[last].0 = LONGEST;
            let store = Store::open_in_memory()?;
            for (count, form) in stages {
                import(&store, &form.get(forms)(folder.path(), count))?;
            }
            assert_eq!(content_hash(&store)?, expected, "{program}");
            Ok(())
        })
        .unwrap();
    }
}
