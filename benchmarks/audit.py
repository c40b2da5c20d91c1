"""Compare the pinned versions of constraints.txt with public advisories, by pip-audit.

The exit code is 0 if all packages were compared and none has an advisory, 1 if one has, and 2 if
packages could not be compared: a mirror without advisories looks to pip-audit like a package that
does not exist, which it skips without an error. Run with

    python benchmarks/audit.py
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

PINS = Path(__file__).parent.parent / "constraints.txt"
# Sources of advisories, in the order in which they are tried.
SERVICES = ("pypi", "osv")


def query(pins: Path, service: str) -> tuple[list[dict[str, Any]], str]:
    """Return what pip-audit says of each package, or nothing and the last line of its error."""
    command = [sys.executable, "-m", "pip_audit", "--requirement", str(pins), "--no-deps"]
    command += ["--disable-pip", "--format", "json", "--progress-spinner", "off"]
    done = subprocess.run(
        [*command, "--vulnerability-service", service, "--timeout", "30"],
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        return json.loads(done.stdout)["dependencies"], ""
    except (ValueError, KeyError):
        return [], (done.stderr.strip().splitlines() or ["no output"])[-1]


def report(packages: list[dict[str, Any]], reason: str) -> tuple[int, list[str]]:
    """Return the exit code and the lines to print."""
    audited = [package for package in packages if "skip_reason" not in package]
    skipped = [package["name"] for package in packages if "skip_reason" in package]
    if not audited:
        why = reason or "the index has no advisories for any of the packages"
        return 2, [f"NOT AUDITED: no advisories could be read ({why})"]
    lines, vulnerable = [], [package for package in audited if package["vulns"]]
    for package in vulnerable:
        for found in package["vulns"]:
            fixed = ", ".join(found["fix_versions"]) or "no version"
            lines.append(f"{package['name']} {package['version']}: {found['id']}, fixed in {fixed}")
    lines.append(f"{len(audited)} packages audited, {len(vulnerable)} with advisories")
    if skipped:
        lines.append(f"NOT AUDITED: {', '.join(skipped)}")
    return 1 if vulnerable else 2 if skipped else 0, lines


def main() -> int:
    """Audit, and print the result."""
    parser = argparse.ArgumentParser(description="Advisories about the pinned versions.")
    parser.add_argument("--pins", type=Path, default=PINS)
    options = parser.parse_args()
    reasons = []
    for service in SERVICES:
        packages, reason = query(options.pins, service)
        code, lines = report(packages, reason)
        if any("skip_reason" not in package for package in packages):
            print("\n".join(lines))
            return code
        reasons.append(f"{service}: {lines[0].removeprefix('NOT AUDITED: ')}")
    print("NOT AUDITED. No service of advisories could be used from here:")
    print("\n".join(f"  {reason}" for reason in reasons))
    return 2


if __name__ == "__main__":
    sys.exit(main())
