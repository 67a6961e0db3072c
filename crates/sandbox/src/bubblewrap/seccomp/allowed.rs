//! Lists the allowed system calls, by purpose. Everything else is forbidden: keyrings, kernel modules,
//! namespaces and mounts, `bpf`, `perf_event_open`, `userfaultfd`, `io_uring`, other memory policies, swap,
//! quotas, clocks, accounting, the kernel's log, and obsolete calls.

/// Allowed on every architecture.
pub(super) const ANYWHERE: &[&str] = &[
    FILES,
    ATTRIBUTES,
    STREAMS,
    WAITING,
    MEMORY,
    PROCESSES,
    USERS,
    SCHEDULING,
    SIGNALS,
    TIME,
    SOCKET,
    MESSAGES,
    TRACING,
    SELF_RESTRAINT,
];

const FILES: &str = "\
    openat openat2 close close_range name_to_handle_at faccessat faccessat2 fstat newfstatat \
    statx statfs fstatfs statmount listmount getcwd chdir fchdir mkdirat mknodat linkat \
    symlinkat readlinkat renameat renameat2 unlinkat fchmod fchmodat fchmodat2 fchown fchownat \
    truncate ftruncate fallocate utimensat umask getdents64 lseek flock fcntl ioctl sync \
    syncfs fsync fdatasync sync_file_range fadvise64 readahead cachestat inotify_init1 \
    inotify_add_watch inotify_rm_watch fanotify_mark";

const ATTRIBUTES: &str = "\
    getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr setxattr lsetxattr fsetxattr \
    removexattr lremovexattr fremovexattr";

const STREAMS: &str = "\
    read write readv writev pread64 pwrite64 preadv pwritev preadv2 pwritev2 sendfile \
    copy_file_range splice tee vmsplice pipe2 dup dup3 memfd_create memfd_secret io_setup \
    io_destroy io_submit io_cancel io_getevents io_pgetevents";

const WAITING: &str = "\
    ppoll pselect6 epoll_create1 epoll_ctl epoll_pwait epoll_pwait2 eventfd2 signalfd4 \
    timerfd_create timerfd_settime timerfd_gettime futex futex_waitv futex_wake futex_wait \
    futex_requeue set_robust_list get_robust_list restart_syscall";

const MEMORY: &str = "\
    brk mmap munmap mremap mprotect msync mincore madvise mlock mlock2 mlockall munlock \
    munlockall mseal remap_file_pages map_shadow_stack membarrier pkey_alloc pkey_free \
    pkey_mprotect process_mrelease";

const PROCESSES: &str = "\
    execve execveat exit exit_group wait4 waitid getpid getppid gettid getpgid setpgid getsid \
    setsid set_tid_address rseq prctl getrlimit setrlimit prlimit64 getrusage times uname \
    sysinfo getcpu getrandom pidfd_open pidfd_send_signal";

const USERS: &str = "\
    getuid geteuid getgid getegid getresuid getresgid getgroups setuid setgid setreuid \
    setregid setresuid setresgid setgroups setfsuid setfsgid capget capset";

const SCHEDULING: &str = "\
    sched_yield sched_getaffinity sched_setaffinity sched_getattr sched_setattr sched_getparam \
    sched_setparam sched_getscheduler sched_setscheduler sched_get_priority_max \
    sched_get_priority_min sched_rr_get_interval getpriority setpriority ioprio_get ioprio_set";

const SIGNALS: &str = "\
    kill tkill tgkill sigaltstack rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo \
    rt_tgsigqueueinfo rt_sigreturn rt_sigsuspend rt_sigtimedwait";

const TIME: &str = "\
    clock_gettime clock_getres clock_nanosleep nanosleep gettimeofday getitimer setitimer \
    timer_create timer_delete timer_getoverrun timer_gettime timer_settime adjtimex \
    clock_adjtime";

const SOCKET: &str = "\
    socketpair bind listen accept accept4 connect shutdown getsockname getpeername getsockopt \
    setsockopt sendto sendmsg sendmmsg recvfrom recvmsg recvmmsg";

const MESSAGES: &str = "\
    mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr msgget msgsnd \
    msgrcv msgctl semget semop semtimedop semctl shmget shmat shmdt shmctl";

/// Allowed only for one's own processes, which the kernel checks; before Linux 4.8 `ptrace` would have
/// bypassed the filter.
const TRACING: &str = "ptrace process_vm_readv process_vm_writev";

const SELF_RESTRAINT: &str =
    "seccomp landlock_create_ruleset landlock_add_rule landlock_restrict_self";

/// Calls that only the older architecture has.
pub(super) const X86_64: &str = "\
    open creat access stat lstat chmod chown lchown link symlink readlink rename unlink mkdir \
    rmdir mknod utime utimes futimesat getdents pipe dup2 poll select epoll_create epoll_wait \
    epoll_ctl_old epoll_wait_old eventfd signalfd inotify_init fork vfork getpgrp pause alarm \
    time arch_prctl modify_ldt get_thread_area set_thread_area uretprobe";

/// The allowed socket families: local, IPv4 and IPv6 (without a network), and netlink. Docker allows more,
/// which need a capability or have no peer.
pub(super) const SOCKETS: &[u32] = &[1, 2, 10, 16];

/// The allowed values of `personality`: the default, with the names of a 32-bit machine, of Linux 2.6, or
/// both; `0xffffffff` reads the current value.
pub(super) const PERSONALITIES: &[u32] = &[0, 0x8, 0x2_0000, 0x2_0008, 0xffff_ffff];

/// All flags of `clone` that create a namespace.
pub(super) const ANY_NAMESPACE: u32 = 0x7e02_0000;
