"""Closed standard streams, terminals without Unicode, and pipes whose reader is gone."""

import json
import signal
import subprocess
import sys

import pytest

IN_ASCII = {"PYTHONIOENCODING": "ascii:strict"}


@pytest.fixture
def shell(environment, model, table, tmp_path):
    """Run a line of a shell in which ``psmvae``, $MODEL, $TABLE and $OUT are defined."""

    def run(line, **variables):
        text = f'psmvae() {{ "{sys.executable}" -m psmvae "$@"; }}; {line}'
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", text],
            env={
                **environment,
                "MODEL": str(model),
                "TABLE": str(table),
                "OUT": str(tmp_path / "out"),
                **variables,
            },
            capture_output=True,
            timeout=120,
            check=False,
        )
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    return run


@pytest.mark.slow
class TestInAShell:
    def test_a_reader_that_stops(self, shell):
        for options in ("", "--json"):
            line = f'psmvae info "$MODEL" {options} | {{ read line; echo "$line"; }}'
            code, out, err = shell(line)
            assert len(out.splitlines()) == 1
            assert err == ""
            assert code in (0, 141)

    def test_a_reader_that_is_gone(self, shell):
        code, _, err = shell('psmvae info "$MODEL" | true')
        assert (code, err) == (141, "")

    def test_messages_without_a_reader(self, shell, tmp_path):
        line = 'psmvae impute "$TABLE" -o "$OUT.csv" --method mean 2>&1 | true'
        assert shell(line)[0] == 0
        assert (tmp_path / "out.csv").exists()

    @pytest.mark.parametrize("closed", ["2>&-", ">&-", ">&- 2>&-", "<&- >&- 2>&-"])
    def test_closed_streams(self, shell, tmp_path, closed):
        line = 'psmvae impute "$TABLE" -o "$OUT.csv" --save-model "$OUT.safetensors" --method mean'
        code, _, err = shell(f"{line} {closed}")
        assert code == 0
        assert "Traceback" not in err
        assert (tmp_path / "out.csv").read_text().startswith("id,age,income,city,member\n1,34,")
        assert shell(f'psmvae info "$OUT.safetensors" {closed}')[0] == 0

    def test_a_full_disk(self, shell):
        code, _, err = shell('psmvae info "$MODEL" > /dev/full')
        assert code == 1
        assert err.startswith("error: [Errno 28] No space left on device")
        assert len(err.splitlines()) == 1
        assert shell('psmvae impute "$TABLE" -o "$OUT.csv" --method mean 2> /dev/full')[0] == 0

    def test_an_ascii_terminal(self, shell):
        code, out, err = shell('psmvae info "$MODEL"', **IN_ASCII)
        assert (code, err) == (0, "")
        assert out.isascii()
        code, out, err = shell('psmvae info "$OUT-ä.safetensors"', **IN_ASCII)
        assert code == 2
        assert r"out-\xe4.safetensors: there is no such file" in err

    def test_json_in_an_ascii_terminal(self, shell):
        code, out, _ = shell('psmvae info "$MODEL" --json', **IN_ASCII)
        assert code == 0
        assert json.loads(out)["model"] == "PSMVAEImputer"


def test_characters_are_spelled():
    import codecs

    from psmvae.cli.streams import prepare_streams

    prepare_streams()
    assert codecs.encode("1–2 ≥ β …", "ascii", "psmvae-spelled") == rb"1-2 >= \u03b2 ..."


def test_a_broken_pipe_in_this_process(psmvae, model, monkeypatch):
    def broken(*_, **__):
        raise BrokenPipeError

    monkeypatch.setattr("psmvae.cli.info._print", broken)
    # Windows does not have this signal
    monkeypatch.delattr(signal, "SIGPIPE", raising=False)
    result = psmvae("info", model)
    assert (result.code, result.err) == (141, "")


def test_progress_without_standard_error(monkeypatch):
    import numpy as np

    from psmvae import MIWAEImputer

    monkeypatch.setattr(sys, "stderr", None)
    table = np.array([[1.0, 2.0], [2.0, np.nan], [3.0, 5.0], [np.nan, 4.0]])
    imputer = MIWAEImputer(max_epochs=1, n_draws=2, draws="model", verbose=True, random_state=0)
    assert not np.isnan(imputer.fit_transform(table)).any()
