"""A stranger's app finds nothing of the user's: no files, variables, processes, sockets, network. And nothing stays."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from hyperpod_cdk.review import isolation
from hyperpod_cdk.review.isolation import Limits, Ran, run_isolated
from hyperpod_cdk.scratch import scratch_folder

SECRET = "the-user's-own"
LAUNCHER = Path(isolation.__file__).with_name("isolated_app.py")

# looks for whatever a program of the user could take, and prints each thing it found
STRANGER = """
import ctypes, glob, json, os, pwd, socket, subprocess, sys, urllib.request
secret, files, home, port, unix, abstract = json.loads(os.environ["GIVEN"])
# written backwards, so that what was given is not found
secret = secret[::-1]
found = []

def look(what, attempt):
    try:
        if attempt():
            found.append(what)
    except Exception:
        pass

def holds(path):
    with open(path, "rb") as stream:
        return secret.encode() in stream.read()

def connects(kind, address):
    with socket.socket(kind, socket.SOCK_STREAM) as one:
        one.settimeout(2)
        one.connect(address)
        return True

for file in files:
    look(file, lambda: holds(file))
look("variables", lambda: any(secret in value for value in os.environ.values()))
look("home", lambda: os.path.expanduser("~") == home or os.listdir(os.path.expanduser("~")))
look("pwd", lambda: pwd.getpwuid(os.getuid()).pw_dir == home or os.path.isdir(home))
for file in glob.glob("/proc/[0-9]*/environ") + glob.glob("/proc/[0-9]*/cmdline"):
    look(file, lambda: holds(file))
look("http", lambda: urllib.request.urlopen(f"http://127.0.0.1:{port}/latest/meta-data/", timeout=2).read())
look("tcp", lambda: connects(socket.AF_INET, ("127.0.0.1", port)))
look("unix", lambda: connects(socket.AF_UNIX, unix))
look("abstract", lambda: connects(socket.AF_UNIX, "\\0" + abstract))
look("interfaces", lambda: [name for _, name in socket.if_nameindex() if name != "lo"])
look("docker", lambda: os.path.exists("/var/run/docker.sock") or os.path.exists("/run/docker.sock"))
look("mount", lambda: not subprocess.run(["umount", os.getcwd() + "/.git"], capture_output=True).returncode)
look("write", lambda: os.access(os.getcwd(), os.W_OK))
look("interpreter", lambda: os.access(sys.prefix, os.W_OK))
look("terminal", lambda: open("/dev/tty"))
look("privileges", lambda: ctypes.CDLL(None).setuid(0) == 0 and os.getuid() == 0)
look("parents", lambda: [pid for pid in os.listdir("/proc") if pid.isdigit() and int(pid) > os.getpid()])
print(json.dumps(found))
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout as CI leaves one: with a token in git's configuration and a hook."""
    folder = tmp_path / "checkout"
    (folder / ".git" / "hooks").mkdir(parents=True)
    (folder / ".git" / "config").write_text(f'[http "https://example.com/"]\n\textraheader = {SECRET}\n', "utf-8")
    (folder / ".git" / "hooks" / "post-checkout").write_text(f"#!/bin/sh\n# {SECRET}\n", "utf-8")
    (folder / "app.py").write_text(STRANGER, "utf-8")
    return folder


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with everything that programs keep credentials in."""
    folder = tmp_path / "home"
    for name in (".aws/credentials", ".ssh/id_ed25519", ".docker/config.json", ".netrc", ".config/gh/hosts.yml"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(SECRET, "utf-8")
    monkeypatch.setenv("HOME", str(folder))
    return folder


@pytest.fixture
def port() -> Iterator[int]:
    """What listens on the machine itself, as a metadata service or a credential endpoint does."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(SECRET.encode())

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as the base class names it
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def run(scratch: Path, folder: Path, command: Any, limits: Limits | None = None, **variables: str) -> Ran:
    return run_isolated(
        command,
        folder=folder,
        scratch=scratch,
        variables=variables,
        readable=[folder],
        masked=[folder / ".git"],
        limits=limits or Limits(),
    )


def needs_namespaces(ran: Ran) -> None:
    if ran.exposed:
        pytest.skip(f"this system grants no namespaces: {ran.exposed}")


