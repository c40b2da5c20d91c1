"""Load mutated model files under limits of memory and time.

A mutated file must raise a ValueError that names it, or load and impute. Everything else is a
fault: another exception, much memory, a long time, files that stay open, or changed settings of the
process. A file that loads may impute other values than the original: nothing tells changed weights
from others. Each fault is printed with the number that reproduces it::

    python benchmarks/mutate.py --n 20000 --seed 0
    python benchmarks/mutate.py --seed 0 --only 1234
"""

from __future__ import annotations

import argparse
import json
import math
import os
import pickle
import random
import re
import resource
import signal
import struct
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd

import psmvae
from psmvae.imputers import mixture_mean, residual_trees, resolve
from psmvae.imputers.loading import IMPUTERS

# A load may take this much more address space than the process has, and this many seconds.
MEMORY, SECONDS = 2**30, 20
DEEP = "[" * 100_000 + "]" * 100_000
VALUES: list[Any] = [
    *(None, True, False, -1, 0, 1, 2, 3, 7, 64, 1000, 20_000, 10**6, 10**9, 2**31, 2**53, 2**64),
    *(0.5, -0.5, 1e-300, 1e308, math.inf, -math.inf, math.nan),
    *("", "self", "auto", "x" * 1000, [], {}, [[]], [1], ["a"], {"part": "Network"}, {"a": 1}),
    {"part": "LogisticMask"},
    {"part": "JointMask", "hidden": 10**9},
    {"part": "Network", "width": 10**6, "depth": 20_000},
]


def table() -> pd.DataFrame:
    """Make a small table with a column of every kind."""
    rng = np.random.default_rng(0)
    n = 40
    x = rng.normal(size=n)
    frame = pd.DataFrame(
        {
            "real": x + rng.normal(size=n),
            "positive": np.exp(x),
            "count": rng.poisson(3, n).astype(float),
            "grade": np.clip(np.round(2 * x), 0, 3),
            "binary": np.where(x > 0, "yes", "no"),
            "city": rng.choice(["a", "b", "c"], n),
        }
    )
    return frame.mask(rng.random(frame.shape) < 0.2)


def models(folder: Path, frame: pd.DataFrame) -> list[bytes]:
    """Fit one imputer of each family and return the content of their files."""
    kinds = {"positive": "positive", "count": "count", "grade": "ordinal"}
    small = {"network": psmvae.Network(width=8, depth=1), "max_epochs": 1, "n_draws": 4}
    common = {"kinds": kinds, "random_state": 0}
    deep = {"device": "cpu", **small, **common}
    imputers = [
        psmvae.PSMVAEImputer(mask_model="self", n_sets=2, **deep),
        psmvae.PSMVAEImputer(
            **(deep | {"kinds": {"count": "count", "grade": "ordinal:0,1,2,3"}}),
            n_members=2,
            numeric_draws="pmm",
            mask_model=psmvae.LogisticMask(["real"], sign="high"),
            regression=psmvae.Network(width=4, depth=1),
            bounds={"real": (-50, 50)},
            derived={"positive": "exp(real)"},
            handle_unknown="missing",
        ),
        psmvae.NotMIWAEImputer(draws="model", **deep),
        psmvae.MIWAEImputer(scale="student", n_train_draws=2, **deep),
        psmvae.GMVAEImputer(mask_model="network", n_sets=2, **deep),
        psmvae.DLGMImputer(n_sets=2, **deep),
        psmvae.VAEImputer(**deep),
        psmvae.GAINImputer(network=small["network"], max_epochs=1, device="cpu", **common),
        psmvae.MICEImputer(mask_model="self", max_iter=1, **common),
        psmvae.MICEImputer(method="pmm", predictors={"real": ["count"]}, max_iter=1, **common),
        psmvae.MissForestImputer(n_estimators=2, max_iter=1, n_jobs=1, **common),
        psmvae.MeanImputer(**common),
    ]
    for imputer in imputers:
        imputer.fit(frame)
    # residual trees and mixtures, which only larger tables have
    with patch.object(resolve, "FEW_ROWS", 10):
        with patch.object(residual_trees, "MIN_CELLS", 10):
            imputers.append(psmvae.PSMVAEImputer(**deep).fit(frame))
        with (
            patch.object(residual_trees, "MAX_COLUMNS", 0),
            patch.multiple(mixture_mean, CELLS_PER_PARAMETER=1, MIN_GAIN=-10.0),
            patch.object(mixture_mean, "mixture_gain", lambda *_: 1.0),
        ):
            imputers.append(psmvae.PSMVAEImputer(**deep).fit(frame))
    if imputers[-2].residual_trees_ is None or imputers[-1].mixture_mean_ is None:
        raise RuntimeError("The trees or mixtures were not fitted.")
    contents = []
    for imputer in imputers:
        imputer.save(folder / "model.safetensors")
        contents.append((folder / "model.safetensors").read_bytes())
    return contents


def split(content: bytes) -> tuple[dict[str, Any], bytes]:
    """Return the header and the data of a safetensors file."""
    size = struct.unpack("<Q", content[:8])[0]
    return json.loads(content[8 : 8 + size]), content[8 + size :]


