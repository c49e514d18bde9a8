"""What the program answers: dictionaries, rows of a table, drawings."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Callable, Iterator, Mapping, Optional, Sequence, Union

if TYPE_CHECKING:
    import pandas  # type: ignore[import]

Row = dict[str, Any]


def flat(value: Mapping[str, Any], prefix: str = "") -> Row:
    """Nested objects as one row, as {"memory": {"peak_bytes": 1}} has the column
    "memory.peak_bytes". Lists are left as they are."""
    row: Row = {}
    for key, inside in value.items():
        if isinstance(inside, Mapping):
            row.update(flat(inside, f"{prefix}{key}."))
        else:
            row[prefix + key] = inside
    return row


def to_frame(rows: Sequence[Row]) -> "pandas.DataFrame":
    try:
        import pandas
    except ImportError as error:
        raise ImportError(
            "frames need pandas (apt-get install python3-pandas); rows() does without"
        ) from error
    return pandas.DataFrame(list(rows))


class Answer(dict[str, Any]):
    """The object that a command prints with --json; docs/reference/json.md names its keys."""

    def __init__(self, value: Mapping[str, Any], notes: Sequence[str] = ()):
        super().__init__(value)
        self.notes = list(notes)  #: What the program said beside its answer.

    def rows(self) -> list[Row]:
        """Its plans, points, machines or operations as flat rows; one row where it has none."""
        for key in ("plans", "points", "rows", "operations"):
            if isinstance(self.get(key), list):
                return [flat(each) for each in self[key]]
        return [flat(self)]

    def frame(self) -> "pandas.DataFrame":
        """rows() as a table of pandas."""
        return to_frame(self.rows())


class Drawing:
    """An SVG document; notebooks show it."""

    def __init__(self, svg: str):
        self.svg = svg

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.svg)


class Sweep(Sequence[Row]):
    """Rows of a sweep, one for each point, and the folder that holds them."""

    def __init__(
        self,
        rows: list[Row],
        folder: str,
        draw: Callable[[Mapping[str, Any]], Drawing],
        owner: Optional[object] = None,
    ):
        self._rows = rows
        self.folder = folder
        self._draw = draw
        self._owner = owner  # Of a temporary folder, which goes with the last of us.

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index):  # type: ignore[no-untyped-def]
        return self._rows[index]

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows)

    def ok(self) -> list[Row]:
        """Points that can run, the fastest a GPU first."""
        fine = [row for row in self._rows if row["status"] == "ok"]
        return sorted(fine, key=lambda row: -float(row.get("tokens_per_s_per_gpu") or 0))

    def frame(self) -> "pandas.DataFrame":
        return to_frame(self._rows)

    def plot(self, **options: Any) -> Drawing:
        """As `orrery sweep plot`: kind="line", x="gbs", y="mfu", by="mbs", ..."""
        return self._draw(options)
