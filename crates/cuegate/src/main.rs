//! The `cuegate` program.

use std::process::ExitCode;

/// Loading a large definition allocates millions of small values; mimalloc makes that faster.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        hook(info);
        cuegate::cli::explain_bug();
        std::process::exit(i32::from(cuegate::cli::BUG));
    }));
    cuegate::cli::main(std::env::args_os().collect())
}
