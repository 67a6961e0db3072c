# Installs a package of the Python package index into /workspace, or what a bundle asks for, with the
# bundle's own files beside it; what is installed is later seen at /packages. Reads its order as one line
# of JSON, behind which a bundle follows as a tar archive, and tells each step as one line of JSON on
# stdout. An order without pins gets them, and nothing is installed. What pip says goes to stderr.
import errno
import glob
import importlib.metadata
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys

HOME = "/workspace"
SITE = HOME + "/site"
# Starts a console script as its wrapper would, with nothing of the system's own packages in sight.
STARTER = """import functools,importlib,site,sys
sys.path.insert(0,{site!r})
site.addsitedir({site!r})
sys.argv[0]={name!r}
sys.exit(functools.reduce(getattr,{attribute!r}.split('.'),importlib.import_module({module!r}))())"""
# Runs pip where no process can be started: to build a package, also one that a wheel asks for by an
# address, pip runs code of its authors. What pip asks of the system besides, it can do without.
GUARD = """import runpy,sys
STARTS=('subprocess.Popen','os.exec','os.fork','os.forkpty','os.posix_spawn','os.spawn','os.system','pty.spawn')
def refuse(event,args):
    if event in STARTS:
        if event=='subprocess.Popen' and str(args[0])==sys.executable:
            open({mark!r},'w').close()
        raise PermissionError(13,'no code of packages runs here')
sys.addaudithook(refuse)
runpy.run_module('pip',run_name='__main__',alter_sys=True)"""
# Is there when pip wanted to build something.
MARK = HOME + "/.tmp/wanted-to-build"


def tell(**what):
    os.write(1, (json.dumps(what) + "\n").encode())


def fail(problem, text):
    tell(failed={"problem": problem, "text": text})
    sys.exit(1)


def command_of(point):
    module, _, attribute = point.value.split("[")[0].strip().partition(":")
    starter = STARTER.format(
        site="/packages/site", name=point.name, module=module, attribute=attribute.strip()
    )
    environment = {"PYTHONPATH": "/packages/site", "PYTHONDONTWRITEBYTECODE": "1"}
    return ["python3", "-I", "-S", "-c", starter], environment


def pip(*args, scripts):
    how = ["-m", "pip"] if scripts else ["-c", GUARD.format(mark=MARK)]
    line = [sys.executable, *how, *args]
    done = subprocess.run(line, cwd=HOME, stdin=subprocess.DEVNULL, stdout=2)
    if done.returncode == -signal.SIGKILL:
        # So the kernel ends what takes more memory than the sandbox has; the sandbox itself goes on.
        fail("too_large", f"`pip {args[0]}` needed more memory than an installation may use")
    if done.returncode != 0 and os.path.exists(MARK):
        fail("no_wheel", "a package that it asks for is only there as source, and building it runs code of its authors")
    if done.returncode != 0:
        fail(None, f"`pip {args[0]}` ended with exit code {done.returncode}")


# Compiles modules as pip would, but under /packages, where they are imported. pip compiles in a folder with a
# random name and writes that name into the files, so equal wheels would give different files. A module that
# does not compile is left as it is.
def compile_site():
    how = ["-q", "-s", HOME, "-p", "/packages", "--invalidation-mode", "unchecked-hash"]
    # Not where files of packages could be taken for modules of Python.
    subprocess.run([sys.executable, "-m", "compileall", *how, SITE], cwd="/", stdin=subprocess.DEVNULL, stdout=2)


def normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def wanted_of(order):
    if order["name"] is None:
        return order["with"]
    extras = "[" + ",".join(order["extras"]) + "]" if order["extras"] else ""
    return [order["name"] + extras + (order["version"] or ""), *order["with"]]


def resolve(order, binary):
    wanted = wanted_of(order)
    if not wanted:
        return []
    report = HOME + "/.tmp/report.json"
    versions = []
    if order["constraints"]:
        versions = ["--constraint", HOME + "/.tmp/constraints.txt"]
        with open(versions[1], "w", encoding="utf-8") as file:
            file.write("\n".join(order["constraints"]) + "\n")
    flags = ["--dry-run", "--ignore-installed", "--report", report, *versions, *binary]
    pip("install", *flags, "--", *wanted, scripts=order["scripts"])
    with open(report, encoding="utf-8") as file:
        items = json.load(file)["install"]
    lock = []
    for item in items:
        about = item["metadata"]
        if item["is_direct"]:
            address = item["download_info"]["url"]
            fail("no_wheel", f"`{about['name']}` is taken from the address {address} and not from the index")
        hashes = item["download_info"].get("archive_info", {}).get("hashes", {})
        if "sha256" not in hashes:
            fail("wrong_hash", f"the index gives no hash for `{about['name']}`")
        if item.get("is_yanked"):
            fail("yanked", f"`{about['name']}` {about['version']} was taken back by its author")
        lock.append([normal(about["name"]), about["version"], hashes["sha256"]])
    return sorted(lock)


