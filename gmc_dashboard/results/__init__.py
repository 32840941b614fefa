"""Parts of the Results page; ``figures`` are functions that return them."""
