//! Builds the filter of system calls: it allows those that Docker's default profile allows to a container
//! without capabilities.
//!
//! The last bubblewrap of the chain installs the filter right before the program, and every process inherits
//! it permanently: programs that the bundled server starts later are filtered like the server.
//! `tests/it/sandboxes/calls.rs` compares the filter, number by number, with a real engine.

mod allowed;

use std::{fs::File, io::Write};

use rustix::fs::{MemfdFlags, memfd_create};
use seccompiler::{BpfProgram, TargetArch, compile_from_json, sock_filter};
use serde_json::{Value, json};

use self::allowed::{ANY_NAMESPACE, ANYWHERE, PERSONALITIES, SOCKETS, X86_64};
use crate::Error;

/// The error of a forbidden call (`EPERM`), as in Docker.
const FORBIDDEN: u32 = 1;
/// The error of an unknown call (`ENOSYS`), so that a newer C library falls back to an older call.
const UNKNOWN: u32 = 38;
/// The newest call known here (`mseal`, Linux 6.10); its number is the same on both architectures. The
/// numbers of the x32 ABI are far above it.
const NEWEST: u32 = 462;
/// `clone3` passes its flags by pointer, where no filter sees them. Programs that get `ENOSYS` use `clone`
/// instead, whose flags are checked.
const CLONE3: u32 = 435;
/// The name of the filter in the compiler's input.
const NAME: &str = "sandbox";

/// Instructions of classic BPF with the kernel's codes: load a word of the call's data, compare, return.
const LOAD: u16 = 0x20;
const JUMP_IF_ABOVE: u16 = 0x25;
const JUMP_IF_EQUAL: u16 = 0x15;
const RETURN: u16 = 0x06;
const RETURN_ERROR: u32 = 0x0005_0000;

/// Returns the filter for this machine in an anonymous file, which is passed to bubblewrap.
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
    // Precedes the compiled filter, because the compiler supports only one error. Calls of another
    // architecture pass these instructions too, and the compiled filter kills them: their numbers differ.
    let unknown = RETURN_ERROR | UNKNOWN;
    let mut program = vec![
        instruction(LOAD, 0, 0, 0),
        instruction(JUMP_IF_ABOVE, 1, 0, NEWEST),
        instruction(JUMP_IF_EQUAL, 0, 1, CLONE3),
        instruction(RETURN, 0, 0, unknown),
    ];
    program.extend(filter);
    Ok(program)
}

fn instruction(code: u16, jt: u8, jf: u8, k: u32) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

/// Builds the policy in the compiler's input format.
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

/// Serializes the program in the kernel's format.
fn bytes(program: &BpfProgram) -> Vec<u8> {
    let words = program.iter().flat_map(|it| {
        let (code, k) = (it.code.to_ne_bytes(), it.k.to_ne_bytes());
        [code[0], code[1], it.jt, it.jf, k[0], k[1], k[2], k[3]]
    });
    words.collect()
}

#[cfg(test)]
mod tests;
