"""Parts of the Sensitivity page; ``figures`` are functions that return them."""
