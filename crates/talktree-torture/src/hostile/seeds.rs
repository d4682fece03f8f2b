//! Valid inputs and the pieces that make them hostile.

use talktree_import::Format;

/// Strings that have broken programs.
pub(super) const HOSTILE: &[&str] = &[
    "\"",
    "\\",
    "\0",
    "\u{202E}",
    "\u{200B}",
    "\u{FEFF}",
    "'",
    "''",
    "--",
    ";",
    "*",
    "NEAR(",
    ")",
    "AND",
    "OR",
    "NOT",
    "^",
    "-",
    "+",
    ":",
    "{",
    "}",
    "[",
    "]",
    ",",
    "null",
    "true",
    "1e999",
    "-0",
    "18446744073709551616",
    "\\ud800",
    "\\u0000",
    "in:text",
    "role:user",
    "before:2024-02-30",
    "after:9999-12-31",
    "session:",
    "近",
    "한국",
    "e\u{301}",
    "ﬁ",
    "\n",
    "\r\n",
    "DROP TABLE message",
    "NaN",
    "%s",
    "../..",
    "{\"",
    "\":",
    "[[[[[[[[[[[[[[[[",
    "999999999999999999999",
    "\u{10FFFF}",
];

/// Returns valid inputs of a check.
pub fn seeds(check: &str) -> Vec<Vec<u8>> {
    let texts: &[&str] = match check {
        "queries" => QUERIES,
        "importers" => FILES,
        "messages" => MESSAGES,
        _ => NAMES,
    };
    let mut seeds: Vec<Vec<u8>> = texts.iter().map(|text| text.as_bytes().to_vec()).collect();
    if check == "importers" {
        // The first byte chooses the importer.
        seeds = seeds
            .into_iter()
            .flat_map(|seed| formats().map(move |format| [&[format], seed.as_slice()].concat()))
            .collect();
    }
    seeds
}

/// What the first byte may be: none, or the number of a format.
fn formats() -> std::ops::RangeInclusive<u8> {
    0..=Format::ALL.len() as u8
}

const QUERIES: &[&str] = &[
    "coffee",
    "coffee garden",
    "\"coffee garden\"",
    "coffee OR garden -rollback",
    "gar*",
    "role:user coffee",
    "in:tools look",
    "after:2024-01-01 before:2025-01-01 coffee",
    "故宫",
    "what did I say about the garden last week?",
    "한국어 naïve",
    "-coffee",
    "",
    "C++ and foo-bar",
    // The steps of the ladder: tools, beginnings, joined and split words, spellings, any word.
    "kubectl apply",
    "compac histor",
    "session store",
    "hardlink gardengate",
    "seesion manger",
    "what about the yelow gardne?",
    "deploiment \"hard link\" -yellow zzyzzx",
    "w0o3m77 k77*",
    // Forms of words in other languages.
    "Haus mit Gärten",
    "le cheval mange",
    "собаками играют",
    "คำ 天気 북경",
    "exact:\"en, a\" HttpRequest .NET v0.14.2",
    "ｶﾞﾗｽ Straße عَرَبِيّ",
];

