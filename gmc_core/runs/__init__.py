"""Runs that survive: the store, the worker that computes them, sweeps, reports."""
