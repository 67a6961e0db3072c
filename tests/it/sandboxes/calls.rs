//! Which calls into the kernel a program inside may make.

use std::collections::{BTreeMap, BTreeSet};

use sepal::sandbox::{Bounds, ProgramEnd};
use serde_json::json;

use super::house::House;
use crate::support::Door;

super::on_every_runtime!(
    what_no_program_needs_is_refused,
    what_a_command_starts_is_filtered_too,
);

/// Names what comes through to the kernel: whatever it says then but that it may not or cannot.
const TRY: &str = r#"perl -MErrno=EPERM,ENOSYS -e '
    my %calls = (
        add_key => [248, "user\0", "name\0", "secret\0", 6, -3], request_key => [249, "user\0", "name\0", 0, 0],
        keyctl => [250, 0, -3, 0], keyctl_join => [250, 1, 0],
        bpf => [321, 0, 0, 0], perf_event_open => [298, 0, 0, -1, -1, 0], userfaultfd => [323, 1],
        unshare_user => [272, 0x10000000], unshare_mounts => [272, 0x20000],
        setns => [308, 0, 0], mount => [165, "none\0", "/tmp\0", "tmpfs\0", 0, 0], umount2 => [166, "/proc\0", 2],
        pivot_root => [155, "/\0", "/\0"], chroot => [161, "/tmp\0"], open_tree => [428, -100, "/\0", 1],
        fsopen => [430, "tmpfs\0", 0], move_mount => [429, -1, "\0", -1, "\0", 0],
        open_by_handle_at => [304, -100, 0, 0], name_space_clone3 => [435, 0, 0],
        kexec_load => [246, 0, 0, 0, 0], init_module => [175, 0, 0, "\0"], finit_module => [313, 0, "\0", 0],
        swapon => [167, "/tmp/x\0", 0], acct => [163, 0], quotactl => [179, 0, 0, 0, 0], syslog => [103, 3, 0, 0],
        kcmp => [312, 1, 1, 0, 0, 0], iopl => [172, 3], ioperm => [173, 0, 1, 1], mbind => [237, 0, 0, 0, 0, 0, 0],
        move_pages => [279, 0, 0, 0, 0, 0, 0], reboot => [169, 0, 0, 0, 0], nfsservctl => [180, 0, 0, 0],
        lookup_dcookie => [212, 0, 0, 0], uselib => [134, "x\0"],
    );
    for my $name (sort keys %calls) {
        my $got = syscall(shift @{$calls{$name}}, @{$calls{$name}});
        print "$name: $got $!\n" unless $got == -1 && ($! == EPERM || $! == ENOSYS);
    }
    for my $namespace (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000) {
        my $got = syscall(56, $namespace | 17, 0, 0, 0, 0);
        exit if $got == 0;
        print "clone $namespace\n" unless $got == -1 && $! == EPERM;
    }
' 2>&1"#;

async fn what_no_program_needs_is_refused(house: House) {
    let (said, ended) = house.run(TRY).await;
    assert_eq!((said.as_str(), ended), ("", ProgramEnd::Exited(0)));
    let told = "for file in keys kcore timer_list sched_debug latency_stats; do
                  head -c 1 /proc/$file 2>/dev/null
                done
                for folder in acpi scsi; do ls -A /proc/$folder 2>/dev/null; done";
    assert_eq!(house.run(told).await.0, "");
    house.close().await;
}

async fn what_a_command_starts_is_filtered_too(house: House) {
    let served = house.serve(1, Bounds::default()).await;
    let line = "cat /proc/self/status /proc/$PPID/status; (setsid sh -c 'cat /proc/self/status')";
    let line = json!({ "command": format!("({line}) | grep -E '^(Seccomp|NoNewPrivs):' | sort") });
    let told = served.call("execute_command", line).await;
    let expected = "NoNewPrivs:\t1\n".repeat(3) + &"Seccomp:\t2\n".repeat(3);
    assert!(told.ends_with(&expected), "{told}");
    house.close().await;
}

