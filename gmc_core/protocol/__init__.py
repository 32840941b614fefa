"""What is held out and how it is judged: filters, splits, metrics, baselines."""