const FILES: &[&str] = &[
    "{\"format\":\"talktree\",\"version\":2}\n{\"type\":\"session\",\"id\":\"s\",\"name\":\"n\",\"created_at\":\"2024-01-01T00:00:00Z\"}\n{\"type\":\"message\",\"message\":{\"id\":\"a\",\"parent\":null,\"role\":\"user\",\"parts\":[{\"type\":\"text\",\"text\":\"hi\"}],\"created_at\":\"2024-01-01T00:00:00Z\"}}\n{\"type\":\"message\",\"message\":{\"id\":\"b\",\"parent\":\"a\",\"role\":\"assistant\",\"parts\":[{\"type\":\"text\",\"text\":\"ho\"}],\"created_at\":\"2024-01-01T00:00:01Z\"}}\n{\"type\":\"compaction\",\"id\":\"c\",\"first\":\"a\",\"last\":\"b\",\"count\":2,\"summary\":\"short\",\"created_at\":\"2024-01-01T00:00:02Z\"}\n{\"type\":\"label\",\"name\":\"best\",\"id\":\"b\"}\n{\"type\":\"head\",\"id\":\"a\"}\n{\"type\":\"end\",\"sessions\":1,\"messages\":2,\"compactions\":1,\"labels\":1,\"checksum\":\"\"}\n",
    "{\"type\":\"session\",\"id\":\"s\",\"created_at\":\"2024-01-01T00:00:00Z\"}\n{\"type\":\"message\",\"id\":\"a\",\"parent\":null,\"role\":\"user\",\"parts\":[{\"type\":\"text\",\"text\":\"hi\"}],\"created_at\":\"2024-01-01T00:00:00Z\"}\n",
    "{\"type\":\"user\",\"uuid\":\"a\",\"parentUuid\":null,\"sessionId\":\"s\",\"timestamp\":\"2024-01-01T00:00:00Z\",\"message\":{\"role\":\"user\",\"content\":\"hi\"}}\n{\"type\":\"assistant\",\"uuid\":\"b\",\"parentUuid\":\"a\",\"sessionId\":\"s\",\"timestamp\":\"2024-01-01T00:00:01Z\",\"message\":{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"ho\"},{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"look\",\"input\":{\"q\":1}}]}}\n",
    "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":\"2024-01-01T00:00:00Z\",\"cwd\":\"/\"}\n{\"type\":\"message\",\"id\":\"a\",\"parentId\":null,\"timestamp\":\"2024-01-01T00:00:00Z\",\"message\":{\"role\":\"user\",\"content\":\"hi\"}}\n{\"type\":\"compaction\",\"id\":\"b\",\"parentId\":\"a\",\"timestamp\":\"2024-01-01T00:00:00Z\",\"summary\":\"short\",\"firstKeptEntryId\":\"a\",\"tokensBefore\":10}\n",
    "[{\"id\":\"c\",\"title\":\"t\",\"create_time\":1.5,\"current_node\":\"n1\",\"mapping\":{\"n0\":{\"id\":\"n0\",\"parent\":null,\"children\":[\"n1\"],\"message\":null},\"n1\":{\"id\":\"n1\",\"parent\":\"n0\",\"children\":[],\"message\":{\"id\":\"n1\",\"author\":{\"role\":\"user\"},\"content\":{\"content_type\":\"text\",\"parts\":[\"hi\"]},\"create_time\":2.5}}}}]",
    "{\"message_tree_id\":\"t\",\"tree_state\":\"ready\",\"prompt\":{\"message_id\":\"a\",\"role\":\"prompter\",\"text\":\"hi\",\"lang\":\"en\",\"replies\":[{\"message_id\":\"b\",\"parent_id\":\"a\",\"role\":\"assistant\",\"text\":\"ho\",\"replies\":[]}]}}\n",
    "{\"message_id\":\"a\",\"parent_id\":null,\"message_tree_id\":\"a\",\"role\":\"prompter\",\"text\":\"hi\"}\n{\"message_id\":\"b\",\"parent_id\":\"a\",\"message_tree_id\":\"a\",\"role\":\"assistant\",\"text\":\"ho\"}\n",
    "[{\"role\":\"system\",\"content\":\"be kind\"},{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"hi\"}]},{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"t\",\"type\":\"function\",\"function\":{\"name\":\"look\",\"arguments\":\"{}\"}}]},{\"role\":\"tool\",\"tool_call_id\":\"t\",\"content\":\"found\"}]",
    "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}\n{\"messages\":[{\"role\":\"user\",\"content\":\"ho\"}]}\n",
    "[{\"id\":\"a\",\"role\":\"user\",\"parts\":[{\"type\":\"text\",\"text\":\"hi\"},{\"type\":\"tool-look\",\"toolCallId\":\"t\",\"state\":\"output-available\",\"input\":{},\"output\":1}]}]",
    "{\"timestamp\":\"2024-01-01T00:00:00Z\",\"type\":\"session_meta\",\"payload\":{\"id\":\"t\",\"forked_from_id\":\"o\"}}\n{\"timestamp\":\"2024-01-01T00:00:01Z\",\"type\":\"event_msg\",\"payload\":{\"type\":\"task_started\"}}\n{\"timestamp\":\"2024-01-01T00:00:01Z\",\"type\":\"response_item\",\"payload\":{\"type\":\"message\",\"role\":\"user\",\"content\":[{\"type\":\"input_text\",\"text\":\"hi\"}]}}\n{\"timestamp\":\"2024-01-01T00:00:02Z\",\"type\":\"response_item\",\"payload\":{\"type\":\"function_call\",\"name\":\"ls\",\"arguments\":\"{}\",\"call_id\":\"c\"}}\n{\"timestamp\":\"2024-01-01T00:00:03Z\",\"type\":\"response_item\",\"payload\":{\"type\":\"function_call_output\",\"call_id\":\"c\",\"output\":\"a\"}}\n{\"timestamp\":\"2024-01-01T00:00:03Z\",\"type\":\"event_msg\",\"payload\":{\"type\":\"token_count\",\"info\":{\"last_token_usage\":{\"input_tokens\":1}}}}\n{\"timestamp\":\"2024-01-01T00:00:04Z\",\"type\":\"compacted\",\"payload\":{\"message\":\"so far\"}}\n{\"timestamp\":\"2024-01-01T00:00:05Z\",\"type\":\"event_msg\",\"payload\":{\"type\":\"thread_rolled_back\",\"num_turns\":1}}\n",
    "{\"session\":{\"id\":\"t\"},\"items\":[{\"type\":\"message\",\"role\":\"user\",\"content\":[{\"type\":\"input_text\",\"text\":\"hi\"}]},{\"type\":\"reasoning\",\"summary\":[]}]}",
    "[{\"uuid\":\"c\",\"name\":\"t\",\"created_at\":\"2024-01-01T00:00:00Z\",\"chat_messages\":[{\"uuid\":\"a\",\"sender\":\"human\",\"text\":\"hi\",\"attachments\":[{\"file_name\":\"n\",\"extracted_content\":\"x\"}]},{\"uuid\":\"b\",\"sender\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"name\":\"w\",\"input\":{}},{\"type\":\"tool_result\",\"content\":[]},{\"type\":\"text\",\"text\":\"ho\"}],\"parent_message_uuid\":\"a\"}]}]",
    "{\"sessionId\":\"g\",\"projectHash\":\"a\",\"startTime\":\"2024-01-01T00:00:00Z\"}\n{\"id\":\"a\",\"type\":\"user\",\"content\":[{\"text\":\"hi\"}]}\n{\"id\":\"b\",\"type\":\"gemini\",\"content\":\"ho\",\"tokens\":{\"input\":1},\"toolCalls\":[{\"id\":\"c\",\"name\":\"ls\",\"args\":{},\"result\":[{\"functionResponse\":{\"id\":\"c\",\"response\":{\"output\":\"x\"}}}]}]}\n{\"$rewindTo\":\"b\"}\n{\"$set\":{\"messages\":[{\"id\":\"s\",\"type\":\"user\",\"content\":\"so far\"},{\"id\":\"a\",\"type\":\"user\",\"content\":\"hi\"}]}}\n",
    "{\"uuid\":\"a\",\"parentUuid\":null,\"sessionId\":\"s\",\"type\":\"user\",\"message\":{\"role\":\"user\",\"parts\":[{\"text\":\"hi\"}]}}\n{\"uuid\":\"b\",\"parentUuid\":\"a\",\"sessionId\":\"s\",\"type\":\"assistant\",\"message\":{\"role\":\"model\",\"parts\":[{\"functionCall\":{\"name\":\"ls\"}}]},\"usageMetadata\":{\"promptTokenCount\":1}}\n{\"uuid\":\"c\",\"parentUuid\":\"b\",\"sessionId\":\"s\",\"type\":\"system\",\"systemPayload\":{\"compressedHistory\":[{\"parts\":[{\"text\":\"so far\"}]}]}}\n",
    "{\"kind\":0,\"v\":{\"version\":3,\"sessionId\":\"v\",\"requests\":[]}}\n{\"kind\":2,\"k\":[\"requests\"],\"v\":[{\"requestId\":\"r\",\"message\":{\"text\":\"hi\"},\"response\":[]}]}\n{\"kind\":2,\"k\":[\"requests\",0,\"response\"],\"v\":[{\"value\":\"ho\"}],\"i\":0}\n{\"kind\":1,\"k\":[\"requests\",0,\"result\"],\"v\":{\"metadata\":{\"promptTokens\":1}}}\n{\"kind\":3,\"k\":[\"requests\",0]}\n",
    "{\"type\":\"session.start\",\"id\":\"a\",\"parentId\":null,\"data\":{\"sessionId\":\"s\"}}\n{\"type\":\"user.message\",\"id\":\"b\",\"parentId\":\"a\",\"data\":{\"content\":\"hi\"}}\n{\"type\":\"assistant.message\",\"id\":\"c\",\"parentId\":\"b\",\"data\":{\"content\":\"\",\"toolRequests\":[{\"toolCallId\":\"k\",\"name\":\"ls\",\"arguments\":{}}]}}\n{\"type\":\"tool.execution_complete\",\"id\":\"d\",\"parentId\":\"c\",\"data\":{\"toolCallId\":\"k\",\"success\":true,\"result\":{\"content\":\"x\"}}}\n{\"type\":\"session.snapshot_rewind\",\"id\":\"e\",\"parentId\":\"d\",\"data\":{\"upToEventId\":\"b\"}}\n{\"type\":\"session.shutdown\",\"id\":\"f\",\"parentId\":\"e\",\"data\":{\"modelMetrics\":{\"m\":{\"usage\":{\"inputTokens\":1}}}}}\n",
    "[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"<task>\\nhi\\n</task>\"}],\"ts\":1},{\"role\":\"assistant\",\"content\":\"ho\",\"condenseParent\":\"c\"},{\"role\":\"assistant\",\"content\":\"so far\",\"isSummary\":true,\"condenseId\":\"c\"}]",
    "{\"info\":{\"id\":\"ses_1\",\"title\":\"t\",\"time\":{\"created\":1772700000000},\"revert\":{\"messageID\":\"m3\"}},\"messages\":[{\"info\":{\"id\":\"m1\",\"sessionID\":\"ses_1\",\"role\":\"user\",\"time\":{\"created\":1772700000000}},\"parts\":[{\"id\":\"p1\",\"type\":\"text\",\"text\":\"hi\"},{\"id\":\"p2\",\"type\":\"compaction\",\"tail_start_id\":\"m1\"}]},{\"info\":{\"id\":\"m2\",\"role\":\"assistant\",\"summary\":true,\"finish\":\"stop\",\"tokens\":{\"input\":1,\"cache\":{\"read\":2}},\"cost\":0.1},\"parts\":[{\"type\":\"text\",\"text\":\"ho\"},{\"type\":\"tool\",\"callID\":\"c\",\"tool\":\"ls\",\"state\":{\"status\":\"completed\",\"input\":{},\"output\":\"a\",\"time\":{\"compacted\":1}}}]},{\"info\":{\"id\":\"m3\",\"role\":\"user\"},\"parts\":[{\"type\":\"file\",\"mime\":\"text/plain\",\"url\":\"data:,\"}]}]}",
    "{\"composerId\":\"c\",\"name\":\"n\",\"createdAt\":1772900000000,\"fullConversationHeadersOnly\":[{\"bubbleId\":\"b\",\"type\":1},{\"bubbleId\":\"d\",\"type\":2}],\"conversation\":[{\"bubbleId\":\"b\",\"type\":1,\"text\":\"hi\"},{\"bubbleId\":\"d\",\"type\":2,\"text\":\"ho\",\"thinking\":{\"text\":\"hm\"},\"toolFormerData\":{\"name\":\"read\",\"rawArgs\":\"{}\",\"result\":\"{}\",\"status\":\"completed\"},\"tokenCount\":{\"inputTokens\":1,\"outputTokens\":2}}]}\n{\"role\":\"user\",\"message\":{\"content\":\"<user_query>hi</user_query>\"}}\n",
    "[{\"id\":\"w\",\"title\":\"t\",\"created_at\":1773000000,\"meta\":{\"tags\":[\"x\"]},\"chat\":{\"models\":[\"m\"],\"history\":{\"currentId\":\"b\",\"messages\":{\"a\":{\"id\":\"a\",\"parentId\":null,\"childrenIds\":[\"b\"],\"role\":\"user\",\"content\":\"hi\",\"timestamp\":1773000001},\"b\":{\"id\":\"b\",\"parentId\":\"a\",\"role\":\"assistant\",\"content\":\"<details type=\\\"reasoning\\\"><summary>x</summary>hm</details>ho\",\"context_summary\":\"s\",\"output\":[{\"type\":\"function_call\",\"name\":\"f\",\"arguments\":\"{}\",\"call_id\":\"c\"},{\"type\":\"function_call_output\",\"call_id\":\"c\",\"output\":\"x\"}]},\"d\":{\"id\":\"d\",\"parentId\":\"b\",\"role\":\"user\",\"content\":\"so\"}}}}}]",
    "{\"conversationId\":\"l\",\"title\":\"t\",\"branches\":true,\"recursive\":true,\"messages\":[{\"messageId\":\"a\",\"parentMessageId\":\"00000000-0000-0000-0000-000000000000\",\"isCreatedByUser\":true,\"text\":\"hi\",\"createdAt\":\"2026-03-01T10:00:00Z\",\"children\":[{\"messageId\":\"b\",\"parentMessageId\":\"a\",\"isCreatedByUser\":false,\"content\":[{\"type\":\"think\",\"think\":\"hm\"},{\"type\":\"tool_call\",\"tool_call\":{\"id\":\"t\",\"name\":\"f\",\"args\":\"{}\",\"output\":\"x\"}}],\"tokenCount\":3,\"children\":[]}]}]}",
    "{\"working_dir\":\"/w\",\"description\":\"d\",\"id\":\"20260301_1\"}\n{\"role\":\"user\",\"created\":1773100000,\"content\":[{\"type\":\"text\",\"text\":\"hi\"}],\"metadata\":{\"agentVisible\":false}}\n{\"role\":\"assistant\",\"created\":1773100001,\"content\":[{\"type\":\"toolRequest\",\"id\":\"g\",\"toolCall\":{\"status\":\"success\",\"value\":{\"name\":\"f\",\"arguments\":{}}}}],\"metadata\":{\"userVisible\":false}}\n{\"role\":\"user\",\"created\":1773100002,\"content\":[{\"type\":\"toolResponse\",\"id\":\"g\",\"toolResult\":{\"status\":\"success\",\"value\":[{\"type\":\"text\",\"text\":\"a\"}]}}]}\n",
    "{\"type\":\"user\",\"uuid\":\"x\",\"parentUuid\":null,\"sessionId\":\"t\",\"forkedFrom\":{\"sessionId\":\"s\",\"messageUuid\":\"a\"},\"timestamp\":\"2024-01-01T00:00:00Z\",\"message\":{\"role\":\"user\",\"content\":\"hi\"}}\n{\"type\":\"assistant\",\"uuid\":\"y\",\"parentUuid\":\"x\",\"sessionId\":\"t\",\"forkedFrom\":{\"sessionId\":\"s\",\"messageUuid\":\"b\"},\"message\":{\"role\":\"assistant\",\"id\":\"m\",\"content\":\"ho\"}}\n{\"type\":\"system\",\"subtype\":\"compact_boundary\",\"uuid\":\"c\",\"parentUuid\":null,\"logicalParentUuid\":\"y\",\"sessionId\":\"t\",\"compactMetadata\":{\"preservedMessages\":{\"uuids\":[\"b\",\"y\"],\"anchorUuid\":\"d\"}}}\n{\"type\":\"user\",\"uuid\":\"d\",\"parentUuid\":\"c\",\"sessionId\":\"t\",\"isCompactSummary\":true,\"message\":{\"role\":\"user\",\"content\":\"so far\"}}\n{\"type\":\"user\",\"uuid\":\"z\",\"parentUuid\":\"y\",\"sessionId\":\"t\",\"message\":{\"role\":\"user\",\"content\":\"and?\"}}\n",
];

