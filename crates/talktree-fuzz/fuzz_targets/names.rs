//! Runs verbs with any names.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Err(what) = talktree_torture::hostile::names(data) {
        panic!("{what}");
    }
});
