//! What asks the kernel, or is the kernel's alone.

use sandglass::abi::syscall::Syscall;

use super::{summit, Composer, DATA, NUMBER, TARGET};
use crate::arch::code::without_the_host;

/// MRS of any register but for its number, and the bit that makes it MSR none.
const MRS: u32 = 0xd530_0000;
const READ: u32 = 1 << 21;
/// SYS, likewise.
const SYS: u32 = 0xd508_0000;

/// A register's number in MRS and MSR.
const fn register(op0: u32, op1: u32, crn: u32, crm: u32, op2: u32) -> u32 {
    (op0 & 1) << 19 | op1 << 16 | crn << 12 | crm << 8 | op2 << 5
}

/// Registers of all levels, those by which a kernel lives first.
const REGISTERS: [u32; 48] = [
    // SCTLR, ACTLR, CPACR, TTBR0, TTBR1, TCR of EL1
    register(3, 0, 1, 0, 0),
    register(3, 0, 1, 0, 1),
    register(3, 0, 1, 0, 2),
    register(3, 0, 2, 0, 0),
    register(3, 0, 2, 0, 1),
    register(3, 0, 2, 0, 2),
    // SPSR, ELR, SP_EL0, SPSEL, CURRENTEL
    register(3, 0, 4, 0, 0),
    register(3, 0, 4, 0, 1),
    register(3, 0, 4, 1, 0),
    register(3, 0, 4, 2, 0),
    register(3, 0, 4, 2, 2),
    // ICC_PMR, AFSR0, ESR, FAR, PAR
    register(3, 0, 4, 6, 0),
    register(3, 0, 5, 1, 0),
    register(3, 0, 5, 2, 0),
    register(3, 0, 6, 0, 0),
    register(3, 0, 7, 4, 0),
    // MAIR, AMAIR, VBAR, RVBAR, RMR, ISR
    register(3, 0, 10, 2, 0),
    register(3, 0, 10, 3, 0),
    register(3, 0, 12, 0, 0),
    register(3, 0, 12, 0, 1),
    register(3, 0, 12, 0, 2),
    register(3, 0, 12, 1, 0),
    // ICC_IAR1, ICC_EOIR1, ICC_SRE, ICC_IGRPEN1, ICC_SGI1R
    register(3, 0, 12, 12, 0),
    register(3, 0, 12, 12, 1),
    register(3, 0, 12, 12, 5),
    register(3, 0, 12, 12, 7),
    register(3, 0, 12, 11, 5),
    // CONTEXTIDR, TPIDR_EL1, CNTKCTL
    register(3, 0, 13, 0, 1),
    register(3, 0, 13, 0, 4),
    register(3, 0, 14, 1, 0),
    // MIDR, MPIDR, ID_AA64PFR0, ID_AA64MMFR0, CLIDR, CCSIDR, CSSELR
    register(3, 0, 0, 0, 0),
    register(3, 0, 0, 0, 5),
    register(3, 0, 0, 4, 0),
    register(3, 0, 0, 7, 0),
    register(3, 1, 0, 0, 1),
    register(3, 1, 0, 0, 0),
    register(3, 2, 0, 0, 0),
    // CTR, DCZID, PMCR, PMCCNTR, PMUSERENR, PMSELR
    register(3, 3, 0, 0, 1),
    register(3, 3, 0, 0, 7),
    register(3, 3, 9, 12, 0),
    register(3, 3, 9, 13, 0),
    register(3, 3, 9, 14, 0),
    // HCR, SCTLR_EL2, SCR
    register(3, 4, 1, 1, 0),
    register(3, 4, 1, 0, 0),
    register(3, 6, 1, 1, 0),
    // MDSCR, MDCCSR_EL0, DBGDTR_EL0
    register(2, 0, 0, 2, 2),
    register(2, 3, 0, 1, 0),
    register(2, 3, 0, 4, 0),
];

