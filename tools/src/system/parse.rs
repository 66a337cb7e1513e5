//! From text to the keys of a description, with the parser's messages in the words of the book.

use super::check::names;
use super::document::Document;
use super::findings::{Finding, Span};
use super::quantity;

/// Most keys that are listed where one is unknown.
const MOST_LISTED: usize = 24;

/// Reads the keys of a description.
///
/// # Errors
/// The text is not TOML, or not of the shape of a description: the first place where it is not.
pub fn parse(text: &str) -> Result<Document, Box<Finding>> {
    toml::from_str(text).map_err(|error| {
        let span = error.span().unwrap_or(0..0);
        Box::new(explain(text, span, error.message()))
    })
}

/// What the parser's message means here.
fn explain(text: &str, span: Span, message: &str) -> Finding {
    if let Some(rest) = message.strip_prefix("unknown field ") {
        return unknown(span, "key", rest);
    }
    if let Some(rest) = message.strip_prefix("unknown variant ") {
        return unknown(span, "value", rest);
    }
    if let Some(key) = message.strip_prefix("missing field ") {
        return missing(text, span, key);
    }
    let misfit = message
        .strip_prefix("invalid type: ")
        .or_else(|| message.strip_prefix("invalid value: "))
        .and_then(|rest| rest.split_once(", expected "));
    match misfit {
        Some((found, expected)) => unfit(text, span, found, expected),
        None if message.starts_with("invalid length ") => unfit(text, span, "sequence", "a map"),
        None if message == "wanted string or table" => unfit(text, span, "another", "a string"),
        None => Finding::new(span, format!("this is not TOML: {message}"))
            .label("cannot be read")
            .help(remedy(message)),
    }
}

/// What would be TOML.
fn remedy(message: &str) -> &'static str {
    if message.contains("duplicate key") {
        "write each key and each `[table]` once; `[[table]]` may come several times"
    } else if message.contains("key with no value") {
        "give it a value: `key = ...`"
    } else if message.contains("array") {
        "put a comma between the elements of a list, and `]` behind the last"
    } else {
        "text stands in quotes, a list in `[...]`, a table in `{...}`, and each key on a line of its own"
    }
}

/// A key or value that there is none of; `rest` names it, and those that there are.
fn unknown(span: Span, what: &str, rest: &str) -> Finding {
    let mut quoted = rest.split('`').skip(1).step_by(2);
    let name = quoted.next().unwrap_or_default();
    let known: Vec<&str> = quoted.collect();
    let shown = known.iter().take(MOST_LISTED);
    let shown: Vec<String> = shown.map(|name| format!("`{name}`")).collect();
    let listed = format!("the {what}s here are: {}", shown.join(", "));
    let help = match names::similar(name, known.iter().copied()) {
        Some(meant) if what == "key" => format!("did you mean `{meant}`?"),
        Some(meant) => format!("did you mean `{meant}`? {listed}"),
        None if known.is_empty() => "remove it".to_owned(),
        None => listed,
    };
    Finding::new(span, format!("unknown {what} `{name}`"))
        .label(format!("no such {what} here"))
        .help(help)
}

/// A key that is not there; `key` is in backquotes.
fn missing(text: &str, span: Span, key: &str) -> Finding {
    let bare = key.trim_matches('`');
    let finding = Finding::new(first_line(text, span), format!("the key {key} is missing"));
    match bare {
        "name" => finding.help("add `name = \"...\"`: how others refer to it"),
        _ => finding.help(format!(
            "add `{bare} = ...`; the reference lists what each table needs"
        )),
    }
    .label("required in this table")
}

/// The part of a place up to the end of its first line.
fn first_line(text: &str, span: Span) -> Span {
    let place = text.get(span.clone()).unwrap_or_default();
    let end = place.find('\n').unwrap_or(place.len());
    span.start..span.start + end
}

