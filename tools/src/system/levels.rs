//! Levels of the log on the command line, in place of those in the description.

use std::str::FromStr;

use anyhow::{bail, Result};
use clap::ValueEnum;
use sandglass_description::LOG_LEVEL;

use super::{Description, LogLevel};

/// What one component is to log, or all that log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LevelOf {
    component: Option<String>,
    level: LogLevel,
}

impl FromStr for LevelOf {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (component, level) = match text.split_once('=') {
            Some((component, level)) => (Some(component.to_owned()), level),
            None => (None, text),
        };
        let level = LogLevel::from_str(level, false).map_err(|_| {
            format!("`{level}` is no level: error, warn, info, debug or trace, or COMPONENT=LEVEL")
        })?;
        Ok(Self { component, level })
    }
}

impl LevelOf {
    /// Sets the level in a description.
    ///
    /// # Errors
    /// The component does not exist, or does not log.
    pub fn apply(&self, description: &mut Description) -> Result<()> {
        let mut found = false;
        for component in &mut description.system.components {
            if self
                .component
                .as_ref()
                .is_some_and(|n| *n != component.name)
            {
                continue;
            }
            let mut parameters = component.parameters.iter_mut();
            if let Some(parameter) = parameters.find(|parameter| parameter.name == LOG_LEVEL) {
                parameter.value = self.level.number();
                found = true;
            }
        }
        match &self.component {
            _ if found => Ok(()),
            Some(name) => {
                bail!("no component `{name}` logs: `log = \"info\"` in its `[[component]]` lets it")
            }
            None => bail!("no component logs: `log = \"info\"` in a `[[component]]` lets it"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_one_components_or_everybodys() {
        let of = |text: &str| LevelOf::from_str(text);
        assert_eq!(
            of("pump=debug").unwrap(),
            LevelOf {
                component: Some("pump".to_owned()),
                level: LogLevel::Debug
            }
        );
        assert_eq!(of("warn").unwrap().component, None);
        assert!(of("pump=loud").unwrap_err().contains("`loud` is no level"));
    }
}