def test_a_strangers_app_finds_nothing(
    tmp_path: Path, checkout: Path, home: Path, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (
        *("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_CONTAINER_AUTHORIZATION_TOKEN", "GITHUB_TOKEN"),
        *("ACTIONS_ID_TOKEN_REQUEST_TOKEN", "ACTIONS_RUNTIME_TOKEN", "CI_JOB_TOKEN", "REVIEW_TOKEN", "NPM_TOKEN"),
        *("SSH_AUTH_SOCK", "DOCKER_HOST", "KUBECONFIG", "https_proxy", "PIP_INDEX_URL", "GIT_ASKPASS"),
    ):
        monkeypatch.setenv(name, SECRET)
    unix, abstract = tmp_path / "agent.sock", f"hyperpod-{os.getpid()}"
    files = [
        *(
            path
            for folder in (home, checkout)
            for path in folder.rglob("*")
            if path.is_file() and path.name != "app.py"
        ),
        *(f"/proc/{os.getpid()}/environ", f"/proc/{os.getppid()}/environ", "/etc/shadow", f"/proc/1/root{home}/.netrc"),
    ]
    with (
        socket.socket(socket.AF_UNIX) as one,
        socket.socket(socket.AF_UNIX) as two,
        scratch_folder(prefix="test-") as scratch,
    ):
        one.bind(str(unix))
        one.listen()
        two.bind(f"\0{abstract}")
        two.listen()
        given = json.dumps([SECRET[::-1], [str(each) for each in files], str(home), port, str(unix), abstract])
        isolated = run(scratch / "one", checkout, [sys.executable, "app.py"], GIVEN=given)
        trusted = run(scratch / "two", checkout, [sys.executable, "app.py"], Limits(is_trusted=True), GIVEN=given)
    # the stranger can tell: what is the user's own program finds what is hidden from others
    assert {str(home / ".aws" / "credentials"), "variables", "http", "tcp", "unix", "abstract", "write"} <= set(
        json.loads(trusted.output)
    )
    assert trusted.exposed == "this was requested"
    needs_namespaces(isolated)
    assert (isolated.code, json.loads(isolated.output)) == (0, [])


FORGER = """
import os
for number in range(3, 64):
    try:
        os.write(number, b"FORGED")
    except OSError:
        pass
print(sorted(set(os.listdir("/proc/self/fd")) - {"0", "1", "2"}))
"""


@pytest.mark.parametrize("is_trusted", [False, True])
def test_no_app_writes_into_the_report(tmp_path: Path, *, is_trusted: bool) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "app.py").write_text(FORGER, "utf-8")
    with scratch_folder(prefix="test-") as scratch:
        ran = run(scratch, folder, [sys.executable, "app.py"], Limits(is_trusted=is_trusted))
    assert ran.code == 0
    assert "FORGED" not in ran.exposed
    assert (ran.exposed == "this was requested") is is_trusted


def test_only_the_listed_variables_arrive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HYPERPOD_ANYTHING", "x")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    with scratch_folder(prefix="test-") as scratch:
        ran = run(scratch, tmp_path, [sys.executable, "-c", "import os; print(*sorted(os.environ))"], MINE="1")
    arrived = set(ran.output.split())
    assert {"MINE", "LC_ALL", "HOME", "TMPDIR", "PATH"} <= arrived
    added = {"MINE", "HOME", "TMPDIR", "JSII_RUNTIME_PACKAGE_CACHE_ROOT", "HYPERPOD_CDK_COMPILE_CACHE"}
    assert {each for each in arrived - added if not each.startswith("LC_")} <= isolation.ALLOWED


@pytest.mark.parametrize("name", ["JSII_RUNTIME_PACKAGE_CACHE_ROOT", "HYPERPOD_CDK_COMPILE_CACHE"])
def test_what_others_will_run_is_read_and_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    # packages that jsii unpacked, and what Node.js compiled: whoever could write there had a program of theirs run
    folder, cache = tmp_path / "checkout", tmp_path / "cache"
    for each in (folder, cache):
        each.mkdir()
    (cache / "module").write_text("theirs", encoding="utf-8")
    monkeypatch.setenv(name, str(cache))
    code = (
        f"import os, pathlib; cache = pathlib.Path(os.environ[{name!r}]); print((cache / 'module').read_text())\n"
        "for each in ('module', 'new'): (cache / each).write_text('forged')"
    )
    with scratch_folder(prefix="test-") as scratch:
        ran = run(scratch, folder, [sys.executable, "-c", code])
    needs_namespaces(ran)
    assert (ran.code, ran.output) == (0, "theirs\n")
    assert {each.name: each.read_text("utf-8") for each in cache.iterdir()} == {"module": "theirs"}


@pytest.mark.parametrize("is_trusted", [False, True])
def test_what_takes_too_long_is_stopped_with_all_that_it_started(tmp_path: Path, *, is_trusted: bool) -> None:
    # a child in a session of its own, which a signal to the group does not reach
    # a time of its own, because other tests may run beside this one
    seconds = str(90_000 + os.getpid())
    app = f"import subprocess; subprocess.Popen(['sleep', '{seconds}'], start_new_session=True).wait()"
    with scratch_folder(prefix="test-") as scratch:
        ran = run(scratch, tmp_path, [sys.executable, "-c", app], Limits(seconds=1, is_trusted=is_trusted))
    assert ran.stopped == "it took longer than 1 seconds"
    assert sleeping(seconds) == []


