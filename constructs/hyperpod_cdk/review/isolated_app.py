"""Runs one command without access to the user's files: a script that ``review/isolation.py`` starts.

    python -I -S isolated_app.py PLAN STATUS

``PLAN`` is JSON: ``command``, ``folder`` (where it runs), ``home``, ``writable`` and ``readable`` paths, ``masked``
paths, ``overlays`` (paths that the command may write to and that keep nothing), ``scratch``, ``memory`` in bytes,
``is_isolated``. STATUS is the number of a pipe that gets one line before the command could write to it: empty if the
command runs in its own namespaces, otherwise the reason why it does not.

On Linux the command gets its own namespaces for users, files, processes, the network and IPC (user_namespaces(7),
mount_namespaces(7), network_namespaces(7)): its root is an empty tmpfs with the paths of the plan, and its network has
no interface that is up. If the system refuses that, the command runs with the remaining measures: its own variables, an
empty home, limits, no privileges that it could gain.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import platform
import resource
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = (
    0x00020000,
    0x08000000,
    0x10000000,
    0x20000000,
    0x40000000,
)
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_BIND, MS_REC, MS_PRIVATE = 1, 2, 4, 8, 4096, 16384, 1 << 18
MNT_DETACH = 2
AT_FDCWD, AT_RECURSIVE = -100, 0x8000
MOUNT_ATTR_RDONLY, MOUNT_ATTR_NOSUID = 1, 2
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 36, 38
KEYCTL_JOIN_SESSION_KEYRING = 1
SYSCALLS = {
    # asm/unistd_64.h and asm-generic/unistd.h: pivot_root, keyctl, mount_setattr
    "x86_64": (155, 250, 442),
    "aarch64": (41, 219, 442),
}

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store")
"""Programs and their libraries, which every user can read."""

ETC = (
    *("alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "timezone", "os-release"),
    *("mime.types", "nsswitch.conf", "protocols", "services", "debian_version"),
)
"""The files of /etc that programs need to start: no accounts, no hosts, no credentials."""

DEVICES = ("null", "zero", "full", "random", "urandom")
SHARED_MEMORY = "size=256m,mode=1777"
ROOT_SIZE = "size=64m,mode=755"
OVERLAY_SIZE = "size=1g,mode=755"
INNER_USER = 1000
"""The user of root inside: one that gains no capabilities by execve(2)."""

MOST_PROCESSES = 512

APPARMOR = "kernel.apparmor_restrict_unprivileged_userns"
"""Ubuntu's, since 23.10: namespaces can be created, but capabilities in them are denied."""


def main(arguments: list[str]) -> int:
    """Run the plan's command and return its exit code; 128 plus the signal's number if a signal ended it."""
    plan: dict[str, Any] = json.loads(arguments[0])
    status = int(arguments[1])
    # only for this program: the command could otherwise write into the report
    os.set_inheritable(status, False)  # noqa: FBT003 - the standard library's own parameter
    parent = os.getppid()
    is_linux = sys.platform == "linux"
    if is_linux:
        # processes that left their session end with this one, too
        _prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        _prctl(PR_SET_CHILD_SUBREAPER, 1)
        if os.getppid() != parent:
            return 1
    signal.signal(signal.SIGTERM, lambda *_: _end(1))
    why = ""
    if not plan["is_isolated"]:
        why = "this was requested"
    elif not is_linux:
        why = f"{platform.system()} has no namespaces"
    elif platform.machine() not in SYSCALLS:
        why = f"this program does not support {platform.machine()}"
    else:
        said, told = os.pipe()
        child = os.fork()
        if not child:
            os.close(said)
            # no process may keep it open, because the command could find it in its /proc
            os.close(status)
            with _or_tell(told):
                _in_namespaces(plan, told)
        os.close(told)
        with os.fdopen(said, encoding="utf-8") as lines:
            why = lines.read()
        if not why:
            os.write(status, b"\n")
            os.close(status)
            return _ended(child)
        os.waitpid(child, 0)
    os.write(status, f"{why}\n".encode())
    os.close(status)
    child = os.fork()
    if not child:
        _run(plan)
    return _end(_ended(child))


