"""How a row of the database becomes an object: a page of fifty makes two hundred and fifty."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from django.db import models
from django.db.models.base import ModelState


class Loaded(models.Model):
    """A model whose rows are taken as they were read.

    Django would put each value through the constructor that a new object needs, which asks of each
    whether it is given, and costs two thirds of a row. A column that was not read is asked for
    when it is used, as usual. `pre_init` and `post_init` are sent for new objects only.
    """

    class Meta:
        abstract = True

    @classmethod
    def from_db(
        cls,
        db: str | None,
        field_names: Sequence[str],  # type: ignore[override]
        values: Sequence[Any],  # type: ignore[override]
        *,
        fetch_mode: Any = None,
    ) -> Self:
        """`field_names` are names of attributes, in the order of `values`."""
        state = ModelState()
        state.adding, state.db = False, db
        if fetch_mode is not None:
            state.fetch_mode = fetch_mode
        row = cls.__new__(cls)
        row.__dict__.update(zip(field_names, values, strict=True), _state=state)
        return row
