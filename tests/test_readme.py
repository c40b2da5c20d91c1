"""The Python example of the README runs, and its links resolve."""

import re


def test_python_example_runs(root, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"```python\n(.*?)```", (root / "README.md").read_text(), re.DOTALL)
    names: dict[str, object] = {}
    exec(compile(code, "README.md", "exec"), names)
    assert not names["filled"].isna().any().any()
    assert names["again"].equals(names["filled"])
    assert len(names["draws"]) == 20
    assert (tmp_path / "model.safetensors").is_file()


def test_linked_files_exist(root):
    text = (root / "README.md").read_text()
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert (root / target).exists(), target
    for script in re.findall(r"`(benchmarks/\w+\.py)`", text):
        assert (root / script).is_file(), script


def test_readme_is_short(root):
    assert len((root / "README.md").read_text().splitlines()) <= 90
