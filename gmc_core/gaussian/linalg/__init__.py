"""Compiled building blocks of the E-step and the M-step.

``threads``    how many cores, one place for BLAS limits, a pool without the GIL
``progress``   which step goes on, and how much of it is done
``lapack``     LAPACK and BLAS routines callable from compiled code
``vectors``    SIMD vectors as values in compiled code
``cholesky``   factorization and solve of one large system
``solve``      Cholesky solves of the signals' systems, one by one or in lanes
``sweep``      inverse of one system by the sweep operator, for exact EM
``posterior``  inverses of the signals' systems, and their sum
``latent``     latent responses behind ordered ratings
``lowrank``    posteriors and loadings under W Wᵀ + D
``products``   sparse products of the M-step and dense helpers

Nothing here knows of users and items: rows are signals, columns are coordinates.
"""