def join(header: dict[str, Any], data: bytes) -> bytes:
    """Return a safetensors file."""
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def mutate_document(content: bytes, rng: random.Random) -> bytes:
    """Change, remove or repeat entries of the JSON document."""
    header, data = split(content)
    document = json.loads(header["__metadata__"]["document"])
    document.pop("facts", None)
    for _ in range(rng.choice([1, 1, 1, 2, 5])):
        place, key = rng.choice(list(places(document)))
        action = rng.random()
        if action < 0.15:
            del place[key]
        elif action < 0.3 and isinstance(place[key], list):
            place[key] = place[key] * rng.choice([0, 2, 3])
        elif action < 0.4:
            other, at = rng.choice(list(places(document)))
            place[key] = json.loads(json.dumps(other[at]))
        else:
            place[key] = rng.choice(VALUES)
        if not document:
            break
    text = json.dumps(document)
    if rng.random() < 0.02:
        text = text.replace("null", DEEP, 1)
    header["__metadata__"]["document"] = text
    return join(header, data)


def places(value: Any) -> Any:
    """Yield every entry of nested objects and lists."""
    keys = value if isinstance(value, dict) else range(len(value))
    for key in list(keys):
        yield value, key
        if isinstance(value[key], dict | list):
            yield from places(value[key])


def mutate_header(content: bytes, rng: random.Random) -> bytes:
    """Change the name, shape or type of a tensor."""
    header, data = split(content)
    name = rng.choice([key for key in header if key != "__metadata__"])
    match rng.randrange(5):
        case 0:
            header[name]["shape"] = [rng.choice([0, 1, 2, 10**6, 2**40]) for _ in range(3)]
        case 1:
            header[name]["shape"] = header[name]["shape"][::-1]
        case 2:
            header[name]["dtype"] = rng.choice(["F32", "F64", "I64", "I32", "BOOL", "BF16", "U8"])
        case 3:
            header[rng.choice(["chains.x", "a", "model"])] = header.pop(name)
        case _:
            header[name]["shape"] = [1, *header[name]["shape"]]
    return join(header, data)


def mutate_data(content: bytes, rng: random.Random) -> bytes:
    """Set elements of one tensor to special values."""
    header, data = split(content)
    entry = header[rng.choice([key for key in header if key != "__metadata__"])]
    begin, end = entry["data_offsets"]
    types = {"F32": np.float32, "F64": np.float64, "I64": np.int64, "I32": np.int32, "BOOL": bool}
    types |= {"U8": np.uint8, "I16": np.int16, "I8": np.int8, "U16": np.uint16}
    changed = bytearray(data)
    part = np.frombuffer(bytes(changed[begin:end]), types[entry["dtype"]]).copy()
    if part.size == 0:
        return content
    values = [math.nan, math.inf, -math.inf, 1e30, -1e30, 0, -1]
    if part.dtype.kind != "f":
        values = [0, 1, 2, 100] if part.itemsize < 4 else [0, -1, 1, 2, 2**31 - 1, -(2**31)]
    at = rng.sample(range(part.size), rng.randrange(1, part.size + 1)) if rng.random() < 0.5 else 0
    part[at] = rng.choice(values)
    changed[begin:end] = part.tobytes()
    return join(header, bytes(changed))


def mutate_bytes(content: bytes, rng: random.Random) -> bytes:
    """Change, remove or add bytes."""
    changed = bytearray(content)
    size = struct.unpack("<Q", content[:8])[0]
    for _ in range(rng.choice([1, 2, 10, 100])):
        changed[rng.randrange(rng.choice([9, size, len(changed)]))] = rng.randrange(256)
    match rng.randrange(4):
        case 0:
            return bytes(changed[: rng.randrange(len(changed))])
        case 1:
            return bytes(changed) + rng.randbytes(100)
    return bytes(changed)


def mutate_text(content: bytes, rng: random.Random) -> bytes:
    """Change the text of the JSON document: what Python's parser accepts and JSON has not."""
    header, data = split(content)
    text = header["__metadata__"]["document"]
    at = rng.randrange(len(text))
    match rng.randrange(6):
        case 0:
            text = text[:at]
        case 1:
            # the second of two equal keys counts
            text = '{"class": "MeanImputer", ' + text[1:-1] + ', "n_rows": 3}'
        case 2:
            number = rng.choice(["NaN", "-Infinity", "1e999", "9" * 5000, "1" * 300, "-0", "1.0"])
            text = re.sub(
                r"(?<=[:\[ ])-?\d+(\.\d+)?(?=[,\]}])", number, text, count=rng.randrange(1, 9)
            )
        case 3:
            text = text.replace('"', rng.choice(['"\\ud800', '"\\u0000', '"\u202e']), 20)
        case 4:
            text = rng.choice(["", "null", "[]", "{}", '""', "0", "{" * 9, text + text])
        case _:
            text = text[:at] + rng.choice(list('{}[],:"0 \n\\')) + text[at + 1 :]
    header["__metadata__"]["document"] = text
    return join(header, data)


