//! Comma-separated values.

use serde::Serialize;

/// A file of `lines` below a header. A line is a tuple, an array or a list of what is written as text or number; a
/// missing number leaves its field empty.
///
/// # Panics
/// A line has not as many fields as the header, or one that is neither text nor number.
pub fn text<H: AsRef<str>, L: Serialize>(
    header: impl IntoIterator<Item = H>,
    lines: impl IntoIterator<Item = L>,
) -> String {
    let mut writer = csv::WriterBuilder::new()
        .has_headers(false)
        .from_writer(Vec::new());
    let header: Vec<H> = header.into_iter().collect();
    let names = header.iter().map(AsRef::as_ref);
    writer
        .write_record(names.map(str::as_bytes))
        .expect("memory takes everything");
    for line in lines {
        writer
            .serialize(line)
            .expect("a line has the header's fields");
    }
    let bytes = writer.into_inner().expect("memory takes everything");
    String::from_utf8(bytes).expect("fields are text")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_as_it_was_given() {
        let lines = [("a", 1u64, Some(2u64), "0.50"), ("b, c", 3, None, "x")];
        assert_eq!(
            text(["name", "n", "maybe", "text"], lines),
            "name,n,maybe,text\na,1,2,0.50\n\"b, c\",3,,x\n"
        );
    }

    #[test]
    #[should_panic(expected = "the header's fields")]
    fn a_line_that_lacks_a_field_is_a_mistake() {
        text(["a", "b"], [["1"]]);
    }
}
