"""Measurements of speed and accuracy, as commands; nothing here is a test.

``python -m benchmarks`` prints this machine's rates and the cost of one iteration
at real sizes; ``python -m benchmarks.external`` compares whole fits with other
packages. Every iteration and every other package is measured in a process of its own.
"""
