//! The JSON schema of descriptions, for editors: made from the types that descriptions are read into.

use std::borrow::Cow;

use schemars::generate::SchemaSettings;
use schemars::{json_schema, JsonSchema, Schema, SchemaGenerator};

use super::document::{Document, Executable, PerLevel, Sources};
use super::quantity::{Bytes, Mebibytes, Micros, Number};

/// The schema, as text that ends with a newline.
///
/// # Panics
/// Never: a schema is JSON.
pub fn text() -> String {
    let schema = SchemaSettings::draft07()
        .into_generator()
        .into_root_schema_for::<Document>();
    let mut text = serde_json::to_string_pretty(&schema).expect("a schema is JSON");
    text.push('\n');
    text
}

impl JsonSchema for Executable {
    fn schema_name() -> Cow<'static, str> {
        "Executable".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let sources = generator.subschema_for::<Sources>();
        json_schema!({
            "description": "A package, one source in C, or the path of an ELF file, with a `/`; or a program in C: `{ c = [...] }`.",
            "anyOf": [{ "type": "string" }, sources]
        })
    }
}

impl<T: JsonSchema> JsonSchema for PerLevel<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("{}ByCriticality", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let value = generator.subschema_for::<T>();
        json_schema!({
            "description": "A value; or one for each criticality: `{ low = ..., high = ... }`.",
            "anyOf": [value, { "type": "object", "additionalProperties": value }]
        })
    }
}

/// A quantity: an integer, or text with one of these units.
macro_rules! quantity {
    ($quantity:ty, $name:literal, $about:literal, $pattern:literal) => {
        impl JsonSchema for $quantity {
            fn schema_name() -> Cow<'static, str> {
                $name.into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({
                    "description": $about,
                    "anyOf": [
                        { "type": "integer", "minimum": 0 },
                        { "type": "string", "pattern": $pattern }
                    ]
                })
            }
        }
    };
}

quantity!(
    Micros,
    "Time",
    "A time: an integer of µs, or text like \"250us\", \"5ms\", \"1s\".",
    "^[0-9]+ *(us|µs|ms|s)$"
);
quantity!(
    Bytes,
    "Size",
    "A size: an integer of bytes, or text like \"64KiB\", \"2MiB\".",
    "^[0-9]+ *(B|KiB|MiB|GiB)$"
);
quantity!(
    Mebibytes,
    "Memory",
    "An integer of MiB, or text like \"64MiB\", \"1GiB\".",
    "^[0-9]+ *(MiB|GiB)$"
);
quantity!(
    Number,
    "Number",
    "An integer, or a time like \"5ms\", which becomes µs.",
    "^[0-9]+ *(us|µs|ms|s)$"
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace;

    /// Where the schema stands in the repository.
    const COMMITTED: &str = "tools/system.schema.json";

    #[test]
    fn the_committed_schema_is_current() {
        let committed =
            std::fs::read_to_string(workspace::root().join(COMMITTED)).unwrap_or_default();
        assert!(
            committed == text(),
            "{COMMITTED} is not current: `./sandglass validate --schema > {COMMITTED}`"
        );
    }

    /// The properties that an object of the schema allows.
    fn keys(schema: &serde_json::Value) -> Vec<&str> {
        let properties = schema["properties"].as_object().unwrap();
        properties.keys().map(String::as_str).collect()
    }

    #[test]
    fn the_schema_has_the_keys_that_are_read_and_no_others() {
        let schema: serde_json::Value = serde_json::from_str(&text()).unwrap();
        assert!(
            keys(&schema).contains(&"component") && keys(&schema).contains(&"launcher-priority")
        );
        assert_eq!(schema["additionalProperties"], false);
        let component = &schema["definitions"]["Component"];
        assert!(keys(component).contains(&"timeout-handler"), "{component}");
        assert_eq!(
            component["required"],
            serde_json::json!(["name", "executable", "priority"])
        );
        for (name, definition) in schema["definitions"].as_object().unwrap() {
            let undocumented = definition["properties"].as_object().into_iter().flatten();
            for (key, property) in undocumented {
                let described =
                    property.get("description").is_some() || property.get("$ref").is_some();
                assert!(described, "`{key}` of {name}: {property}");
            }
        }
    }
}
