#!/bin/sh
# A wrapper of rustc (cargo's RUSTC_WRAPPER): gives the crates that are fuzzed LLVM's coverage for
# libFuzzer: counters of edges, their table, and the operands of comparisons. No sanitizer is
# needed, hence no nightly compiler.
#
# The others stay as they are: what checks the kernel would only distract the engine, and takes
# several times as long with counters.
rustc=$1
shift

fuzzed=false
crate=
target=false
previous=
for argument in "$@"; do
    case $previous in
    --crate-name) crate=$argument ;;
    --target) target=true ;;
    esac
    previous=$argument
done
case $crate in
sandglass_abi | sandglass_description | sandglass_kernel | sandglass_tools) fuzzed=true ;;
# Policies, and what plays hostile scripts: what is decided is often so short that it stands in its caller.
sandglass_edf | sandglass_modes | sandglass_sharing | sandglass_tasks | sandglass_timeouts) fuzzed=true ;;
sandglass_hostile) fuzzed=true ;;
# Readers of descriptions and archives, and the writer of messages about them.
annotate_snippets | postcard | toml | toml_*) fuzzed=true ;;
esac

# Cargo names no target for what runs during the build.
if $fuzzed && $target; then
    exec "$rustc" "$@" -Cpasses=sancov-module \
        -Cllvm-args=-sanitizer-coverage-level=4 \
        -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
        -Cllvm-args=-sanitizer-coverage-pc-table \
        -Cllvm-args=-sanitizer-coverage-trace-compares
fi
exec "$rustc" "$@"
