"""Other methods and other packages on the same splits, with paired differences."""

from gmc_core.former import room_of_its_own_name

__getattr__ = room_of_its_own_name("gmc_core.comparison.compare")
