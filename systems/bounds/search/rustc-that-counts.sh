#!/bin/sh
# A wrapper of rustc (cargo's RUSTC_WRAPPER): the kernel is built so that every piece of its code
# calls a function (`src/counters.rs`). No sanitizer is needed, hence no nightly compiler.
rustc=$1
shift

counts=false
previous=
for argument in "$@"; do
    case $previous/$argument in
    --crate-name/sandglass_kernel) counts=true ;;
    esac
    previous=$argument
done
if $counts; then
    exec "$rustc" "$@" -Cpasses=sancov-module \
        -Cllvm-args=-sanitizer-coverage-level=3 \
        -Cllvm-args=-sanitizer-coverage-prune-blocks=0 \
        -Cllvm-args=-sanitizer-coverage-trace-pc-guard
fi
exec "$rustc" "$@"
