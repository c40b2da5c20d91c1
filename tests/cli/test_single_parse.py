"""A text file is parsed once, and its columns have the types that pyarrow infers."""

import io

import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest

from psmvae.table.text_types import infer_types

TEXT = """id,code,a,b,seen
1,007,1.50,x,2020-01-01
2,008,,y,NA
3,011,2.5,,2020-01-02
4,012,3.5,x,2020-01-03
"""

COLUMNS = {
    "integers": [" 1", "2 ", "-0", "0x1F"],
    "signed": ["+1.5"],
    "too large": ["9223372036854775808"],
    "floats": ["1.", ".5", "1e3", "-Infinity", "\t2"],
    "booleans": ["true", "0", "FALSE"],
    "zeros and ones": ["1", "0"],
    "odd booleans": ["tRUE", "yes"],
    "dates": ["2020-01-01", " 2020-12-31"],
    "no date": ["2020-02-30"],
    "times": ["12:30", "01:02:03"],
    "no times": ["25:00"],
    "fractional time": ["12:30:01.5"],
    "timestamps": ["2020-01-01", "2020-01-01 10:00", "2020-01-01T10:00:00"],
    "nanoseconds": ["2020-01-01T10:00:00.5"],
    "zoned": ["2020-01-01T10:00:00Z", "2020-01-01 10:00+01:00"],
    "some zoned": ["2020-01-01 10:00", "2020-01-01 10:00Z"],
    "words": ["x", "1"],
    "spaces": ["\u00a01", " "],
    "missing": ["", "NA"],
}


@pytest.fixture
def n_parses(monkeypatch):
    """Count the calls of pyarrow's CSV readers, which still read."""
    calls = []
    for name in ("read_csv", "open_csv"):
        reader = getattr(pa_csv, name)

        def counted(*args, reader=reader, **kwargs):
            calls.append(args[0])
            return reader(*args, **kwargs)

        monkeypatch.setattr(pa_csv, name, counted)
    return lambda: len(calls)


@pytest.mark.parametrize(
    "command",
    [
        ["impute", "-o", "out.csv", "--method", "mean", "--ignore", "seen"],
        ["impute", "-o", "out.parquet", "--method", "mean", "--ignore", "seen"],
        ["fit", "-o", "m.safetensors", "--method", "mean", "--ignore", "seen"],
        ["simulate", "-o", "out.csv", "--mechanism", "mcar", "--rate", "0.5"],
    ],
    ids=["impute", "impute to parquet", "fit", "simulate"],
)
def test_text_file_is_parsed_once(psmvae, n_parses, tmp_path, command):
    (tmp_path / "in.csv").write_text(TEXT)
    result = psmvae(command[0], "in.csv", *command[1:], cwd=tmp_path)
    assert result.code == 0, result.err
    assert n_parses() == 1


@pytest.mark.parametrize("cells", COLUMNS.values(), ids=COLUMNS)
def test_inferred_types_are_those_of_pyarrow(cells):
    text = "x,y\n" + "".join(f'"{cell}",1\n' for cell in cells)
    options = {"strings_can_be_null": True, "null_values": ["", "NA"]}

    def read(**more):
        convert = pa_csv.ConvertOptions(**options, **more)
        return pa_csv.read_csv(io.BytesIO(text.encode()), convert_options=convert)

    strings = read(column_types={"x": pa.string(), "y": pa.string()})
    assert infer_types(strings).equals(read())


def test_integers_with_leading_zeros_stay_text():
    table = infer_types(pa.table({"a": ["007", "12"], "b": ["007", "1.5"], "c": ["0", "-1"]}))
    assert table.schema.types == [pa.string(), pa.float64(), pa.int64()]
