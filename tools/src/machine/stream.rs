//! QEMU's migration stream, as far as devices are concerned: it holds all of their state, also what no
//! monitor command shows, and at its end a description of every field in JSON.
//!
//! A device's section begins with a byte 4, the section's number, name, instance and version, and ends
//! with a footer that repeats the number; numbers are big-endian. What lies before the devices, memory
//! above all, is skipped by looking for the section's beginning and checking that its footer is where
//! the description says.

use std::collections::BTreeMap;

use anyhow::{ensure, Context, Result};
use serde::Deserialize;

const SECTION_FULL: u8 = 4;
const SUBSECTION: u8 = 5;
const DESCRIPTION: u8 = 6;
const FOOTER: u8 = 0x7e;

/// Numbers by their path, such as `env.segs[4].base`; fields of more than 8 bytes are left out.
pub type Fields = BTreeMap<String, u64>;

/// A stream.
pub struct Stream<'s> {
    bytes: &'s [u8],
    description: Description,
}

#[derive(Deserialize)]
struct Description {
    devices: Vec<Device>,
}

#[derive(Deserialize)]
struct Device {
    name: String,
    instance_id: u32,
    version: u32,
    #[serde(default)]
    fields: Vec<Field>,
    #[serde(default)]
    subsections: Vec<Subsection>,
}

#[derive(Deserialize)]
struct Subsection {
    vmsd_name: String,
    #[serde(default)]
    fields: Vec<Field>,
    #[serde(default)]
    subsections: Vec<Subsection>,
}

#[derive(Deserialize)]
struct Field {
    name: String,
    #[serde(default)]
    index: Option<usize>,
    #[serde(default)]
    array_len: Option<usize>,
    size: usize,
    #[serde(rename = "struct", default)]
    parts: Option<Structure>,
}

#[derive(Deserialize)]
struct Structure {
    #[serde(default)]
    fields: Vec<Field>,
    #[serde(default)]
    subsections: Vec<Subsection>,
}

impl<'s> Stream<'s> {
    /// # Errors
    /// There is no description at the end, or one that does not read.
    pub fn parse(bytes: &'s [u8]) -> Result<Self> {
        // The byte, the length, and the text.
        let text = (5..bytes.len())
            .rev()
            .find_map(|start| {
                let text = &bytes[start..];
                let length = u32::from_be_bytes(bytes[start - 4..start].try_into().ok()?) as usize;
                let is_it = bytes[start - 5] == DESCRIPTION
                    && text.first() == Some(&b'{')
                    && (length..=length + 1).contains(&text.len());
                is_it.then(|| &text[..length])
            })
            .context("the migration stream does not end in a description")?;
        let description = serde_json::from_slice(text)
            .context("the description of the migration stream cannot be read")?;
        Ok(Self { bytes, description })
    }

    /// The instances of the device `name`.
    pub fn instances(&self, name: &str) -> impl Iterator<Item = u32> + '_ {
        let name = name.to_owned();
        let devices = self.description.devices.iter();
        devices
            .filter(move |device| device.name == name)
            .map(|device| device.instance_id)
    }

    /// The fields of a device.
    ///
    /// # Errors
    /// There is none of that name and instance, or its section is not as described.
    pub fn device(&self, name: &str, instance: u32) -> Result<Fields> {
        let device = self
            .description
            .devices
            .iter()
            .find(|device| device.name == name && device.instance_id == instance)
            .with_context(|| format!("the machine has no `{name}` of number {instance}"))?;
        let mut tail = vec![u8::try_from(name.len())?];
        tail.extend(name.as_bytes());
        tail.extend(instance.to_be_bytes());
        tail.extend(device.version.to_be_bytes());
        (5..self.bytes.len().saturating_sub(tail.len()))
            .filter(|&at| self.bytes[at - 5] == SECTION_FULL && self.bytes[at..].starts_with(&tail))
            .find_map(|at| {
                let mut reader = Reader {
                    bytes: &self.bytes[at + tail.len()..],
                    fields: Fields::new(),
                };
                reader.fields("", &device.fields)?;
                reader.subsections(&device.subsections)?;
                let footer = reader.take(5)?;
                let is_whole = footer[0] == FOOTER && footer[1..] == self.bytes[at - 4..at];
                is_whole.then_some(reader.fields)
            })
            .with_context(|| format!("the section of `{name}` is not as it is described"))
    }
}

struct Reader<'s> {
    bytes: &'s [u8],
    fields: Fields,
}

