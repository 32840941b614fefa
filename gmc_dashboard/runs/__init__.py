"""Parts of the Runs page; ``figures`` are functions that return them."""
