"""What the engine is given, and what it says of it."""

from __future__ import annotations

from pathlib import Path

from hyperpod_cdk.templates.assembly import read_template
from hyperpod_cdk.templates.rules.engine import engine_problems

TEMPLATE = """\
Resources:
  Queue:
    Type: AWS::SQS::Queue
    Properties:
      NoSuchProperty: 1
"""


def test_the_mark_of_windows_editors_is_no_part_of_a_template(tmp_path: Path) -> None:
    said = []
    for name, encoding in (("plain.yaml", "utf-8"), ("marked.yaml", "utf-8-sig")):
        file = tmp_path / name
        file.write_text(TEMPLATE, encoding=encoding)
        (stack,) = read_template(file).stacks
        said.append([(each.rule, each.place, each.line) for each in engine_problems(stack)])

    assert said[0] == said[1]
    assert [line for _, _, line in said[0]] == [5]
