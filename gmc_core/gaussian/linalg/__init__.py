"""Compiled building blocks of the E-step and the M-step.

``threads``   how many cores, one place for BLAS limits, a pool without the GIL
``lapack``    LAPACK and BLAS routines callable from compiled code
``cholesky``  factorization and solve of one large system
``vectors``   SIMD vectors as values in compiled code
``solve``     Cholesky solves of the users' systems, one by one or in lanes
``products``  sparse products of the M-step and dense helpers

Nothing here knows of users, items or ratings: rows are signals, columns are
coordinates.
"""
