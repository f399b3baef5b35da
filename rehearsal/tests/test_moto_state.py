"""moto is not thread-safe: requests to it are serialized."""

from __future__ import annotations

import ast
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hyperpod_cdk_rehearsal import embedded
from hyperpod_cdk_rehearsal.embedded.moto_state import moto_lock
from hyperpod_cdk_rehearsal.embedded.server import EmbeddedAws

HOME = "moto_state.py"


def _takes_tables(node: ast.AST) -> bool:
    if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("moto"):
        return False
    return any(alias.name == "get_backend" or alias.name.endswith("_backends") for alias in node.names)


def test_one_module_alone_takes_the_tables_of_moto() -> None:
    folder = Path(embedded.__file__).parent
    takers = {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*.py")
        if any(_takes_tables(node) for node in ast.walk(ast.parse(path.read_text())))
    }
    assert takers == {HOME}


def test_requests_to_moto_wait_for_each_other_and_for_whoever_is_at_its_tables() -> None:
    inside: list[str] = []
    most = 0
    met = threading.Event()

    def moto(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        nonlocal most
        inside.append(environ["PATH_INFO"])
        most = max(most, len(inside))
        # long enough for the others to come in, if anything let them
        met.wait(0.01)
        inside.pop()
        start_response("200 OK", [])
        return [b""]

    aws = EmbeddedAws(account="111122223333", region="us-west-2", endpoint="http://127.0.0.1:1", moto=moto)
    answered: list[str] = []

    def ask(number: int) -> None:
        aws._from_moto("iam", {"PATH_INFO": f"/{number}"}, lambda status, _headers: answered.append(status))

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    with moto_lock:
        for thread in threads:
            thread.start()
        met.wait(0.05)
        assert answered == []
    for thread in threads:
        thread.join()
    assert (answered, most) == (["200 OK"] * 8, 1)
