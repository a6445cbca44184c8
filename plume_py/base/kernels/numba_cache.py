"""numba's own cache of a function, in files that are checked when they are read; imported only where numba is."""

from typing import Any

from numba.core.caching import FunctionCache, IndexDataCacheFile

from plume_py.base.kernels.cache import read_checked, save_checked


class CheckedCache(FunctionCache):
    """The compiled forms of a function, by the types of its arguments."""

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        plain = self._cache_file
        self._cache_file = _CheckedFile(plain._cache_path, self._impl.filename_base, plain._source_stamp)


class _CheckedFile(IndexDataCacheFile):
    """The index of a function and its entries, one file each."""

    def _load_index(self) -> dict[Any, str]:
        found = read_checked(self._index_path)
        if found is None:
            return {}
        version, stamp, overloads = found
        is_fresh = version == self._version and stamp == self._source_stamp
        return dict(overloads) if is_fresh else {}

    def _save_index(self, overloads: dict[Any, str]) -> None:
        save_checked(self._index_path, self._dump((self._version, self._source_stamp, overloads)))

    def _load_data(self, name: str) -> Any:
        return read_checked(self._data_path(name))

    def _save_data(self, name: str, data: Any) -> None:
        save_checked(self._data_path(name), self._dump(data))