def sleeping(seconds: str) -> list[str]:
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = file.read_bytes()
        except OSError:
            continue
        if text.startswith(f"sleep\0{seconds}\0".encode()):
            found.append(str(file))
    return found


def test_what_takes_too_much_memory_is_stopped(tmp_path: Path) -> None:
    app = "import time; x = bytearray(300 * 2**20); time.sleep(60)"
    with scratch_folder(prefix="test-") as scratch:
        alone = run(scratch / "one", tmp_path, [sys.executable, "-c", app], Limits(mib=100))
        # each below the limit of one process, too much together
        each = f"{sys.executable} -c 'import time; x = bytearray(80 * 2**20); time.sleep(60)' &"
        many = f"for i in 1 2 3; do {each} done; wait"
        together = run(scratch / "two", tmp_path, many, Limits(mib=200))
    assert alone.stopped or "MemoryError" in alone.output
    assert together.stopped == "it took more than 200 MiB of memory"


def test_how_a_command_ends_is_stated(tmp_path: Path) -> None:
    with scratch_folder(prefix="test-") as scratch:
        ended = [
            run(scratch / str(number), tmp_path, command).code
            for number, command in enumerate(["exit 3", "kill -9 $$", ["/no/such/program"]])
        ]
        said = run(scratch / "said", tmp_path, "echo one; echo two >&2; head -c 3000000 /dev/zero | tr '\\0' x").output
    assert ended == [3, 137, 127]
    assert said.startswith("one\ntwo\nxxx")
    assert len(said) == 2**20


@pytest.mark.parametrize("is_trusted", [False, True])
@pytest.mark.parametrize("given", [".", "../project", "{}/../project"])
def test_folder_may_be_relative(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str, *, is_trusted: bool
) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "app.py").write_text("print('mine')", "utf-8")
    monkeypatch.chdir(folder)
    with scratch_folder(prefix="test-") as scratch:
        ran = run(scratch, Path(given.format(folder)), [sys.executable, "app.py"], Limits(is_trusted=is_trusted))
    assert (ran.code, ran.output) == (0, "mine\n")


def test_a_system_that_grants_no_namespace_is_reported(tmp_path: Path) -> None:
    # a user namespace in which no further one may be made: what containers and Ubuntu's AppArmor come to
    nested = f"""
import json, os, sys
sys.path[:0] = [{str(LAUNCHER.parent)!r}]
import isolated_app
def refused(name, *arguments):
    if name == "unshare":
        raise OSError(1, "unshare: Operation not permitted")
    return original(name, *arguments)
original, isolated_app._call = isolated_app._call, refused
sys.exit(isolated_app.main(sys.argv[1:]))
"""
    here = str(tmp_path)
    plan: dict[str, Any] = dict.fromkeys(("folder", "home", "scratch"), here)
    plan |= {name: [] for name in ("writable", "readable", "masked", "overlays")}
    plan |= {"command": ["/bin/sh", "-c", "echo ran"], "memory": 2**30, "is_isolated": True}
    with (tmp_path / "status").open("w+b") as status:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", nested, json.dumps(plan), str(status.fileno())],
            pass_fds=[status.fileno()],
            capture_output=True,
            text=True,
            check=False,
        )
        status.seek(0)
        said = status.read().decode()
    assert (done.returncode, done.stdout, done.stderr) == (0, "ran\n", "")
    assert said == "the system does not allow it: unshare: Operation not permitted\n"


@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT])
def test_nothing_stays_where_the_review_is_killed(tmp_path: Path, signal_number: signal.Signals) -> None:
    review = f"""
import sys
from pathlib import Path
from hyperpod_cdk.review.isolation import Limits, run_isolated
from hyperpod_cdk.scratch import scratch_folder
with scratch_folder(prefix="test-") as scratch:
    Path({str(tmp_path / "where")!r}).write_text(str(scratch))
    run_isolated("touch $TMPDIR/begun; exec sleep 98764", folder=Path({str(tmp_path)!r}),
        scratch=scratch, variables={{}}, readable=[Path({str(tmp_path)!r})], masked=[], limits=Limits())
"""
    running = subprocess.Popen([sys.executable, "-c", review], stderr=subprocess.DEVNULL)
    where = tmp_path / "where"
    wait_for(lambda: where.is_file() and Path(where.read_text(), "tmp", "begun").exists())
    running.send_signal(signal_number)
    running.wait()
    wait_for(lambda: not Path(where.read_text()).exists())
    wait_for(lambda: not any("98764" in text for text in command_lines()))


def wait_for(condition: Any) -> None:
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


def command_lines() -> list[str]:
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(file.read_bytes().decode(errors="replace"))
        except OSError:
            continue
    return [each for each in found if each.startswith("sleep")]
