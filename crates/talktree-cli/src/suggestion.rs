//! Commands that a message tells the user to run, ready to be copied.
//!
//! A copied command must ask the same store. So it names the store if the command line did.

use std::borrow::Cow;
use std::path::Path;
use std::sync::OnceLock;

use talktree::Store;

use crate::text::is_unsafe;

/// The option that names the store, with a blank after it.
static STORE: OnceLock<String> = OnceLock::new();

/// Notes the store of this command line. One that the environment names is found by a copied command, too.
pub(crate) fn set_store(store: Option<&Path>) {
    if let Some(path) = store {
        // It is set once, at the start.
        let address = path.to_string_lossy();
        let shown = if Store::is_url(path) { without_password(&address) } else { address };
        let _ = STORE.set(format!("--store {} ", quote(&shown)));
    }
}

/// Returns a URL with `***` for a password. It may be `postgresql://USER:PASSWORD@..`, or a parameter.
fn without_password(url: &str) -> Cow<'_, str> {
    let start = url.find("://").map_or(0, |at| at + 3);
    let mut shown = url.to_owned();
    if let Some(at) = url.rfind("password=") {
        let end = url[at..].find('&').map_or(url.len(), |end| at + end);
        shown.replace_range(at + "password=".len()..end, "***");
    }
    // A password with a character that ends an address is no valid one, but it is one.
    if let Some(end) = shown.rfind('@')
        && let Some(colon) = shown[start..end].find(':')
    {
        shown.replace_range(start + colon + 1..end, "***");
    }
    shown.into()
}

/// Returns a verb with arguments and options. If an argument begins with a minus, all come after `--`, which ends the options.
pub(crate) fn verb(verb: &str, arguments: &[&str], options: &str) -> String {
    let has_minus = arguments.iter().any(|argument| argument.starts_with('-'));
    let arguments = arguments.iter().map(|argument| quote(argument)).collect::<Vec<_>>().join(" ");
    let words = match has_minus {
        true => [verb, options, "--", &arguments],
        false => [verb, &arguments, options, ""],
    };
    words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Returns an option with its value, after `=` if it begins with a minus: after a space it would be read as another option.
pub(crate) fn option(name: &str, value: &str) -> String {
    let between = if value.starts_with('-') { '=' } else { ' ' };
    format!("--{name}{between}{}", quote(value))
}

/// Returns the flags that were given.
pub(crate) fn given(flags: &[(bool, &str)]) -> String {
    let given = flags.iter().filter(|(is_given, _)| *is_given).map(|(_, flag)| *flag);
    given.collect::<Vec<_>>().join(" ")
}

/// Returns a whole command line: `sessions` becomes `talktree sessions`, or `talktree --store STORE sessions`.
pub(crate) fn command(rest: &str) -> String {
    format!("talktree {}{rest}", STORE.get().map_or("", String::as_str))
}

/// Returns the word, quoted if a shell would change it.
pub(crate) fn quote(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    if !word.chars().any(is_unsafe) {
        return format!("'{}'", word.replace('\'', r"'\''"));
    }
    // A line break in quotation marks would begin a line of its own in a message.
    let mut quoted = String::from("$'");
    for c in word.chars() {
        match c {
            '\'' | '\\' => quoted.extend(['\\', c]),
            c if is_unsafe(c) => quoted += &format!("\\u{:04x}", u32::from(c)),
            c => quoted.push(c),
        }
    }
    quoted.push('\'');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_begins_with_a_minus_is_no_option() {
        assert_eq!(verb("show", &["a b", "m"], "--around 3"), "show 'a b' m --around 3");
        assert_eq!(verb("show", &["-home", "m"], "--around 3"), "show --around 3 -- -home m");
        assert_eq!(verb("restore", &["-home"], ""), "restore -- -home");
        assert_eq!(option("session", "-home"), "--session=-home");
        assert_eq!(option("session", "a b"), "--session 'a b'");
    }

    #[test]
    fn a_password_is_not_shown() {
        for (url, shown) in [
            (
                "postgresql://bot@db.example/chats?schema=x",
                "postgresql://bot@db.example/chats?schema=x",
            ),
            ("postgresql://bot:a:b@h/db", "postgresql://bot:***@h/db"),
            ("postgres://bot:a/b@c?d@h:5432/db?schema=x", "postgres://bot:***@h:5432/db?schema=x"),
            (
                "postgresql://h:5432/db?user=bot&password=p&schema=x",
                "postgresql://h:5432/db?user=bot&password=***&schema=x",
            ),
            ("postgresql://h/db?password=p", "postgresql://h/db?password=***"),
        ] {
            assert_eq!(without_password(url), shown);
        }
    }

    #[test]
    fn words_are_quoted_where_a_shell_needs_it() {
        for (word, quoted) in [
            ("log", "log"),
            ("a b", "'a b'"),
            ("it's", r"'it'\''s'"),
            ("", "''"),
            ("a\nb's", r"$'a\u000ab\'s'"),
            ("博物馆", "博物馆"),
        ] {
            assert_eq!(quote(word), quoted);
        }
    }
}
