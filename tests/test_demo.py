"""What README says of the demo, by running it whole."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).resolve().parents[1] / "README.md"


@pytest.mark.soak
def test_the_demo_ends_as_readme_says(tmp_path):
    promise = (
        "no attack on the people clearly learnt more than its bar (the largest acceptable figure) allows: two are above"
    )
    assert promise in " ".join(README.read_text().split())
    command = [sys.executable, "-m", "elsewhere", "demo", "-o", str(tmp_path / "demo")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0
    assert "2 attacks are above their bar, though not clearly above chance: publish with care." in done.stdout
    judgement = json.loads((tmp_path / "demo-private" / "judgement.json").read_text())
    verdicts = [use["verdict"] for use in judgement["uses"].values() if isinstance(use, dict) and "verdict" in use]
    assert verdicts.count("good") >= 7
