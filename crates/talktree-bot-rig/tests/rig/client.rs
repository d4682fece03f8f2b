//! A small client, as a bot has one.

use std::io::Read;
use std::time::Duration;

use serde_json::Value;

/// Posts a body and returns the status and the answer.
pub(crate) fn post(
    url: &str,
    headers: &[(&str, &str)],
    body: impl Into<Vec<u8>>,
) -> Result<(u16, String), ureq::Error> {
    let config = ureq::Agent::config_builder().http_status_as_error(false);
    let agent: ureq::Agent = config.timeout_global(Some(Duration::from_secs(10))).build().into();
    let mut request = agent.post(url);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let mut response = request.send(body.into())?;
    let mut text = String::new();
    response.body_mut().as_reader().read_to_string(&mut text)?;
    Ok((response.status().as_u16(), text))
}

/// Posts JSON.
#[allow(dead_code, reason = "each test file uses a part of this module")]
pub(crate) fn post_json(url: &str, body: &Value) -> Result<(u16, Value), ureq::Error> {
    let (status, text) = post(url, &[("content-type", "application/json")], body.to_string())?;
    Ok((status, serde_json::from_str(&text).unwrap()))
}
