"""Parts of the Fit page; ``figures`` are functions that return them."""
