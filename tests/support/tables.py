"""The tables of the rehearsal's tests, which need no file of this folder."""

from rehearsal.tests.support.tables import row_by_row

__all__ = ["row_by_row"]
