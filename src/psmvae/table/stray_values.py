"""Text cells in a column of numbers, as errors and warnings report them."""

from __future__ import annotations

from dataclasses import dataclass

from psmvae.table.wording import N_SHOWN, counted


@dataclass(frozen=True)
class StrayValues:
    """The cells that keep a text column from being numeric.

    Parameters
    ----------
    column : str
        The column's name.
    n_numbers : int
        Number of cells that hold a number.
    words : dict of str to int
        Texts that are not numbers, most frequent first, with their numbers of cells.
    formatted : dict of str to int
        Numbers that are not parsed as such: with thousands separators or a decimal comma.
    """

    column: str
    n_numbers: int
    words: dict[str, int]
    formatted: dict[str, int]

    @property
    def codes(self) -> tuple[str, ...]:
        """The words that `message` lists."""
        return tuple(self.words)[:N_SHOWN]

    @property
    def remedy(self) -> str:
        """What a Python user can do about `words`."""
        them, values = (
            ("them", "missing values") if len(self.words) > 1 else ("it", "a missing value")
        )
        return f"replace {them} by {values} and convert the column to numbers"

    def message(self, remedy: str | None = None) -> str:
        """Return the cells and what to do about them.

        Parameters
        ----------
        remedy : str, optional
            A remedy for `words` in place of `remedy`.

        Returns
        -------
        str
            A clause that follows a statement about the column.

        Examples
        --------
        >>> StrayValues("income", 199, {"unknown": 1}, {}).message("drop it")
        "'unknown' (1 cell) is not a number, 199 other cells are; drop it"
        """
        parts = []
        if self.words:
            rest = f"{self.n_numbers:,} other cell{'s are' if self.n_numbers > 1 else ' is'}"
            verb = "are not numbers" if len(self.words) > 1 else "is not a number"
            parts.append(f"{counted(self.words)} {verb}, {rest}")
            parts.append(self.remedy if remedy is None else remedy)
        if self.formatted:
            verb = "are" if len(self.formatted) > 1 else "is"
            parts.append(
                f"{counted(self.formatted)} {verb} not parsed as a number; write numbers with a "
                "decimal point and without thousands separators"
            )
        return "; ".join(parts)
