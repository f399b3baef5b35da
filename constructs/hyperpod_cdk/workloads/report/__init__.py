"""Reports on logs of network and GPU tests: EFA or TCP, bandwidth, slow pairs, with the lines as evidence.

``judge(parse(read_lines(stream)))`` returns a ``Report``; ``text`` formats it, ``report_json`` writes it as JSON.
"""

from __future__ import annotations

from hyperpod_cdk.workloads.report.judging import judge
from hyperpod_cdk.workloads.report.lines import MOST_BYTES, read_lines
from hyperpod_cdk.workloads.report.log import Log
from hyperpod_cdk.workloads.report.model import Report, Verdict
from hyperpod_cdk.workloads.report.parsing import parse, parse_files
from hyperpod_cdk.workloads.report.schema import report_json, report_schema
from hyperpod_cdk.workloads.report.text import text

__all__ = [
    "MOST_BYTES",
    "Log",
    "Report",
    "Verdict",
    "judge",
    "parse",
    "parse_files",
    "read_lines",
    "report_json",
    "report_schema",
    "text",
]