impl<'s> Reader<'s> {
    fn take(&mut self, count: usize) -> Option<&'s [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(count)?;
        self.bytes = rest;
        Some(taken)
    }

    fn fields(&mut self, prefix: &str, fields: &[Field]) -> Option<()> {
        for field in fields {
            let path = format!("{prefix}{}", field.name);
            match (field.array_len, field.index) {
                (Some(count), _) => {
                    for i in 0..count {
                        self.field(&format!("{path}[{i}]"), field)?;
                    }
                }
                (None, Some(i)) => self.field(&format!("{path}[{i}]"), field)?,
                (None, None) => self.field(&path, field)?,
            }
        }
        Some(())
    }

    fn field(&mut self, path: &str, field: &Field) -> Option<()> {
        if let Some(parts) = &field.parts {
            self.fields(&format!("{path}."), &parts.fields)?;
            return self.subsections(&parts.subsections);
        }
        let bytes = self.take(field.size)?;
        if bytes.len() <= 8 {
            let value = bytes
                .iter()
                .fold(0, |value, &byte| value << 8 | u64::from(byte));
            self.fields.insert(path.to_owned(), value);
        }
        Some(())
    }

    fn subsections(&mut self, subsections: &[Subsection]) -> Option<()> {
        for subsection in subsections {
            let name = subsection.vmsd_name.as_bytes();
            let header = self.take(2 + name.len() + 4)?;
            let is_it = header[0] == SUBSECTION && header[2..].starts_with(name);
            is_it.then_some(())?;
            self.fields("", &subsection.fields)?;
            self.subsections(&subsection.subsections)?;
        }
        Some(())
    }
}

/// The number `name` of `fields`.
///
/// # Errors
/// There is none.
pub fn number(fields: &Fields, name: &str) -> Result<u64> {
    ensure!(!name.is_empty());
    fields
        .get(name)
        .copied()
        .with_context(|| format!("QEMU's stream has no field `{name}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Memory that looks like a section, the section, and the description.
    fn example() -> Vec<u8> {
        let text =
            br#"{"page_size": 4096, "devices": [{"name": "cpu", "instance_id": 1, "version": 12,
            "fields": [{"name": "a", "type": "uint16", "size": 2},
                {"name": "s", "array_len": 2, "type": "struct", "size": 3,
                 "struct": {"fields": [{"name": "x", "size": 1}, {"name": "y", "size": 2}]}},
                {"name": "long", "size": 9}],
            "subsections": [{"vmsd_name": "cpu/more", "version": 1,
                "fields": [{"name": "z", "size": 4}]}]}]}"#;
        let head = [4, 0, 0, 0, 7, 3, b'c', b'p', b'u', 0, 0, 0, 1, 0, 0, 0, 12];
        let mut bytes = b"QEVM".to_vec();
        bytes.extend(head);
        bytes.extend([0; 50]);
        bytes.extend(head);
        bytes.extend([1, 2, 3, 4, 5, 6, 7, 8]);
        bytes.extend([0; 9]);
        bytes.extend([5, 8]);
        bytes.extend(b"cpu/more");
        bytes.extend([0, 0, 0, 1, 0, 0, 1, 0]);
        bytes.extend([0x7e, 0, 0, 0, 7, 0, 6]);
        bytes.extend((text.len() as u32).to_be_bytes());
        bytes.extend(text);
        bytes
    }

    #[test]
    fn fields_are_found_by_their_description() {
        let bytes = example();
        let stream = Stream::parse(&bytes).unwrap();
        assert_eq!(stream.instances("cpu").collect::<Vec<_>>(), [1]);
        let cpu = stream.device("cpu", 1).unwrap();
        let expected = [
            ("a", 0x0102),
            ("s[0].x", 3),
            ("s[0].y", 0x0405),
            ("s[1].x", 6),
            ("s[1].y", 0x0708),
            ("z", 0x100),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value));
        assert_eq!(cpu, Fields::from(expected));
    }

    #[test]
    fn what_is_not_as_described_is_an_error() {
        let bytes = example();
        let stream = Stream::parse(&bytes).unwrap();
        assert!(stream.device("cpu", 0).is_err());
        assert!(stream.device("apic", 1).is_err());
        assert!(Stream::parse(&bytes[..bytes.len() - 2]).is_err());
        let mut cut = bytes.clone();
        let footer = cut.iter().rposition(|&byte| byte == 0x7e).unwrap();
        cut[footer] = 0;
        assert!(Stream::parse(&cut).unwrap().device("cpu", 1).is_err());
    }
}
