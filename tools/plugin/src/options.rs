//! What the command line of the plugin says.

use std::ops::Range;

use crate::barriers::BarrierMeter;
use crate::cores::CoreMeter;
use crate::meter::Meter;
use crate::times::Times;
use crate::touches::TouchMeter;
use crate::visiting::Visiting;
use crate::waits::{WaitMeter, WaitingCode};
use crate::watch::Layout;
use crate::{Measurement, Measuring, Out};

/// What the names of the arguments begin with that say where the kernel has something.
const WATCH: &str = "watch_";

/// What the command line says.
#[derive(Default)]
pub struct Options {
    pub begins: Vec<u64>,
    pub ends: Vec<u64>,
    pub points: Vec<u64>,
    /// Of each server.
    pub busy: Vec<u64>,
    pub free: Vec<u64>,
    /// What each core executes is measured.
    cores: bool,
    /// The function that waits for a turn, and the code that is executed meanwhile.
    waits: Vec<u64>,
    code: Vec<u64>,
    code_ends: Vec<u64>,
    /// The ways out of the kernel, and where the roots are that they load.
    exits: Vec<u64>,
    exit_ends: Vec<u64>,
    pub roots: Vec<u64>,
    /// Functions of the kernel; what visits touch that come to them is measured.
    touched: Vec<u64>,
    /// Where the kernel has what the oracle for time asks.
    layout: Option<Layout>,
    /// Physical address at which memory begins.
    pub ram: u64,
    out: Option<String>,
    /// What is watched on every visit of the kernel, and where that is written.
    visits: Option<String>,
    visits_out: Option<String>,
}

impl Options {
    /// Reads the arguments of the command line.
    ///
    /// # Errors
    /// One that there is not, or whose value cannot be read; or one is missing.
    pub fn parse(arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self::default();
        for argument in arguments {
            options.take(&argument)?;
        }
        options.check()?;
        Ok(options)
    }

    /// Finds what is missing.
    fn check(&self) -> Result<(), String> {
        if self.out.is_none() && self.visits.is_none() {
            return Err("where do the measurements go? Say `out=FILE`, or `visits=LIST` and `visits_out=FILE`".to_owned());
        }
        if self.layout.is_some_and(|layout| !layout.is_whole()) {
            return Err(
                "what the kernel's file says of itself is incomplete: give all `watch_NAME=NUMBER`"
                    .to_owned(),
            );
        }
        Ok(())
    }

    /// Takes one argument, `NAME=VALUE`.
    fn take(&mut self, argument: &str) -> Result<(), String> {
        let (name, value) = argument.split_once('=').unwrap_or((argument, ""));
        let list = match name {
            "out" | "visits" | "visits_out" => {
                let file = match name {
                    "out" => &mut self.out,
                    "visits" => &mut self.visits,
                    _ => &mut self.visits_out,
                };
                *file = Some(value.to_owned());
                return Ok(());
            }
            "cores" => {
                self.cores = true;
                return Ok(());
            }
            "ram" => {
                let address = u64::from_str_radix(value, 16);
                self.ram =
                    address.map_err(|_| format!("`{argument}`: not a hexadecimal address"))?;
                return Ok(());
            }
            "busy" => &mut self.busy,
            "free" => &mut self.free,
            "begin" => &mut self.begins,
            "end" => &mut self.ends,
            "point" => &mut self.points,
            "touch" => &mut self.touched,
            "wait" => &mut self.waits,
            "code" => &mut self.code,
            "code_end" => &mut self.code_ends,
            "exit" => &mut self.exits,
            "exit_end" => &mut self.exit_ends,
            "root" => &mut self.roots,
            _ if name.starts_with(WATCH) => return self.take_place(&name[WATCH.len()..], value),
            _ => return Err(format!("`{argument}`: there is no such argument")),
        };
        let address = u64::from_str_radix(value, 16);
        list.push(address.map_err(|_| format!("`{argument}`: not a hexadecimal address"))?);
        Ok(())
    }

    /// Takes the number `value` of what the kernel calls `name`.
    fn take_place(&mut self, name: &str, value: &str) -> Result<(), String> {
        let layout = self.layout.get_or_insert_default();
        let Some(field) = layout.field(name) else {
            return Err(format!("`{WATCH}{name}`: there is no such argument"));
        };
        let number = u64::from_str_radix(value, 16);
        *field =
            number.map_err(|_| format!("`{WATCH}{name}={value}`: not a hexadecimal number"))?;
        Ok(())
    }

    fn measurement(&self) -> Measurement {
        if let Some(layout) = self.layout {
            Measurement::Times(Times::Booting(layout, self.ram))
        } else if !self.touched.is_empty() {
            Measurement::Touches(TouchMeter::new(self.touched.clone()))
        } else if !self.exits.is_empty() {
            Measurement::Barriers(BarrierMeter::default())
        } else if self.cores {
            Measurement::Cores(CoreMeter::new(self.busy.len()))
        } else if self.waits.is_empty() {
            Measurement::Kernel(Meter::new())
        } else {
            Measurement::Waits(WaitMeter::default())
        }
    }

    /// What is measured, and where it goes; nothing if only visits are counted.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn measuring(&self) -> Result<Option<Measuring>, String> {
        let Some(path) = &self.out else {
            return Ok(None);
        };
        Ok(Some(Measuring {
            measurement: self.measurement(),
            out: Out::create(path)?,
        }))
    }

    /// The measurement of visits, if there is one.
    ///
    /// # Errors
    /// Its list cannot be read, or the file not be written.
    pub fn visiting(&self) -> Result<Option<Visiting>, String> {
        match (&self.visits, &self.visits_out) {
            (Some(list), Some(out)) => Visiting::new(list, out).map(Some),
            (None, None) => Ok(None),
            _ => Err("`visits=LIST` and `visits_out=FILE` go together".to_owned()),
        }
    }

    /// Whether the kernel first loads from the registers of the thread that runs next at `address`.
    pub fn is_first_load(&self, address: u64) -> bool {
        self.layout.is_some_and(|layout| layout.loads == address)
    }

    /// The code of the ways out of the kernel.
    pub fn exits(&self) -> Vec<Range<u64>> {
        let exits = self.exits.iter().zip(&self.exit_ends);
        exits.map(|(&start, &end)| start..end).collect()
    }

    /// The code in which cores wait.
    pub fn waiting_code(&self) -> WaitingCode {
        let code = self.code.iter().zip(&self.code_ends);
        WaitingCode {
            from: self.waits.clone(),
            code: code.map(|(&start, &end)| start..end).collect(),
        }
    }
}
