# Programs whose bounds are known, in the manner of the TACLe benchmarks, and programs that must be refused. They are
# analysed, never executed. Whatever ends a program leaves the kernel: `iretq`.

.intel_syntax noprefix
.text

.set TURNS, 1
.set REPEATS, 2
.set ARGUMENT, 3
.set STEPS, 4
.set MARK, 5
.set TOGETHER, 6
.set LEVELS, 1 << 32

# What the source says of the next instruction.
.macro record kind, value
99: .pushsection .sandglass.wcet, "", @progbits
    .quad 99b, \kind, \value
    .popsection
.endm

.macro function name
    .globl \name
    .type \name, @function
    \name:
.endm

.macro end name
    .size \name, . - \name
.endm

function straight
    nop
    nop
    nop
    iretq
end straight

function nested
    mov ecx, 3
1:  record TURNS, 3
    mov edx, 4
2:  record TURNS, 4
    nop
    dec edx
    jnz 2b
    dec ecx
    jnz 1b
    iretq
end nested

# The inner loop turns once, twice, three and four times: ten in all.
function triangular
    mov ecx, 4
1:  record TURNS, 4
    mov edx, ecx
2:  record TURNS, 4
    nop
    record STEPS, 10
    dec edx
    jnz 2b
    dec ecx
    jnz 1b
    iretq
end triangular

function several_exits
    mov ecx, 5
1:  record TURNS, 5
    test eax, eax
    jz 3f
    dec ecx
    jnz 1b
    nop
    iretq
3:  .rept 6
    nop
    .endr
    iretq
end several_exits

function shared_tail
    test eax, eax
    jz 1f
    nop
    nop
    nop
    jmp 2f
1:  nop
2:  nop
    nop
    iretq
end shared_tail

function three
    nop
    nop
    ret
end three

function tail_call
    nop
    jmp straight
end tail_call

function calls_tail_call
    call tail_calls_three
    iretq
end calls_tail_call

# The dearest way comes by a mark, a call, and a branch out of it.
function marked
    dec ecx
    jz 1f
    record MARK, 1
    call three
    nop
    jz leaves
1:  iretq
end marked

# Into the next function, without a jump where the branch is not taken.
function falls
    dec ecx
    jnz three
end falls

function fallen_into
    call three
    iretq
end fallen_into

function jumps_there
    jmp fallen_into
end jumps_there

function tail_calls_three
    nop
    jmp three
end tail_calls_three

function calls_in_loop
    mov ecx, 3
1:  record TURNS, 3
    call three
    dec ecx
    jnz 1b
    iretq
end calls_in_loop

function dies
    .rept 50
    nop
    .endr
    ud2
end dies

function leaves
    .rept 5
    nop
    .endr
    iretq
end leaves

# What dies is no path, and behind a call that never comes back nothing goes on.
function never_returns
    test eax, eax
    jz 1f
    test ebx, ebx
    jz 2f
    iretq
1:  call dies
2:  call leaves
    ud2
end never_returns

function waits
    nop
1:  hlt
    jmp 1b
end waits

function repeats_constant
    mov ecx, 7
    rep movsq
    iretq
end repeats_constant

function repeats_recorded
    record REPEATS, 12
    rep stosq
    iretq
end repeats_recorded

function memset
    mov rcx, rdx
    shr rcx, 3
    rep stosq
    mov ecx, edx
    and ecx, 7
    rep stosb
    ret
end memset

function fills_constant
    mov edx, 40
    call memset
    iretq
end fills_constant

function fills_recorded
    record ARGUMENT, 24
    mov rdx, rbx
    call memset
    iretq
end fills_recorded

# What the jump passes on is its own, not what the call before was given.
function fills_by_jump
    mov edx, 40
    jmp memset
end fills_by_jump

function calls_fills_by_jump
    mov edx, 8
    call fills_by_jump
    iretq
end calls_fills_by_jump

# The levels of capability spaces are a parameter.
function descends
1:  record TURNS, LEVELS
    nop
    dec eax
    jnz 1b
    iretq
end descends

# The check for interrupts.
function point
    nop
    nop
    ret
end point

# From one check to the next.
function checks
    mov ecx, 100
1:  nop
    nop
    nop
    call point
    dec ecx
    jnz 1b
    iretq
end checks

# A loop that is entered at its beginning, and at a check that it may come by in any turn.
function may_check
    mov ecx, 4
1:  record TURNS, 4
    test eax, eax
    jz 2f
    call point
2:  nop
    nop
    dec ecx
    jnz 1b
    iretq
end may_check

# A loop that only steps bound, beside a way that is longer than any of its turns.
function steps_alone
    test eax, eax
    jz 2f
1:  record STEPS, 3
    nop
    dec ecx
    jnz 1b
    iretq
2:  .rept 20
    nop
    .endr
    iretq
end steps_alone