def _in_namespaces(plan: dict[str, Any], told: int) -> NoReturn:
    """Become the parent of the first process of new namespaces; raises OSError if the system refuses one."""
    outer_user, outer_group = os.getuid(), os.getgid()
    inner_user, inner_group = outer_user or INNER_USER, outer_group or INNER_USER
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    _call("unshare", CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC)
    Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
    Path("/proc/self/uid_map").write_text(f"{inner_user} {outer_user} 1", encoding="ascii")
    Path("/proc/self/gid_map").write_text(f"{inner_group} {outer_group} 1", encoding="ascii")
    first = os.fork()
    if first:
        os.close(told)
        os._exit(_ended(first))
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    with _or_tell(told):
        _make_root(plan, inner_user, inner_group)
        # otherwise a process that waits for a failure would wait for the command's end
        os.set_inheritable(told, False)  # noqa: FBT003 - the standard library's own parameter
        command = os.fork()
        if not command:
            with contextlib.suppress(OSError, ValueError):
                resource.setrlimit(resource.RLIMIT_NPROC, (MOST_PROCESSES, MOST_PROCESSES))
            _run(plan)
        os.close(told)
        # all other processes end with the first one
        os._exit(_ended(command))


def _make_root(plan: dict[str, Any], user: int, group: int) -> None:
    pivot_root, keyctl, _ = SYSCALLS[platform.machine()]
    root = Path(plan["scratch"], "root")
    root.mkdir()
    _mount("none", "/", None, MS_REC | MS_PRIVATE)
    _mount("tmpfs", str(root), "tmpfs", MS_NOSUID | MS_NODEV, ROOT_SIZE)
    etc = [f"/etc/{name}" for name in ETC]
    wanted = dict.fromkeys([*SYSTEM, *etc, *plan["readable"]], True)
    wanted |= dict.fromkeys(plan["writable"], False)
    (root / "tmp").mkdir()
    _mount(str(Path(plan["scratch"], "tmp")), str(root / "tmp"), None, MS_BIND)
    # a folder is mounted before its content
    for path in sorted(wanted, key=lambda each: each.count("/")):
        _show(root, path, is_readonly=wanted[path])
    for number, path in enumerate(plan["overlays"]):
        _overlay(root, path, number)
    for path in plan["masked"]:
        _mask(root, path)
    dev = root / "dev"
    dev.mkdir()
    for name in DEVICES:
        (dev / name).touch()
        _mount(f"/dev/{name}", str(dev / name), None, MS_BIND)
    for name, target in (("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")):
        (dev / name).symlink_to(f"/proc/self/fd{target}")
    (dev / "shm").mkdir()
    _mount("tmpfs", str(dev / "shm"), "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, SHARED_MEMORY)
    (root / "proc").mkdir()
    # refused if parts of the container's own are covered; nothing here depends on it
    with contextlib.suppress(OSError):
        _mount("proc", str(root / "proc"), "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    (root / "etc").mkdir(exist_ok=True)
    (root / "etc" / "passwd").write_text(f"review:x:{user}:{group}::{plan['home']}:/bin/sh\n", encoding="utf-8")
    (root / "etc" / "group").write_text(f"review:x:{group}:\n", encoding="utf-8")
    os.chdir(root)
    _syscall(pivot_root, b".", b".")
    _call("umount2", b".", MNT_DETACH)
    os.chdir("/")
    _protect("/", MOUNT_ATTR_RDONLY, flags=0)
    with contextlib.suppress(OSError):
        _syscall(keyctl, KEYCTL_JOIN_SESSION_KEYRING, None)


def _show(root: Path, path: str, *, is_readonly: bool) -> None:
    """Mount a path of the system below the new root, if it exists."""
    source = Path(path)
    here = Path(f"{root}{path}")
    if source.is_symlink() and path in SYSTEM:
        # /bin is a link to usr/bin on most systems
        here.parent.mkdir(parents=True, exist_ok=True)
        here.symlink_to(source.readlink())
        return
    if not source.exists():
        return
    here.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        here.mkdir(exist_ok=True)
    elif not here.exists():
        here.touch()
    _mount(os.path.realpath(path), str(here), None, MS_BIND | MS_REC)
    _protect(str(here), MOUNT_ATTR_NOSUID | (MOUNT_ATTR_RDONLY if is_readonly else 0), flags=AT_RECURSIVE)


def _overlay(root: Path, path: str, number: int) -> None:
    """Mount a folder that can be written to and keeps nothing; if the system has no overlays, it is omitted."""
    if not Path(path).is_dir():
        return
    layers, here = root / f".overlay{number}", Path(f"{root}{path}")
    layers.mkdir()
    here.mkdir(parents=True, exist_ok=True)
    _mount("tmpfs", str(layers), "tmpfs", MS_NOSUID | MS_NODEV, OVERLAY_SIZE)
    (layers / "upper").mkdir()
    (layers / "work").mkdir()
    options = f"userxattr,lowerdir={path},upperdir={layers}/upper,workdir={layers}/work"
    try:
        _mount("overlay", str(here), "overlay", MS_NOSUID | MS_NODEV, options)
    except OSError:
        _mount(f"{layers}/upper", str(here), None, MS_BIND)


def _mask(root: Path, path: str) -> None:
    here = f"{root}{path}"
    if Path(here).is_dir():
        _mount("tmpfs", here, "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV, "size=4k,mode=755")
    elif Path(here).exists():
        _mount("/dev/null", here, None, MS_BIND)


def _run(plan: dict[str, Any]) -> NoReturn:
    with contextlib.suppress(OSError, ValueError):
        # the memory that a process may write to; address space is no measure, because V8 reserves gigabytes of it
        resource.setrlimit(resource.RLIMIT_DATA, (plan["memory"], plan["memory"]))
    for kind, most in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, plan["memory"])):
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(kind, (most, most))
    try:
        if sys.platform == "linux":
            _prctl(PR_SET_NO_NEW_PRIVS, 1)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.chdir(plan["folder"])
        command: list[str] = plan["command"]
        os.execvp(command[0], command)  # noqa: S606 - the command is the app's own, which is what this isolates
    except OSError as error:
        print(f"{plan['command'][0]}: {error.strerror}", file=sys.stderr, flush=True)
    os._exit(127)


def _ended(child: int) -> int:
    """Wait for a child, and for all others that this process has inherited in the meantime."""
    while True:
        try:
            process, status = os.wait()
        except InterruptedError:
            continue
        if process == child:
            return os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)


