"""Tool-schema normalisation: one walker by schema position, one small file per dialect, and the way back."""

from pollux_like.schemas.check import check_schema
from pollux_like.schemas.clean import clean_arguments
from pollux_like.schemas.normalise import Normalised, normalise

__all__ = ["Normalised", "check_schema", "clean_arguments", "normalise"]
