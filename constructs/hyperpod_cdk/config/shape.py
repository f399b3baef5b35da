"""The type at a path of the environment file, read from the models so that messages agree with them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from hyperpod_cdk.config.source import DataPath


def bare(annotation: Any) -> Any:
    """Remove ``Annotated`` and ``| None`` from a type."""
    while True:
        origin = get_origin(annotation)
        if origin is Annotated:
            annotation = get_args(annotation)[0]
        elif origin in {Union, UnionType}:
            annotation = next(part for part in get_args(annotation) if part is not NoneType)
        else:
            return annotation


def optional(annotation: Any) -> bool:
    """Return whether a type allows None, that is an empty value in the file."""
    return get_origin(annotation) in {Union, UnionType} and NoneType in get_args(annotation)


def item_type(annotation: Any) -> Any:
    """Return the type of the items of a tuple or of the values of a dict; Any for other types."""
    kind = bare(annotation)
    origin = get_origin(kind)
    if origin is tuple:
        return get_args(kind)[0]
    return get_args(kind)[1] if origin is dict else Any


def model_of(annotation: Any) -> type[BaseModel] | None:
    """Return the model inside a type, or None."""
    kind = bare(annotation)
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def type_at(root: type[BaseModel], path: DataPath) -> Any:
    """Return the type of the value at ``path``; Any if the models have no such place."""
    annotation: Any = root
    for step in path:
        model = model_of(annotation)
        if model is None:
            annotation = item_type(annotation)
        else:
            info = model.model_fields.get(str(step))
            if info is None:
                return Any
            annotation = info.annotation
    return annotation


@cache
def places_of(root: type[BaseModel], key: str) -> tuple[str, ...]:
    """Return every section of ``root`` with the field ``key``, as messages write them: ``hyperpod.instance_groups[]``.

    The root itself is the empty text; entries of a mapping whose names are free are ``*``.
    """
    return tuple(place for place, model in sections_of("", root) if key in model.model_fields)


def sections_of(place: str, model: type[BaseModel]) -> Iterator[tuple[str, type[BaseModel]]]:
    """Go through the model at ``place`` and those below it, each with its place as ``places_of`` writes it."""
    yield place, model
    for name, info in model.model_fields.items():
        here = f"{place}.{name}" if place else name
        inner = info.annotation
        while model_of(inner) is None and get_origin(bare(inner)) in {tuple, dict}:
            here += "[]" if get_origin(bare(inner)) is tuple else ".*"
            inner = item_type(inner)
        below = model_of(inner)
        if below is not None:
            yield from sections_of(here, below)


def field_at(root: type[BaseModel], path: DataPath) -> FieldInfo | None:
    """Return the field at ``path``, or None if that is not a field of a model."""
    model = model_of(type_at(root, path[:-1])) if path else None
    return None if model is None else model.model_fields.get(str(path[-1]))
