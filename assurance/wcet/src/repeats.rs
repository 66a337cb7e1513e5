//! What a block costs, also where an instruction repeats itself or a function's argument says how much it does.

use anyhow::{bail, Result};
use sandglass_cache::{Data, Model};

use crate::analysis::Analysis;
use crate::annotations::{Kind, OF_ARGUMENT};
use crate::code::{Change, Instruction};
use crate::expand::Site;
use crate::graph::{Block, End, Graph};

/// Functions of the compiler's library with instructions that repeat themselves, as often as the third argument says.
const FILLING: [&str; 3] = ["memcpy", "memset", "memmove"];

/// Blocks before a call in which its arguments are looked for.
const LOOK_BACK: usize = 5;

impl Analysis<'_> {
    /// Instructions of a block; those that repeat themselves count every time, and once more to see that they are done. On a
    /// processor, the cycles of these and of accesses that no cache serves.
    ///
    /// # Errors
    /// One repeats itself nobody knows how often.
    pub(crate) fn cost(&self, function: usize, block: &Block, site: &Site) -> Result<i64> {
        let (each, access) = match self.question.model {
            None => (1, 0),
            Some(Model {
                instruction, data, ..
            }) => match data {
                Data::Uncached { access } => (instruction, access),
                Data::WriteBack { .. } => (instruction, 0),
            },
        };
        let mut repeats = self.all_repeats(function, block, site)?.into_iter();
        let mut cost = 0;
        for instruction in &block.code {
            let (executed, at_work) = match instruction.repeats {
                true => repeats.next().map_or((1, 1), |times| (1 + times, times)),
                false => (1, 1),
            };
            cost += executed * each + at_work * instruction.times() * access;
        }
        Ok(cost as i64)
    }

    /// How often the instructions of a block repeat themselves that do.
    ///
    /// # Errors
    /// As with [`Self::cost`].
    pub(crate) fn all_repeats(
        &self,
        function: usize,
        block: &Block,
        site: &Site,
    ) -> Result<Vec<u64>> {
        let places = block.code.iter().enumerate();
        let repeating = places.filter(|(_, instruction)| instruction.repeats);
        repeating
            .map(|(i, instruction)| self.repeats(function, &block.code[..i], instruction, site))
            .collect()
    }

    /// How often an instruction repeats itself behind `before`, those of its block.
    fn repeats(
        &self,
        function: usize,
        before: &[Instruction],
        instruction: &Instruction,
        site: &Site,
    ) -> Result<u64> {
        let recorded =
            self.image.records.iter().find(|record| {
                record.address == instruction.address && record.kind == Kind::Repeats
            });
        if let Some(record) = recorded {
            return Ok(self.question.meant(record.value));
        }
        let change = before
            .iter()
            .rev()
            .map(|each| each.count)
            .find(|&change| change != Change::None);
        if let Some(Change::Number(number)) = change {
            return Ok(number);
        }
        let name = &self.image.functions[function].name;
        if !FILLING.contains(&name.as_str()) {
            bail!(
                "{}: this instruction repeats itself without a bound. Write one beside it, with `arch::bounds`",
                self.image.place(instruction.address)
            );
        }
        let Some(bytes) = site.third_argument else {
            bail!(
                "{}: a call of {name} of nobody knows how many bytes. Say how many, with `arch::bounds::at_most`",
                self.image.place(site.call.unwrap_or(instruction.address))
            );
        };
        // Up to a word's beginning, words, and what is left.
        Ok(if instruction.bytes_each > 1 {
            bytes / 8
        } else {
            bytes.min(7)
        })
    }

    /// What a number of a record means as the bound of a loop.
    ///
    /// # Errors
    /// It is a part of an argument that nobody knows.
    pub(crate) fn turns(&self, most: u64, site: &Site) -> Result<u64> {
        let bytes_each = most & !OF_ARGUMENT;
        if bytes_each == most {
            return Ok(self.question.meant(most));
        }
        let Some(bytes) = site.third_argument else {
            let place = site.call.map(|call| self.image.place(call));
            bail!(
                "{}: a call of nobody knows how many bytes. Say how many, with `arch::bounds::at_most`",
                place.unwrap_or_default()
            );
        };
        Ok(bytes / bytes_each.max(1))
    }

    /// The third argument of a call, if the function cares.
    ///
    /// # Errors
    /// It does, and nobody knows the argument.
    pub(crate) fn passed(
        &self,
        callee: usize,
        third_argument: Option<u64>,
        call: Option<u64>,
    ) -> Result<Option<u64>> {
        let name = &self.image.functions[callee].name;
        if !FILLING.contains(&name.as_str()) {
            return Ok(None);
        }
        if third_argument.is_none() {
            let place = call.map_or(String::new(), |call| self.image.place(call));
            bail!("{place}: a call of {name} of nobody knows how many bytes. Say how many, with `arch::bounds::at_most`");
        }
        Ok(third_argument)
    }

    /// What is known of the third argument where a block ends in a call or in a jump to a function: a constant, what the
    /// source says of it, or what the function around it was given and has not changed.
    pub(crate) fn third_argument(&self, graph: &Graph, number: usize, site: &Site) -> Option<u64> {
        let chain = chain(graph, number);
        let before = |&number: &usize| {
            let code = &graph.blocks[number].code;
            let code = match number_of_call(graph, number) {
                Some(call) => &code[..call],
                None => code,
            };
            code.iter().rev().map(|each| each.third_argument)
        };
        let mut changes = chain.iter().flat_map(before);
        let change = changes.find(|&change| change != Change::None);
        if let Some(Change::Number(constant)) = change {
            return Some(constant);
        }
        let said = |&block: &usize| {
            let block = &graph.blocks[block];
            let mut records = self.image.records.iter();
            let record = records
                .find(|record| record.kind == Kind::Argument && block.contains(record.address));
            record.map(|record| record.value)
        };
        let given = match change {
            None if chain.last() == Some(&0) => site.third_argument,
            _ => None,
        };
        chain.iter().find_map(said).or(given)
    }
}

/// The place of the call that a block ends with.
fn number_of_call(graph: &Graph, number: usize) -> Option<usize> {
    let block = &graph.blocks[number];
    matches!(block.end, End::Call { .. }).then(|| block.code.len() - 1)
}

/// A block and those before it, as far as there is only one way there, and no call on it: the last first.
fn chain(graph: &Graph, number: usize) -> Vec<usize> {
    let mut chain = vec![number];
    while chain.len() < LOOK_BACK {
        let last = chain[chain.len() - 1];
        let mut before =
            (0..graph.blocks.len()).filter(|&each| graph.blocks[each].successors().contains(&last));
        match (before.next(), before.next()) {
            (Some(only), None)
                if last != 0 && !chain.contains(&only) && number_of_call(graph, only).is_none() =>
            {
                chain.push(only);
            }
            _ => break,
        }
    }
    chain
}
