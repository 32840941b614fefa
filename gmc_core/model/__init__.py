"""A fitted model: predict, fold in, recommend, explain, complete, save; what Σ tells of items."""

from gmc_core.former import room_of_its_own_name

__getattr__ = room_of_its_own_name("gmc_core.model.gaussian_model")
