"""Ctrl-C during fit stops training with a warning and leaves a usable imputer."""

import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

from contract.registry import DEEP, IMPUTERS, VARIANTS

SCRIPT = """
import signal, sys, warnings
import numpy as np
from psmvae import PSMVAEImputer
from psmvae.table.errors import OutsideRangeWarning

# a background process may inherit a handler that ignores Ctrl-C
signal.signal(signal.SIGINT, signal.default_int_handler)
rng = np.random.default_rng(0)
table = rng.normal(size=(60, 1)) + 0.3 * rng.normal(size=(60, 4))
table[rng.random(table.shape) < 0.2] = np.nan

def report(progress):
    if progress.epoch == 1:
        print("ready", flush=True)

long = 10**6
imputer = PSMVAEImputer(n_draws=5, max_epochs=long, patience=long, random_state=0)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    imputer.fit(table, callback=report)
assert len(caught) == 1, caught
assert caught[0].category is UserWarning
assert "interrupted after" in str(caught[0].message), caught[0].message
assert "best weights" in str(caught[0].message), caught[0].message
assert caught[0].filename == "<string>", caught[0].filename
assert 1 <= imputer.n_epochs_ < long
assert len(imputer.history_) == imputer.n_epochs_
# few epochs may leave imputations outside the observed range
warnings.simplefilter("ignore", OutsideRangeWarning)
filled = imputer.transform(table)
assert np.isfinite(filled).all()
assert len(imputer.sample(table, n=2)) == 2
assert np.isfinite(imputer.score(table))
assert np.isfinite(imputer.best_validation_error_)
imputer.save(sys.argv[1])

# the default handler is restored
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
print("done", imputer.n_epochs_)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT cannot be sent to one process")
def test_ctrl_c_in_a_terminal(environment, tmp_path):
    path = tmp_path / "m.safetensors"
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(path)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout.readline() == "ready\n", process.stderr.read()
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 0, err
    assert out.startswith("done ")
    # older versions of PyTorch print a line about the processor on some machines
    assert [line for line in err.splitlines() if "cpuinfo" not in line] == []
    assert path.is_file()


@pytest.mark.parametrize("name", ["PSMVAE", "PSMVAE self", "GAIN"])
def test_an_interrupt_in_the_first_epoch(numbers, name):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        imputer = VARIANTS[name](max_epochs=50, n_members=2)
        with pytest.warns(UserWarning, match="interrupted after 1 epochs"):
            imputer.fit(numbers, callback=lambda _: signal.raise_signal(signal.SIGINT))
    finally:
        signal.signal(signal.SIGINT, before)
    assert imputer.n_epochs_ == 1
    assert np.isfinite(imputer.transform(numbers)).all()
    assert np.isfinite(np.stack(imputer.sample(numbers, n=2))).all()


@pytest.mark.parametrize("name", ["MICE", "MissForest"])
def test_a_chain_that_is_interrupted_is_not_fitted(numbers, name):
    """A chain cannot be used in part: KeyboardInterrupt is raised and the previous fit is kept."""
    imputer = VARIANTS[name]().fit(numbers)
    filled = imputer.transform(numbers)
    imputer.set_params(max_iter=10**6, tol=0.0)
    # no change is below a tolerance of zero, so that the rounds end with the signal only
    table = np.vstack([numbers] * 4)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            imputer.fit(table)
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
    assert imputer.n_rows_ == len(numbers)
    assert imputer.transform(numbers).tobytes() == filled.tobytes()


def test_a_signal_handler_of_the_caller_is_kept(quick, numbers):
    received = []

    def handler(number, frame):
        received.append(number)

    before = signal.signal(signal.SIGINT, handler)
    try:
        imputer = quick().fit(numbers, callback=lambda _: signal.raise_signal(signal.SIGINT))
        assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert received == [signal.SIGINT] * imputer.n_epochs_


@pytest.mark.parametrize("name", DEEP)
def test_the_callback_is_called_after_every_epoch(numbers, name):
    calls = []
    imputer = IMPUTERS[name](max_epochs=3).fit(numbers, callback=calls.append)
    assert [progress.epoch for progress in calls] == [1, 2, 3]
    assert calls == imputer.history_
    assert {progress.phase for progress in calls} == {"training"}
    assert all(progress.max_epochs == 3 for progress in calls)
    assert all(progress.validation_error > 0 for progress in calls)
    assert calls[-1].seconds_left == 0
