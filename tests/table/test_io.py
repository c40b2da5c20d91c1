"""Reading and writing files, and files that raise."""

import gzip

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")
feather = pytest.importorskip("pyarrow.feather")
pq = pytest.importorskip("pyarrow.parquet")
pc = pytest.importorskip("pyarrow.compute")

from psmvae.table import TableError, read_table, write_table  # noqa: E402
from psmvae.table.codec import Codec  # noqa: E402
from psmvae.table.io import mark_values, read_text  # noqa: E402
from psmvae.table.nulls import set_null  # noqa: E402
from psmvae.table.text import keep_text  # noqa: E402
from psmvae.table.text_types import mark_missing  # noqa: E402


class TestReadText:
    def test_missing_codes_and_types(self, csv):
        marks = ["", "NA", "N/A", "NaN", "nan", "null", "NULL", "None"]
        path = csv("n,r,s,b\n" + "".join(f"{m},{m},{m},{m}\n" for m in marks) + "1,2.5,x,true\n")
        table = read_table(path)
        assert [str(t) for t in table.schema.types] == ["int64", "double", "string", "bool"]
        assert all(column.null_count == len(marks) for column in table.columns)

    def test_question_mark_is_text_unless_given_as_na(self, csv):
        path = csv("a,b\n?,x\n1,?\n")
        assert read_table(path).to_pydict() == {"a": ["?", "1"], "b": ["x", "?"]}
        assert read_table(path, na=["?"]).to_pydict() == {"a": [None, 1], "b": ["x", None]}

    def test_given_codes_keep_columns_numeric(self, csv):
        table = read_table(csv("a,b\n-999,x\n1.5,unknown\n"), na=["-999", "unknown"])
        assert table.to_pydict() == {"a": [None, 1.5], "b": ["x", None]}
        assert mark_missing(read_text(csv("a\n-999\n9\n")), na="-999").to_pydict() == {
            "a": [None, "9"]
        }

    def test_integers_with_leading_zeros_stay_text(self, csv):
        table = read_table(csv("id,zero,n\n007,0,1.05\n8,10,02.5\n,5,3\n"))
        assert table.to_pydict() == {
            "id": ["007", "8", None],
            "zero": [0, 10, 5],
            "n": [1.05, 2.5, 3],
        }

    def test_types_are_inferred_from_all_rows(self, csv):
        rows = ["1"] * 400_000 + ["x"]
        assert str(read_table(csv("a\n" + "\n".join(rows) + "\n")).schema.types[0]) == "string"

    def test_quotes_newlines_tabs_bom_and_crlf(self, csv):
        path = csv('\ufeffa,b\r\n"x, ""y""\nz",1\r\nü,2\r\n')
        assert read_table(path).to_pydict() == {"a": ['x, "y"\nz', "ü"], "b": [1, 2]}
        path = csv("a\tb\nx,y\t1\n", "table.tsv")
        assert read_table(path).to_pydict() == {"a": ["x,y"], "b": [1]}

    def test_quotes_inside_cells_are_kept(self, csv):
        # a quote inside a cell is an ordinary character; two in a quoted cell are one
        path = csv('a,b\n5" pipe,1\n"3"" pipe",2\n"two\nlines, ""so""",3\n"""",4\n')
        expected = ['5" pipe', '3" pipe', 'two\nlines, "so"', '"']
        assert read_table(path).to_pydict() == {"a": expected, "b": [1, 2, 3, 4]}
        path = csv('\ufeff"a\nb"\tc\r\n"x\r\n\r\ny"\t1\r\n', "table.tsv")
        assert read_table(path).to_pydict() == {"a\nb": ["x\r\n\r\ny"], "c": [1]}

    def test_newlines_in_cells_of_a_large_file(self, csv):
        table = read_table(csv("aa,b\n" + '"x\n\ny",1\n' * 200_000))
        assert table.num_rows == 200_000
        assert table["aa"].unique().to_pylist() == ["x\n\ny"]

    def test_empty_line_of_a_single_column_is_missing(self, csv):
        assert read_table(csv("a\n1\n\n3\n")).to_pydict() == {"a": [1, None, 3]}
        assert read_table(csv("a,b\n1,2\n\n3,4\n")).num_rows == 2

    def test_compressed(self, csv):
        path = csv(gzip.compress(b"a,b\n1,x\n"), "table.csv.gz")
        assert read_table(path).to_pydict() == {"a": [1], "b": ["x"]}
        assert read_text(path).to_pydict() == {"a": ["1"], "b": ["x"]}

    def test_only_a_header(self, csv):
        table = read_table(csv("a,b\n"))
        assert (table.column_names, table.num_rows) == (["a", "b"], 0)

    def test_date_column_raises_in_the_codec(self, csv):
        with pytest.raises(TypeError, match="'day'"):
            Codec.fit(read_table(csv("day,a\n2020-01-01,1\n2020-01-02,2\n")))

    def test_read_text_returns_the_text_of_cells(self, csv):
        table = mark_missing(read_text(csv("a,b\n1.10,007\nNA,x\n")))
        assert table.to_pydict() == {"a": ["1.10", None], "b": ["007", "x"]}


