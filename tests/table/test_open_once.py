"""An opened table reads each column once, and is filled any number of times."""

import numpy as np
import pytest

from psmvae.table.codec import Codec
from psmvae.table.frames import Frame, open_table

CELLS = {
    "real": [1.5, None, 3.5, 4.0],
    "word": ["a", "b", None, "b"],
    "bool": [True, None, False, True],
    "full": [1, 2, 3, 5],
}
# the rows with a missing cell
INCOMPLETE = np.array([False, True, True, False])


class CountingSource:
    """A source that counts how often each column is read."""

    def __init__(self, table):
        self.inside = open_table(table)
        self.names, self.n_rows = self.inside.names, self.inside.n_rows
        self.has_names, self.index = self.inside.has_names, self.inside.index
        self.n_reads = dict.fromkeys(range(len(self.names)), 0)

    def read(self, position):
        self.n_reads[position] += 1
        return self.inside.cells(position)

    def replace(self, new):
        return self.inside.replace(new)


def as_lists(table):
    if isinstance(table, np.ndarray):
        return table.T.tolist()
    if hasattr(table, "to_pydict"):
        return list(table.to_pydict().values())
    return [table[name].to_list() for name in table.columns]


def test_open_table_returns_a_frame_as_it_is(make):
    frame = open_table(make(CELLS))
    assert open_table(frame) is frame


def test_every_column_is_read_once(make):
    source = CountingSource(make(CELLS))
    frame = Frame(source)
    codec = Codec.fit(frame)
    encoded = codec.encode(frame)
    codec.fill(frame, encoded.x)
    filler = codec.filler(frame)
    for _ in range(3):
        filler(encoded.x)
    assert set(source.n_reads.values()) == {1}


def test_results_are_the_same_for_a_table_and_its_frame(make):
    table = make(CELLS)
    frame = open_table(table)
    codec = Codec.fit(table)
    assert Codec.fit(frame) == codec
    encoded = codec.encode(table)
    again = codec.encode(frame)
    assert np.array_equal(again.x, encoded.x)
    assert np.array_equal(again.m, encoded.m)
    assert as_lists(codec.fill(frame, encoded.x)) == as_lists(codec.fill(table, encoded.x))


def test_filler_with_values_of_incomplete_rows_only(make):
    table = make(CELLS)
    codec = Codec.fit(table)
    x = np.random.default_rng(0).normal(size=codec.encode(table).x.shape)
    filler = codec.filler(table, rows=INCOMPLETE)
    assert as_lists(filler(x[INCOMPLETE])) == as_lists(codec.fill(table, x))
    with pytest.raises(ValueError, match=r"\(row, column\) = \(2, 4\)"):
        filler(x)
    with pytest.raises(ValueError, match="every row with a missing cell"):
        codec.filler(table, rows=np.array([False, True, False, False]))


@pytest.mark.parametrize("library", ["pandas", "numpy"])
def test_filled_tables_share_no_writable_memory(library):
    if library == "numpy":
        table = np.array([[1.0, 2.0], [np.nan, 3.0], [2.5, 4.0]])
    else:
        pd = pytest.importorskip("pandas")
        table = pd.DataFrame({"a": [1.0, np.nan, 2.5], "b": [2.0, 3.0, 4.0]})
    codec = Codec.fit(table)
    filler = codec.filler(table)
    first, second = filler(np.zeros((3, 2))), filler(np.zeros((3, 2)))
    expected = as_lists(second)
    before = [column[:1] + column[2:] for column in as_lists(table)]
    if library == "numpy":
        first[:] = -1.0
    else:
        first.loc[:, :] = -1.0
    assert as_lists(second) == expected
    assert [column[:1] + column[2:] for column in as_lists(table)] == before
    assert as_lists(filler(np.zeros((3, 2)))) == expected
