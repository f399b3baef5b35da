"""A HyperPod node in a folder: the real scripts run against it, root's commands are faked."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

# Every fake writes down its call, then fails if FAKE_FAIL ("<exit code> <beginning of the call>") says so.
_PRELUDE = """#!/usr/bin/env bash
set -euo pipefail
call="$(basename "$0") $*"
call="${call//$HYPERPOD_ROOT/}"
printf '%s\\n' "$call" >>"$FAKE/calls"
if [[ -n "${FAKE_FAIL:-}" && "$call" == "${FAKE_FAIL#* }"* ]]; then exit "${FAKE_FAIL%% *}"; fi
"""

_FAKES = {
    "mountpoint": 'grep -Fxq "${2#"$HYPERPOD_ROOT"}" "$FAKE/mounts"',
    "mount": 'printf "%s\\n" "${3#"$HYPERPOD_ROOT"}" >>"$FAKE/mounts"',
    "systemctl": """
case "$1" in
  is-active) [[ -f "$FAKE/active/$3" ]] ;;
  stop) rm "$FAKE/active/$2" ;;
  start)
    if [[ "$2" == hyperpod-data-disk.service ]]; then
      [[ -f "$HYPERPOD_ROOT/etc/systemd/system/$2" ]]
      exec "$HYPERPOD_ROOT/usr/local/sbin/hyperpod-data-disk" bind
    fi
    touch "$FAKE/active/$2"
    ;;
esac
""",
    "modinfo": '[[ -f "$FAKE/modules/$1" ]]',
    "modprobe": "",
    "sync": "",
    "sleep": "",
    "cp": 'exec /bin/cp "$@"',
}


@dataclass(frozen=True)
class Run:
    """What one run of a script said and how it ended."""

    code: int
    output: str


@dataclass(frozen=True)
class Node:
    """The node's file system below ``root``; ``fake`` holds what the faked commands know."""

    root: Path
    fake: Path
    scripts: Path
    environment: dict[str, str] = field(default_factory=dict)

    def run(self, script: str, *arguments: str, **environment: str) -> Run:
        """Run one of the scripts with the fakes first on PATH; no pause, and no patience with a missing disk."""
        variables = {
            "PATH": f"{self.fake / 'bin'}:/usr/bin:/bin:/usr/sbin:/sbin",
            "HYPERPOD_ROOT": str(self.root),
            "HYPERPOD_DISK_PREFER_SECONDS": "0",
            "HYPERPOD_DISK_TIMEOUT_SECONDS": "0",
            "FAKE": str(self.fake),
            **environment,
        }
        done = subprocess.run(
            ["/bin/bash", str(self.scripts / script), *arguments],
            env=variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=30,
            check=False,
        )
        return Run(done.returncode, done.stdout.replace(str(self.root), ""))

    def write(self, path: str, text: str, mode: int = 0o644) -> Path:
        """Put a file onto the node."""
        file = self.root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(mode)
        return file

    def read(self, path: str) -> str:
        """Read a file of the node."""
        return (self.root / path.lstrip("/")).read_text()

    def mount(self, *paths: str) -> None:
        """Have disks mounted."""
        for path in paths:
            (self.root / path.lstrip("/")).mkdir(parents=True, exist_ok=True)
        (self.fake / "mounts").write_text("".join(f"{path}\n" for path in (*self.mounts(), *paths)))

    def unmount(self) -> None:
        """Take everything off, as a reboot does."""
        (self.fake / "mounts").write_text("")

    def mounts(self) -> list[str]:
        """What is mounted."""
        return (self.fake / "mounts").read_text().splitlines()

    def start(self, *units: str) -> None:
        """Have services running."""
        for unit in units:
            (self.fake / "active" / unit).touch()

    def active(self) -> list[str]:
        """The services that run."""
        return sorted(path.name for path in (self.fake / "active").iterdir())

    def pci(self, address: str, *, vendor: str, device: str = "0x0000", pci_class: str = "0x000000") -> None:
        """Plug in a PCI device."""
        where = f"/sys/bus/pci/devices/{address}"
        for name, value in (("vendor", vendor), ("device", device), ("class", pci_class)):
            self.write(f"{where}/{name}", f"{value}\n")

    def kernel_modules(self, *names: str) -> None:
        """Have kernel modules in the image."""
        for name in names:
            (self.fake / "modules" / name).touch()

    def calls(self, *commands: str) -> list[str]:
        """The calls of these commands so far, in order."""
        lines = (self.fake / "calls").read_text().splitlines()
        return [line for line in lines if line.split(" ", 1)[0] in commands]

    def forget_calls(self) -> None:
        """Begin a new list of calls."""
        (self.fake / "calls").write_text("")

    def files(self) -> Mapping[str, tuple[int, bytes]]:
        """Every file of the node but its log, with mode and content."""
        return {
            str(path.relative_to(self.root)): (path.stat().st_mode, path.read_bytes())
            for path in sorted(self.root.rglob("*"))
            if path.is_file() and path.name != "provisioning.log"
        }


@pytest.fixture
def node(tmp_path: Path, project: Path) -> Node:
    """A bare node: containerd and kubelet have data, nothing is mounted, no device is plugged in."""
    fake = tmp_path / "fake"
    for folder in ("bin", "active", "modules"):
        (fake / folder).mkdir(parents=True)
    for file in ("calls", "mounts"):
        (fake / file).touch()
    for name, body in _FAKES.items():
        command = fake / "bin" / name
        command.write_text(_PRELUDE + body + "\n")
        command.chmod(0o755)
    made = Node(root=tmp_path / "node", fake=fake, scripts=project / "lifecycle_scripts")
    made.write("/var/lib/containerd/io.containerd.content/pause", "layer")
    made.write("/var/lib/kubelet/config.json", "{}")
    assert os.access(made.scripts / "on_create.sh", os.X_OK)
    return made
