"""Ratings as one immutable table, the formats they are read from, data sets by name."""
