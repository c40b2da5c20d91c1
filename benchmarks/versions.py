"""Run the fast tests with the oldest and the newest supported versions, for each Python.

"oldest" installs the lower bound of every dependency in pyproject.toml, or the oldest later version
that has a wheel for this Python; "newest" the latest version. uv chooses both. Each combination has
an environment of its own, which is removed afterwards. What does not install is recorded as such.
Run with

    python benchmarks/versions.py run [--python 3.11] [--set oldest newest] [--tests tests/table]
    python benchmarks/versions.py page
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
RESULTS = Path(__file__).parent / "results" / "versions.json"
PAGE = ROOT / "docs" / "versions.md"
PYTHONS = ("3.11", "3.12", "3.13")
EXTRAS = ("io", "plot", "report", "pandas", "polars", "stats")
# Shown in the table.
MAIN = ("numpy", "scipy", "scikit-learn", "pandas", "polars", "pyarrow", "torch", "narwhals")
# What the tests use beside the library; their versions do not matter.
TOOLS = ("pytest>=8.2", "pytest-xdist>=3.6", "hypothesis>=6.100", "import-linter>=2.1")
# These read the documentation's tools, the pins or the linter's settings.
NOT_RUN = ("tests/docs", "tests/browser", "tests/architecture", "tests/gpu")
SECONDS = 3600


def lower_bounds() -> dict[str, str]:
    """Return the lower bound of each dependency of the library and of its extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    listed = [*project["dependencies"]]
    for extra in EXTRAS:
        listed += project["optional-dependencies"][extra]
    bounds: dict[str, str] = {}
    for requirement in listed:
        name, bound = re.fullmatch(r"([\w-]+)>=([\d.]+)", requirement).groups()  # type: ignore[union-attr]
        if name not in bounds or _numbers(bound) > _numbers(bounds[name]):
            bounds[name] = bound
    return bounds


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def find_python(version: str) -> str | None:
    """Return an interpreter of a version, on the path or of pyenv."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = [shutil.which(f"python{version}"), *sorted(root.glob(f"{version}.*/bin/python"))]
    for path in filter(None, found):
        # a shim of pyenv exists also for versions that are not selected
        done = subprocess.run([str(path), "--version"], capture_output=True, text=True, check=False)
        if done.returncode == 0 and done.stdout.startswith(f"Python {version}."):
            return str(path)
    return None


def install(python: Path, which: str) -> str | None:
    """Install the oldest or the newest versions; return the error, or None."""
    subprocess.run([python, "-m", "pip", "install", "--quiet", "uv"], check=True)
    bounds = [f"{name}>={bound}" for name, bound in lower_bounds().items()]
    uv = [python, "-m", "uv", "pip", "install", "--quiet", "--python", python]
    uv += ["--only-binary", ":all:"]
    resolution = "lowest-direct" if which == "oldest" else "highest"
    for each in ([*uv, "--resolution", resolution, *bounds], [*uv, *TOOLS]):
        done = subprocess.run(each, capture_output=True, text=True, check=False)
        if done.returncode:
            return " ".join(done.stderr.split())[:200]
    return None


def measure(version: str, which: str, tests: list[str], workers: str) -> dict[str, Any]:
    """Make an environment and run the tests in it."""
    record: dict[str, Any] = {"python": version, "set": which, "tests": tests or ["all fast tests"]}
    record["date"] = datetime.now(UTC).date().isoformat()
    interpreter = find_python(version)
    if interpreter is None:
        return record | {"result": "no interpreter"}
    with tempfile.TemporaryDirectory(prefix="versions-") as folder:
        subprocess.run([interpreter, "-m", "venv", folder], check=True)
        python = Path(folder) / "bin" / "python"
        reason = install(python, which)
        if reason is not None:
            return record | {"result": "does not install", "reason": reason}
        listed = subprocess.run(
            [python, "-m", "pip", "list", "--format", "json"],
            capture_output=True,
            text=True,
            check=True,
        )
        installed = {one["name"].lower(): one["version"] for one in json.loads(listed.stdout)}
        record["versions"] = {name: installed[name] for name in sorted(lower_bounds())}
        options = [f"--ignore={path}" for path in NOT_RUN]
        if which == "oldest":
            # old libraries use what newer ones of their own dependencies have deprecated
            options += ["-W", "ignore::DeprecationWarning"]
        done = subprocess.run(
            [
                python,
                "-m",
                "pytest",
                "-q",
                "-n",
                workers,
                "-p",
                "no:cacheprovider",
                *options,
                *tests,
            ],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS,
        )
    summary = done.stdout.strip().splitlines()[-1] if done.stdout.strip() else "no output"
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    counts = {
        word: int(n) for n, word in re.findall(r"(\d+) (passed|failed|skipped|errors?)", summary)
    }
    record |= {"result": "passed" if done.returncode == 0 else "failed", "counts": counts}
    if failed or done.returncode:
        record["failed"] = [line[:200] for line in failed[:40]] or [summary[:200]]
        print(done.stdout[-6000:], done.stderr[-2000:], file=sys.stderr)
    return record


def table(records: list[dict[str, Any]]) -> str:
    """Return the table of the page."""
    lines = [f"| Python | versions | {' | '.join(MAIN)} | tests |"]
    lines.append("| --- " * (len(MAIN) + 3) + "|")
    for record in sorted(records, key=lambda one: (one["python"], one["set"] != "oldest")):
        versions = record.get("versions", {})
        cells = [versions.get(name, "–") for name in MAIN]
        counts = record.get("counts", {})
        result = record["result"]
        if counts:
            result = ", ".join(f"{n:,} {word}" for word, n in counts.items())
        elif "reason" in record:
            result = f"{result}: {record['reason']}"
        scope = "" if record["tests"] == ["all fast tests"] else f" ({', '.join(record['tests'])})"
        row = [record["python"], record["set"], *cells, result + scope]
        lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines)


def write_page(records: list[dict[str, Any]], page: Path) -> None:
    """Replace the table of the page."""
    text = page.read_text()
    marks = r"(<!-- versions -->\n).*?(\n<!-- end -->)"
    new = re.sub(marks, lambda m: m[1] + table(records) + m[2], text, flags=re.DOTALL)
    page.write_text(new)


def main() -> int:
    """Run the tests, or write the page."""
    parser = argparse.ArgumentParser(description="Tests with several versions.")
    parser.add_argument("what", choices=["run", "page"])
    parser.add_argument("--python", nargs="+", default=PYTHONS)
    parser.add_argument("--set", nargs="+", default=["oldest", "newest"])
    parser.add_argument("--tests", nargs="+", default=[])
    parser.add_argument("--workers", default="auto")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    records = json.loads(options.out.read_text())["records"] if options.out.exists() else []
    if options.what == "page":
        write_page(records, PAGE)
        return 0
    failed = False
    for version in options.python:
        for which in options.set:
            made = measure(version, which, options.tests, options.workers)
            print(
                f"Python {version}, {which}: {made['result']} {made.get('counts', '')}", flush=True
            )
            failed |= made["result"] == "failed"
            records = [one for one in records if (one["python"], one["set"]) != (version, which)]
            records.append(made)
            options.out.write_text(json.dumps({"records": records}, indent=1) + "\n")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
