"""Each example runs as it stands, in an empty folder."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
OWN_DATA = ("04_own_data.sh",)
ELSEWHERE = ("00_demo.sh", "03_lahman.py")  # in the README's blocks, and where its data can be had
SCRIPTS = sorted(path.name for path in EXAMPLES.iterdir() if path.suffix in (".py", ".sh"))


@pytest.mark.parametrize("name", [name for name in SCRIPTS if name not in ELSEWHERE])
def test_example_runs(name: str, tmp_path: Path, shop: Callable[[Path], Path]) -> None:
    if name not in OWN_DATA:
        shop(tmp_path / "demo")
    script = EXAMPLES / name
    assert os.access(script, os.X_OK)
    command = [sys.executable, script] if script.suffix == ".py" else ["sh", script]
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
