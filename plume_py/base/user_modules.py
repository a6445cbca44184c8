"""Import Python files of the user: adapters and programs."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from plume_py.base.errors import IsocheckError


def import_file(path: str, kind: str) -> ModuleType:
    """Import a file as a module and return it; the caller reports the errors of its code."""
    name = f"isocheck_{kind}_{Path(path).stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not Path(path).is_file():
        raise IsocheckError(f"{path}: no such file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look up their own module
    spec.loader.exec_module(module)
    return module
