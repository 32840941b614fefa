"""Fits on a Dask cluster: of this machine's processes, or of several machines.

    owner of the store                              a worker of the cluster
    Experiment, compare ── a task for each fit ───▶ tasks.perform: data by path and hash, or sent
    records, live       ◀── event topic ─────────── after each iteration
    result              ◀── future ──────────────── at the end
    cancel              ─── the future is given up ▶ asked before every piece of work

Only the owner writes to the store. Dask gives the task of a worker that died to another one; the
owner passes on each iteration's record once. Nothing here is imported before it is asked for, and
Dask itself only when a cluster is opened: it is the extra ``dask``.
"""
