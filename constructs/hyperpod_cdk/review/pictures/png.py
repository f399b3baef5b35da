"""Pictures as PNG, for viewers that show no SVG: the light colors, drawn by resvg with a font of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Final

SCALE: Final = 2
"""Pixels of the PNG for one of the SVG, so that the smallest text stays sharp."""
_FONT: Final = "Source Sans Pro"
_FILES: Final = ("SourceSansPro-Regular.ttf", "SourceSansPro-Semibold.ttf")


def png(svg: str) -> bytes:
    """Return the PNG of an SVG of ours, the same bytes on every machine, whatever fonts it has.

    Raises ModuleNotFoundError if the packages of the extra `pictures` are not installed.
    """
    import font_source_sans_pro  # noqa: PLC0415 - of an extra
    import resvg_py  # noqa: PLC0415 - of an extra

    fonts = Path(font_source_sans_pro.font_directory)
    return resvg_py.svg_to_bytes(
        svg_string=svg,
        skip_system_fonts=True,
        font_files=[str(fonts / name) for name in _FILES],
        font_family=_FONT,
        sans_serif_family=_FONT,
        zoom=SCALE,
    )
