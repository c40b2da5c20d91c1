"""The documentation site builds without warnings."""

import subprocess
import sys

import pytest


@pytest.mark.slow
def test_site_builds_without_warnings(root, environment, tmp_path):
    pytest.importorskip("sphinx")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q"]
    command += ["-d", str(tmp_path / "doctrees"), str(root / "docs"), str(tmp_path / "html")]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "html" / "auto_examples" / "plot_pattern_sets.html").is_file()
