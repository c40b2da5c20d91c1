"""A Ray Dataset as a table whose rows have positions."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from psmvae.ray.cluster import connected_ray
from psmvae.sources.files import Batch
from psmvae.table.errors import TableError


@dataclass(frozen=True)
class BlockTable:
    """The blocks of a Ray Dataset in their order, with what `psmvae.streaming` needs of a table.

    Parameters
    ----------
    blocks : tuple of ObjectRef
        Arrow tables in Ray's object store. A worker gets those with the rows it needs.
    starts : tuple of int
        Position of the first row of each block, and the number of rows at the end.
    schema : pyarrow.Schema
        The columns.
    """

    blocks: tuple[Any, ...]
    starts: tuple[int, ...]
    schema: Any
    na: tuple[str, ...] = ()

    @classmethod
    def of(cls, dataset: Any) -> BlockTable:
        """Compute a Ray Dataset and find the positions of its blocks.

        Ray keeps the blocks in the memory of the cluster, and on its disks where this is full.

        Raises
        ------
        TableError
            If the dataset has no rows, or blocks that differ in their columns.
        """
        ray = connected_ray()
        dataset.context.execution_options.preserve_order = True
        found = dataset.materialize().to_arrow_refs()
        facts = ray.get([ray.remote(num_cpus=0)(_facts).remote(block) for block in found])
        kept = [(block, *fact) for block, fact in zip(found, facts, strict=True) if fact[0] > 0]
        if not kept:
            raise TableError("the dataset has no rows")
        starts = [0]
        for _, n_rows, _ in kept:
            starts.append(starts[-1] + n_rows)
        schema = _unified([schema for _, _, schema in kept])
        return cls(tuple(block for block, _, _ in kept), tuple(starts), schema)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.starts[-1]

    def batches(self, start: int = 0, stop: int | None = None) -> Iterator[Batch]:
        """Read the rows from ``start`` to ``stop``, one batch after another."""
        ray = connected_ray()
        stop = self.n_rows if stop is None else min(stop, self.n_rows)
        number = bisect_right(self.starts, start) - 1
        while start < stop:
            first, end = self.starts[number], min(stop, self.starts[number + 1])
            rows = ray.get(self.blocks[number]).slice(start - first, end - start)
            place = f"rows {start + 1} to {end} of the dataset"
            yield Batch(start, rows.select(self.schema.names).cast(self.schema), None, place)
            start, number = end, number + 1


def _facts(block: Any) -> tuple[int, Any]:
    return block.num_rows, block.schema


def _unified(schemas: Sequence[Any]) -> Any:
    """Return types that hold the columns of all blocks, such as those of a block of nulls."""
    for number, schema in enumerate(schemas):
        if set(schema.names) != set(schemas[0].names):
            raise TableError(
                f"block {number + 1} of the dataset has the columns {schema.names}, the first one "
                f"{schemas[0].names}"
            )
    try:
        return pa.unify_schemas(schemas, promote_options="permissive")
    except pa.ArrowException as error:
        raise TableError(f"the blocks of the dataset differ: {error}") from error
