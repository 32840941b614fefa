"""Parts of the Data page; ``figures`` are functions that return them."""
