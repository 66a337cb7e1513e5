//! The call graph of the kernel's machine code has no cycle: there is no recursion.

use sandglass_binary::code::Flow;

use super::binary::Binary;

/// Each cycle's functions, in the order of their calls. A function that branches into another
/// one, other than to return, calls it.
pub fn cycles(binary: &Binary) -> Vec<String> {
    let calls: Vec<Vec<usize>> = (0..binary.image.functions.len())
        .map(|f| callees(binary, f))
        .collect();
    let mut search = Search {
        calls: &calls,
        marks: vec![Mark::New; calls.len()],
        path: Vec::new(),
        cycles: Vec::new(),
    };
    for function in 0..calls.len() {
        search.visit(function);
    }
    let name = |&function: &usize| binary.image.functions[function].name.as_str();
    search
        .cycles
        .iter()
        .map(|cycle| {
            let names: Vec<&str> = cycle.iter().chain(cycle.first()).map(name).collect();
            format!("recursion: {}", names.join(" -> "))
        })
        .collect()
}

/// The functions that `function` calls or jumps into. A jump within itself is a loop; a call of
/// itself is recursion.
pub fn callees(binary: &Binary, function: usize) -> Vec<usize> {
    let image = &binary.image;
    let mut callees = Vec::new();
    for instruction in &image.functions[function].code {
        let (target, is_call) = match instruction.flow {
            Flow::Call(target) => (target, true),
            Flow::Jump(target) | Flow::Branch(target) => (target, false),
            _ => continue,
        };
        let Some(callee) = image.function_at(target) else {
            continue;
        };
        if (callee != function || is_call) && !callees.contains(&callee) {
            callees.push(callee);
        }
    }
    // Running off the end leads into the next function.
    let last = image.functions[function].code.last();
    if last.is_some_and(|last| matches!(last.flow, Flow::Next | Flow::Branch(_))) {
        let next = image.function_at(image.functions[function].end);
        callees.extend(next.filter(|next| !callees.contains(next)));
    }
    callees
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    New,
    OnPath,
    Done,
}

/// Depth-first search for cycles.
struct Search<'c> {
    calls: &'c [Vec<usize>],
    marks: Vec<Mark>,
    path: Vec<usize>,
    cycles: Vec<Vec<usize>>,
}

impl Search<'_> {
    fn visit(&mut self, function: usize) {
        match self.marks[function] {
            Mark::Done => {}
            Mark::OnPath => {
                let start = self.path.iter().position(|&on_path| on_path == function);
                self.cycles.push(self.path[start.unwrap_or(0)..].to_vec());
            }
            Mark::New => {
                self.marks[function] = Mark::OnPath;
                self.path.push(function);
                let calls = self.calls;
                for &callee in &calls[function] {
                    self.visit(callee);
                }
                self.path.pop();
                self.marks[function] = Mark::Done;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::binary::tests::{aarch64, binary};
    use super::cycles;

    const RET: u8 = 0xc3;

    /// `call rel32`, of 5 bytes.
    fn call(distance: i32) -> Vec<u8> {
        [&[0xe8][..], &distance.to_le_bytes()].concat()
    }

    /// `jmp rel32`, of 5 bytes.
    fn jump(distance: i32) -> Vec<u8> {
        [&[0xe9][..], &distance.to_le_bytes()].concat()
    }

    #[test]
    fn mutual_recursion_is_reported_in_its_order() {
        // a (5 bytes) calls b; b calls c; c jumps to a.
        let (to_b, to_c, to_a) = (call(0), call(0), jump(-15));
        let found = cycles(&binary(&[("a", &to_b), ("b", &to_c), ("c", &to_a)]));
        assert_eq!(found, ["recursion: a -> b -> c -> a"]);
    }

    #[test]
    fn a_call_of_itself_is_recursion_and_a_jump_is_a_loop() {
        assert_eq!(cycles(&binary(&[("a", &call(-5))])), ["recursion: a -> a"]);
        assert_eq!(cycles(&binary(&[("a", &jump(-5))])), [""; 0]);
    }

    #[test]
    fn recursion_is_found_on_aarch64() {
        // bl to the next function; b back to the first.
        let mutual = aarch64(&[("a", &[0x9400_0001]), ("b", &[0x17ff_ffff])]);
        assert_eq!(cycles(&mutual), ["recursion: a -> b -> a"]);
        assert_eq!(cycles(&aarch64(&[("a", &[0x1400_0000])])), [""; 0]);
    }

    #[test]
    fn a_shared_callee_is_no_cycle() {
        let mut a = call(12); // c
        a.extend(call(1)); // b
        a.push(RET);
        let mut b = call(1); // c
        b.push(RET);
        assert_eq!(
            cycles(&binary(&[("a", &a), ("b", &b), ("c", &[RET])])),
            [""; 0]
        );
    }

    #[test]
    fn running_off_the_end_is_a_call() {
        // a falls into b, which jumps back to a.
        assert_eq!(
            cycles(&binary(&[("a", &[0x90]), ("b", &jump(-6))])).len(),
            1
        );
    }
}
