//! What a command may try at once: each attempt prints what it got, and nothing may be printed.

use sepal::sandbox::ProgramEnd;

use super::super::house::House;
use super::place::{Outcome, Place};

super::super::on_every_runtime!(
    nothing_that_a_command_tries_gets_it_anywhere,
    a_signal_ends_at_most_the_senders_own_sandbox,
);

/// What is tried, and the script.
const ATTEMPTS: [(&str, &str); 19] = [
    (
        "memory of the server",
        "for mode in '<' '<>'; do
           (eval \"exec 9$mode/proc/$PPID/mem\") && echo opened with $mode
         done",
    ),
    (
        "environment, root and folder of the server",
        "cat /proc/$PPID/environ; readlink /proc/$PPID/root /proc/$PPID/cwd /proc/$PPID/exe
         ls /proc/$PPID/fd /proc/$PPID/map_files /proc/$PPID/root/",
    ),
    (
        "names that only our environment has, of any process",
        "cat /proc/[0-9]*/environ | tr '\\0' '\\n' |
           grep -E '^(SPL_|SEPAL_TEST|CARGO|RUST|DATABASE|OPENAI|ANTHROPIC|GEMINI|AWS_|PG)'",
    ),
    (
        "another root by way of the first process",
        "for link in root cwd; do
           for way in '' /.. /../..; do
             ls -A /proc/1/$link$way | grep -xE 'root|home|work|data|\\.docker.*' |
               while read -r name; do ls -A /proc/1/$link$way/$name; done
           done
         done",
    ),
    (
        "settings of the kernel",
        "for file in kernel/core_pattern kernel/modprobe kernel/hostname kernel/panic \\
                     kernel/randomize_va_space vm/overcommit_memory fs/file-max \\
                     net/ipv4/ip_forward user/max_user_namespaces; do
           value=$(cat /proc/sys/$file) && (echo \"$value\" >/proc/sys/$file) && echo wrote $file
         done
         (echo h >/proc/sysrq-trigger) && echo sysrq
         (echo 0 >/proc/1/oom_score_adj) && (echo -1000 >/proc/self/oom_score_adj) && echo oom",
    ),
    (
        "memory and messages of the machine",
        "head -c 1 /proc/kcore; head -c 1 /dev/mem; head -c 1 /dev/kmem; head -c 1 /dev/port
         timeout 1 head -c 1 /dev/kmsg; dmesg | head -n 1",
    ),
    (
        "devices",
        "for kind in sda vda nvme0n1 fuse kvm net/tun loop0 loop-control mapper/control; do
           test -e /dev/$kind && echo /dev/$kind
         done
         mknod /tmp/disk b 8 0 && echo made a disk
         mknod /workspace/memory c 1 1 && echo made a memory",
    ),
    (
        "mounts",
        "mkdir -p m
         mount -t tmpfs none m && echo tmpfs
         mount -t proc proc m && echo proc
         mount --bind / m && echo bind
         mount -o remount,rw / && echo remounted
         umount -l /proc && echo unmounted",
    ),
    (
        "namespaces",
        "for kind in -U -m -n -p -i -u -C -T -Ur -Urm; do
           unshare $kind --fork true && echo unshared $kind
         done",
    ),
    (
        "entering the first process",
        "for kind in -m -n -p -i -u -U -C; do
           nsenter -t 1 $kind true && echo entered $kind
         done",
    ),
    (
        "another root folder",
        "mkdir -p r/old; pivot_root r r/old && echo pivoted
         chroot / true && echo chroot",
    ),
    (
        "a traced server",
        "perl -e 'for my $pid (@ARGV) {
           # PTRACE_ATTACH and PTRACE_SEIZE
           for my $how (16, 0x4206) {
             print \"traced $pid\\n\" if syscall(101, $how, $pid + 0, 0, 0) == 0;
           }
         }' $PPID",
    ),
    (
        "the machine's loopback and names",
        "for port in 22 53 80 443 2375 2376 5432 6379; do
           for host in 127.0.0.1 ::1 10.0.0.1 172.17.0.1 169.254.169.254; do
             (exec 9<>/dev/tcp/$host/$port) && echo connected $host $port
           done
         done
         (exec 9<>/dev/udp/8.8.8.8/53) && echo datagram
         timeout 2 getent ahosts example.com",
    ),
    (
        "raw sockets",
        "perl -MSocket -e '
           for my $kind ([AF_INET, SOCK_RAW, 1], [AF_INET, SOCK_RAW, 255], [17, SOCK_RAW, 768]) {
             print \"raw @$kind\\n\" if socket(my $socket, $kind->[0], $kind->[1], $kind->[2]);
           }'",
    ),
    (
        "sockets of engines and servers",
        "find / -xdev -type s -not -path '/proc/*'
         for place in /var/run/docker.sock /run/docker.sock /run/containerd /run/systemd /run/dbus \\
                      /run/user; do
           test -e $place && echo $place
         done",
    ),
    (
        "named sockets of the machine",
        "tail -n +2 /proc/net/unix | grep -E '[@/]'",
    ),
    (
        "more rights",
        "perl -e '$> = 0; print \"root\\n\" if $> == 0; $) = \"0 0\"; print \"wheel\\n\" if $) =~ /^0/'
         timeout 2 su -c true && echo su; timeout 2 sudo -n true && echo sudo
         cp /bin/bash b && chmod u+s b && test \"$(./b -p -c 'id -u')\" = 0 && echo set-user-id; rm b
         setpriv --reuid 0 true && echo setpriv",
    ),
    (
        "secrets in files",
        "for file in /etc/shadow /root/.ssh /root/.docker /root/.aws /run/secrets /sepal/.env \\
                     /workspace/.env /.env; do
           cat $file $file/* | head -c 20
         done
         grep -rlsE 'SPL_(KEY|SECRET|STORE|ADMIN)|BEGIN [A-Z ]*PRIVATE KEY' /etc /sepal/*.* /run /opt",
    ),
    (
        "the neighbour's files and processes",
        "grep -rs of-the-neighbour /workspace /tmp /dev/shm; cat /proc/[0-9]*/cwd/mine
         ls -A /workspace/.. | grep sbx_
         grep -hsx mcp-server /proc/[0-9]*/comm | tail -n +3",
    ),
];

async fn nothing_that_a_command_tries_gets_it_anywhere(house: House) {
    let mut place = Place::new(house).await;
    for (what, script) in ATTEMPTS {
        let outcome = place
            .attack(&format!("exec 2>/dev/null\n{script}\necho held"))
            .await;
        assert_eq!(outcome.printed(), "held\n", "{what}: {outcome:?}");
        place.next_call_works(what).await;
    }
    place.close().await;
}

/// Scripts that end with `held` where the signal did nothing.
const SIGNALS: [&str; 8] = [
    "kill -KILL 1",
    "kill -STOP 1",
    "kill -TERM 1",
    "kill -INT 1; kill -HUP 1; kill -QUIT 1; kill -SEGV 1",
    "kill -KILL $PPID",
    "kill -TERM $PPID",
    "kill -KILL -1",
    "kill -STOP $PPID",
];

async fn a_signal_ends_at_most_the_senders_own_sandbox(house: House) {
    let mut place = Place::new(house).await;
    for signal in SIGNALS {
        let outcome = place
            .attack(&format!("{signal}; sleep 0.3; echo held"))
            .await;
        match &outcome {
            Outcome::Told(text) => assert!(text.contains("held\n"), "{signal}: {text}"),
            Outcome::Over(
                ProgramEnd::Exited(_) | ProgramEnd::Signalled(_) | ProgramEnd::Killed,
            ) => {}
            Outcome::Over(other) => panic!("{signal}: {other}"),
        }
        place.next_call_works(signal).await;
    }
    place.close().await;
}