function heavy
    .rept 10
    nop
    .endr
    ret
end heavy

function may_be_heavy
    mov ecx, 5
1:  record TURNS, 5
    test eax, eax
    jz 2f
    call heavy
2:  dec ecx
    jnz 1b
    test eax, eax
    jz 3f
    call three
3:  iretq
end may_be_heavy

# Two loops that share their turns, of which those of the second count as two.
function share_turns
1:  record TURNS, 9
    record TOGETHER, 6
    nop
    dec ecx
    jnz 1b
2:  record TURNS, 9
    record TOGETHER, 1 << 40 | 6
    .rept 5
    nop
    .endr
    dec ecx
    jnz 2b
    iretq
end share_turns

# Steps of two kinds, of which there are as many.
function two_kinds
1:  record TURNS, 9
    test eax, eax
    jz 2f
    record STEPS, 1 << 32 | 2
    .rept 4
    nop
    .endr
    jmp 3f
2:  record STEPS, 2 << 32 | 2
    nop
    nop
3:  dec ecx
    jnz 1b
    iretq
end two_kinds

# The last turn's beginning, which the compiler copied out of the loop.
function copied_turn
1:  record TURNS, 2
    nop
    dec ecx
    jz 2f
    dec edx
    jnz 1b
    iretq
2:  record TURNS, 2
    nop
    iretq
end copied_turn

# A turn that is dear counts twice, as in the balancing of a tree.
function counts_twice
1:  record TURNS, 6
    nop
    test eax, eax
    jz 2f
    record TURNS, 6
    .rept 10
    nop
    .endr
2:  dec ecx
    jnz 1b
    iretq
end counts_twice

# Those below are refused, for the line that says so.

function unbounded
    nop
1:  dec ecx # refused: unbounded
    jnz 1b
    iretq
end unbounded

function calls_unbounded
    call unbounded
    iretq
end calls_unbounded

# One way through the loop has no bound.
function bounded_in_part
1:  test eax, eax # refused: bounded_in_part
    jz 2f
    record TURNS, 3
    nop
2:  dec ecx
    jnz 1b
    iretq
end bounded_in_part

function bounds_nothing
    record TURNS, 3
    nop # refused: bounds_nothing
    iretq
end bounds_nothing

# Two loops of the source with one beginning are one of the binary.
function claimed_twice
1:  dec ecx # refused: claimed_twice
    jz 2f
    record TURNS, 3
    nop
    jmp 1b
2:  dec edx
    jz 3f
    record TURNS, 4
    nop
    jmp 1b
3:  iretq
end claimed_twice

# An inner loop of two turns was unrolled.
function unrolled
1:  record TURNS, 3
    nop # refused: unrolled
    test eax, eax
    jz 2f
    record TURNS, 2
    nop
    test eax, eax
    jz 2f
    record TURNS, 2
    nop
2:  dec ecx
    jnz 1b
    iretq
end unrolled

function two_entries
    test eax, eax
    jz 2f
1:  record TURNS, 3
    nop # refused: two_entries
2:  record TURNS, 3
    nop # or here: two_entries
    dec ecx
    jnz 1b
    iretq
end two_entries

function unknown_instruction
    nop # the last line that the assembler says, refused: unknown_instruction
    .byte 0x06
    iretq
end unknown_instruction

function strings_backward
    std # refused: strings_backward
    rep stosq
    iretq
end strings_backward

function jumps_indirectly
    nop
    jmp rax # refused: jumps_indirectly
end jumps_indirectly

function calls_indirectly
    nop
    call rax # refused: calls_indirectly
    iretq
end calls_indirectly

function recurses
    nop
    call recurses # refused: recurses
    iretq
end recurses

function recurses_through
    test eax, eax
    jz 1f
    call recurses_back
1:  ret
end recurses_through

function recurses_back
    nop
    call recurses_through # refused: recurses_back
    ret
end recurses_back

function jumps_astray
    nop
    jmp straight + 1 # refused: jumps_astray
end jumps_astray

function repeats_unbounded
    mov rcx, rdx
    rep movsq # refused: repeats_unbounded
    iretq
end repeats_unbounded

function fills_unbounded
    mov rdx, rbx
    call memset # refused: fills_unbounded
    iretq
end fills_unbounded

# What is said of the first call is not said of the second.
function fills_again
    record ARGUMENT, 24
    mov rdx, rbx
    call memset
    mov rdx, rbx
    call memset # refused: fills_again
    iretq
end fills_again

# A call in between may change the argument.
function fills_later
    mov edx, 8
    call three
    call memset # refused: fills_later
    iretq
end fills_later

# Where bounds are recorded.
.section .rodata
before_analysed:
.quad -1
.globl sandglass_analysed
.type sandglass_analysed, @object
sandglass_analysed:
.quad 0, 0, 0, 0, 0
.size sandglass_analysed, 40
.quad -1
.text
