//! The system calls that a program inside may make: those that Docker's default profile allows to a
//! container without capabilities.
//!
//! The filter is installed by the last bubblewrap of the chain, right before the program, and every
//! process inherits it for good: what the bundled server starts later is filtered as it is itself.
//! `tests/it/sandboxes/calls.rs` compares it, number by number, with what a real engine does.

mod allowed;

use std::{fs::File, io::Write};

use rustix::fs::{MemfdFlags, memfd_create};
use seccompiler::{BpfProgram, TargetArch, compile_from_json, sock_filter};
use serde_json::{Value, json};

use self::allowed::{ANY_NAMESPACE, ANYWHERE, PERSONALITIES, SOCKETS, X86_64};
use crate::sandbox::Error;

/// What a forbidden call answers (`EPERM`), as Docker has it.
const FORBIDDEN: u32 = 1;
/// What an unknown call answers (`ENOSYS`), so that a newer C library falls back on an older one.
const UNKNOWN: u32 = 38;
/// The newest call that anybody here knows (`mseal`, Linux 6.10); the same on both architectures.
/// The numbers of the x32 ABI are far above it.
const NEWEST: u32 = 462;
/// Hides its flags behind a pointer, where no filter sees them. Programs that hear that there is no
/// such call use `clone`, whose flags are checked.
const CLONE3: u32 = 435;
/// The name of the filter in what is compiled.
const NAME: &str = "sandbox";

/// Classic BPF as the kernel spells it: load a word of the call's data, compare, return.
const LOAD: u16 = 0x20;
const JUMP_IF_ABOVE: u16 = 0x25;
const JUMP_IF_EQUAL: u16 = 0x15;
const RETURN: u16 = 0x06;
const RETURN_ERROR: u32 = 0x0005_0000;

/// The filter of this machine in a file without a name, to be handed to bubblewrap.
pub(super) fn filter() -> Result<File, Error> {
    let compiled = TargetArch::try_from(std::env::consts::ARCH)
        .map_err(|error| error.to_string())
        .and_then(program);
    let program = compiled.map_err(|said| Error::Refused {
        said,
        remedy: "system calls are filtered on x86_64 and aarch64; elsewhere set `sandbox.driver` \
                 (SPL_SANDBOX) to `docker`",
    })?;
    let made = memfd_create("sepal-seccomp", MemfdFlags::CLOEXEC).map_err(std::io::Error::from)?;
    let mut file = File::from(made);
    file.write_all(&bytes(&program))?;
    Ok(file)
}

fn program(arch: TargetArch) -> Result<BpfProgram, String> {
    let policy = policy(arch).to_string();
    let mut compiled =
        compile_from_json(policy.as_bytes(), arch).map_err(|error| error.to_string())?;
    let filter = compiled.remove(NAME).unwrap_or_default();
    // In front of what is compiled, because that knows one error only. Another architecture comes
    // this far too, and is killed by what follows: its calls have other numbers.
    let unknown = RETURN_ERROR | UNKNOWN;
    let mut program = vec![
        instruction(LOAD, (0, 0), 0),
        instruction(JUMP_IF_ABOVE, (1, 0), NEWEST),
        instruction(JUMP_IF_EQUAL, (0, 1), CLONE3),
        instruction(RETURN, (0, 0), unknown),
    ];
    program.extend(filter);
    Ok(program)
}

fn instruction(code: u16, (jt, jf): (u8, u8), k: u32) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

/// In words, for the compiler.
fn policy(arch: TargetArch) -> Value {
    let legacy = match arch {
        TargetArch::x86_64 => X86_64,
        TargetArch::aarch64 | TargetArch::riscv64 => "",
    };
    let plain = ANYWHERE.iter().copied().chain([legacy]);
    let plain = plain.flat_map(str::split_whitespace);
    let plain = plain.map(|name| json!({ "syscall": name }));
    let first_is = |name: &'static str| {
        move |value: &u32| {
            let first = json!({ "index": 0, "type": "dword", "op": "eq", "val": value });
            json!({ "syscall": name, "args": [first] })
        }
    };
    let no_namespaces = json!({ "syscall": "clone", "args": [
        { "index": 0, "type": "dword", "op": { "masked_eq": ANY_NAMESPACE }, "val": 0 },
    ] });
    let rules = plain
        .chain(SOCKETS.iter().map(first_is("socket")))
        .chain(PERSONALITIES.iter().map(first_is("personality")))
        .chain([no_namespaces]);
    json!({ NAME: {
        "mismatch_action": { "errno": FORBIDDEN },
        "match_action": "allow",
        "filter": rules.collect::<Vec<_>>(),
    } })
}

/// As the kernel reads it.
fn bytes(program: &BpfProgram) -> Vec<u8> {
    let words = program.iter().flat_map(|it| {
        let (code, k) = (it.code.to_ne_bytes(), it.k.to_ne_bytes());
        [code[0], code[1], it.jt, it.jf, k[0], k[1], k[2], k[3]]
    });
    words.collect()
}

#[cfg(test)]
mod tests;
