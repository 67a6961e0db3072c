//! Runs a program with a breakpoint at each of its functions. A breakpoint is removed where it is hit, so each
//! function costs one stop.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use nix::sys::ptrace::{self, Event, Options as Trace};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

/// The instruction `int3`.
const BREAKPOINT: u8 = 0xcc;

/// The arguments of `trace`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The file for the names of the functions that ran, in the order of their first run.
    #[arg(long)]
    out: PathBuf,
    /// The program, with its symbols.
    program: PathBuf,
    /// Its arguments.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<OsString>,
}

/// The arguments of `traced`, the process that becomes the program.
#[derive(clap::Args)]
pub(crate) struct Traced {
    program: PathBuf,
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<OsString>,
}

/// Becomes the program, which its parent traces.
pub(crate) fn become_traced(traced: &Traced) -> Result<()> {
    ptrace::traceme()?;
    Err(Command::new(&traced.program)
        .args(&traced.args)
        .exec()
        .into())
}

/// Runs the program until it ends, and writes what ran. SIGTERM is passed on to it.
pub(crate) fn trace(options: &Options) -> Result<()> {
    let functions = functions(&options.program)?;
    let child = Command::new(std::env::current_exe()?)
        .arg("traced")
        .arg(&options.program)
        .args(&options.args)
        .spawn()?;
    let child = Pid::from_raw(i32::try_from(child.id())?);
    let status = waitpid(child, None)?;
    if !matches!(status, WaitStatus::Stopped(..)) {
        bail!("the program did not start: {status:?}");
    }
    let followed = Trace::PTRACE_O_EXITKILL
        | Trace::PTRACE_O_TRACECLONE
        | Trace::PTRACE_O_TRACEFORK
        | Trace::PTRACE_O_TRACEVFORK
        | Trace::PTRACE_O_TRACEEXEC;
    ptrace::setoptions(child, followed)?;
    let mut tracer = Tracer::new(child, functions)?;
    pass_on_the_end(child)?;
    ptrace::cont(child, None)?;
    let outcome = tracer.run();
    let mut out = File::create(&options.out)?;
    for name in &tracer.ran {
        writeln!(out, "{name}")?;
    }
    outcome
}

/// Reads the addresses of the program's functions in its file, each with its names.
fn functions(program: &PathBuf) -> Result<HashMap<u64, Vec<String>>> {
    let listed = Command::new("readelf")
        .args(["--syms", "--wide"])
        .arg(program)
        .output();
    let listed = listed.context("readelf does not start; it comes with binutils")?;
    let mut functions: HashMap<u64, Vec<String>> = HashMap::new();
    // Number, value, size, type, binding, visibility, section, name.
    for line in String::from_utf8_lossy(&listed.stdout).lines() {
        let fields: Vec<_> = line.split_whitespace().collect();
        if let [_, value, size, "FUNC", _, _, section, name] = fields[..]
            && section != "UND"
            && size != "0"
        {
            let address = u64::from_str_radix(value, 16)?;
            functions.entry(address).or_default().push(name.to_owned());
        }
    }
    if functions.is_empty() {
        bail!("{} has no symbols", program.display());
    }
    Ok(functions)
}

/// Passes SIGTERM on to the program, which then ends by itself.
fn pass_on_the_end(program: Pid) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut told = {
        let _entered = runtime.enter();
        tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?
    };
    std::thread::spawn(move || {
        runtime.block_on(told.recv());
        // An error means that the program has ended.
        let _ = kill(program, Signal::SIGTERM);
    });
    Ok(())
}

struct Tracer {
    program: Pid,
    /// The difference between addresses in memory and in the file.
    base: u64,
    /// Names and the first byte of each function, by its address in the file.
    functions: HashMap<u64, (Vec<String>, u8)>,
    /// The names of the functions that ran, in the order of their first run.
    ran: Vec<String>,
    /// The memory of each process or thread that has stopped.
    memories: HashMap<Pid, File>,
}

impl Tracer {
    /// Sets a breakpoint at each function of the stopped program.
    fn new(program: Pid, functions: HashMap<u64, Vec<String>>) -> Result<Self> {
        let maps = fs::read_to_string(format!("/proc/{program}/maps"))?;
        let base = maps.split('-').next().context("a program has memory")?;
        let mut tracer = Self {
            program,
            base: u64::from_str_radix(base, 16)?,
            functions: HashMap::new(),
            ran: Vec::new(),
            memories: HashMap::new(),
        };
        let base = tracer.base;
        let memory = tracer.memory(program)?;
        let mut known = HashMap::new();
        for (address, names) in functions {
            let mut first = [0];
            memory.read_exact_at(&mut first, base + address)?;
            memory.write_all_at(&[BREAKPOINT], base + address)?;
            known.insert(address, (names, first[0]));
        }
        tracer.functions = known;
        Ok(tracer)
    }

    /// Follows the program and its children up to their `exec`, until the program has ended.
    fn run(&mut self) -> Result<()> {
        loop {
            let status = waitpid(None, Some(WaitPidFlag::__WALL))?;
            match status {
                WaitStatus::Exited(pid, _) | WaitStatus::Signaled(pid, ..) => {
                    self.memories.remove(&pid);
                    if pid == self.program {
                        return Ok(());
                    }
                }
                WaitStatus::PtraceEvent(pid, _, event) => {
                    if event == Event::PTRACE_EVENT_EXEC as i32 && pid != self.program {
                        ptrace::detach(pid, None)?;
                    } else {
                        resume(pid, None)?;
                    }
                }
                WaitStatus::Stopped(pid, Signal::SIGTRAP) if self.take_breakpoint(pid)? => {
                    resume(pid, None)?;
                }
                WaitStatus::Stopped(pid, Signal::SIGSTOP) if !self.memories.contains_key(&pid) => {
                    // A new thread or process starts stopped.
                    self.memory(pid)?;
                    resume(pid, None)?;
                }
                WaitStatus::Stopped(pid, signal) => resume(pid, Some(signal))?,
                WaitStatus::PtraceSyscall(_)
                | WaitStatus::Continued(_)
                | WaitStatus::StillAlive => {}
            }
        }
    }

    /// Removes the breakpoint at which a thread has stopped, if it is one, and notes its function.
    fn take_breakpoint(&mut self, pid: Pid) -> Result<bool> {
        let mut registers = ptrace::getregs(pid)?;
        let address = registers.rip - 1;
        let Some((names, first)) = self.functions.get_mut(&(address.wrapping_sub(self.base)))
        else {
            return Ok(false);
        };
        let first = *first;
        self.ran.append(names);
        // A process that was forked has memory of its own.
        self.memory(pid)?.write_all_at(&[first], address)?;
        registers.rip = address;
        ptrace::setregs(pid, registers)?;
        Ok(true)
    }

    fn memory(&mut self, pid: Pid) -> Result<&File> {
        match self.memories.entry(pid) {
            std::collections::hash_map::Entry::Occupied(memory) => Ok(memory.into_mut()),
            std::collections::hash_map::Entry::Vacant(free) => {
                let file = File::options()
                    .read(true)
                    .write(true)
                    .open(format!("/proc/{pid}/mem"));
                Ok(free.insert(file?))
            }
        }
    }
}

/// Lets a stopped thread go on. One that was killed meanwhile is gone.
fn resume(pid: Pid, signal: Option<Signal>) -> Result<()> {
    match ptrace::cont(pid, signal) {
        Ok(()) | Err(nix::errno::Errno::ESRCH) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
