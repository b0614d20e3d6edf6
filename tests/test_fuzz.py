"""Damaged files, failing machines: no traceback, no hang, little memory. Seconds here, an hour in `make soak`."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

FUZZER = Path(__file__).with_name("fuzz_inputs.py")


def fuzz(seconds, first):
    done = subprocess.run(
        [sys.executable, FUZZER, str(seconds), str(first)],
        capture_output=True,
        text=True,
        timeout=2 * seconds + 600,  # it ends by itself: whoever waits less loses what was found
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def test_damaged_files_and_failing_machines_are_read_or_refused():
    result = fuzz(5, 1)

    assert result["faults"] == []
    assert result["inputs"] >= 100
    assert len(result["answers"]) > 5  # damage that reaches many different checks, and some that reaches none
    assert "read" in result["answers"]
    assert "E_OUTPUT" in result["answers"]  # of machines that fail


@pytest.mark.soak
def test_damaged_files_for_an_hour():
    seconds = float(os.environ.get("ELSEWHERE_FUZZ_SECONDS", "3600"))
    result = fuzz(seconds, time.time_ns() % 2**40)
    print(f"\nfuzz: {result['inputs']} inputs in {seconds:.0f} s, peak {result['peak_gb']} GB, {result['answers']}")

    assert result["faults"] == []
