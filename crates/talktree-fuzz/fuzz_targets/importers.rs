//! Imports any bytes.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Err(what) = talktree_torture::hostile::importers(data) {
        panic!("{what}");
    }
});
