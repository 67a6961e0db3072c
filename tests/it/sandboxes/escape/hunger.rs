//! What takes without end: processes, memory, time, disk, output.

use sepal::sandbox::{Bounds, ProgramEnd};

use super::super::house::{House, in_time};
use super::place::{Outcome, Place};

super::super::on_every_runtime!(
    what_takes_without_end_is_bounded,
    a_filled_workspace_ends_the_sandbox_with_its_reason,
);

/// The longest answer to a command: both ends of both streams, where each
/// byte that is no text takes three, and words.
const MOST: usize = 200 << 10;

/// What is tried, the script, and a word of the answer.
const HUNGRY: [(&str, &str, &str); 13] = [
    (
        "a fork bomb",
        "bomb() { bomb | bomb & }; bomb 2>/dev/null; wait; sleep 2; echo held",
        "",
    ),
    (
        "a fork bomb that leaves its group",
        "echo '((EPOCHSECONDS < end)) || exit; (setsid bash bomb & setsid bash bomb &)' >bomb
         end=$((EPOCHSECONDS + 60)) setsid bash bomb >/dev/null 2>&1; echo held",
        "",
    ),
    (
        "processes that flee from group to group",
        "flee='use POSIX; $end = time + 60; while (time < $end) { fork and exit; POSIX::setsid() }'
         for i in 1 2 3; do env -i setsid perl -e \"$flee\" & done; echo held",
        "held",
    ),
    ("memory", "tail /dev/zero", ""),
    (
        "memory in a folder of memory",
        "head -c 100M /dev/zero >/dev/shm/a; head -c 100M /dev/zero >/tmp/a
         stat -c %s /dev/shm/a /tmp/a; rm -f /dev/shm/a /tmp/a",
        "67108864\n67108864\n",
    ),
    (
        "processor time",
        "timeout 2 perl -e 'fork; fork; 1 while 1' ; while :; do :; done",
        "longer than 5 s",
    ),
    ("output", "timeout 2 yes; echo held", "bytes left out"),
    (
        "output on both streams",
        "timeout 1 yes & timeout 1 yes >&2; wait; echo held",
        "bytes left out",
    ),
    (
        "a single line",
        "head -c 30M /dev/zero | tr '\\0' x; echo; echo held",
        "held",
    ),
    (
        "bytes that are no text",
        "head -c 300K /dev/urandom; echo; echo held",
        "held",
    ),
    (
        "zombies",
        "perl -e 'for (1 .. 400) { fork // last or exit } sleep 1' ; echo held",
        "held",
    ),
    (
        "children that hold the streams",
        "setsid sleep 30 & (setsid nohup sleep 30 &); echo held",
        "held",
    ),
    (
        "open files",
        "perl -e 'my @open; while (open my $file, \"<\", \"/dev/null\") { push @open, $file }
                  print @open < 1100 ? \"bounded\\n\" : \"unbounded\\n\"'",
        "\nbounded\n",
    ),
];

/// Says so where hardly more than the server is left.
const QUIET: &str = "set -- /proc/[0-9]*; (($# < 8)) && echo quiet";

/// Little, so that the bounds are reached soon.
const LITTLE: Bounds = Bounds {
    memory_bytes: 256 << 20,
    cpu_millis: 500,
    processes: 60,
    workspace_bytes: 64 << 20,
    lifetime: None,
};

async fn what_takes_without_end_is_bounded(house: House) {
    let mut place = Place::with(house, LITTLE).await;
    for (what, script, word) in HUNGRY {
        let outcome = place.attack(script).await;
        match &outcome {
            Outcome::Told(text) => {
                assert!(text.contains(word), "{what}: {text}");
                assert!(text.len() < MOST, "{what}: {} bytes", text.len());
            }
            // Where nothing but a look now and then holds a limit, the sandbox ends.
            Outcome::Over(ProgramEnd::OverProcesses(60) | ProgramEnd::OverMemory(_)) => {}
            Outcome::Over(other) => panic!("{what}: {other}"),
        }
        // Whatever the attack left is gone by now.
        if place.is_running() {
            let quiet = place.attack(QUIET).await;
            assert_eq!(quiet.printed(), "quiet\n", "{what}: {quiet:?}");
        }
        place.next_call_works(what).await;
    }
    place.close().await;
}

async fn a_filled_workspace_ends_the_sandbox_with_its_reason(house: House) {
    let bounds = Bounds {
        workspace_bytes: 8 << 20,
        ..Bounds::default()
    };
    let mut place = Place::with(house, bounds).await;
    let fill = "for i in 1 2 3; do head -c 4M /dev/zero >$i; done; sleep 4; echo held";
    for fill in [
        fill,
        "setsid bash -c 'sleep 0.1; head -c 7M /dev/zero >x; cp x y; sleep 9' & sleep 4",
    ] {
        let outcome = place.attack(fill).await;
        let ended = in_time(place.session().life.ended()).await;
        assert_eq!(ended, ProgramEnd::OverWorkspace(8 << 20), "{outcome:?}");
        // Files come back with the next sandbox, whose first command may make room.
        place.next_call_works(fill).await;
        let cleaned = place.attack("rm -f -- *; ls | wc -l").await;
        assert_eq!(cleaned.printed(), "0\n", "{cleaned:?}");
        // What was too much from the beginning may stay, but the one after holds the limit again.
        place.end().await;
        place.next_call_works(fill).await;
    }
    place.close().await;
}
