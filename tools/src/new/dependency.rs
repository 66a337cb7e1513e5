//! How a project refers to Sandglass: by the path of a clone, or by git.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{bail, ensure, Context, Result};
use toml::Value;

use super::NewArgs;
use crate::{program, project, workspace};

/// A clone that is so many folders up, or fewer, is named relative to the project: both may be moved
/// together.
const NEAR: usize = 2;

/// Where a project by git expects a clone, unless the command is installed.
const BESIDE: &str = "../sandglass";

/// How a project refers to Sandglass.
#[derive(Debug)]
pub(super) enum Form {
    /// On the clone at this path, relative to the project or absolute.
    Path {
        clone: PathBuf,
        /// Where it was cloned from, if that is not of this machine; and its commit.
        url: Option<String>,
        rev: Option<String>,
    },
    /// On a commit of a repository.
    Git { url: String, rev: String },
}

impl Form {
    /// What the command line of `sandglass new` asks for, for a project in `folder`, which exists.
    ///
    /// # Errors
    /// It asks for the clone's commit, and there is none; or a folder cannot be found.
    pub(super) fn of(args: &NewArgs, folder: &Path) -> Result<Self> {
        let root = workspace::root();
        let head = project::head(&root);
        let Some(url) = &args.git else {
            return Ok(Self::Path {
                clone: path_between(folder, &root)?,
                url: origin(&root),
                rev: head,
            });
        };
        let rev = args.rev.clone().or(head);
        let rev = rev
            .context("this Sandglass is no clone, so its commit is unknown: use `--rev COMMIT`")?;
        ensure!(
            rev.len() >= 7 && rev.bytes().all(|byte| byte.is_ascii_hexdigit()),
            "`--rev {rev}` is no commit: it has at least 7 digits, 0 to 9 and a to f"
        );
        Ok(Self::by_git(url, &rev))
    }

    pub(super) fn by_git(url: &str, rev: &str) -> Self {
        Self::Git {
            url: url.to_owned(),
            rev: rev.to_owned(),
        }
    }

    /// How a `Cargo.toml` in the project's folder depends on the package in `folder` of the repository.
    ///
    /// # Errors
    /// No package is there.
    pub(super) fn dependency(&self, folder: &str) -> Result<String> {
        let metadata = program::workspace_metadata()?;
        program::package_in(&metadata, folder)?;
        Ok(match self {
            Self::Path { clone, .. } => {
                let path = quoted(&clone.join(folder).display().to_string());
                format!("{{ path = {path} }}")
            }
            Self::Git { url, rev } => {
                format!("{{ git = {}, rev = {} }}", quoted(url), quoted(rev))
            }
        })
    }

    /// Where the clone is, for a shell in the project's folder.
    pub(super) fn clone_path(&self) -> String {
        match self {
            Self::Path { clone, .. } => for_shell(&clone.display().to_string()),
            Self::Git { .. } => BESIDE.to_owned(),
        }
    }

    /// What to clone, for a shell; empty if it is not known.
    pub(super) fn url(&self) -> String {
        match self {
            Self::Path { url, .. } => for_shell(url.as_deref().unwrap_or_default()),
            Self::Git { url, .. } => for_shell(url),
        }
    }

    /// The commit, or a branch's head if it is not known.
    pub(super) fn rev(&self) -> String {
        match self {
            Self::Path { rev, .. } => rev.clone().unwrap_or_else(|| "HEAD".to_owned()),
            Self::Git { rev, .. } => rev.clone(),
        }
    }

    /// The command, as a shell in the project's folder calls it.
    pub(super) fn command(&self) -> String {
        match self {
            Self::Path { clone, .. } => for_shell(&clone.join("sandglass").display().to_string()),
            Self::Git { .. } => "sandglass".to_owned(),
        }
    }

    /// The command, as the value of an environment variable in cargo's configuration.
    pub(super) fn configured_command(&self) -> String {
        match self {
            Self::Path { clone, .. } => {
                let path = quoted(&clone.join("sandglass").display().to_string());
                format!("{{ value = {path}, relative = true }}")
            }
            Self::Git { .. } => quoted("sandglass"),
        }
    }

    /// Where to read about Sandglass: its repository, as far as it is known.
    pub(super) fn book(&self) -> String {
        match self {
            Self::Git { url, .. } | Self::Path { url: Some(url), .. } => url.clone(),
            Self::Path { clone, .. } => clone.join("README.md").display().to_string(),
        }
    }
}

/// A text in TOML.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// A word of a shell.
fn for_shell(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@~%".contains(c);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

/// The path from one folder to another: relative if that is near, else absolute.
fn path_between(from: &Path, to: &Path) -> Result<PathBuf> {
    let canonical = |path: &Path| {
        path.canonicalize()
            .with_context(|| format!("cannot find the folder `{}`", path.display()))
    };
    let (from, to) = (canonical(from)?, canonical(to)?);
    if to.to_str().is_none() {
        bail!(
            "the path `{}` is not UTF-8, which a `Cargo.toml` must be",
            to.display()
        );
    }
    let near = from.ancestors().enumerate().take(NEAR + 1);
    let relative = near.filter_map(|(up, folder)| {
        // The root of all folders is no place of the project's own.
        folder.parent()?;
        let rest = to.strip_prefix(folder).ok()?;
        Some(
            std::iter::repeat_n("..", up)
                .collect::<PathBuf>()
                .join(rest),
        )
    });
    Ok(relative.into_iter().next().unwrap_or(to))
}

/// Where the clone at `folder` was cloned from, if others can reach that, too.
fn origin(folder: &Path) -> Option<String> {
    let out = Command::new("git")
        .arg("-C")
        .arg(folder)
        .args(["remote", "get-url", "origin"])
        .output()
        .ok()?;
    let url = String::from_utf8(out.stdout).ok()?.trim().to_owned();
    let is_remote = url.contains("://") && !url.starts_with("file:") || url.contains('@');
    (out.status.success() && is_remote).then_some(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_named_in_the_form_that_was_asked_for() {
        let by_path = Form::Path {
            clone: PathBuf::from("../it's"),
            url: None,
            rev: None,
        };
        assert_eq!(
            by_path.dependency("user/runtime").unwrap(),
            r#"{ path = "../it's/user/runtime" }"#
        );
        assert_eq!(by_path.command(), r"'../it'\''s/sandglass'");
        assert_eq!(by_path.url(), "''");
        let by_git = Form::by_git("https://host/s", "abcdef0");
        assert_eq!(
            by_git.dependency("user/runtime").unwrap(),
            r#"{ git = "https://host/s", rev = "abcdef0" }"#
        );
        assert!(by_git.dependency("user/nothing").is_err());
    }

    #[test]
    fn a_clone_beside_the_project_is_named_relative_to_it() {
        let root = workspace::root().canonicalize().unwrap();
        let between = |from: &str| path_between(&root.join(from), &root).unwrap();
        assert_eq!(between("tools"), Path::new(".."));
        assert_eq!(between("tools/src"), Path::new("../.."));
        assert_eq!(between("tools/src/new"), root);
        let beside = path_between(&root.join("tools"), &root.join("user")).unwrap();
        assert_eq!(beside, Path::new("../user"));
        assert_eq!(path_between(Path::new("/"), &root).unwrap(), root);
    }
}
