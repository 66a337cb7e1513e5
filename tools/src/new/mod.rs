//! `sandglass new`: a project of a user's own, outside of this repository, from a template.
//!
//! A template is a folder of `tools/templates/` with a `template.toml`, which says in `about` what it is
//! for. Its files, and those of the folder `common`, are copied to where they stand; in those that end with
//! `.in`, which they lose, [placeholders](placeholders) are replaced. That includes every `Cargo.toml`: cargo
//! must not take templates for packages.

mod dependency;
mod placeholders;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{bail, ensure, Context, Result};
use clap::Args;
use serde::Deserialize;

use self::dependency::Form;
use self::placeholders::Placeholders;
use crate::arch::Arch;
use crate::workspace;

/// The folder of templates, and what all projects have of it.
const TEMPLATES: &str = "tools/templates";
const COMMON: &str = "common";
/// What describes a template.
const ABOUT_FILE: &str = "template.toml";
/// Files that have placeholders end so.
const SUFFIX: &str = ".in";
/// Longest name of a system.
const MAX_NAME: usize = 32;

/// Arguments of `sandglass new`.
#[derive(Args)]
pub struct NewArgs {
    /// The project's folder, which is made; its last part is the system's name
    #[arg(value_name = "DIR", required_unless_present = "list")]
    pub folder: Option<PathBuf>,
    /// What to begin with; see `--list`
    #[arg(long, value_name = "NAME", default_value = "control-loop")]
    pub template: String,
    /// What the system is for, as its description says then
    #[arg(long, value_enum, default_value_t)]
    pub arch: Arch,
    /// List the templates
    #[arg(long)]
    pub list: bool,
    /// Depend on Sandglass by git, at URL [default: by path, on this clone]
    #[arg(long, value_name = "URL")]
    pub git: Option<String>,
    /// With `--git`: the commit [default: the one that this clone has checked out]
    #[arg(long, value_name = "COMMIT", requires = "git")]
    pub rev: Option<String>,
}

/// What `template.toml` says.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct About {
    /// Ends the sentence "a system on Sandglass: ...".
    about: String,
}

/// `sandglass new`.
pub fn run(args: &NewArgs) -> Result<ExitCode> {
    let templates = templates()?;
    let Some(folder) = args.folder.as_ref().filter(|_| !args.list) else {
        for (name, template) in &templates {
            println!("{name:<16}{}", template.about);
        }
        return Ok(ExitCode::SUCCESS);
    };
    let Some(template) = templates.get(&args.template) else {
        let names: Vec<&str> = templates.keys().map(String::as_str).collect();
        bail!(
            "there is no template `{}`; the templates are: {}",
            args.template,
            names.join(", ")
        );
    };
    let folder = std::path::absolute(folder)
        .with_context(|| format!("cannot find `{}`", folder.display()))?;
    let name = system_name(&folder)?;
    make_empty(&folder)?;
    let folder = &folder
        .canonicalize()
        .with_context(|| format!("cannot find `{}`", folder.display()))?;
    let form = Form::of(args, folder)?;
    let placeholders = Placeholders::new(name, args.arch, &template.about, &form);
    for part in [COMMON, args.template.as_str()] {
        copy(
            &workspace::root().join(TEMPLATES).join(part),
            folder,
            &placeholders,
        )?;
    }
    // The versions that are tested with this one; cargo removes what is not needed.
    copy_file(
        &workspace::root().join("Cargo.lock"),
        &folder.join("Cargo.lock"),
    )?;
    println!("made {}: {}\n", folder.display(), template.about);
    println!("    cd {}", folder.display());
    println!("    cargo test");
    println!(
        "    {} run SYSTEM.toml --icount 0 --timeout 60s",
        form.command()
    );
    Ok(ExitCode::SUCCESS)
}

/// The templates by name.
fn templates() -> Result<BTreeMap<String, About>> {
    let folder = workspace::root().join(TEMPLATES);
    let mut templates = BTreeMap::new();
    for entry in entries(&folder)? {
        let file = entry.join(ABOUT_FILE);
        if !file.is_file() {
            continue;
        }
        let text =
            fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        let about = toml::from_str(&text).with_context(|| format!("in {}", file.display()))?;
        let name = entry.file_name().unwrap_or_default().to_string_lossy();
        templates.insert(name.into_owned(), about);
    }
    Ok(templates)
}

/// What is in a folder.
fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let read = || -> std::io::Result<Vec<PathBuf>> {
        let entries = fs::read_dir(folder)?;
        entries.map(|entry| Ok(entry?.path())).collect()
    };
    read().with_context(|| format!("cannot read the folder {}", folder.display()))
}

/// The name of the system whose project is `folder`.
fn system_name(folder: &Path) -> Result<&str> {
    let name = folder.file_name().and_then(|name| name.to_str());
    let name = name.unwrap_or_default();
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    ensure!(
        (1..=MAX_NAME).contains(&name.len()) && name.chars().all(is_name),
        "`{name}` cannot be the name of a system: call the folder by 1 to {MAX_NAME} letters, digits, `-`, `_`"
    );
    Ok(name)
}

/// Makes the folder, unless it is there and empty.
fn make_empty(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)
        .with_context(|| format!("cannot make the folder `{}`", folder.display()))?;
    ensure!(
        entries(folder)?.is_empty(),
        "`{}` is not empty: a project is made in a new folder",
        folder.display()
    );
    Ok(())
}

/// Copies what is in the folder `from` of a template into the folder `to` of a project.
fn copy(from: &Path, to: &Path, placeholders: &Placeholders) -> Result<()> {
    fs::create_dir_all(to).with_context(|| format!("cannot make the folder `{}`", to.display()))?;
    for entry in entries(from)? {
        let name = entry.file_name().unwrap_or_default().to_string_lossy();
        if entry.is_dir() {
            copy(&entry, &to.join(name.as_ref()), placeholders)?;
        } else if let Some(name) = name.strip_suffix(SUFFIX) {
            // With its permissions.
            let target = to.join(name);
            copy_file(&entry, &target)?;
            let text = fs::read_to_string(&entry)
                .with_context(|| format!("cannot read {}", entry.display()))?;
            let text = placeholders
                .replace(&text)
                .with_context(|| format!("in {}", entry.display()))?;
            fs::write(&target, text)
                .with_context(|| format!("cannot write {}", target.display()))?;
        } else if name != ABOUT_FILE {
            copy_file(&entry, &to.join(name.as_ref()))?;
        }
    }
    Ok(())
}

fn copy_file(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to)
        .with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folders_name_is_a_systems() {
        assert_eq!(
            system_name(Path::new("/home/u/my-rig_2")).unwrap(),
            "my-rig_2"
        );
        for wrong in ["/", "/home/u/my rig", "/home/u/größe"] {
            let error = system_name(Path::new(wrong)).unwrap_err().to_string();
            assert!(error.contains("1 to 32 letters"), "{error}");
        }
    }

    #[test]
    fn a_template_is_a_folder_that_says_what_it_is_for() {
        let templates = templates().unwrap();
        for name in ["c", "control-loop", "edf", "modes", "server"] {
            assert!(!templates[name].about.is_empty());
        }
        assert!(!templates.contains_key(COMMON));
    }
}
