"""A fitted model: predict, fold in, recommend, explain, complete, save; what Σ tells of items."""
