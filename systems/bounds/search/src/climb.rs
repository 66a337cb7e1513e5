//! Climbing to the worst arrangement of one operation.

use std::collections::HashMap;
use std::time::Instant;

use sandglass_arrangements::{run, Arrangement};

use crate::counters;
use crate::host::Host;

/// The parameter that is not searched beyond what the limits for usual systems hold for, and how many
/// of its values are: deeper ones are measured always, and cost more by what the depth costs.
const DEPTH: &str = "levels";
const DEPTHS: usize = 2;

/// Numbers that look like chance (xorshift64*).
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let number = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        number as usize % limit.max(1)
    }
}

pub struct Climber {
    /// The parameters that stay have the values that they have here: the first ones.
    plain: Arrangement,
    fixed: usize,
    size: u64,
    host: Host,
    chance: Chance,
    /// What was tried.
    costs: HashMap<Arrangement, u64>,
    climbs: u64,
    /// The cost of the plain arrangement.
    first_cost: u64,
    worst: Option<(u64, Arrangement)>,
}

impl Climber {
    /// From `plain` on, whose first `fixed` parameters stay.
    pub fn new(plain: Arrangement, fixed: usize, size: u64, seed: u64) -> Self {
        let mut climber = Self {
            plain: plain.clone(),
            fixed,
            size,
            host: Host::new(),
            // Any number but 0.
            chance: Chance(seed.wrapping_mul(2) + 1),
            costs: HashMap::new(),
            climbs: 0,
            first_cost: 0,
            worst: None,
        };
        climber.first_cost = climber.cost(&plain);
        climber
    }

    /// Arrangements that were tried.
    pub fn tried(&self) -> usize {
        self.costs.len()
    }

    pub fn climbs(&self) -> u64 {
        self.climbs
    }

    pub fn first_cost(&self) -> u64 {
        self.first_cost
    }

    pub fn worst_cost(&self) -> u64 {
        self.worst.as_ref().map_or(0, |worst| worst.0)
    }

    /// Pieces of code that run at most without a look for interrupts.
    fn cost(&mut self, arrangement: &Arrangement) -> u64 {
        if let Some(&known) = self.costs.get(arrangement) {
            return known;
        }
        counters::reset();
        let made = run(&mut self.host, arrangement, self.size);
        // What the kernel refuses costs nothing.
        let cost = made.map_or(0, |()| counters::longest());
        self.host.clear();
        self.costs.insert(arrangement.clone(), cost);
        if cost > self.worst_cost() {
            self.worst = Some((cost, arrangement.clone()));
        }
        cost
    }

    fn values(&self, at: usize) -> usize {
        let parameter = &self.plain.operation().parameters()[at];
        match parameter.name {
            DEPTH => DEPTHS,
            _ => parameter.values.len(),
        }
    }

    /// The worst arrangement, with the first value of every parameter that does not matter.
    pub fn simplify(&mut self) -> Option<Arrangement> {
        let (cost, mut simple) = self.worst.clone()?;
        for at in self.fixed..self.plain.operation().parameters().len() {
            let simpler = simple.with(at, 0);
            if self.cost(&simpler) >= cost {
                simple = simpler;
            }
        }
        Some(simple)
    }

    /// A random arrangement.
    pub fn any(&mut self) -> Arrangement {
        let mut any = self.plain.clone();
        for at in self.fixed..self.plain.operation().parameters().len() {
            let number = self.chance.below(self.values(at));
            any = any.with(at, number);
        }
        any
    }

    /// From `here` up, until nothing makes it worse or the time is over.
    pub fn climb(&mut self, mut here: Arrangement, end: Instant) {
        let count = self.plain.operation().parameters().len();
        let mut cost = self.cost(&here);
        // The parameters that were looked at since it last grew worse.
        let mut idle = 0;
        let mut at = self.chance.below(count);
        while idle < count && Instant::now() < end {
            idle += 1;
            at = (at + 1) % count;
            if at < self.fixed {
                continue;
            }
            for number in 0..self.values(at) {
                let next = here.with(at, number);
                let next_cost = self.cost(&next);
                if next_cost > cost {
                    (here, cost, idle) = (next, next_cost, 0);
                }
            }
        }
        self.climbs += 1;
    }
}
