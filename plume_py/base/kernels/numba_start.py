"""How numba is imported: by nobody else."""

import sys
import warnings
from typing import Any


def load_numba() -> Any:
    """Import numba, which must not be told anything by the folder at hand: it looks for settings there."""
    if "numba" not in sys.modules:
        yaml = sys.modules.get("yaml")
        sys.modules["yaml"] = None  # type: ignore[assignment]  # then it cannot read them
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # it would like to
                import numba
        finally:
            del sys.modules["yaml"]
            if yaml is not None:
                sys.modules["yaml"] = yaml
        numba.config._config_fname = ""  # nor later on
    return sys.modules["numba"]
