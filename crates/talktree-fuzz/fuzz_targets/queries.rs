//! Searches for any text.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Err(what) = talktree_torture::hostile::queries(data) {
        panic!("{what}");
    }
});
