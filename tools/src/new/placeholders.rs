//! What stands for something else in the files of a template.
//!
//! | placeholder | stands for |
//! | --- | --- |
//! | `{{name}}` | the name of the system |
//! | `{{arch}}` | a line of the description that says the architecture, unless that is the usual one |
//! | `{{about}}` | what the template is for |
//! | `{{crate FOLDER}}` | how a `Cargo.toml` depends on the package in FOLDER of this repository |
//! | `{{clone}}`, `{{url}}`, `{{rev}}` | where the clone of Sandglass is, what to clone, and the commit; for a shell |
//! | `{{sandglass}}` | the command, as a shell calls it from the project's folder |
//! | `{{command}}` | the command, as the value of a variable in cargo's configuration |
//! | `{{book}}` | where to read about Sandglass |

use anyhow::{bail, Result};

use super::dependency::Form;
use crate::arch::Arch;

/// The values.
pub(super) struct Placeholders<'a> {
    name: &'a str,
    arch: Arch,
    about: &'a str,
    form: &'a Form,
}

impl<'a> Placeholders<'a> {
    pub(super) fn new(name: &'a str, arch: Arch, about: &'a str, form: &'a Form) -> Self {
        Self {
            name,
            arch,
            about,
            form,
        }
    }

    /// A file of a template with its placeholders replaced. What follows a `$` is none: so files of others
    /// write theirs.
    ///
    /// # Errors
    /// One is unknown.
    pub(super) fn replace(&self, text: &str) -> Result<String> {
        let mut replaced = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            replaced.push_str(before);
            let Some((placeholder, behind)) = after.split_once("}}") else {
                bail!("a placeholder does not end");
            };
            match before.ends_with('$') {
                true => replaced.push_str(&format!("{{{{{placeholder}}}}}")),
                false => replaced.push_str(&self.value(placeholder)?),
            }
            rest = behind;
        }
        replaced.push_str(rest);
        Ok(replaced)
    }

    fn value(&self, placeholder: &str) -> Result<String> {
        if let Some(folder) = placeholder.strip_prefix("crate ") {
            return self.form.dependency(folder);
        }
        Ok(match placeholder {
            "name" => self.name.to_owned(),
            "arch" if self.arch == Arch::default() => String::new(),
            "arch" => format!("\narch = \"{}\"", self.arch.name()),
            "about" => self.about.to_owned(),
            "clone" => self.form.clone_path(),
            "url" => self.form.url(),
            "rev" => self.form.rev(),
            "sandglass" => self.form.command(),
            "command" => self.form.configured_command(),
            "book" => self.form.book(),
            _ => bail!("`{placeholder}` is no placeholder"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_replaced_and_unknown_ones_are_found() {
        let form = Form::by_git("https://host/sandglass", "abc");
        let placeholders = Placeholders::new("rig", Arch::Aarch64, "a rig", &form);
        assert_eq!(
            placeholders
                .replace("a {{name}}{{arch}} b {{rev}} ${{ name }} c")
                .unwrap(),
            "a rig\narch = \"aarch64\" b abc ${{ name }} c"
        );
        for wrong in ["{{nam}}", "{{name", "{{crate no/such/folder}}"] {
            assert!(placeholders.replace(wrong).is_err(), "{wrong}");
        }
    }
}
