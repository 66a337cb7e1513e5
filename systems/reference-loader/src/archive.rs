//! The files of an archive (cpio, newc).

/// Bytes of a header, and where it has the sizes of the content and of the name, 8 hexadecimal digits each.
const HEADER: usize = 110;
const CONTENT_SIZE: usize = 54;
const NAME_SIZE: usize = 94;
const MAGIC: &[u8] = b"070701";

/// The rest of an archive.
pub struct Files<'a>(&'a [u8]);

impl<'a> Files<'a> {
    pub const fn new(archive: &'a [u8]) -> Self {
        Self(archive)
    }
}

impl<'a> Iterator for Files<'a> {
    /// Name and content.
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let header = self.0.get(..HEADER)?;
        if !header.starts_with(MAGIC) {
            return None;
        }
        let size = |at: usize| {
            let digits = core::str::from_utf8(header.get(at..at + 8)?).ok()?;
            usize::from_str_radix(digits, 16).ok()
        };
        let (name_size, content_size) = (size(NAME_SIZE)?, size(CONTENT_SIZE)?);
        // The name ends with a zero. It and the content are filled up to words.
        let content_at = (HEADER + name_size).next_multiple_of(4);
        let name = self.0.get(HEADER..HEADER + name_size.checked_sub(1)?)?;
        let content = self.0.get(content_at..content_at + content_size)?;
        self.0 = self
            .0
            .get((content_at + content_size).next_multiple_of(4)..)?;
        Some((name, content))
    }
}
