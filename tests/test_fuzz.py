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
        timeout=10 * seconds + 600,  # seconds are of processor, and it ends by itself: whoever waits less loses it all
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def test_damaged_files_and_failing_machines_are_read_or_refused():
    result = fuzz(3, 1)

    assert result["faults"] == []
    assert result["inputs"] >= 100
    assert len(result["answers"]) > 5  # damage that reaches many different checks, and some that reaches none
    assert "read" in result["answers"]
    assert "E_OUTPUT" in result["answers"]  # of machines that fail


@pytest.mark.soak
def test_damaged_files_for_an_hour():
    seconds = float(os.environ.get("ELSEWHERE_FUZZ_SECONDS", "3600"))
    result = fuzz(seconds, time.time_ns() % 2**40)
    told = f"{result['inputs']} inputs in {seconds:.0f} s of processor, peak {result['peak_gb']} GB"
    print(f"\nfuzz: {told}, {result['answers']}")
    print(*result["faults"], sep="\n")  # whole: the number makes a fault again

    assert result["faults"] == []
