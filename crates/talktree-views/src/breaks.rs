//! Breaks a request in one place.

use fastrand::Rng;
use serde_json::Value;

/// Returns the request with one place broken, and what was done there.
pub(crate) fn broken(request: &Value, rng: &mut Rng) -> (Value, String) {
    let mut places = Vec::new();
    places_of(request, &mut String::new(), &mut places);
    let mut broken = request.clone();
    for _ in 0..20 {
        let place = &places[rng.usize(..places.len())];
        if let Some(what) = broken.pointer_mut(place).and_then(|value| change(value, rng)) {
            return (broken, format!("{what} at {place}"));
        }
    }
    (broken, "nothing".to_owned())
}

/// Lists the places of all lists and objects, but not within what tools were called with and answered.
fn places_of(value: &Value, place: &mut String, places: &mut Vec<String>) {
    let length = place.len();
    match value {
        Value::Array(items) => {
            places.push(place.clone());
            for (at, item) in items.iter().enumerate() {
                place.push_str(&format!("/{at}"));
                places_of(item, place, places);
                place.truncate(length);
            }
        }
        Value::Object(fields) => {
            // A request has more fields than those that talktree makes.
            if !place.is_empty() {
                places.push(place.clone());
            }
            for (name, field) in fields {
                let is_free =
                    ["input", "data", "metadata", "extra_content", "output", "action", "approval"]
                        .contains(&name.as_str())
                        || name.ends_with("Metadata")
                        || name == "reasoning_details";
                if !is_free {
                    place.push_str(&format!("/{name}"));
                    places_of(field, place, places);
                    place.truncate(length);
                }
            }
        }
        _ => {}
    }
}

fn change(value: &mut Value, rng: &mut Rng) -> Option<String> {
    match value {
        Value::Array(items) if items.is_empty() => None,
        Value::Array(items) => {
            let at = rng.usize(..items.len());
            let what = match rng.u8(..3) {
                0 => {
                    items.remove(at);
                    "removed"
                }
                1 => {
                    items.insert(at, items[at].clone());
                    "doubled"
                }
                _ if at + 1 < items.len() => {
                    items.swap(at, at + 1);
                    "swapped"
                }
                _ => return None,
            };
            Some(format!("{what} {at}"))
        }
        Value::Object(fields) => {
            let names: Vec<String> = fields.keys().cloned().collect();
            let name = names.get(rng.usize(..names.len().max(1)))?;
            let what = match rng.u8(..6) {
                0 => {
                    fields.remove(name);
                    "removed"
                }
                1 => {
                    fields.insert(name.clone(), Value::Null);
                    "nulled"
                }
                2 => {
                    fields.insert(name.clone(), 7.into());
                    "numbered"
                }
                3 => {
                    fields.insert(name.clone(), " ".into());
                    "blanked"
                }
                4 => {
                    let given = fields.get(name)?.as_str()?.to_owned();
                    fields.insert(name.clone(), format!("{given}.x").into());
                    "changed"
                }
                _ => {
                    fields.insert("unheard_of".to_owned(), true.into());
                    "added to"
                }
            };
            Some(format!("{what} {name}"))
        }
        _ => None,
    }
}
