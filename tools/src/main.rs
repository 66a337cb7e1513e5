//! The `sandglass` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    sandglass_tools::cli::main()
}