/// A value of the wrong kind.
fn unfit(text: &str, span: Span, found: &str, expected: &str) -> Finding {
    let expected = match expected {
        "a string" | "a borrowed string" => "text in quotes".to_owned(),
        "i64" | "u64" | "usize" | "u32" => "an integer, without quotes".to_owned(),
        "a boolean" => "`true` or `false`, without quotes".to_owned(),
        "a sequence" => "a list: `[...]`".to_owned(),
        "a map" => "a table: `{ key = value }`".to_owned(),
        other if other.starts_with("struct ") => "a table: `{ key = value }`".to_owned(),
        other => other.to_owned(),
    };
    let takes_unit = expected.contains("text like");
    let subject = match key_before(text, span.start) {
        Some(key) => format!("the value of `{key}`"),
        None => "this value".to_owned(),
    };
    let value = text.get(span.clone()).unwrap_or_default();
    let finding = Finding::new(
        first_line(text, span),
        format!("{subject} is {}", kind(found)),
    )
    .label(format!("must be {expected}"));
    let bare = value.trim_matches(['"', '\'']);
    let is_quoted_number = bare.len() < value.len() && bare.parse::<u64>().is_ok();
    match quantity::suggestion(bare) {
        None if is_quoted_number && takes_unit => {
            finding.help("add a unit, or leave the quotes out")
        }
        None if is_quoted_number => finding.help(format!("write `{bare}`, without quotes")),
        Some(meant) => finding.help(meant),
        None if found == "sequence" => finding.help("write one value, without `[` and `]`"),
        None => finding,
    }
}

/// What was found, in the words of the book.
fn kind(found: &str) -> String {
    let value = || {
        found
            .split_once(' ')
            .map_or("", |(_, value)| value.trim_matches('`'))
    };
    match found {
        "sequence" => "a list".to_owned(),
        "map" => "a table".to_owned(),
        _ if found.starts_with("string ") => format!("the text {}", value()),
        _ if found.starts_with("integer ") => format!("the number {}", value()),
        _ if found.starts_with("floating point ") => "a number with a decimal point".to_owned(),
        _ if found.starts_with("boolean ") => format!("`{}`", value()),
        _ => "of another kind".to_owned(),
    }
}

/// The key whose value begins at `start`.
fn key_before(text: &str, start: usize) -> Option<&str> {
    let before = text.get(..start)?.trim_end().strip_suffix('=')?.trim_end();
    let is_key = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let key = before
        .rfind(|c| !is_key(c))
        .map_or(before, |at| &before[at..]);
    let key = key.trim_start_matches(|c| !is_key(c));
    (!key.is_empty()).then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_of_a_value_is_found() {
        let text = "a = 1\nclients = [{ component = 5 }]";
        assert_eq!(key_before(text, 4), Some("a"));
        assert_eq!(key_before(text, text.find('5').unwrap()), Some("component"));
        assert_eq!(key_before(text, text.find('{').unwrap()), None);
        assert_eq!(key_before("= 5", 2), None);
    }

    #[test]
    fn no_message_speaks_of_the_parser() {
        for text in [
            "name = 5",
            "name = [\"a\"]",
            "name = \"a\"\nmachine = 5",
            "name = \"a\"\nmachine = { memory = 1.5 }",
            "name = \"a\"\ncomponent = \"b\"",
            "name = \"a\"\n[[component]]\nname = \"b\"\nready = \"yes\"",
            "name = \"a\"\nmodes = []",
            "name = \"a\"\n[[resource]]\nname = \"b\"\nprotocol = 5",
            "name = true",
        ] {
            let finding = parse(text).unwrap_err();
            let said = format!("{} {} {}", finding.message, finding.label, finding.help);
            for jargon in [
                "sequence",
                "i64",
                "struct",
                "expected",
                "string",
                "invalid type",
                "map",
                "variant",
            ] {
                assert!(!said.contains(jargon), "{text}: {said}");
            }
        }
    }
}
