//! Tests the compiled filters of both architectures in an interpreter of the kernel's BPF.

use super::*;

const ALLOWED: u32 = 0x7fff_0000;
const KILLED: u32 = 0x8000_0000;
const X86_64: u32 = 0xc000_003e;
const I386: u32 = 0x4000_0003;
const AARCH64: u32 = 0xc000_00b7;
const ARM: u32 = 0x4000_0028;
/// The bit that marks call numbers of the x32 ABI.
const X32: u32 = 0x4000_0000;

/// Returns the filter's result for a call with this first argument.
fn ask(program: &BpfProgram, machine: u32, number: u32, first: u64) -> u32 {
    let halves = [
        first.to_ne_bytes()[..4].to_vec(),
        first.to_ne_bytes()[4..].to_vec(),
    ];
    let word = |offset: u32| match offset {
        0 => number,
        4 => machine,
        16 => u32::from_ne_bytes(halves[0][..].try_into().unwrap()),
        20 => u32::from_ne_bytes(halves[1][..].try_into().unwrap()),
        _ => 0,
    };
    let (mut at, mut held) = (0, 0);
    loop {
        let it = &program[at];
        at += 1;
        let jump = |is_so: bool| usize::from(if is_so { it.jt } else { it.jf });
        match it.code {
            0x20 => held = word(it.k),
            0x05 => at += usize::try_from(it.k).unwrap(),
            0x15 => at += jump(held == it.k),
            0x25 => at += jump(held > it.k),
            0x35 => at += jump(held >= it.k),
            0x45 => at += jump(held & it.k != 0),
            0x54 => held &= it.k,
            0x06 => return it.k,
            code => panic!("an instruction {code:#x} that nobody expects"),
        }
    }
}

fn x86_64() -> BpfProgram {
    program(TargetArch::x86_64).unwrap()
}

fn aarch64() -> BpfProgram {
    program(TargetArch::aarch64).unwrap()
}

#[test]
fn what_docker_denies_is_forbidden_on_both_architectures() {
    // The name, and its number on each architecture; 0 if it has none.
    let forbidden = [
        ("mount", 165, 40),
        ("umount2", 166, 39),
        ("pivot_root", 155, 41),
        ("chroot", 161, 51),
        ("unshare", 272, 97),
        ("setns", 308, 268),
        ("add_key", 248, 217),
        ("request_key", 249, 218),
        ("keyctl", 250, 219),
        ("bpf", 321, 280),
        ("perf_event_open", 298, 241),
        ("userfaultfd", 323, 282),
        ("io_uring_setup", 425, 425),
        ("io_uring_enter", 426, 426),
        ("io_uring_register", 427, 427),
        ("init_module", 175, 105),
        ("finit_module", 313, 273),
        ("kexec_load", 246, 104),
        ("reboot", 169, 142),
        ("swapon", 167, 224),
        ("acct", 163, 89),
        ("quotactl", 179, 60),
        ("syslog", 103, 116),
        ("open_by_handle_at", 304, 265),
        ("kcmp", 312, 272),
        ("mbind", 237, 235),
        ("iopl", 172, 0),
        ("open_tree", 428, 428),
        ("move_mount", 429, 429),
        ("fsopen", 430, 430),
        ("mount_setattr", 442, 442),
    ];
    for (name, on_x86, on_arm) in forbidden {
        let expected = RETURN_ERROR | FORBIDDEN;
        assert_eq!(ask(&x86_64(), X86_64, on_x86, 0), expected, "{name}");
        if on_arm != 0 {
            assert_eq!(ask(&aarch64(), AARCH64, on_arm, 0), expected, "{name}");
        }
    }
}

#[test]
fn what_programs_need_is_allowed_on_both_architectures() {
    for (name, on_x86, on_arm) in [
        ("read", 0, 63),
        ("openat", 257, 56),
        ("execve", 59, 221),
        ("mmap", 9, 222),
        ("ptrace", 101, 117),
        ("prlimit64", 302, 261),
        ("seccomp", 317, 277),
        ("mseal", 462, 462),
    ] {
        assert_eq!(ask(&x86_64(), X86_64, on_x86, 0), ALLOWED, "{name}");
        assert_eq!(ask(&aarch64(), AARCH64, on_arm, 0), ALLOWED, "{name}");
    }
    assert_eq!(ask(&x86_64(), X86_64, 2, 0), ALLOWED, "open");
}

#[test]
fn no_other_abi_is_a_way_around() {
    let unknown = RETURN_ERROR | UNKNOWN;
    // Through `int 0x80`, and as a 32-bit program of the other architecture.
    for (program, machine) in [(x86_64(), I386), (aarch64(), ARM), (x86_64(), AARCH64)] {
        for number in [0, 1, 21, 63, 310] {
            assert_eq!(
                ask(&program, machine, number, 0),
                KILLED,
                "{machine:#x} {number}"
            );
        }
    }
    for number in [0, 1, 59, 165, 250, 512, 545] {
        assert_eq!(
            ask(&x86_64(), X86_64, X32 | number, 0),
            unknown,
            "x32 {number}"
        );
    }
    for program in [(x86_64(), X86_64), (aarch64(), AARCH64)] {
        assert_eq!(ask(&program.0, program.1, NEWEST + 1, 0), unknown);
        assert_eq!(ask(&program.0, program.1, u32::MAX, 0), unknown);
        assert_eq!(ask(&program.0, program.1, CLONE3, 0), unknown);
    }
}

#[test]
fn arguments_decide_about_clone_sockets_and_personalities() {
    let check = |number: u32, first: u64, expected: u32| {
        assert_eq!(
            ask(&x86_64(), X86_64, number, first),
            expected,
            "{number} {first:#x}"
        );
    };
    let forbidden = RETURN_ERROR | FORBIDDEN;
    let (clone, socket, personality) = (56, 41, 135);
    // The flags of `fork` and of threads.
    check(clone, 0x0120_0011, ALLOWED);
    check(clone, 0x003d_0f00, ALLOWED);
    for namespace in [
        0x0002_0000,
        0x0200_0000,
        0x0400_0000,
        0x0800_0000,
        0x1000_0000,
        0x2000_0000,
        0x4000_0000_u64,
    ] {
        check(clone, namespace | 0x11, forbidden);
        // Bits that the kernel ignores change nothing.
        check(clone, namespace | 0x11 | 1 << 40, forbidden);
        assert_eq!(ask(&aarch64(), AARCH64, 220, namespace | 0x11), forbidden);
    }
    for (family, expected) in [(1, ALLOWED), (2, ALLOWED), (10, ALLOWED), (16, ALLOWED)] {
        check(socket, family, expected);
    }
    for family in [17, 38, 40, 1 << 31] {
        check(socket, family, forbidden);
    }
    check(personality, 0xffff_ffff, ALLOWED);
    // Would place memory at predictable addresses.
    check(personality, 0x0004_0000, forbidden);
}
