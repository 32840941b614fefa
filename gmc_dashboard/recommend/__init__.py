"""Parts of the Recommend page; ``figures`` are functions that return them."""
