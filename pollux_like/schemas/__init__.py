"""Tool-schema normalisation: one walker by schema position, one small file per dialect, and the way back."""

from pollux_like.schemas.anthropic import (
    MAX_OPTIONAL_PARAMS,
    MAX_STRICT_TOOLS,
    MAX_UNION_PARAMS,
    StrictCosts,
    count_strict_costs,
)
from pollux_like.schemas.check import check_schema
from pollux_like.schemas.clean import clean_arguments
from pollux_like.schemas.normalise import Normalised, normalise

__all__ = [
    "MAX_OPTIONAL_PARAMS",
    "MAX_STRICT_TOOLS",
    "MAX_UNION_PARAMS",
    "Normalised",
    "StrictCosts",
    "check_schema",
    "clean_arguments",
    "count_strict_costs",
    "normalise",
]
