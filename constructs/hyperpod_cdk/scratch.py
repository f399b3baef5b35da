"""Scratch folders that are gone afterwards, also where the process that has them is killed."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_JANITOR: Final = """\
import shutil, sys, time
sys.stdin.buffer.read()
for _ in range(50):
    shutil.rmtree(sys.argv[1], ignore_errors=True)
    try:
        open(sys.argv[1]).close()
    except FileNotFoundError:
        break
    except OSError:
        time.sleep(0.1)
"""


@contextmanager
def scratch_folder(*, prefix: str, beside: Path | None = None) -> Iterator[Path]:
    """Yield a folder that is gone afterwards, also where this process is killed: a process of its own sees to it.

    It is in the folder ``beside``, so that its files can be renamed to their place; by default where the
    system keeps scratch files. Raises OSError where it cannot be made.
    """
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=beside))
    janitor = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _JANITOR, str(folder.absolute())],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd="/",
    )
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if janitor.stdin:
            janitor.stdin.close()
        janitor.wait()
