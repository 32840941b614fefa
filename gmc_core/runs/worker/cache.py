"""The data and the split that were used last, for the fits that share them."""

from __future__ import annotations

import threading

from gmc_core.fitting.config import OF_HELD_OUT, ExperimentConfig
from gmc_core.fitting.preparing import Prepared, make_split, prepare
from gmc_core.fitting.provenance import check_known
from gmc_core.protocol.random_splits import check_seeds
from gmc_core.protocol.splits import Split
from gmc_core.runs.store.submitting import source_of


class Cache:
    """The data and the split last used: the children of a sweep share them.

    Several threads may use it.
    """

    def __init__(self) -> None:
        self._changing = threading.RLock()
        self._data: tuple[str, Prepared] | None = None
        self._split: tuple[object, Split] | None = None

    def put(self, config: ExperimentConfig, prepared: Prepared) -> None:
        """Data that somebody has read already."""
        with self._changing:
            self._data, self._split = (source_of(config), prepared), None

    def has(self, config: ExperimentConfig) -> bool:
        """Whether the data have been read."""
        return self._data is not None and self._data[0] == source_of(config)

    def data(self, config: ExperimentConfig) -> Prepared:
        """The filtered data of an experiment.

        Raises
        ------
        GmcError
            As :func:`prepare`, also where they are here already and are not those expected.
        """
        with self._changing:
            if not self.has(config):
                self._data = self._split = None  # frees the old before the new is loaded
                self._data = (source_of(config), prepare(config))
            else:
                assert self._data is not None
                known = self._data[1]
                check_known(config, known.data_sha256, known.files, known.times_sha256)
                check_seeds(config.folds, config.seeds, known.ratings)
            return self._data[1]

    def split(self, config: ExperimentConfig, prepared: Prepared, seed: int) -> Split:
        """One split of it."""
        key = (
            prepared.data_sha256, config.protocol, seed, config.weak_users, config.strong_users,
            *(getattr(config, name) for name in OF_HELD_OUT),
        )  # fmt: skip
        with self._changing:
            if self._split is None or self._split[0] != key:
                self._split = (key, make_split(config, prepared, seed))
            return self._split[1]
