"""Export and import of runs (being written)."""