/// Makes each call with arguments that mean nothing, in a process of its own; says number and answer
/// (0 where it is none). Left out is what never comes back, or what an argument decides about.
const SWEEP: &str = r#"perl -e '
    $| = 1;
    my %not = map { $_ => 1 } (15, 34, 41, 56, 57, 58, 60, 61, 135, 162, 231, 435);
    for my $number (grep { !$not{$_} } 0 .. 470) {
        my $child = fork();
        if ($child == 0) {
            alarm(2);
            close(STDIN);
            my $got = syscall($number, -1, -1, -1, -1, -1, -1);
            print "$number " . ($got == -1 ? $! + 0 : 0) . "\n";
            require POSIX;
            POSIX::_exit(0);
        }
        waitpid($child, 0);
    }
'"#;

/// The numbers that answer as if there were no such call, or none for us.
async fn refused(house: House) -> (BTreeSet<u32>, BTreeSet<u32>) {
    let (said, _) = house.run(SWEEP).await;
    house.close().await;
    let answers = said.lines().filter_map(|line| {
        let (number, answer) = line.split_once(' ')?;
        Some((number.parse::<u32>().ok()?, answer.parse::<u32>().ok()?))
    });
    let answers: BTreeMap<u32, u32> = answers.collect();
    assert!(answers.len() > 400, "{said}");
    let refused = answers
        .iter()
        .filter(|(_, answer)| matches!(answer, 1 | 38));
    (
        refused.map(|(number, _)| *number).collect(),
        answers.into_keys().collect(),
    )
}

/// What the profile allows today and older engines refuse: handles of files that nobody can open,
/// memory of one's own processes, protection keys, and what is younger than they are.
const NEWER: [u32; 28] = [
    303, 310, 311, 329, 330, 331, 335, 434, 436, 437, 439, 441, 444, 445, 446, 447, 448, 449, 450,
    451, 452, 453, 454, 455, 456, 457, 458, 462,
];
/// `io_uring`, which engines before 25 allow, and what those after 28 do that we do not know yet.
const OURS_ALONE: [u32; 8] = [425, 426, 427, 463, 464, 465, 466, 467];

#[tokio::test]
async fn bubblewrap_refuses_whatever_the_engine_does() {
    let (docker, of_docker) = refused(House::docker(Door::Direct).await).await;
    let (ours, of_ours) = refused(House::bubblewrap().await).await;
    let both: BTreeSet<u32> = of_docker.intersection(&of_ours).copied().collect();
    let is_compared = |number: &&u32| both.contains(*number);
    let weaker = docker.difference(&ours).filter(is_compared);
    let weaker: Vec<_> = weaker.filter(|number| !NEWER.contains(number)).collect();
    assert!(
        weaker.is_empty(),
        "the engine refuses these, and we do not: {weaker:?}"
    );
    let stricter = ours.difference(&docker).filter(is_compared);
    let stricter: Vec<_> = stricter
        .filter(|number| !OURS_ALONE.contains(number))
        .collect();
    assert!(
        stricter.is_empty(),
        "we refuse these, and the engine does not: {stricter:?}"
    );
}

/// A program that ends with 7 by way of the 32-bit calls, in machine code.
const OLD_WAY: &str = "7f454c4602010100000000000000000002003e0001000000780040000000000040000000\
    000000000000000000000000000000004000380001000000000000000100000005000000000000000000000000004000\
    000000000000400000000000840000000000000084000000000000000010000000000000b801000000bb07000000cd80";

#[tokio::test]
async fn neither_other_abis_nor_other_sockets_are_a_way_around() {
    let house = House::bubblewrap().await;
    let script = format!(
        "perl -e 'print pack(\"H*\", \"{OLD_WAY}\")' >old && chmod +x old && ./old
         echo $?
         perl -e 'for my $number (0, 20, 39, 165, 250, 272) {{
           print \"x32 $number\\n\" if syscall(0x40000000 | $number, 0, 0, 0) != -1;
         }}'"
    );
    let (said, _) = house.run(&script).await;
    // Killed for it, or the kernel has no such calls.
    let status = said.lines().find_map(|line| line.parse::<i32>().ok());
    assert!(matches!(status, Some(159 | 139)), "{said}");
    assert!(!said.contains("x32") && !said.contains("family"), "{said}");
    house.close().await;
}
