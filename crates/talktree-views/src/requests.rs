//! Histories, and the requests made from them.

use std::borrow::Cow;
use std::collections::HashSet;

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::Value;
use talktree::Message;
use talktree_model::{
    Provider, TruncateOptions, sanitize, to_ai_sdk, to_anthropic, to_openai_chat,
    to_openai_responses, truncate,
};

use crate::{Options, Result, histories, real};

/// The longest random history.
const LONGEST: usize = 12;

/// A provider, its conversion, and the name of its checker.
#[derive(Debug)]
pub(crate) struct Maker {
    pub(crate) provider: Provider,
    pub(crate) checker: &'static str,
    convert: fn(&[Message]) -> Value,
}

pub(crate) const MAKERS: [Maker; 4] = [
    Maker { provider: Provider::Anthropic, checker: "anthropic", convert: to_anthropic },
    Maker { provider: Provider::OpenAiChat, checker: "chat", convert: to_openai_chat },
    Maker {
        provider: Provider::OpenAiResponses,
        checker: "responses",
        convert: to_openai_responses,
    },
    Maker { provider: Provider::AiSdk, checker: "ai-sdk", convert: to_ai_sdk },
];

/// Returns random histories, and after them the real ones with the names of their files.
pub(crate) fn histories(options: &Options) -> Result<Vec<(String, Vec<Message>)>> {
    let mut seed = [0; 32];
    seed[..8].copy_from_slice(&options.seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let strategy = histories::histories(LONGEST);
    let mut found = Vec::with_capacity(options.cases);
    for case in 0..options.cases {
        let tree = strategy.new_tree(&mut runner).map_err(|reason| reason.to_string())?;
        found.push((format!("random {case}"), tree.current()));
    }
    if !options.short {
        found.extend(real::histories()?);
    }
    Ok(found)
}

impl Maker {
    /// Returns the requests of the histories, each once, with the name of its history.
    pub(crate) fn requests(&self, histories: &[(String, Vec<Message>)]) -> Vec<(String, Value)> {
        let options = TruncateOptions {
            max_text_chars: 60,
            max_output_chars: 60,
            ..TruncateOptions::default()
        };
        let mut seen = HashSet::new();
        let mut requests = Vec::new();
        for (name, view) in histories {
            let sane = sanitize(view);
            let cut = truncate(&sane, &options);
            // Without the repairs that a caller makes, with them, and shortened.
            for view in [Cow::Borrowed(&view[..]), Cow::Borrowed(&sane[..]), cut] {
                let request = (self.convert)(&view);
                if seen.insert(request.to_string()) {
                    requests.push((name.clone(), request));
                }
            }
        }
        requests
    }
}