def program_of(order):
    own, others = {}, {}
    for found in importlib.metadata.distributions(path=[SITE]):
        is_own = normal(found.metadata["Name"]) == order["name"]
        for point in found.entry_points:
            if point.group == "console_scripts":
                (own if is_own else others)[point.name] = point
    wanted = order["program"]
    if wanted is not None:
        point = own.get(wanted) or others.get(wanted)
        if point is None:
            names = ", ".join(sorted(own)) or "none"
            fail("no_program", f"the package has no program `{wanted}`; it has: {names}")
        return point
    named = [point for name, point in own.items() if normal(name) == order["name"]]
    if named or len(own) == 1:
        return (named or list(own.values()))[0]
    names = ", ".join(sorted(own))
    fail("no_program", f"the package has several programs: {names}" if own else "the package has no program")


# Takes exactly as many bytes as it was told: stdin stays open. What the archive holds, the gateway wrote.
def unpack(left):
    folder = HOME + "/bundle"
    os.mkdir(folder)
    line = ["tar", "--extract", "--file=-", "--directory=" + folder, "--no-same-owner", "--preserve-permissions"]
    tar = subprocess.Popen(line, cwd=HOME, stdin=subprocess.PIPE, stdout=2)
    with tar.stdin:
        while left > 0:
            piece = sys.stdin.buffer.read(min(left, 1 << 16))
            if not piece:
                fail(None, "the bundle did not come to its end")
            tar.stdin.write(piece)
            left -= len(piece)
    if tar.wait() != 0:
        fail(None, f"`tar` ended with exit code {tar.returncode}")


def install(order):
    with open("/tmp/ca.pem", "w", encoding="ascii") as file:
        file.write(order["authorities"])
    os.makedirs(HOME + "/.tmp", exist_ok=True)
    # The registry may be on the gateway's own machine, never on this one.
    for name in ("NO_PROXY", "no_proxy"):
        os.environ.pop(name, None)
    os.environ.update(
        HOME="/tmp",
        TMPDIR=HOME + "/.tmp",
        PIP_CACHE_DIR=HOME + "/.cache",
        PIP_CERT="/tmp/ca.pem",
        PIP_CONFIG_FILE="/dev/null",
        PIP_DISABLE_PIP_VERSION_CHECK="1",
        PIP_INDEX_URL=order["registry"],
        PIP_NO_INPUT="1",
        PIP_PROGRESS_BAR="off",
        PIP_RETRIES="3",
        PIP_DEFAULT_TIMEOUT="60",
        PIP_ROOT_USER_ACTION="ignore",
        # What Python compiles has no order of chance then, and archives no times.
        PYTHONHASHSEED="0",
        SOURCE_DATE_EPOCH="315532800",
    )
    binary = [] if order["scripts"] else ["--only-binary", ":all:"]
    tell(runtime="Python " + platform.python_version())
    if order["lock"] is None:
        tell(phase="resolving")
        return tell(resolved=json.dumps(resolve(order, binary)))
    lock = json.loads(order["lock"])
    pins = HOME + "/requirements.txt"
    with open(pins, "w", encoding="utf-8") as file:
        for name, version, sha256 in lock:
            file.write(f"{name}=={version} --hash=sha256:{sha256}\n")
    tell(phase="downloading")
    wheels = HOME + "/.tmp/wheels"
    pinned = ["--no-deps", "--require-hashes", "-r", pins]
    if not lock:
        pass
    elif order["scripts"]:
        pip("wheel", *pinned, "--wheel-dir", wheels, scripts=True)
    else:
        pip("download", *pinned, *binary, "--dest", wheels, scripts=False)
    tell(phase="installing")
    if lock:
        files = sorted(glob.glob(glob.escape(wheels) + "/*.whl"))
        pip("install", "--no-index", "--no-deps", "--no-compile", "--target", SITE, *files, scripts=False)
        compile_site()
    if order["bundle"] is None:
        program, environment = command_of(program_of(order))
        version = next(version for name, version, _ in lock if name == order["name"])
    else:
        # What is started, and with which variables, says its entry.
        program, environment, version = [], {}, order["version"]
    for left in (".cache", ".tmp"):
        shutil.rmtree(f"{HOME}/{left}", ignore_errors=True)
    if order["bundle"] is not None:
        unpack(order["bundle"])
    tell(
        done={
            "version": version,
            "lock": json.dumps(lock),
            "pins": lock,
            "program": program,
            "environment": environment,
            "skippedScripts": [],
        }
    )


def main():
    try:
        install(json.loads(sys.stdin.buffer.readline()))
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        fail("too_large" if full else "other", str(error))


main()