class TestRefusedFiles:
    @pytest.mark.parametrize(
        ("content", "words"),
        [
            ("", "is empty"),
            ("\n\n", "is empty"),
            ("a,b\n1,2\n3\n4,5\n", "line 3 has 1 fields; expected 2"),
            ("a,b\n1,2\n3,4,5\n", "line 3 has 3 fields; expected 2"),
            ("a,b,a\n1,2,3\n", "unique.*'a'"),
            ("a;b\n1;2\n", "separated by ';'.*to_csv"),
            ("a\tb\n1\t2\n", "name it .tsv"),
            (b"a,b\n1,\xe4\n", "line 2 is not UTF-8"),
            (b"\xe4,b\n1,2\n", "line 1 is not UTF-8"),
            ("a,b\n1,2\n".encode("utf-16"), "not a text file"),
            (bytes(range(256)), "not a text file"),
            ('a,b\n"1,2\n', "line 2 opens a quote that is never closed"),
            ('a,b,c\n1,2,x\n2,3,"y\n3,,x\n4,5,z\n', "line 3 opens a quote that is never closed"),
            ('"a,b\n1,2\n', "line 1 opens a quote that is never closed"),
            ('a,b\n"x\ny",2\n3,"z\r\n4,5\r\n', "line 4 opens a quote that is never closed"),
            ('a,b\n1,"x\n2,y\n3,"z\n4,u\n', "line 2 opens a quote .* before line 4"),
            ('a,b\n1,"""x\n2,y\n', "line 2 opens a quote that is never closed"),
        ],
    )
    def test_text(self, csv, content, words):
        path = csv(content)
        for read in (read_table, read_text):
            with pytest.raises(TableError, match=rf"(?s)table\.csv.*{words}"):
                read(path)

    def test_broken_compression(self, csv):
        for content in (b"a,b\n1,2\n", gzip.compress(b"a,b\n1,2\n" * 99)[:-20]):
            with pytest.raises(TableError, match=r"table\.csv\.gz"):
                read_table(csv(content, "table.csv.gz"))

    @pytest.mark.parametrize("name", ["t.parquet", "t.feather", "t.arrow"])
    @pytest.mark.parametrize("content", [b"", b"PAR1 not really", b"ARROW1\0\0 no"])
    def test_binary(self, csv, name, content):
        with pytest.raises(TableError, match=f"{name}.*not a readable"):
            read_table(csv(content, name))

    def test_missing_file_folder_and_unknown_extension(self, tmp_path, csv):
        with pytest.raises(TableError, match="no such file"):
            read_table(tmp_path / "none.csv")
        with pytest.raises(TableError, match="is a folder"):
            read_table(tmp_path)
        with pytest.raises(TableError, match=r"unknown file format.*\.csv.*\.parquet"):
            read_table(csv("a\n1\n", "table.xlsx"))
        with pytest.raises(TableError, match="not a text file"):
            read_text(csv("a\n1\n", "table.parquet"))

    def test_duplicate_names_in_an_arrow_file(self, tmp_path):
        table = pa.Table.from_arrays([pa.array([1])] * 2, names=["a", "a"])
        pq.write_table(table, tmp_path / "t.parquet")
        with pytest.raises(TableError, match=r"unique.*a"):
            read_table(tmp_path / "t.parquet")