impl Composer<'_> {
    /// SVC with any number; its registers are anything.
    pub fn system_call(&mut self) {
        let number = self.number();
        self.code.load(NUMBER, number);
        let capability = match self.dice.below(4) {
            0 => self.dice.wild(),
            _ => self.dice.below(64),
        };
        self.code.load(0, capability);
        let info = match self.dice.below(2) {
            0 => self.dice.wild(),
            _ => self.dice.below(1 << 16),
        };
        self.code.load(1, info);
        let immediate = match self.dice.below(2) {
            0 => 0,
            _ => self.dice.below(1 << 16) as u32,
        };
        self.code.push(0xd400_0001 | immediate << 5);
        // No such number is left for what follows.
        self.code.load(NUMBER, 0);
    }

    /// A number of a system call that does not wait, or of none. Those of the debug kernel are the
    /// storm of calls' business.
    fn number(&mut self) -> u64 {
        let call = match self.dice.below(16) {
            0..3 => Syscall::NBSend,
            3..5 => Syscall::NBRecv,
            5..7 => Syscall::NBWait,
            7 => Syscall::Call,
            8 => Syscall::SetTLSBase,
            9 if self.dice.one_in(8) => Syscall::Yield,
            9 if self.dice.one_in(8) => Syscall::Wait,
            10..14 => return self.dice.word() >> 1,
            _ => return (34 + self.dice.below(1 << 20)).wrapping_neg(),
        };
        call.raw()
    }

    /// hvc, smc, brk, hlt, dcps1 to dcps3, and two that are none.
    pub fn other_call(&mut self) {
        const CALLS: [u32; 9] = [
            0xd400_0002,
            0xd400_0003,
            0xd420_0000,
            0xd440_0000,
            0xd4a0_0001,
            0xd4a0_0002,
            0xd4a0_0003,
            0xd400_0000,
            0xd460_0000,
        ];
        let call = self.dice.choose(CALLS);
        let immediate = self.dice.below(1 << 16) as u32;
        self.code.push(without_the_host(call | immediate << 5));
    }

    /// Where to go and with which state into the registers of an exception, and a return from one.
    pub fn exception_return(&mut self) {
        let target = self.target();
        if self.dice.one_in(2) {
            self.code.load(TARGET, target);
            self.code
                .push(MRS & !READ | register(3, 0, 4, 0, 1) | TARGET);
        }
        // eret, drps, eretaa, eretab
        let back = self.dice.choose([
            0xd69f_03e0,
            0xd69f_03e0,
            0xd6bf_03e0,
            0xd69f_0bff,
            0xd69f_0fff,
        ]);
        self.code.push(back);
    }

    /// A read or a write of a register that there is.
    pub fn system_register(&mut self) {
        let number = self.dice.choose(REGISTERS);
        self.access(number);
    }

    /// A read or a write of any.
    pub fn any_register(&mut self) {
        let number = self.dice.below(1 << 15) as u32;
        self.access(number << 5);
    }

    fn access(&mut self, number: u32) {
        let value = match self.dice.below(3) {
            0 => self.dice.wild(),
            1 => summit::address(),
            _ => self.dice.word(),
        };
        self.code.load(DATA, value);
        let read = if self.dice.one_in(2) { READ } else { 0 };
        self.code.push(MRS & !READ | read | number | DATA);
    }

    /// msr field, #value: any field.
    pub fn process_state(&mut self) {
        const FIELD: u32 = 0xd500_401f;
        // daifset, daifclr, spsel, pan, uao, dit, ssbs, tco, cfinv and its kin
        let field = match self.dice.below(4) {
            0 => (self.dice.below(8) as u32, self.dice.below(8) as u32),
            _ => self.dice.choose([
                (3, 6),
                (3, 7),
                (0, 5),
                (0, 4),
                (0, 3),
                (3, 2),
                (3, 1),
                (3, 4),
            ]),
        };
        let value = self.dice.below(16) as u32;
        self.code
            .push(FIELD | field.0 << 16 | value << 8 | field.1 << 5);
    }

    /// sys and sysl: caches, translations, and what is none of them.
    pub fn maintenance(&mut self) {
        // ic ialluis, ialluis, ivau; dc ivac, isw, csw, cisw, zva, cvac, cvau, civac; at s1e1r, s1e0w, s12e1r;
        // tlbi vmalle1is, vae1is, aside1is, alle2, vmalle1
        const OPERATIONS: [(u32, u32, u32, u32); 18] = [
            (0, 7, 1, 0),
            (0, 7, 5, 0),
            (3, 7, 5, 1),
            (0, 7, 6, 1),
            (0, 7, 6, 2),
            (0, 7, 10, 2),
            (0, 7, 14, 2),
            (3, 7, 4, 1),
            (3, 7, 10, 1),
            (3, 7, 11, 1),
            (3, 7, 14, 1),
            (0, 7, 8, 0),
            (0, 7, 8, 3),
            (4, 7, 8, 4),
            (0, 8, 3, 0),
            (0, 8, 3, 1),
            (4, 8, 7, 0),
            (0, 8, 7, 0),
        ];
        let address = self.address();
        self.code.load(DATA, address);
        let operation = match self.dice.below(4) {
            0 => self.dice.below(1 << 14) as u32 & 0x3fff,
            _ => {
                let (op1, crn, crm, op2) = self.dice.choose(OPERATIONS);
                op1 << 11 | crn << 7 | crm << 3 | op2
            }
        };
        let back = if self.dice.one_in(6) { READ } else { 0 };
        self.code.push(SYS | back | operation << 5 | DATA);
    }

    /// cntfrq, cntpct, cntvct, and the timers of both.
    pub fn counter(&mut self) {
        let (crm, op2) = self.dice.choose([
            (0, 0),
            (0, 1),
            (0, 2),
            (2, 0),
            (2, 1),
            (2, 2),
            (3, 0),
            (3, 1),
            (3, 2),
        ]);
        let op1 = self.dice.choose([3, 3, 3, 7]);
        self.access(register(3, op1, 14, crm, op2));
    }

    /// tpidr_el0 and tpidrro_el0.
    pub fn thread_pointer(&mut self) {
        let op2 = self.dice.choose([2, 3, 3, 5, 7]);
        self.access(register(3, 3, 13, 0, op2));
    }

    /// Hints of any number, barriers of any kind, clrex, sb, ssbb.
    pub fn waiting(&mut self) {
        let instruction = match self.dice.below(3) {
            // yield, wfe, wfi, sev, sevl and others
            0 => 0xd503_201f | (self.dice.below(8) as u32) << 5,
            1 => 0xd503_201f | (self.dice.below(128) as u32) << 5,
            _ => {
                let options = self.dice.below(16) as u32;
                0xd503_301f | options << 8 | self.dice.choose([2u32, 4, 5, 6, 7]) << 5
            }
        };
        self.code.push(instruction);
    }
}