def _end(code: int) -> NoReturn:
    """End this process, and everything that the command has left running."""
    if sys.platform == "linux":
        # the children of a process that ends become children of this one
        while left := _children():
            for each in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(each, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.wait()
    os._exit(code)


def _children() -> list[int]:
    # /proc/PID/stat: pid (comm) state ppid ...; a name may contain any character
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            text = (entry / "stat").read_text(encoding="utf-8", errors="replace")
            if int(text.rpartition(")")[2].split()[1]) == os.getpid():
                found.append(int(entry.name))
    return found


@contextlib.contextmanager
def _or_tell(told: int) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        os.write(told, f"the system does not allow it: {error.strerror}{_of_apparmor()}".encode())
    finally:
        os._exit(1)


def _of_apparmor() -> str:
    """Return a hint if Ubuntu provides user namespaces but denies them the needed capabilities."""
    with contextlib.suppress(OSError):
        if Path(f"/proc/sys/{APPARMOR.replace('.', '/')}").read_text(encoding="ascii").strip() == "1":
            return f"; {APPARMOR} is 1"
    return ""


class _Libc:
    library: Any = None


def _libc() -> Any:
    if _Libc.library is None:
        _Libc.library = ctypes.CDLL(None, use_errno=True)
    return _Libc.library


def _call(name: str, *arguments: Any) -> None:
    if getattr(_libc(), name)(*arguments):
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


def _syscall(number: int, *arguments: Any) -> None:
    if _libc().syscall(ctypes.c_long(number), *arguments) < 0:
        failed = ctypes.get_errno()
        raise OSError(failed, f"system call {number}: {os.strerror(failed)}")


def _prctl(option: int, value: int) -> None:
    _call("prctl", option, ctypes.c_ulong(value), ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0))


def _mount(source: str, target: str, kind: str | None, flags: int, options: str = "") -> None:
    encoded = [os.fsencode(each) if each is not None else None for each in (source, target, kind)]
    if _libc().mount(*encoded, ctypes.c_ulong(flags), options.encode() or None):
        number = ctypes.get_errno()
        raise OSError(number, f"mount {target}: {os.strerror(number)}")


def _protect(path: str, attributes: int, *, flags: int) -> None:
    """mount_setattr(2), which unlike a remount keeps the flags that the user namespace may not clear."""

    class Attributes(ctypes.Structure):
        _fields_ = [(name, ctypes.c_uint64) for name in ("attr_set", "attr_clr", "propagation", "userns_fd")]

    wanted = Attributes(attributes, 0, 0, 0)
    number = SYSCALLS[platform.machine()][2]
    _syscall(
        number,
        ctypes.c_int(AT_FDCWD),
        os.fsencode(path),
        ctypes.c_uint(flags),
        ctypes.byref(wanted),
        ctypes.c_size_t(ctypes.sizeof(wanted)),
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