class TestBinaryFiles:
    @pytest.mark.parametrize("name", ["t.parquet", "t.feather", "t.arrow", "T.PARQUET"])
    def test_round_trip(self, tmp_path, name):
        table = pa.table(
            {
                "i": pa.array([1, None], pa.int16()),
                "d": pa.array(["x", None]).dictionary_encode(),
                "s": pa.array(["x", ""], pa.large_string()),
            }
        )
        write_table(table, tmp_path / name)
        again = read_table(tmp_path / name)
        assert again.schema == table.schema
        assert again.equals(table)

    def test_arrow_stream(self, tmp_path):
        table = pa.table({"a": [1, 2]})
        with pa.ipc.new_stream(str(tmp_path / "t.arrow"), table.schema) as stream:
            stream.write_table(table)
        assert read_table(tmp_path / "t.arrow").equals(table)

    def test_codes_are_compared_by_value(self, tmp_path):
        table = pa.table(
            {
                "i": [1, -999, None],
                "r": [1.5, -999.0, 2.0],
                "s": ["x", "?", "-999"],
                "b": [True] * 3,
            }
        )
        write_table(table, tmp_path / "t.parquet")
        again = read_table(tmp_path / "t.parquet", na=["-999", "?"])
        assert again.schema == table.schema
        assert again.to_pydict() == {
            "i": [1, None, None],
            "r": [1.5, None, 2.0],
            "s": ["x", None, None],
            "b": [True] * 3,
        }

    def test_partition_folder_name_is_not_a_column(self, tmp_path):
        (tmp_path / "year=2020").mkdir()
        path = tmp_path / "year=2020" / "t.parquet"
        write_table(pa.table({"a": [1]}), path)
        assert read_table(path).column_names == ["a"]


@pytest.mark.parametrize("ending", ["csv", "parquet", "feather"])
def test_the_index_of_pandas_is_not_written(ending, tmp_path):
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame({"a": [1.5, 2.5]}, index=pd.Index(["r", "s"], name="row"))
    write_table(table, tmp_path / f"t.{ending}")
    assert read_table(tmp_path / f"t.{ending}").to_pydict() == {"a": [1.5, 2.5]}


class TestWriteText:
    def test_shortest_numbers_and_minimal_quotes(self, tmp_path):
        table = pa.table(
            {
                "r": [0.1, 1.0, None],
                "f": pa.array([0.1, None, float("nan")], pa.float32()),
                "i": [2**60 + 1, None, 3],
                "s, t": ["x", 'say "hi"', "two\nlines"],
                "b": [True, False, None],
                "d": pa.array(["u", None, "v"]).dictionary_encode(),
            }
        )
        write_table(table, tmp_path / "t.csv")
        assert (tmp_path / "t.csv").read_text() == (
            'r,f,i,"s, t",b,d\n'
            "0.1,0.1,1152921504606846977,x,true,u\n"
            '1.0,,,"say ""hi""",false,\n'
            ',,3,"two\nlines",,v\n'
        )
        assert read_table(tmp_path / "t.csv")["s, t"].to_pylist() == table["s, t"].to_pylist()

    def test_tabs_and_compression(self, tmp_path):
        table = pa.table({"a": [1, None], "b": ["x\ty", "z"]})
        for name in ("t.tsv", "t.tsv.gz", "u.csv.gz"):
            write_table(table, tmp_path / name)
            assert read_table(tmp_path / name).equals(table)
        # no time and no name in the header, so the same table gives the same bytes
        assert (tmp_path / "t.tsv.gz").read_bytes()[3:8] == bytes(5)

    def test_single_column_with_missing_cells_round_trips(self, tmp_path):
        table = pa.table({"a": [1, None, None, 2]})
        write_table(table, tmp_path / "t.csv")
        assert read_table(tmp_path / "t.csv").equals(table)

    def test_other_frames(self, tmp_path):
        pd = pytest.importorskip("pandas")
        write_table(pd.DataFrame({"a": [1.5, np.nan]}), tmp_path / "t.csv")
        assert read_table(tmp_path / "t.csv").to_pydict() == {"a": [1.5, None]}
        with pytest.raises(TypeError, match="got dict"):
            write_table({"a": [1]}, tmp_path / "u.csv")

    def test_nested_columns_raise(self, tmp_path):
        with pytest.raises(TableError, match=r"t\.csv: cannot be written: .*list"):
            write_table(pa.table({"a": [[1]]}), tmp_path / "t.csv")
        assert list(tmp_path.iterdir()) == []


