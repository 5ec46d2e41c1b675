"""Other tools: runs and judgments to and from ranx, pandas and polars; estimators for scikit-learn and PyTerrier.

`genm.interop.sklearn` and `genm.interop.pyterrier` are imported by name, since each needs its own library.
"""

from genm.interop.frames import from_ranx, to_dict, to_pandas, to_polars, to_ranx

__all__ = ["from_ranx", "to_dict", "to_pandas", "to_polars", "to_ranx"]