const MESSAGES: &[&str] = &[
    "{\"id\":\"m\",\"role\":\"user\",\"parts\":[{\"type\":\"text\",\"text\":\"hi\"}]}",
    "{\"id\":\"m\",\"role\":\"assistant\",\"parts\":[{\"type\":\"reasoning\",\"text\":\"so\"},{\"type\":\"tool-look\",\"toolCallId\":\"t\",\"state\":\"output-available\",\"input\":{\"q\":[1,2.5,-3e2]},\"output\":\"x\"},{\"type\":\"file\",\"mediaType\":\"image/png\",\"url\":\"data:,\"}],\"metadata\":{\"a\":null},\"createdAt\":\"2024-01-01T00:00:00.123456Z\"}",
    "{\"role\":\"system\",\"content\":\"be kind\",\"mood\":{\"deep\":[[[[1]]]]}}",
    "{\"id\":\"m\",\"role\":\"critic\",\"parts\":[{\"type\":\"data-x\",\"data\":1e400,\"s\":\"\\ud83d\"},{\"type\":\"dynamic-tool\",\"toolName\":\"n\",\"toolCallId\":\"t\",\"state\":\"input-streaming\"}]}",
];

const NAMES: &[&str] = &[
    "appendhead root delete branch label best checkout fork a compact a b",
    "\u{0}\u{1}\u{2}\u{3}\u{4}\u{5}\u{6}\u{7}\u{8}\u{9}",
    "0123456789abcdef0123456789abcdef",
    "\u{7f}zzzzzzzzzzzzzzzzzz",
];