class TestKeepText:
    def test_observed_text_is_unchanged(self, csv, tmp_path):
        text = 'id,price,n,ok,s,void\nA1,1.10,1e3,TRUE,"x, y",\nA2,NA,2,,z,\nA1,3.00,,FALSE,,NA\n'
        path = csv(text)
        table = read_table(path)
        with pytest.warns(UserWarning, match="'void'"):
            codec = Codec.fit(table)
        x = codec.encode(table).x.copy()
        x[:, :] = 1.0
        filled = codec.fill(table, x)
        write_table(
            keep_text(filled, mark_missing(read_text(path))), tmp_path / "out.csv", inputs=[path]
        )
        assert (tmp_path / "out.csv").read_text() == (
            'id,price,n,ok,s,void\nA1,1.10,1e3,TRUE,"x, y",\nA2,3.0,2,TRUE,z,\n'
            "A1,3.00,1000.0,FALSE,z,\n"
        )

    @pytest.mark.parametrize(
        ("value", "text"),
        [
            (2.123456789, "2.12346"),
            (0.000012345678, "1.23457e-05"),
            (3.0, "3.0"),
            (1234567.0, "1234567.0"),
            (1e22, "1e+22"),
            (-0.5, "-0.5"),
        ],
    )
    def test_filled_numbers_have_six_digits(self, value, text):
        out = keep_text(pa.table({"a": [value]}), pa.table({"a": pa.array([None], pa.string())}))
        assert out["a"].to_pylist() == [text]

    @pytest.mark.parametrize(
        ("cells", "expected"),
        [
            (["True", "False", None, None], ["True", "False"]),
            (["TRUE", "TRUE", None, None], ["TRUE", "FALSE"]),
            (["true", "true", None, None], ["true", "false"]),
        ],
    )
    def test_filled_bools_use_the_spelling_of_the_file(self, cells, expected):
        values = [cell.lower() == "true" for cell in cells[:2]] + [True, False]
        out = keep_text(pa.table({"a": values}), pa.table({"a": cells}))
        assert out["a"].to_pylist() == cells[:2] + expected

    def test_tables_of_different_shape_raise(self):
        with pytest.raises(TableError, match="differ"):
            keep_text(pa.table({"a": [1]}), pa.table({"a": ["1", "2"]}))
        with pytest.raises(TableError, match="differ"):
            keep_text(pa.table({"a": [1]}), pa.table({"b": ["1"]}))


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_missing_cells_of_a_slice(kind):
    text = pa.chunked_array([pa.array(["a", "NA", "bb", "c", "dd"] * 20, kind)]).slice(30, 40)
    out = set_null(text, pc.is_in(text, pa.array(["NA"], kind)))
    out.validate(full=True)
    assert out.to_pylist() == [None if cell == "NA" else cell for cell in text.to_pylist()]


def test_codes_of_missing_cells_in_every_type(tmp_path):
    texts = ["a", "unknown", "b"]
    table = pa.table(
        {
            "dictionary": pa.array(texts).dictionary_encode(),
            "view": pa.array(texts, pa.string_view()),
            "decimal": pa.array([1, -999, 2], pa.decimal128(9, 2)),
            "kept": texts,
        }
    )
    found = mark_values(table, ["unknown", "-999"], keep=["kept"])
    assert found.schema == table.schema
    assert [column.null_count for column in found.columns] == [1, 1, 1, 0]
    assert found["dictionary"].to_pylist() == ["a", None, "b"]


def test_a_carriage_return_in_a_cell(tmp_path):
    cells = {"note": ["one\rtwo", "z"], "other": ["a,\r\nb", 'c"']}
    write_table(pa.table(cells), tmp_path / "t.csv")
    assert read_table(tmp_path / "t.csv").to_pydict() == cells


@pytest.mark.parametrize("name", ["T.CSV.GZ", "日" * 80 + ".csv"])
def test_unusual_file_names(tmp_path, name):
    write_table(pa.table({"a": [1, 2]}), tmp_path / name)
    assert read_table(tmp_path / name).to_pydict() == {"a": [1, 2]}
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_wide_text_file_has_few_chunks(tmp_path):
    # pyarrow reads blocks of 1 MiB by default, here of 6 rows
    path = tmp_path / "wide.csv"
    row = ",".join(["1.234567890123"] * 12_000)
    path.write_text("\n".join([",".join(f"x{j}" for j in range(12_000)), *[row] * 40]))
    table = read_table(path)
    assert table.shape == (40, 12_000)
    assert table.column(0).num_chunks == 1


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["1.5", "2"], "double"),
        (["1.5", " 2.0 "], "double"),
        (["1.5", "a"], "string"),
        (["1.5", "2020-01-01"], "string"),
        (["1.5e3", "-2"], "double"),
        (["-1.5", "007"], "double"),
    ],
)
def test_types_of_decimal_numbers(tmp_path, cells, kind):
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["x,y", *(f"{cell},a" for cell in cells)]))
    assert str(read_table(path).schema.field("x").type) == kind