def mutate_kind(content: bytes, rng: random.Random) -> bytes:
    """Change the class of the imputer, or the format of the file."""
    header, data = split(content)
    metadata = header["__metadata__"]
    document = json.loads(metadata["document"])
    match rng.randrange(4):
        case 0:
            document["class"] = rng.choice([*IMPUTERS, "os.system", "builtins.eval", "Imputer"])
        case 1:
            metadata["format_version"] = rng.choice(["", "0", "14", "-1", "1e9", "9" * 5000, "x"])
        case 2:
            metadata["format"] = rng.choice(["", "pt", "psmvae"])
        case _:
            return rng.choice([pickle.dumps({"a": 1}), b"PK\x03\x04" + content, content[8:], b""])
    metadata["document"] = json.dumps(document)
    return join(header, data)


def mixed(one: bytes, other: bytes, rng: random.Random) -> bytes:
    """Put the document of one model on the tensors of another."""
    header, data = split(one)
    own, foreign = header["__metadata__"], split(other)[0]["__metadata__"]
    if rng.random() < 0.5:
        own["document"] = foreign["document"]
        return join(header, data)
    documents = [json.loads(text["document"]) for text in (own, foreign)]
    for name in rng.sample(list(documents[1]), rng.randrange(1, len(documents[1]))):
        documents[0][name] = documents[1][name]
    own["document"] = json.dumps(documents[0])
    return join(header, data)


MUTATIONS = [*[mutate_document] * 5, mutate_header, mutate_header, mutate_data, mutate_data]
MUTATIONS += [mutate_bytes, mutate_text, mutate_kind]


def mutated(contents: list[bytes], seed: int, number: int) -> tuple[bytes, bytes]:
    """Return mutated file ``number``, and the file that it was made of."""
    rng = random.Random(f"{seed} {number}")  # noqa: S311
    original = rng.choice(contents)
    if rng.random() < 0.05:
        return mixed(original, rng.choice(contents), rng), original
    return rng.choice(MUTATIONS)(original, rng), original


def settings() -> tuple[Any, ...]:
    """Return what loading and imputing must leave as it is."""
    n_files = len(list(Path("/proc/self/fd").iterdir()))
    return n_files, random.getstate(), list(warnings.filters), np.geterr(), dict(os.environ)


def outcome(path: Path, frame: pd.DataFrame, expected: pd.DataFrame | None = None) -> str:
    """Load a file and impute with it; return "refused", "loaded", "failed" or a fault."""
    try:
        imputer = psmvae.load(path, device="cpu")
    except ValueError as error:
        return "refused" if str(path) in str(error) else "fault: the error does not name the file"
    try:
        filled = imputer.transform(frame)
        imputer.sample(frame, 1)
    except (ValueError, TypeError):
        return "loaded, and refused the table"
    # observed cells of derived columns are computed again where a column of the formula was filled
    observed = frame.notna() & ~frame.columns.isin(list(imputer.schema_.formulas))
    kept = (filled.where(observed) == frame.where(observed)) | ~observed
    if set(filled.columns) == set(frame.columns) and not kept.to_numpy().all():
        return "fault: observed cells changed"
    if expected is None:
        return "loaded"
    return "loaded, equal" if filled.equals(expected) else "loaded, other values"


class _TooLongError(Exception):
    pass


def _alarm(*_: object) -> None:
    raise _TooLongError


def main() -> int:
    """Run the mutations and print what happened."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    frame, counts = table(), Counter[str]()
    signal.signal(signal.SIGALRM, _alarm)
    with tempfile.TemporaryDirectory() as folder:
        contents = models(Path(folder), frame)
        path = Path(folder) / "mutated.safetensors"
        expected = {}
        for content in contents:
            path.write_bytes(content)
            if (first := outcome(path, frame)) != "loaded":
                raise AssertionError(first)
            expected[content] = psmvae.load(path, device="cpu").transform(frame)
        before = settings()
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, -1))
        numbers = range(arguments.n) if arguments.only is None else [arguments.only]
        for number in numbers:
            content, original = mutated(contents, arguments.seed, number)
            path.write_bytes(content)
            began = time.perf_counter()
            signal.alarm(SECONDS)
            try:
                found = outcome(path, frame, expected[original])
                if settings() != before:
                    found, before = "fault: settings of the process changed", settings()
            except Exception as error:  # noqa: BLE001
                found = f"fault: {type(error).__name__}"
                if arguments.only is not None:
                    traceback.print_exc()
                place = traceback.extract_tb(error.__traceback__)[-1]
                found += f" {Path(place.filename).name}:{place.lineno}"
            finally:
                signal.alarm(0)
            seconds = time.perf_counter() - began
            if found.startswith("fault") or seconds > SECONDS / 2:
                print(f"--seed {arguments.seed} --only {number}: {found} ({seconds:.1f} s)")
            counts[found] += 1
    for found, count in counts.most_common():
        print(f"{count:7,} {found}")
    return int(any(found.startswith("fault") for found in counts))


if __name__ == "__main__":
    sys.exit(main())
