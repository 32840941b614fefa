"""Stored runs: the store, the worker that computes them, sweeps, reports."""
