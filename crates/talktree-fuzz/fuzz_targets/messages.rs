//! Parses any bytes as a message and stores it.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Err(what) = talktree_torture::hostile::messages(data) {
        panic!("{what}");
    }
});
